//! Timing: warm-up first, then the minimum over repeats, on one thread unless the job says otherwise.

use std::collections::BTreeMap;
use std::time::Instant;

use neuralcb::machine::{Machine, instructions};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use crate::error::Error;
use crate::jobs::{Job, Work};
use crate::task::Task;

/// Runs shorter than this are run again within a repeat until it is filled.
const REPEAT_SECONDS: f64 = 0.1;

/// A run longer than this is its own warm-up and is done twice at most.
const LONG_SECONDS: f64 = 1.0;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The vector instructions in use.
    pub instructions: &'static str,
    /// The machine's rates, the better of before and after the jobs.
    pub machine: Machine,
    /// The jobs, in the order of the table.
    pub jobs: Vec<Measured>,
}

/// One job's result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The job.
    pub name: &'static str,
    /// What the seconds are the time of.
    pub unit: &'static str,
    /// The least time of one unit.
    pub seconds: f64,
    /// What the machine allows, where a limit is stated.
    pub limit_seconds: Option<f64>,
    /// Time ÷ limit.
    pub ratio: Option<f64>,
    /// Further numbers by name: `speedup`, `growth`, `peak_mb`, …
    #[serde(flatten)]
    pub more: BTreeMap<&'static str, Option<f64>>,
}

/// Seconds of one unit, and further numbers by name.
pub(crate) struct Figures {
    pub(crate) seconds: f64,
    pub(crate) more: BTreeMap<&'static str, Option<f64>>,
}

/// Measures the machine and the jobs; `begin` is told of each job before it starts.
///
/// A job that reports the process's peak memory is done first, before anything else has used any.
pub fn measure(jobs: &[&'static Job], repeats: usize, begin: &mut dyn FnMut(&Job)) -> Result<Report, Error> {
    let mut order: Vec<&Job> = jobs.to_vec();
    order.sort_by_key(|job| !job.only_named);
    let mut figures = BTreeMap::new();
    let mut before: Option<Machine> = None;
    for job in order {
        begin(job);
        if !job.only_named && before.is_none() {
            before = Some(Machine::measure());
        }
        figures.insert(job.name, job_figures(job, repeats)?);
    }
    let after = Machine::measure();
    let machine = before.map_or(after, |before| before.best(after));
    let measured = |job: &&'static Job| {
        let Figures { seconds, more } = figures.remove(job.name)?;
        let limit_seconds = job.counts().map(|counts| counts.limit_seconds(&machine));
        let ratio = limit_seconds.map(|limit| seconds / limit);
        Some(Measured { name: job.name, unit: job.unit, seconds, limit_seconds, ratio, more })
    };
    Ok(Report { instructions: instructions(), machine, jobs: jobs.iter().filter_map(measured).collect() })
}

fn job_figures(job: &Job, repeats: usize) -> Result<Figures, Error> {
    match job.work {
        Work::Task { set_up, units, .. } => {
            let mut task = set_up()?;
            let seconds = pool(1)?.install(|| least_seconds(&mut task, repeats))?;
            Ok(Figures { seconds: seconds / units as f64, more: BTreeMap::new() })
        }
        Work::Other(figures) => figures(repeats),
    }
}

/// A pool of that many threads.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool, Error> {
    Ok(ThreadPoolBuilder::new().num_threads(threads).build()?)
}

/// Seconds of one call.
pub(crate) fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let out = work();
    (start.elapsed().as_secs_f64(), out)
}

/// The least time of one run of the task.
pub(crate) fn least_seconds(task: &mut Task, repeats: usize) -> Result<f64, Error> {
    let mut once = || -> Result<f64, Error> {
        task.fresh()?;
        let (time, done) = seconds(|| task.run());
        done?;
        Ok(time)
    };
    let warm_up = once()?;
    if warm_up > LONG_SECONDS {
        return Ok(if repeats > 1 { warm_up.min(once()?) } else { warm_up });
    }
    let mut least = f64::INFINITY;
    for _ in 0..repeats.max(1) {
        let mut spent = 0.0;
        while spent < REPEAT_SECONDS {
            let time = once()?;
            least = least.min(time);
            spent += time;
        }
    }
    Ok(least)
}
