//! `neuralcb simulate`: a log of decisions with known propensities.

use std::path::PathBuf;

use neuralcb::LoggedData;
use neuralcb::policy::BehaviourConfig;
use neuralcb_experiments::{Dataset, Figure, Library, Preset, Problem, Settings, behaviour_name};
use neuralcb_logs::datasets::cache_dir;
use neuralcb_logs::log::write_parquet;
use neuralcb_logs::{atomic, write_log};

use crate::{args, out};

#[derive(clap::Args)]
pub struct Args {
    /// The bandit: quadratic, quadratic2, cosine, mushroom, statlog, adult or mnist
    #[arg(value_parser = args::dataset)]
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
    #[arg(long, default_value = "paper", value_parser = args::preset)]
    preset: Preset,
    /// The file to write: CSV, or Parquet where the name ends with .parquet; `-` for CSV on standard output
    #[arg(long)]
    out: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let log = simulate(args)?;
    if args.out.as_os_str() == "-" {
        return out::stream(|to| write_log(&log, to));
    }
    let parquet = args.out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
    atomic::write_with(&args.out, |to| if parquet { write_parquet(&log, to) } else { write_log(&log, to) })?;
    let (mean, policy) = (log.rewards().iter().sum::<f64>() / args.n as f64, behaviour_name(&args.behaviour));
    eprintln!("{} rounds of {} under {policy}, mean reward {mean:.4}: {}", args.n, args.dataset, args.out.display());
    Ok(())
}

fn simulate(args: &Args) -> anyhow::Result<LoggedData> {
    let settings = Settings {
        datasets: vec![args.dataset],
        behaviour: args.behaviour.clone(),
        synthetic_rounds: args.n,
        real_rounds: args.n,
        test_contexts: 1,
        ..Settings::of(&[Figure::Fig1, Figure::Fig2], args.preset)
    };
    settings.check()?;
    let problem = settings.problems().remove(0);
    Ok(Problem::draw(&problem, &Library::new(cache_dir()), 0, args.seed)?.log)
}
