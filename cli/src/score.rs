//! `neuralcb score`: a policy's decisions on raw records.

use std::path::PathBuf;
use std::time::Instant;

use neuralcb_logs::check_distinct;
use neuralcb_logs::log::{Log, Want};
use neuralcb_logs::policy::Policy;
use neuralcb_logs::score::{ScoreOptions, score};

use crate::log_args::{LogArgs, LogBar};
use crate::{args, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The policy file
    policy: PathBuf,
    /// The records: files, a folder, or `-` for standard input; only the policy's features are read
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// The file of decisions to write: .csv, .jsonl or .parquet (`/dev/stdout` for standard output, as CSV)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Another β than the policy's own: no retraining is needed
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    beta: Option<f64>,
    /// Also write mean, width and bound of every action
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    log_args: LogArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut policy = Policy::load(&args.policy)?;
    if let Some(beta) = args.beta {
        policy = policy.with_beta(beta)?;
    }
    let schema = policy.preparation().schema();
    let log = Log::open_as(&args.data, &args.log_args.options()?, Want::CONTEXTS, schema)?;
    check_distinct(&args.out, log.paths().chain([args.policy.as_path()]))?;
    let mut bar = LogBar::new(&log);
    let scored = score(&policy, &log, &args.out, ScoreOptions { explain: args.explain }, &mut || bar.show("scoring"))?;
    bar.finish();
    if let Some(warning) = scored.unseen.warning() {
        talk::warning!("{warning}");
    }
    talk::say!("{} records in {:.2} s: {}", scored.rounds, started.elapsed().as_secs_f64(), args.out.display());
    Ok(())
}
