//! `neuralcb bench`: how fast this build is on this machine, against what the machine allows.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use neuralcb_bench::{JOBS, Job, Measured, Report, check_folder, export, measure, stages};
use neuralcb_logs::OutDir;

use crate::{args, out, talk};

#[derive(clap::Args)]
pub struct Args {
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Jobs, separated by commas [default: all but mnist-run-memory]
    #[arg(long, value_delimiter = ',', value_parser = named())]
    jobs: Option<Vec<&'static str>>,
    /// Repeats of a tenth of a second at least, all jobs in turns; the least time counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Time nothing; write the jobs' inputs and results to this folder as .npy arrays
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
}

/// The name of a job.
fn named() -> impl TypedValueParser<Value = &'static str> {
    args::names(JOBS.iter().map(|job| job.name).collect::<Vec<_>>(), |name| name)
}

impl Args {
    /// The chosen jobs, each once, in the order of the table.
    fn chosen(&self) -> Vec<&'static Job> {
        let wanted = |job: &&Job| match &self.jobs {
            Some(names) => names.contains(&job.name),
            None if self.export.is_some() => job.has_arrays(),
            None => !job.only_named,
        };
        JOBS.iter().filter(wanted).collect()
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let jobs = args.chosen();
    let repeats = usize::from(args.repeats);
    let bar = progress_bar(if args.export.is_some() { jobs.len() } else { stages(&jobs, repeats) } as u64);
    let mut begin = |job: &Job| {
        bar.set_message(job.name);
        bar.inc(1);
    };
    if let Some(dir) = &args.export {
        check_folder(dir)?;
        let out = OutDir::prepare(dir)?;
        export(&jobs, &mut begin, &|name, bytes| Ok(out.write(name, bytes)?))?;
        bar.finish_and_clear();
        talk::say!("arrays of {} jobs in {}", jobs.len(), dir.display());
        return Ok(());
    }
    warn_if_busy();
    let report = measure(&jobs, repeats, &mut begin)?;
    bar.finish_and_clear();
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { table(&report) };
    out::print(&text)
}

/// Says so where others use the processors: least times help against moments, not against a load that stays. Where the
/// system does not tell its load, nothing is said.
fn warn_if_busy() {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.as_deref().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(load) = load.filter(|&load| load > processors as f64) {
        talk::warning!("load {load} on {processors} processors: times will be too long; run again when it is idle");
    }
}

/// The job at hand and how many there are, redrawn rarely: a clock is running. It stays away where standard error is no
/// terminal.
fn progress_bar(jobs: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(jobs), talk::progress());
    let style = ProgressStyle::with_template("{pos}/{len} {msg}, {elapsed} gone");
    bar.set_style(style.expect("the template is well-formed"));
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// The machine in one line, then a line per job.
fn table(report: &Report) -> String {
    let m = &report.machine;
    let mut text = format!(
        "one thread, {}: FMA {:.1} GFLOP/s f32, {:.1} f64; square root and division {:.2} ns per 8 f32; \
         triad {:.0} GB/s in L2, {:.0} in L3, {:.0} in memory\n\n",
        report.instructions, m.fma_f32_gflops, m.fma_f64_gflops, m.sqrt_div_ns, m.l2_gbs, m.l3_gbs, m.dram_gbs
    );
    text += &format!("{:<31} {:>10} {:>10} {:>13}  {}\n", "job", "time", "limit", "time ÷ limit", "per");
    for job in &report.jobs {
        let limit = job.limit_seconds.map_or("–".to_owned(), human);
        let ratio = job.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let line =
            format!("{:<31} {:>10} {limit:>10} {ratio:>13}  {}{}", job.name, human(job.seconds), job.unit, more(job));
        text += &(line + "\n");
    }
    text
}

/// The further numbers of a job, in words.
fn more(job: &Measured) -> String {
    let number = |name: &str| job.more.get(name).copied().flatten();
    let mut text = String::new();
    if let Some(speedup) = number("speedup") {
        text += &format!("; {speedup:.2} times as fast as one thread");
    }
    if let (Some(growth), Some(first)) = (number("growth"), number("seconds_at_10000")) {
        text += &format!("; {growth:.2} times the {} near n = 10,000", human(first));
    }
    if let Some(peak) = number("peak_mb") {
        text += &format!("; peak memory {peak:.0} MB");
    }
    text
}

/// Seconds with three digits and a unit.
fn human(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        for (seconds, text) in [
            (1.9e-7, "190 ns"),
            (1.3e-6, "1.30 µs"),
            (41.7e-6, "41.7 µs"),
            (417e-6, "417 µs"),
            (6.4e-3, "6.40 ms"),
            (12.0, "12.0 s"),
        ] {
            assert_eq!(human(seconds), text);
        }
    }
}
