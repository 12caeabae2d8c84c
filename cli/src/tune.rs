//! `neuralcb tune`: algorithm and pessimism from the log alone, with a certificate for the file that is written.

use std::path::PathBuf;
use std::time::Instant;

use neuralcb_logs::card::Kind;
use neuralcb_logs::evaluate::check_segments;
use neuralcb_logs::log::{Log, Want};
use neuralcb_logs::policy::{Algorithm, Mode, Preset, Recipe};
use neuralcb_logs::train::Step;
use neuralcb_logs::tune::{HoldOut, IfNotBetter, Scratch, TuneOptions, Tuned, held_out, tune_in};
use neuralcb_logs::{check_distinct, check_writable};

use crate::No;
use crate::card::CardArgs;
use crate::log_args::{LogArgs, LogBar};
use crate::{args, out, show, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The log: files, a folder, or `-` for standard input
    #[arg(required = true)]
    log: Vec<PathBuf>,
    /// The policy file to write, with its certificate
    #[arg(long, value_name = "POLICY")]
    out: PathBuf,
    /// Which rounds are held out to choose by and to certify on: time (the last ones) or random
    #[arg(long, default_value = "time", value_parser = hold_out)]
    hold_out: HoldOut,
    /// The share of rounds to choose by
    #[arg(long, default_value_t = 0.15, allow_negative_numbers = true)]
    choose: f64,
    /// The share of rounds to certify on
    #[arg(long, default_value_t = 0.25, allow_negative_numbers = true)]
    certify: f64,
    /// Learn from all rounds at the end: the certificate is then of the procedure
    #[arg(long)]
    refit: bool,
    /// What is written where nothing is shown to be better than the log's policy: clone (of that), keep or refuse
    #[arg(long, default_value = "clone", value_parser = if_not_better)]
    if_not_better: IfNotBetter,
    /// Exit 1 where nothing is shown to be better than the log's policy
    #[arg(long)]
    strict: bool,
    /// The confidence of the certificate
    #[arg(long, default_value_t = 0.95, allow_negative_numbers = true)]
    confidence: f64,
    /// The least and the greatest reward possible, as LOW,HIGH; by default those of the log, which is then said
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true, value_parser = args::range)]
    reward_range: Option<[f64; 2]>,
    /// The least probability that the log's policy gives any eligible action, where it is known: the certificate is
    /// tighter
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = args::number)]
    least_propensity: Option<f64>,
    /// The log's policy learned from its rewards while it made the log
    #[arg(long)]
    adaptive: bool,
    /// Algorithms to try; by default constant, clone, clone-rewarded, inverse-propensity, lin-lcb, regression, choice,
    /// neuralcb
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = args::recipe(), ignore_case = true)]
    algorithms: Vec<Algorithm>,
    /// β to try
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = args::number)]
    beta: Vec<f64>,
    /// Learning rates to try
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = args::number)]
    lr: Vec<f64>,
    /// Training modes to try [default: S]
    #[arg(long, value_delimiter = ',', value_parser = args::recipe_mode(), ignore_case = true)]
    mode: Vec<Mode>,
    /// Whose settings the candidates start from [default: practical]
    #[arg(long, value_parser = args::recipe_preset(), ignore_case = true)]
    preset: Option<Preset>,
    /// A TOML file of settings that the candidates start from
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the prepared rounds of a large log and what has been tried are kept while this runs: a killed run goes on
    /// from there [default: POLICY.tuning, for large logs only]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Threads; the answer is the same with any number [default: all]
    #[arg(long, value_name = "N")]
    jobs: Option<u16>,
    /// The seed
    #[arg(long)]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: CardArgs,
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

fn if_not_better(text: &str) -> Result<IfNotBetter, String> {
    match text {
        "keep" => Ok(IfNotBetter::Keep),
        "clone" => Ok(IfNotBetter::Clone),
        "refuse" => Ok(IfNotBetter::Refuse),
        _ => Err("must be keep, clone or refuse".to_owned()),
    }
}

