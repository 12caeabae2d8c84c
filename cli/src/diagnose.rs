//! `neuralcb diagnose`: is this log fit to learn from?

use std::path::PathBuf;

use neuralcb_logs::atomic::{self, check_distinct};
use neuralcb_logs::card::{About, Kind};
use neuralcb_logs::diagnose::{Diagnosis, diagnose};
use neuralcb_logs::evaluate::check_segments;
use neuralcb_logs::log::{Feature, Log, Want};
use neuralcb_logs::policy::Origin;
use serde_json::json;

use crate::card::CardArgs;
use crate::log_args::{LogArgs, LogBar};
use crate::{No, out};

#[derive(clap::Args)]
pub struct Args {
    /// The log: files, a folder, or `-` for standard input
    #[arg(required = true)]
    log: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Also write what the columns are as a TOML file, to be changed and given back with --schema
    #[arg(long, value_name = "FILE")]
    write_schema: Option<PathBuf>,
    #[command(flatten)]
    card: CardArgs,
    #[command(flatten)]
    log_args: LogArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let log = Log::open(&args.log, &args.log_args.options()?, Want::OUTCOMES)?;
    let schema = log.schema();
    args.card.check(log.paths())?;
    check_segments(&log, &args.card.segment)?;
    if let Some(path) = &args.write_schema {
        check_distinct(path, log.paths())?;
        atomic::write(path, schema.to_options().to_toml().as_bytes())?;
    }
    let mut bar = LogBar::new(&log);
    let blocks = log.blocks().inspect(|_| bar.show("diagnosing"));
    let diagnosis = diagnose(blocks, &names(&schema.shared), &names(&schema.per_action), &args.card.segment)?;
    bar.finish();
    if args.json || args.card.wanted() {
        let json = as_json(&log, &diagnosis)?;
        args.card.write(Kind::Diagnose, &json)?;
        if args.json {
            out::print(&(serde_json::to_string_pretty(&json)? + "\n"))?;
        }
    }
    if !args.json {
        out::print(&format!("{schema}\n\n{diagnosis}"))?;
    }
    if diagnosis.unwise() {
        return Err(No("training on this log would be unwise".to_owned()).into());
    }
    Ok(())
}

fn names(features: &[Feature]) -> Vec<String> {
    features.iter().map(|feature| feature.name.clone()).collect()
}

fn as_json(log: &Log, diagnosis: &Diagnosis) -> anyhow::Result<serde_json::Value> {
    let skipped = log.skipped();
    let mut report = serde_json::to_value(diagnosis)?;
    report["unwise"] = json!(diagnosis.unwise());
    report["schema"] = serde_json::to_value(log.schema())?;
    report["skipped"] = json!({ "bad_rows": skipped.bad_rows, "not_decisions": skipped.not_decisions });
    report["about"] = serde_json::to_value(About::new(Origin::of(log)?, &[], &log.schema().to_options()))?;
    Ok(report)
}
