//! `neuralcb diagnose`: is this log fit to learn from?

use std::path::PathBuf;

use neuralcb_logs::atomic::{self, check_distinct};
use neuralcb_logs::diagnose::{Diagnosis, diagnose};
use neuralcb_logs::log::{Feature, Log, Want};
use serde_json::json;

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
    log_args: LogArgs,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let log = Log::open(&args.log, &args.log_args.options()?, Want::OUTCOMES)?;
    let schema = log.schema();
    if let Some(path) = &args.write_schema {
        check_distinct(path, log.paths())?;
        atomic::write(path, schema.to_options().to_toml().as_bytes())?;
    }
    let mut bar = LogBar::new(&log);
    let blocks = log.blocks().inspect(|_| bar.show("diagnosing"));
    let diagnosis = diagnose(blocks, &names(&schema.shared), &names(&schema.per_action))?;
    bar.finish();
    let text = if args.json { as_json(&log, &diagnosis)? } else { format!("{schema}\n\n{diagnosis}") };
    out::print(&text)?;
    if diagnosis.unwise() {
        return Err(No("training on this log would be unwise".to_owned()).into());
    }
    Ok(())
}

fn names(features: &[Feature]) -> Vec<String> {
    features.iter().map(|feature| feature.name.clone()).collect()
}

fn as_json(log: &Log, diagnosis: &Diagnosis) -> anyhow::Result<String> {
    let skipped = log.skipped();
    let mut report = serde_json::to_value(diagnosis)?;
    report["unwise"] = json!(diagnosis.unwise());
    report["schema"] = serde_json::to_value(log.schema())?;
    report["skipped"] = json!({ "bad_rows": skipped.bad_rows, "not_decisions": skipped.not_decisions });
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
