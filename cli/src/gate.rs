//! `neuralcb gate`: may this policy replace that one? Exit 0 yes, 1 not shown, 2 failed.

use std::path::PathBuf;

use neuralcb::policy::PropensityConfig;
use neuralcb_logs::card::Kind;
use neuralcb_logs::gate::{GateOptions, gate};
use neuralcb_logs::log::{Log, Want};
use neuralcb_logs::policy::Policy;

use crate::No;
use crate::card::CardArgs;
use crate::log_args::{LogArgs, LogBar};
use crate::{args, out, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The policy file that is to replace the other
    new: PathBuf,
    /// A log of rounds that neither policy learned from: files or a folder, which may grow from one question to the
    /// next
    #[arg(required = true)]
    log: Vec<PathBuf>,
    /// The policy file to be replaced
    #[arg(long, value_name = "OLD")]
    against: PathBuf,
    /// 1 less the probability of ever saying yes to a policy that is no better, however often the question is put
    #[arg(long, default_value_t = 0.95, allow_negative_numbers = true)]
    confidence: f64,
    /// The least and the greatest reward possible, as LOW,HIGH; by default those of the log, with a warning
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true, value_parser = args::range)]
    reward_range: Option<[f64; 2]>,
    /// The least probability that the log's policy gives any eligible action, where it is known: less rounds are needed
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = args::number)]
    least_propensity: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: CardArgs,
    #[command(flatten)]
    log_args: LogArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let [new, old] = [Policy::load(&args.new)?, Policy::load(&args.against)?];
    let log = Log::open_as(&args.log, &args.log_args.options()?, Want::OUTCOMES, new.preparation().schema())?;
    let options = GateOptions {
        confidence: args.confidence,
        reward_range: args.reward_range,
        least_propensity: args.least_propensity,
        propensities: PropensityConfig::default(),
        segments: args.card.segment.clone(),
    };
    args.card.check(log.paths().chain([args.new.as_path(), args.against.as_path()]))?;
    let mut bar = LogBar::new(&log);
    let gated = gate(&new, &old, &log, &options, &mut |doing| bar.show(doing))?;
    bar.finish();
    gated.warnings.iter().for_each(|warning| talk::warning!("{warning}"));
    let json = serde_json::to_value(&gated)?;
    args.card.write(Kind::Gate, &json)?;
    if args.json {
        out::print(&(serde_json::to_string_pretty(&json)? + "\n"))?;
    }
    match (gated.promote, args.json) {
        (true, true) => Ok(()),
        (true, false) => out::print(&format!("{}\n", gated.words)),
        (false, _) => Err(No(gated.words).into()),
    }
}
