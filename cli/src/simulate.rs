//! `neuralcb simulate`: a log of decisions with known propensities.

use std::path::PathBuf;

use neuralcb::LoggedData;
use neuralcb::policy::BehaviourConfig;
use neuralcb_experiments::{Dataset, Figure, Library, Preset, Problem, Settings, behaviour_name};
use neuralcb_logs::datasets::cache_dir;
use neuralcb_logs::log::write_parquet;
use neuralcb_logs::{atomic, write_log};

use crate::client::{self, Traffic};
use crate::out::stream;
use crate::{args, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The bandit: three synthetic ones and, where they are in the cache, the real data sets
    #[arg(value_parser = args::dataset(), ignore_case = true)]
    dataset: Dataset,
    /// Rounds
    #[arg(long)]
    n: usize,
    /// The seed of bandit, contexts, actions and rewards
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Who acts: uniform, epsilon-greedy:E, linucb:E (a mixture with the best action), or table:FILE (one probability
    /// per line)
    #[arg(long, default_value = "epsilon-greedy:0.1", value_parser = args::behaviour)]
    behaviour: BehaviourConfig,
    /// Contexts as in the paper's text (a vector per action: a line per action of a round) or as in the released code
    /// (one vector per round: a line per round)
    #[arg(long, default_value = "paper", value_parser = args::preset(), ignore_case = true)]
    preset: Preset,
    /// The file to write: CSV, or Parquet where the name ends with .parquet; `-` for CSV on standard output
    #[arg(long, required_unless_present = "client")]
    out: Option<PathBuf>,
    /// Instead of writing a log: ask a server, such as http://127.0.0.1:8080, for every decision and send it the
    /// rewards
    #[arg(long, value_name = "URL", conflicts_with = "out")]
    client: Option<String>,
    #[command(flatten)]
    traffic: Traffic,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(url) = &args.client {
        let bandit = settings(args)?.problems().remove(0).bandit(&Library::new(cache_dir()), args.seed)?;
        return client::run(url, bandit.as_ref(), args.n, args.seed, &args.traffic);
    }
    let out = args.out.as_deref().expect("clap asks for it");
    let log = simulate(args)?;
    if out.as_os_str() == "-" {
        return stream(|to| write_log(&log, to));
    }
    let parquet = out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
    atomic::write_with(out, |to| if parquet { write_parquet(&log, to) } else { write_log(&log, to) })?;
    let (mean, policy) = (log.rewards().iter().sum::<f64>() / args.n as f64, behaviour_name(&args.behaviour));
    talk::say!("{} rounds of {} under {policy}, mean reward {mean:.4}: {}", args.n, args.dataset, out.display());
    Ok(())
}

fn simulate(args: &Args) -> anyhow::Result<LoggedData> {
    let problem = settings(args)?.problems().remove(0);
    Ok(Problem::draw(&problem, &Library::new(cache_dir()), 0, args.seed)?.log)
}

fn settings(args: &Args) -> anyhow::Result<Settings> {
    let settings = Settings {
        datasets: vec![args.dataset],
        behaviour: args.behaviour.clone(),
        synthetic_rounds: args.n,
        real_rounds: args.n,
        test_contexts: 1,
        ..Settings::of(&[Figure::Fig1, Figure::Fig2], args.preset)
    };
    settings.check()?;
    Ok(settings)
}
