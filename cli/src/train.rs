//! `neuralcb train`: from a log to a policy.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use neuralcb::ModelConfig;
use neuralcb::model::KernelConfig;
use neuralcb::theory::Rule;
use neuralcb_logs::log::{Log, PreparationConfig, Want};
use neuralcb_logs::policy::{Algorithm, Method, Mode, Preset, Recipe};
use neuralcb_logs::score::monotony;
use neuralcb_logs::train::{Checkpoint, Step, train};
use neuralcb_logs::{check_distinct, check_writable};

use crate::log_args::{LogArgs, LogBar};
use crate::{args, show, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The log: files (CSV, TSV, JSON lines, Parquet, dsjson), a folder of them, or `-` for standard input
    #[arg(required = true)]
    log: Vec<PathBuf>,
    /// The policy file to write
    #[arg(long, value_name = "POLICY")]
    out: PathBuf,
    /// What is trained [default: auto, chosen from the log alone]
    #[arg(long, value_parser = args::recipe(), ignore_case = true)]
    algorithm: Option<Algorithm>,
    /// Whose settings [default: practical]
    #[arg(long, value_parser = args::recipe_preset(), ignore_case = true)]
    preset: Option<Preset>,
    /// A TOML file of settings; flags go before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Pessimism β, or `theory` (β_n of Theorem 4.1); it can be turned later without retraining
    #[arg(long, allow_negative_numbers = true, value_parser = args::rule)]
    beta: Option<Rule>,
    /// Training mode of the neural model: S (one step per round) or B (100 steps on batches of 50)
    #[arg(long, value_parser = args::recipe_mode(), ignore_case = true)]
    mode: Option<Mode>,
    /// Learning rate of the network
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    lr: Option<f64>,
    /// Algorithm 1's SGD in place of Adam: its step η, or `theory` (η_t of Theorem 4.1)
    #[arg(long, allow_negative_numbers = true, value_parser = args::rule)]
    step: Option<Rule>,
    /// λ, the start of Λ [default: 0.1; where β or η is the theorem's, the least that it allows]
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    lambda: Option<f64>,
    /// σ of the kernel
    #[arg(long, allow_negative_numbers = true, value_parser = args::number)]
    sigma: Option<f64>,
    /// Networks of a learner on a shared trunk (choice, regression, viper, the clones)
    #[arg(long, value_name = "M")]
    members: Option<usize>,
    /// The action that `constant` plays
    #[arg(long, value_name = "NAME")]
    constant: Option<String>,
    /// Words of a category with places of their own, those seen most often [default: 1000]
    #[arg(long, value_name = "N")]
    max_categories: Option<usize>,
    /// The seed of initial weights and batches
    #[arg(long)]
    seed: Option<u64>,
    /// Keep the training in this file while it runs: a killed run goes on from it when the same command is given again
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Seconds between checkpoints
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    checkpoint_every: f64,
    #[command(flatten)]
    log_args: LogArgs,
}

impl Args {
    /// The settings file with the flags in front.
    fn recipe(&self) -> anyhow::Result<Recipe> {
        let base = self.config.as_deref().map(Recipe::from_toml).transpose()?.unwrap_or_default();
        Ok(Recipe {
            algorithm: self.algorithm.unwrap_or(base.algorithm),
            preset: self.preset.unwrap_or(base.preset),
            beta: self.beta.or(base.beta),
            mode: self.mode.or(base.mode),
            lr: self.lr.or(base.lr),
            step: self.step.or(base.step),
            lambda: self.lambda.or(base.lambda),
            sigma: self.sigma.or(base.sigma),
            members: self.members.or(base.members),
            action: self.constant.clone().or(base.action),
            seed: self.seed.unwrap_or(base.seed),
            preparation: PreparationConfig {
                max_categories: self.max_categories.unwrap_or(base.preparation.max_categories),
                ..base.preparation
            },
            ..base
        })
    }

    fn checkpoint(&self) -> anyhow::Result<Option<Checkpoint>> {
        let every = Duration::try_from_secs_f64(self.checkpoint_every);
        let every = every.map_err(|_| {
            anyhow::anyhow!("`checkpoint-every` must be a number of seconds >= 0, got {}", self.checkpoint_every)
        })?;
        Ok(self.checkpoint.clone().map(|path| Checkpoint { path, every }))
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let (recipe, checkpoint, started) = (args.recipe()?, args.checkpoint()?, Instant::now());
    check_writable(&args.out)?;
    let log = Log::open(&args.log, &args.log_args.options()?, Want::OUTCOMES)?;
    let kept = args.checkpoint.as_slice();
    for out in kept.iter().chain([&args.out]) {
        check_distinct(out, log.paths().chain(args.config.as_deref()).chain(args.log_args.schema.as_deref()))?;
    }
    check_distinct(&args.out, kept)?;
    let mut bar = LogBar::new(&log);
    let policy = train(&log, &recipe, checkpoint.as_ref(), &mut |step| match step {
        Step::Preparing => bar.show("preparing"),
        Step::Training => bar.show("training"),
        Step::Learned(done, of) => bar.show_rounds("training", done, of),
        Step::Fitted(done, of) => bar.show_rounds("fitting", done, of),
        Step::Doing(what, done, of) => bar.show_rounds(what, done, of),
    })?;
    bar.finish();
    let about = policy.description();
    about.training.doubts(log.schema()).iter().for_each(|doubt| talk::warning!("{doubt}"));
    if let Method::Model { config: ModelConfig::Kernel(KernelConfig { max_samples, .. }), .. } = &about.method
        && about.training.rounds > *max_samples as u64
    {
        let rounds = about.training.rounds;
        talk::warning!("kern-lcb learns from the first {max_samples} rounds of {rounds} (`max_samples` in --config)");
    }
    if let Some(doubt) = monotony(&policy, &log)? {
        talk::warning!("{doubt}");
    }
    if let Some(choice) = &about.chosen {
        talk::say!("{}", show::chosen(choice).trim_end());
    }
    policy.save(&args.out)?;
    checkpoint.map_or(Ok(()), |checkpoint| checkpoint.remove())?;
    let (about, layout) = (policy.description(), policy.preparation().layout());
    let beta = policy.beta().map_or(String::new(), |beta| format!(", β {beta}"));
    talk::say!(
        "{}{beta} from {} rounds ({} actions, {} features, mean reward {:.4}) in {:.1} s: {}",
        about.method.name(),
        about.training.rounds,
        layout.n_actions,
        layout.dim,
        about.training.mean_reward,
        started.elapsed().as_secs_f64(),
        args.out.display()
    );
    Ok(())
}
