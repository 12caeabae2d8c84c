//! `neuralcb tune`: algorithm, mode, learning rate and β from the log alone.

use std::path::PathBuf;
use std::time::Instant;

use neuralcb_logs::log::{Log, Want};
use neuralcb_logs::policy::{Mode, Preset, Recipe};
use neuralcb_logs::tune::{HoldOut, TuneOptions, Tuned, tune};
use neuralcb_logs::{check_distinct, check_writable};

use crate::log_args::LogArgs;
use crate::{args, out};

#[derive(clap::Args)]
pub struct Args {
    /// The log: files, a folder, or `-` for standard input
    #[arg(required = true)]
    log: Vec<PathBuf>,
    /// The policy file to write: the winner, trained on the whole log
    #[arg(long, value_name = "POLICY")]
    out: PathBuf,
    /// Which rounds are held out to judge by: time (the last ones) or random
    #[arg(long, default_value = "time", value_parser = hold_out)]
    hold_out: HoldOut,
    /// How many of them
    #[arg(long, default_value_t = 0.3, allow_negative_numbers = true)]
    share: f64,
    /// That all bounds hold together
    #[arg(long, default_value_t = 0.95, allow_negative_numbers = true)]
    confidence: f64,
    /// β to try
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = args::number)]
    beta: Vec<f64>,
    /// Learning rates to try
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = args::number)]
    lr: Vec<f64>,
    /// Training modes to try; by default S, and B where it takes no more than about a minute
    #[arg(long, value_delimiter = ',', value_parser = args::recipe_mode)]
    mode: Vec<Mode>,
    /// Whose settings the candidates start from: practical, paper, released-code
    #[arg(long, value_parser = args::recipe_preset)]
    preset: Option<Preset>,
    /// A TOML file of settings that the candidates start from
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The seed
    #[arg(long)]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log_args: LogArgs,
}

fn hold_out(text: &str) -> Result<HoldOut, String> {
    match text {
        "time" => Ok(HoldOut::Time),
        "random" => Ok(HoldOut::Random),
        _ => Err("must be time or random".to_owned()),
    }
}

impl Args {
    fn options(&self) -> anyhow::Result<TuneOptions> {
        let base = self.config.as_deref().map(Recipe::from_toml).transpose()?.unwrap_or_default();
        let usual = TuneOptions::default();
        Ok(TuneOptions {
            base: Recipe { preset: self.preset.unwrap_or(base.preset), seed: self.seed.unwrap_or(base.seed), ..base },
            hold_out: self.hold_out,
            share: self.share,
            confidence: self.confidence,
            betas: if self.beta.is_empty() { usual.betas } else { self.beta.clone() },
            lrs: if self.lr.is_empty() { usual.lrs } else { self.lr.clone() },
            modes: (!self.mode.is_empty()).then(|| self.mode.clone()),
            propensities: usual.propensities,
        })
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let (options, started) = (args.options()?, Instant::now());
    check_writable(&args.out)?;
    let log = Log::open(&args.log, &args.log_args.options()?, Want::OUTCOMES)?;
    check_distinct(&args.out, log.paths())?;
    let spinner = indicatif::ProgressBar::new_spinner();
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    let tuned = tune(&log, &options, &mut |doing| spinner.set_message(doing.to_owned()))?;
    spinner.finish_and_clear();
    tuned.policy.save(&args.out)?;
    let about = tuned.policy.description();
    about.training.doubts(log.schema()).iter().for_each(|doubt| eprintln!("warning: {doubt}"));
    let text = if args.json { serde_json::to_string_pretty(&json(&tuned))? + "\n" } else { table(&tuned) };
    out::print(&text)?;
    if tuned.estimated_propensities {
        eprintln!("warning: the log has no propensities; they were ESTIMATED from it, and every number rests on that");
    }
    eprintln!("{:.1} s: {}", started.elapsed().as_secs_f64(), args.out.display());
    Ok(())
}

fn json(tuned: &Tuned) -> serde_json::Value {
    serde_json::json!({
        "held_out": tuned.held_out,
        "behaviour": tuned.behaviour,
        "estimated_propensities": tuned.estimated_propensities,
        "beats_the_log": tuned.beats_the_log(),
        "words": tuned.words,
        "candidates": tuned.tried,
    })
}

fn table(tuned: &Tuned) -> String {
    let maybe = |v: Option<f64>| v.map_or("-".to_owned(), |v| v.to_string());
    let mut text = format!(
        "{} candidates judged on {} held-out rounds, on which the log's own policy earned {:.4}\n\n",
        tuned.tried.len(),
        tuned.held_out,
        tuned.behaviour
    );
    text.push_str("  lower     value  covered  algorithm       mode  lr      sigma  beta\n");
    // the best ten, and the best of each algorithm
    let mut shown = Vec::new();
    for (i, t) in tuned.tried.iter().enumerate() {
        if i < 10 || !shown.contains(&t.algorithm) {
            shown.push(t.algorithm);
            let value = t.value.map_or("-".to_owned(), |v| format!("{v:.4}"));
            let mode = t.mode.map_or("-", Mode::name);
            text.push_str(&format!(
                "{:>7.4}  {value:>8}  {:>7.3}  {:<14}  {mode:<4}  {:<6}  {:<5}  {}\n",
                t.lower,
                t.coverage,
                t.algorithm.name(),
                maybe(t.lr),
                maybe(t.sigma),
                maybe(t.beta)
            ));
        }
    }
    text.push_str(&format!("\n{}\n", tuned.words));
    text
}
