//! `neuralcb report`: tables, figures and the page of a folder from the runs that are in it, finished or not.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use neuralcb_experiments::report::{RunInfo, table};
use neuralcb_experiments::summary::Curve;
use neuralcb_experiments::{
    ExperimentError, Figure, Journal, Plan, Record, Results, Selection, Settings, write_results,
};
use neuralcb_logs::{FileError, OutDir};

use crate::{out, talk};

#[derive(clap::Args)]
pub struct Args {
    /// A folder that `neuralcb reproduce` has written to
    folder: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let path = args.folder.join("settings.json");
    let text = fs::read_to_string(&path).map_err(|source| FileError::Read { path: path.clone(), source })?;
    let settings: Settings =
        serde_json::from_str(&text).map_err(|reason| ExperimentError::Settings { path: path.clone(), reason })?;
    let plan = Plan::new(settings)?;
    let journal = Journal::open(&args.folder)?;
    let records: Vec<Option<&Record>> = plan.tasks.iter().map(|task| journal.find(&task.name)).collect();
    let found = records.iter().flatten().count();
    if found == 0 {
        return Err(ExperimentError::Empty { path: args.folder.clone() }.into());
    }
    let results = Results::new(&plan, records.iter().copied());
    let info = run_info(0, 0.0, records.iter().copied().flatten());
    let figures = write_results(&OutDir::prepare(&args.folder)?, &plan, &results, info)?;
    print_tables(&figures)?;
    talk::say!("{found} of {} runs, report in {}", records.len(), args.folder.join("report.html").display());
    Ok(())
}

/// Who ran, where and for how long.
pub fn run_info<'a>(threads: usize, wall_seconds: f64, records: impl IntoIterator<Item = &'a Record>) -> RunInfo {
    let seconds = |r: &Record| r.train_seconds.last().unwrap_or(&0.0) + r.score_seconds.iter().sum::<f64>();
    RunInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine(),
        threads,
        finished: utc(SystemTime::now()),
        wall_seconds,
        compute_seconds: records.into_iter().map(seconds).sum(),
    }
}

/// The processor by name where the system tells it, its architecture and vector instructions.
fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        text.lines().find_map(|line| line.strip_prefix("model name")).map(|v| v.trim_start_matches([' ', '\t', ':']));
    let name = name.map_or(String::new(), |name| format!("{name}, "));
    format!("{name}{} {}, {}", std::env::consts::OS, std::env::consts::ARCH, neuralcb::machine::instructions())
}

/// Year-month-day hour:minute of a moment, in UTC (days to civil date after Hinnant).
fn utc(moment: SystemTime) -> String {
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", second / 3600, second % 3600 / 60)
}

/// The headline tables of every figure: chosen by the log alone, and by the oracle.
pub fn print_tables(figures: &[(Figure, Vec<Curve>)]) -> anyhow::Result<()> {
    for (figure, curves) in figures {
        let headline = |c: &&Curve| c.selection != Selection::OracleOverTime;
        let curves: Vec<Curve> = curves.iter().filter(headline).cloned().collect();
        out::print(&format!("{}\n\n{}\n", figure.title(), table(&curves)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_written_as_calendars_have_them() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00");
        assert_eq!(at(951_782_400), "2000-02-29 00:00");
        assert_eq!(at(1_767_225_599), "2025-12-31 23:59");
        assert_eq!(at(1_790_000_000), "2026-09-21 14:13");
    }
}
