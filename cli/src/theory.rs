//! `neuralcb theory`: what the paper's theory says about a bandit, in numbers and figures.

use std::path::PathBuf;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use neuralcb::LoggedData;
use neuralcb::theory::{Constants, Rule};
use neuralcb_experiments::theory::{Figure, Settings, Study, run as measure, run_study, table, write};
use neuralcb_experiments::{Dataset, Library};
use neuralcb_logs::OutDir;
use neuralcb_logs::datasets::cache_dir;
use neuralcb_logs::log::{Log, Preparation, PreparationConfig, Want};

use crate::log_args::LogArgs;
use crate::{args, out, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The bandit (quadratic, quadratic2, cosine, mushroom, statlog, adult or mnist), or a log of your own: a file or
    /// folder. Of a log the truth is not known, so figures (c) and (d) are left out
    #[arg(value_name = "DATASET|LOG")]
    subject: String,
    /// Rounds in the log; of a log of your own, the first so many
    #[arg(long, default_value_t = 400)]
    n: usize,
    /// m, units of the network's hidden layers
    #[arg(long, default_value_t = 64)]
    width: usize,
    /// L, layers of weights
    #[arg(long, default_value_t = 2)]
    depth: usize,
    /// λ [default: max(1, C_3² L), the least that the lemmas allow]
    #[arg(long, value_parser = args::number, allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// β_t of Algorithm 1: `theory` (Theorem 4.1) or a number
    #[arg(long, default_value = "theory", value_parser = args::rule, allow_negative_numbers = true)]
    beta: Rule,
    /// η_t of Algorithm 1: `theory` (Theorem 4.1) or a number
    #[arg(long, default_value = "theory", value_parser = args::rule, allow_negative_numbers = true)]
    step: Rule,
    /// ε of the behaviour policy
    #[arg(long, default_value_t = 0.1)]
    epsilon: f64,
    /// C_1, how nearly linear the network is near its start
    #[arg(long, default_value_t = Constants::default().c1)]
    c1: f64,
    /// C_2, how little the gradient changes near its start
    #[arg(long, default_value_t = Constants::default().c2)]
    c2: f64,
    /// C_3 of ‖∇_l f‖ ≤ C_3 √m
    #[arg(long, default_value_t = Constants::default().c3)]
    c3: f64,
    /// R, the noise's subgaussian constant; synthetic rewards have this standard deviation
    #[arg(long, default_value_t = Constants::default().noise)]
    noise: f64,
    /// δ, the probability with which the bound may fail
    #[arg(long, default_value_t = Constants::default().delta)]
    delta: f64,
    /// Figures, separated by commas: a (kernel), b (dimension), c (rate), d (coverage), e (cost), f (lemmas)
    #[arg(long, value_delimiter = ',', value_parser = figure, default_value = "a,b,c,d,e,f")]
    figures: Vec<Figure>,
    /// Repetitions of (c) and (d)
    #[arg(long, default_value_t = 3)]
    reps: usize,
    /// Test contexts
    #[arg(long, default_value_t = 300)]
    test_contexts: usize,
    /// Contexts nK up to which H is made; fewer rounds are taken where there are more
    #[arg(long, default_value_t = 12_000)]
    max_contexts: usize,
    /// Threads [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The seed of everything
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of the real data sets [default: $NEURALCB_DATA, else the cache that `neuralcb data` fills]
    #[arg(long)]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    log_args: LogArgs,
    /// Folder for `theory.html`, `theory.csv` and `figures/`
    #[arg(long, default_value = "results/theory")]
    out: PathBuf,
}

fn figure(text: &str) -> Result<Figure, String> {
    Figure::parse(text).ok_or_else(|| "must be one of a, b, c, d, e, f".to_owned())
}

/// The first rounds of a log, prepared to length 1 and with rewards mapped to [0, 1], as the theory has them.
fn study(args: &Args) -> anyhow::Result<Study> {
    let path = PathBuf::from(&args.subject);
    if !path.exists() && args.subject != "-" {
        let known: Vec<&str> = Dataset::ALL.iter().map(|d| d.name()).collect();
        anyhow::bail!("`{}` is neither a data set ({}) nor a log that is there", args.subject, known.join(", "));
    }
    let log = Log::open(&[path], &args.log_args.options()?, Want::OUTCOMES)?;
    let (preparation, summary) = Preparation::fit(&log, &PreparationConfig::default())?;
    let (mut blocks, mut rounds) = (Vec::new(), 0);
    for block in log.blocks() {
        if rounds >= args.n {
            break;
        }
        let block = preparation.logged(&block?)?;
        rounds += block.n_rounds();
        blocks.push(block);
    }
    let rounds = LoggedData::concat(blocks)?;
    let rounds = rounds.slice(0..rounds.n_rounds().min(args.n));
    let range = summary.max_reward - summary.min_reward;
    let unit = |r: &f64| if range > 0.0 { (r - summary.min_reward) / range } else { 0.0 };
    let rewards = rounds.rewards().iter().map(unit).collect();
    let propensities = rounds.propensities().map(<[f64]>::to_vec);
    let rounds = LoggedData::new(rounds.contexts().clone(), rounds.actions().to_vec(), rewards, propensities)?;
    Ok(Study::of_log(&args.subject, rounds, args.seed))
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let settings = Settings {
        dataset: Dataset::parse(&args.subject),
        n: args.n,
        width: args.width,
        depth: args.depth,
        lambda: args.lambda,
        epsilon: args.epsilon,
        beta: args.beta,
        step: args.step,
        constants: Constants { c1: args.c1, c2: args.c2, c3: args.c3, noise: args.noise, delta: args.delta },
        reps: args.reps,
        test_contexts: args.test_contexts,
        max_contexts: args.max_contexts,
        figures: args.figures.clone(),
        seed: args.seed,
    };
    settings.check()?;
    let own = match settings.dataset {
        Some(_) => None,
        None => Some(study(args)?),
    };
    let dir = OutDir::prepare(&args.out)?;
    let library = Library::new(args.data_dir.clone().unwrap_or_else(cache_dir));
    let threads = args.jobs.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads")?;
    let bar = ProgressBar::with_draw_target(Some(settings.figures.len() as u64 + 1), talk::progress());
    bar.set_style(ProgressStyle::with_template("{bar:20} {elapsed}  {msg}").expect("the template is well-formed"));
    let report = pool.install(|| {
        let talk = |what: &str| {
            bar.set_message(what.to_owned());
            bar.inc(1);
        };
        match &own {
            Some(study) => run_study(&settings, study, None, &talk),
            None => measure(&settings, &library, &talk),
        }
    })?;
    bar.finish_and_clear();
    write(&dir, &report)?;
    out::print(&table(&report))?;
    talk::say!("figures and explanations in {}", args.out.join("theory.html").display());
    Ok(())
}
