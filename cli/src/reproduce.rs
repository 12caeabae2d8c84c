//! `neuralcb reproduce`: the paper's experiments, from settings to report.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use neuralcb::policy::BehaviourConfig;
use neuralcb_experiments::{
    Algorithm, Dataset, Figure, Journal, Library, Plan, Preset, Results, Returned, Settings, Split, TrainingMode,
    run as run_plan, write_results, write_settings,
};
use neuralcb_logs::OutDir;
use neuralcb_logs::datasets::{Scale, cache_dir};

use crate::{args, report, talk};

/// The figures that can be reproduced.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Which {
    /// The synthetic bandits h1, h2, h3
    Fig1,
    /// Real data: Mushroom, Statlog, Adult, MNIST
    Fig2,
    /// Dependent data: a behaviour policy that learns while it logs, on Statlog and MNIST
    Fig3,
    /// S-mode against B-mode: cosine, Statlog, Adult, MNIST
    Fig4,
    /// Every figure; runs that several figures share are made once
    All,
}

/// The scale of real contexts.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Contexts {
    /// As in the files, categories one-hot
    Raw,
    /// As in the files, then every row of length 1
    RawUnitNorm,
    /// Every column with mean 0 and variance 1
    Standardised,
    /// Standardised, then every row of length 1
    UnitNorm,
}

#[derive(clap::Args)]
pub struct Args {
    /// Which figure of the paper
    #[arg(value_enum)]
    figure: Which,
    /// A first look: 3 repetitions (B-mode on MNIST: 1), 2,000 rounds, 1,000 test contexts, learning rate 0.001
    #[arg(long)]
    quick: bool,
    /// Whose set-up: `paper` (its text) or `released-code` (the code that came with it)
    #[arg(long, default_value = "paper", value_parser = args::preset(), ignore_case = true)]
    preset: Preset,
    /// Whose reading of the data, where it is not the preset's: `paper` or `released-code`
    #[arg(long, value_parser = args::preset(), ignore_case = true)]
    data: Option<Preset>,
    /// Scale of real contexts, where it is not the one of `--data`
    #[arg(long, value_enum)]
    contexts: Option<Contexts>,
    /// Real rows: `disjoint` (no test row is in a log) or `released-code` (test rows are training rows)
    #[arg(long, default_value = "disjoint", value_parser = args::split(), ignore_case = true)]
    split: Split,
    /// Fields of the networks that differ from the preset's, separated by commas, such as
    /// `layer_norm=false,duplicate_input=true,output_scale=one,depth=3,biases=true,init=uniform,width=50`
    #[arg(long, value_delimiter = ',', value_parser = args::field)]
    net: Vec<(String, serde_json::Value)>,
    /// Which policy is judged after n rounds: `latest` (the paper's experiments) or `vote` (of all so far, at every
    /// thirtieth of the log)
    #[arg(long, default_value = "latest", value_parser = args::returned(), ignore_case = true)]
    returned: Returned,
    /// Data sets of the figure, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = args::dataset(), ignore_case = true)]
    datasets: Option<Vec<Dataset>>,
    /// Algorithms, separated by commas [default: all but the other systems of Table 1: lin-greedy, tab-lcb, tab-greedy,
    /// relu-greedy and neural-retrain, whose time grows with n²]
    #[arg(long, value_delimiter = ',', value_parser = args::algorithm(), ignore_case = true)]
    algorithms: Option<Vec<Algorithm>>,
    /// Repetitions, each with its own bandit, log, test contexts and initial weights [default: 10]
    #[arg(long)]
    reps: Option<usize>,
    /// Repetitions of B-mode on MNIST, by far the longest runs [default: 3]
    #[arg(long)]
    mnist_b_reps: Option<usize>,
    /// Pessimism β, separated by commas, for every algorithm that has one [default: the paper's grid]
    #[arg(long, value_delimiter = ',', value_parser = args::number, allow_negative_numbers = true)]
    beta: Option<Vec<f64>>,
    /// Training modes S and B, separated by commas [default: both]
    #[arg(long, value_delimiter = ',', value_parser = args::mode(), ignore_case = true)]
    mode: Option<Vec<TrainingMode>>,
    /// Learning rates, separated by commas [default: 0.0001,0.001]
    #[arg(long, value_delimiter = ',', value_parser = args::number, allow_negative_numbers = true)]
    lr: Option<Vec<f64>>,
    /// Kernel widths σ of KernLCB, separated by commas [default: 0.1,1,10]
    #[arg(long, value_delimiter = ',', value_parser = args::number, allow_negative_numbers = true)]
    sigma: Option<Vec<f64>>,
    /// λ of every algorithm [default: 0.1]
    #[arg(long, value_parser = args::number, allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// Side of the cells in which tables count contexts as one [default: 0, only equal contexts are one]
    #[arg(long, value_parser = args::number, allow_negative_numbers = true)]
    cell: Option<f64>,
    /// The neural model's regularisation ½·l2·‖W‖² [default: 0.0001]
    #[arg(long, value_parser = args::number, allow_negative_numbers = true)]
    l2: Option<f64>,
    /// Rounds in the log [default: 10000 of synthetic bandits, 15000 of real data]
    #[arg(long)]
    n: Option<usize>,
    /// Test contexts [default: 10000, or what is left of a smaller data set]
    #[arg(long)]
    test_contexts: Option<usize>,
    /// Standard deviation of the synthetic rewards' noise; the paper's N(0, 0.1) can also be read as 0.3162 [default:
    /// 0.1]
    #[arg(long, value_parser = args::number, allow_negative_numbers = true)]
    noise_std: Option<f64>,
    /// Who makes the logs: uniform, epsilon-greedy:E, linucb:E [default: epsilon-greedy:0.1]
    #[arg(long, value_parser = args::behaviour)]
    behaviour: Option<BehaviourConfig>,
    /// Who makes the logs of fig3 [default: linucb:0.9, of the released code linucb:0.1]
    #[arg(long, value_parser = args::behaviour)]
    dependent: Option<BehaviourConfig>,
    /// Threads [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The seed of everything; the same seed gives the same result files with any number of threads
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of the real data sets [default: $NEURALCB_DATA, else the cache that `neuralcb data` fills]
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Folder for the results; a run that was killed goes on where it was [default: results/FIGURE]
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Args {
    fn settings(&self) -> anyhow::Result<Settings> {
        let figures: &[Figure] = match self.figure {
            Which::Fig1 => &[Figure::Fig1],
            Which::Fig2 => &[Figure::Fig2],
            Which::Fig3 => &[Figure::Fig3],
            Which::Fig4 => &[Figure::Fig4],
            Which::All => Figure::ALL,
        };
        let mut s = Settings::of(figures, self.preset);
        if self.quick {
            s = s.quick();
        }
        if let Some(datasets) = &self.datasets {
            if let Some(stranger) = datasets.iter().find(|d| !s.datasets.contains(d)) {
                let names: Vec<&str> = s.datasets.iter().map(|d| d.name()).collect();
                anyhow::bail!("{} does not show `{stranger}`, only {}", self.name(), names.join(", "));
            }
            s.datasets = datasets.clone();
        }
        set(&mut s.data, &self.data);
        s.scale = self.contexts.map(|c| match c {
            Contexts::Raw => Scale::Raw,
            Contexts::RawUnitNorm => Scale::RawUnitNorm,
            Contexts::Standardised => Scale::Standardised,
            Contexts::UnitNorm => Scale::UnitNorm,
        });
        s.split = self.split;
        s.net = self.net.iter().cloned().collect();
        s.returned = self.returned;
        set(&mut s.algorithms, &self.algorithms);
        set(&mut s.reps, &self.reps);
        set(&mut s.mnist_b_reps, &self.mnist_b_reps);
        set(&mut s.betas, &self.beta);
        set(&mut s.baseline_betas, &self.beta);
        set(&mut s.modes, &self.mode);
        set(&mut s.learning_rates, &self.lr);
        set(&mut s.sigmas, &self.sigma);
        set(&mut s.lambda, &self.lambda);
        set(&mut s.cell, &self.cell);
        set(&mut s.l2, &self.l2);
        set(&mut s.synthetic_rounds, &self.n);
        set(&mut s.real_rounds, &self.n);
        set(&mut s.test_contexts, &self.test_contexts);
        set(&mut s.noise_std, &self.noise_std);
        set(&mut s.behaviour, &self.behaviour);
        set(&mut s.dependent, &self.dependent);
        s.seed = self.seed;
        Ok(s)
    }

    fn name(&self) -> &'static str {
        match self.figure {
            Which::Fig1 => "fig1",
            Which::Fig2 => "fig2",
            Which::Fig3 => "fig3",
            Which::Fig4 => "fig4",
            Which::All => "all",
        }
    }
}