impl Args {
    fn options(&self) -> anyhow::Result<TuneOptions> {
        let base = self.config.as_deref().map(Recipe::from_toml).transpose()?.unwrap_or_default();
        let usual = TuneOptions::default();
        Ok(TuneOptions {
            base: Recipe { preset: self.preset.unwrap_or(base.preset), seed: self.seed.unwrap_or(base.seed), ..base },
            hold_out: self.hold_out,
            choose: self.choose,
            certify: self.certify,
            refit: self.refit,
            if_not_better: self.if_not_better,
            confidence: self.confidence,
            reward_range: self.reward_range,
            least_propensity: self.least_propensity,
            adaptive: self.adaptive,
            algorithms: (!self.algorithms.is_empty()).then(|| self.algorithms.clone()),
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
    args.card.check(log.paths().chain([args.out.as_path()]))?;
    check_segments(&log, &args.card.segment)?;
    let scratch = self::scratch(args);
    let mut bar = LogBar::new(&log);
    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.map_or(0, usize::from)).build()?;
    let tuned = threads.install(|| {
        tune_in(&log, &options, &scratch, &mut |step| match step {
            Step::Preparing | Step::Training => bar.show("preparing"),
            Step::Learned(done, of) => bar.show_rounds("learning", done, of),
            Step::Fitted(done, of) => bar.show_rounds("fitting", done, of),
            Step::Doing(what, done, of) => bar.show_rounds(what, done, of),
        })
    })?;
    bar.finish();
    if let Some(policy) = &tuned.policy {
        policy.save(&args.out)?;
        let about = policy.description();
        about.training.doubts(log.schema()).iter().for_each(|doubt| talk::warning!("{doubt}"));
    }
    scratch.remove()?;
    if args.json || args.card.wanted() {
        let mut json = tuned.to_json();
        json["evaluation"] = serde_json::to_value(held_out(&log, &tuned, &options, &args.card.segment)?)?;
        args.card.write(Kind::Tune, &json)?;
        if args.json {
            out::print(&(serde_json::to_string_pretty(&json)? + "\n"))?;
        }
    }
    if !args.json {
        out::print(&table(&tuned))?;
    }
    if tuned.estimated_propensities {
        talk::warning!("the log has no propensities; they were ESTIMATED from it, and every number rests on that");
    }
    let seconds = started.elapsed().as_secs_f64();
    match &tuned.policy {
        None => {
            Err(No(format!("{seconds:.1} s: nothing is shown to beat the log's policy, so no file was written")).into())
        }
        Some(_) => {
            talk::say!("{seconds:.1} s: {}", args.out.display());
            let no = "nothing is shown to beat the policy that made the log";
            if args.strict && !tuned.beats_the_log() { Err(No(no.to_owned()).into()) } else { Ok(()) }
        }
    }
}

fn scratch(args: &Args) -> Scratch {
    let beside = || {
        let mut name = args.out.as_os_str().to_owned();
        name.push(".tuning");
        PathBuf::from(name)
    };
    Scratch { folder: args.scratch.clone().unwrap_or_else(beside), always: args.scratch.is_some() }
}

fn table(tuned: &Tuned) -> String {
    let maybe = |v: Option<f64>| v.map_or("-".to_owned(), |v| v.to_string());
    let [learn, choose, certify] = tuned.parts;
    let times = if tuned.folds > 1 { format!(", {} times in turn,", tuned.folds) } else { String::new() };
    let mut text = format!(
        "{} candidates learned from {learn} rounds{times} and were compared on {choose}; the certificate rests on {certify} \
         others, on which the log's own policy earned {:.4}\n",
        tuned.tried.len(),
        tuned.behaviour
    );
    if let Some(most) = tuned.sampled {
        text.push_str(&format!(
            "(the log is large: networks that pass over it several times learned from a random sample of at most {most} \
             rounds, 100000 while they were compared; all others from every round)\n"
        ));
    }
    text.push('\n');
    text.push_str("  score     value  covered  algorithm           mode  lr      sigma  beta\n");
    // the best ten, and the best of each algorithm
    let mut shown = Vec::new();
    for (i, t) in tuned.tried.iter().enumerate() {
        if i < 10 || !shown.contains(&t.algorithm) {
            shown.push(t.algorithm);
            let value = t.value.map_or("-".to_owned(), |v| format!("{v:.4}"));
            let mode = t.mode.map_or("-", Mode::name);
            text.push_str(&format!(
                "{:>7.4}  {value:>8}  {:>7.3}  {:<18}  {mode:<4}  {:<6}  {:<5}  {}\n",
                t.lower,
                t.coverage,
                t.algorithm.name(),
                maybe(t.lr),
                maybe(t.sigma),
                maybe(t.beta)
            ));
        }
    }
    let of_all = tuned.tried.len() - shown.len();
    if of_all > 0 {
        let (shown, all) = (shown.len(), tuned.tried.len());
        text.push_str(&format!(
            "({shown} of {all} candidates: the best ten, and the best of each algorithm; --json has all)\n"
        ));
    }
    text.push_str(&format!("\n{}\n", tuned.words));
    if let Some(certified) = tuned.policy.as_ref().and_then(|policy| policy.description().certified.as_ref()) {
        text.push_str(&show::granted(certified));
    }
    text
}
