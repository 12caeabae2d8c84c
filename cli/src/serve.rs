//! `neuralcb serve`: policies that decide live.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use neuralcb_logs::log::Missing;
use neuralcb_server::decide::{Exploration, Explore};
use neuralcb_server::http::Limits;
use neuralcb_server::journal::Durability;
use neuralcb_server::service::{Mode, OnLogFailure, ServiceConfig};
use neuralcb_server::{RunConfig, run as serve};

use crate::{args, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The policy file that decides
    #[arg(required_unless_present = "policy")]
    file: Option<PathBuf>,
    /// A policy under a name, many times; the first (or POLICY, which is called `champion`) decides, the others decide
    /// in its shadow
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    policy: Vec<(String, PathBuf)>,
    /// The folder of the decision log; made where it is missing
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where to listen; beyond this machine only with --token-file
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// A file with a line `rank|read|admin TOKEN` for each token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// TLS: a PEM file of certificates, the server's own first
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// TLS: a PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Who decides: online (the policy), apprentice (the caller's first action), logging (the caller's probabilities)
    #[arg(long, default_value = "online")]
    mode: Mode,
    /// How the policy's choice is left: none, epsilon=E, softmax=T
    #[arg(long, default_value = "none")]
    explore: Explore,
    /// The least probability of every action
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    floor: f64,
    /// The seed of exploration
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// When a request is answered: sync (its record is on the disk) or batch (it is written, and on the disk within 100
    /// ms)
    #[arg(long, default_value = "sync", value_parser = durability)]
    durability: Durability,
    /// What happens to a decision that cannot be logged: refuse, or serve (given and counted as unlogged)
    #[arg(long, default_value = "refuse")]
    on_log_failure: OnLogFailure,
    /// MiB after which a segment of the log is closed
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    segment_mib: u64,
    /// Time after which a segment of the log is closed
    #[arg(long, default_value = "1h", value_parser = args::time)]
    segment_age: Duration,
    /// A number that is not there becomes its column's mean, instead of making its request bad
    #[arg(long)]
    fill_missing: bool,
    /// How long the page's statistics wait for a reward
    #[arg(long, default_value = "10m", value_parser = args::time)]
    wait: Duration,
    /// What the page's statistics take where no reward has come by then
    #[arg(long, default_value_t = 0.0, value_parser = args::number)]
    default_reward: f64,
    /// The most bytes of a request's body
    #[arg(long, default_value_t = Limits::default().max_body)]
    max_body: usize,
    /// The most bytes of a policy file that is posted
    #[arg(long, default_value_t = Limits::default().max_policy)]
    max_policy: usize,
    /// The most actions of a request
    #[arg(long, default_value_t = ServiceConfig::default().max_actions)]
    max_actions: usize,
    /// The most connections at a time
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
    /// Time for the head of a request, between two requests of a connection, and for a caller to take its answer
    #[arg(long, default_value = "30s", value_parser = args::time)]
    head_time: Duration,
    /// Time for the body of a request
    #[arg(long, default_value = "10s", value_parser = args::time)]
    body_time: Duration,
}

pub fn run(args: Args) -> anyhow::Result<()> {
    let champion = args.file.map(|file| ("champion".to_owned(), file));
    let config = RunConfig {
        policies: champion.into_iter().chain(args.policy).collect(),
        data: args.data,
        listen: args.listen,
        token_file: args.token_file,
        tls: args.tls_cert.zip(args.tls_key),
        durability: args.durability,
        segment_bytes: args.segment_mib << 20,
        segment_age: args.segment_age,
        missing: if args.fill_missing { Missing::Mean } else { Missing::Refuse },
        service: ServiceConfig {
            mode: args.mode,
            exploration: Exploration { explore: args.explore, floor: args.floor },
            seed: args.seed,
            on_log_failure: args.on_log_failure,
            max_actions: args.max_actions,
            wait: args.wait,
            default_reward: args.default_reward,
            ..ServiceConfig::default()
        },
        limits: Limits {
            max_body: args.max_body,
            max_policy: args.max_policy,
            max_connections: args.max_connections as usize,
            head_time: args.head_time,
            body_time: args.body_time,
            ..Limits::default()
        },
    };
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    serve(config, |address| talk::say!("listening on {scheme}://{address}"))?;
    Ok(())
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !file.is_empty() && is_name(name) => Ok((name.to_owned(), file.into())),
        _ => Err("must be NAME=FILE, with a name of letters, digits, `-` and `_`".to_owned()),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn probability(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| "must be a number in [0, 1]".to_owned())
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "sync" => Ok(Durability::Sync),
        "batch" => Ok(Durability::Batch),
        _ => Err("must be sync or batch".to_owned()),
    }
}