fn set<T: Clone>(field: &mut T, given: &Option<T>) {
    if let Some(given) = given {
        *field = given.clone();
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let plan = Plan::new(args.settings()?)?;
    let library = Library::new(args.data_dir.clone().unwrap_or_else(cache_dir));
    library.load(&plan.problems)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("results").join(args.name()));
    let dir = OutDir::prepare(&out)?;
    let journal = Journal::open(&out)?;
    write_settings(&dir, &plan.settings)?;
    let threads = args.jobs.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start threads")?;

    let start = Instant::now();
    let found = plan.tasks.iter().filter(|task| journal.find(&task.name).is_some()).count();
    if found > 0 {
        talk::say!("{found} of {} runs are already in {}: going on", plan.tasks.len(), out.display());
    }
    let bar = progress_bar(plan.work());
    let records = pool.install(|| run_plan(&plan, &library, Some(&journal), &|work| bar.inc(work)))?;
    bar.finish_and_clear();

    let results = Results::new(&plan, records.iter().map(Some));
    let seconds = start.elapsed().as_secs_f64();
    let figures =
        write_results(&dir, &plan, &results, report::run_info(pool.current_num_threads(), seconds, &records))?;
    report::print_tables(&figures)?;
    talk::say!(
        "done in {seconds:.1} s: {} rows in {}, report in {}",
        results.rows.len(),
        out.join("results.csv").display(),
        out.join("report.html").display()
    );
    Ok(())
}

/// A bar with the time left; it stays away where standard error is no terminal.
fn progress_bar(work: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(work), talk::progress());
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed} gone, about {eta} left");
    bar.set_style(style.expect("the template is well-formed"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
