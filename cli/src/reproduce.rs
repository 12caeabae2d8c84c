//! `neuralcb reproduce`: an experiment of the paper, from settings to report.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use neuralcb_experiments::{
    Algorithm, Dataset, Preset, Settings, TrainingMode, report, run as run_experiment, total_work, write_results,
};
use neuralcb_logs::OutDir;

use crate::args;

/// The figures that can be reproduced.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Figure {
    /// The synthetic bandits h1, h2, h3
    Fig1,
}

#[derive(clap::Args)]
pub struct Args {
    /// Which figure of the paper
    #[arg(value_enum)]
    figure: Figure,
    /// A first look: 3 repetitions, 2,000 rounds, 1,000 test contexts, learning rate 0.001
    #[arg(long)]
    quick: bool,
    /// Whose set-up: `paper` (its text) or `released-code` (the code that came with it)
    #[arg(long, default_value = "paper", value_parser = args::preset)]
    preset: Preset,
    /// Bandits, separated by commas: quadratic, quadratic2, cosine [default: all]
    #[arg(long, value_delimiter = ',', value_parser = args::dataset)]
    datasets: Option<Vec<Dataset>>,
    /// Algorithms, separated by commas: neuralcb, neural-greedy, neural-lin-lcb, neural-lin-greedy, lin-lcb, kern-lcb,
    /// uniform, behaviour [default: all]
    #[arg(long, value_delimiter = ',', value_parser = args::algorithm)]
    algorithms: Option<Vec<Algorithm>>,
    /// Repetitions, each with its own bandit, log, test contexts and initial weights
    #[arg(long)]
    reps: Option<usize>,
    /// Pessimism β, separated by commas, for every algorithm that has one [default: the paper's grid]
    #[arg(long, value_delimiter = ',', value_parser = args::number, allow_negative_numbers = true)]
    beta: Option<Vec<f64>>,
    /// Training modes S and B, separated by commas [default: both]
    #[arg(long, value_delimiter = ',', value_parser = args::mode)]
    mode: Option<Vec<TrainingMode>>,
    /// Learning rates, separated by commas [default: 0.0001,0.001]
    #[arg(long, value_delimiter = ',', value_parser = args::number, allow_negative_numbers = true)]
    lr: Option<Vec<f64>>,
    /// Kernel widths σ of KernLCB, separated by commas [default: 0.1,1,10]
    #[arg(long, value_delimiter = ',', value_parser = args::number, allow_negative_numbers = true)]
    sigma: Option<Vec<f64>>,
    /// Rounds in the log [default: 10000]
    #[arg(long)]
    n: Option<usize>,
    /// Test contexts [default: 10000]
    #[arg(long)]
    test_contexts: Option<usize>,
    /// Standard deviation of the rewards' noise; the paper's N(0, 0.1) can also be read as 0.3162 [default: 0.1]
    #[arg(long, value_parser = args::number, allow_negative_numbers = true)]
    noise_std: Option<f64>,
    /// Threads [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The seed of everything; the same seed gives the same result files with any number of threads
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the results [default: results/fig1]
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Args {
    fn settings(&self) -> Settings {
        let Figure::Fig1 = self.figure;
        let mut s = Settings::fig1(self.preset);
        if self.quick {
            s = s.quick();
        }
        set(&mut s.datasets, &self.datasets);
        set(&mut s.algorithms, &self.algorithms);
        set(&mut s.reps, &self.reps);
        set(&mut s.betas, &self.beta);
        set(&mut s.baseline_betas, &self.beta);
        set(&mut s.modes, &self.mode);
        set(&mut s.learning_rates, &self.lr);
        set(&mut s.sigmas, &self.sigma);
        set(&mut s.rounds, &self.n);
        set(&mut s.test_contexts, &self.test_contexts);
        set(&mut s.noise_std, &self.noise_std);
        s.seed = self.seed;
        s
    }
}

fn set<T: Clone>(field: &mut T, given: &Option<T>) {
    if let Some(given) = given {
        *field = given.clone();
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.settings();
    settings.check()?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&settings.figure));
    let dir = OutDir::prepare(&out)?;
    let threads = args.jobs.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads")?;

    let start = Instant::now();
    let bar = progress_bar(total_work(&settings));
    let results = pool.install(|| run_experiment(&settings, &|work| bar.inc(work)))?;
    bar.finish_and_clear();

    let curves = write_results(&dir, &settings, &results)?;
    print!("{}", report::table(&curves));
    eprintln!(
        "done in {:.1} s: {} rows in {}, report in {}",
        start.elapsed().as_secs_f64(),
        results.rows.len(),
        out.join("results.csv").display(),
        out.join("report.html").display()
    );
    Ok(())
}

/// A bar with the time left; it stays away where standard error is no terminal.
fn progress_bar(work: u64) -> ProgressBar {
    let bar = ProgressBar::new(work);
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed} gone, about {eta} left");
    bar.set_style(style.expect("the template is well-formed"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
