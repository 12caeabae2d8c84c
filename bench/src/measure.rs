//! Timing: warm-up first, then the minimum over repeats, in turns with all other jobs, on one thread unless the job
//! says otherwise.

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

/// A run longer than this is its own warm-up, and is done [`LONG_REPEATS`] times at most.
const LONG_SECONDS: f64 = 1.0;
const LONG_REPEATS: usize = 3;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The vector instructions in use.
    pub instructions: &'static str,
    /// The machine's rates, the best of before and after each repeat of the jobs.
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

/// What is measured in turns with others, ready to be run.
pub(crate) trait Meter {
    /// Repeats the measurement.
    fn turn(&mut self) -> Result<(), Error>;

    /// The best of all repeats.
    fn figures(&self) -> Figures;
}

/// How often [`measure`] tells of a job.
pub fn stages(jobs: &[&'static Job], repeats: usize) -> usize {
    jobs.iter().map(|job| if job.only_named { 1 } else { 1 + repeats }).sum()
}

/// Measures the machine and the jobs; `begin` is told of each job when it is made ready, and before each repeat.
///
/// All jobs are repeated in turns, and the machine with them: a neighbour that is busy for some seconds then costs each
/// of them a repeat, and none of them all. A job that reports the process's peak memory is done first, before anything
/// else has used any.
pub fn measure(jobs: &[&'static Job], repeats: usize, begin: &mut dyn FnMut(&Job)) -> Result<Report, Error> {
    let mut order: Vec<&Job> = jobs.to_vec();
    order.sort_by_key(|job| !job.only_named);
    let mut meters = Vec::new();
    for job in order {
        begin(job);
        let mut meter = meter(job)?;
        if job.only_named {
            meter.turn()?;
        }
        meters.push((job, meter));
    }
    let mut machine = Machine::measure();
    for _ in 0..repeats {
        for (job, meter) in meters.iter_mut().filter(|(job, _)| !job.only_named) {
            begin(job);
            meter.turn()?;
        }
        machine = machine.best(Machine::measure());
    }
    let mut figures: BTreeMap<_, _> = meters.iter().map(|(job, meter)| (job.name, meter.figures())).collect();
    let measured = |job: &&'static Job| {
        let Figures { seconds, more } = figures.remove(job.name)?;
        let limit_seconds = job.counts().map(|counts| counts.limit_seconds(&machine));
        let ratio = limit_seconds.map(|limit| seconds / limit);
        Some(Measured { name: job.name, unit: job.unit, seconds, limit_seconds, ratio, more })
    };
    Ok(Report { instructions: instructions(), machine, jobs: jobs.iter().filter_map(measured).collect() })
}

fn meter(job: &Job) -> Result<Box<dyn Meter>, Error> {
    match job.work {
        Work::Task { set_up, units, .. } => {
            Ok(Box::new(OneThread { time: LeastTime::new(set_up()?), pool: pool(1)?, units }))
        }
        Work::Other(set_up) => set_up(),
    }
}

/// The time of a task on one thread.
struct OneThread {
    time: LeastTime,
    pool: ThreadPool,
    /// Units in one run of the task.
    units: usize,
}

impl Meter for OneThread {
    fn turn(&mut self) -> Result<(), Error> {
        self.pool.install(|| self.time.repeat())
    }

    fn figures(&self) -> Figures {
        Figures { seconds: self.time.least / self.units as f64, more: BTreeMap::new() }
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

/// The least time of one run of a task.
struct LeastTime {
    task: Task,
    least: f64,
    repeats: usize,
}

impl LeastTime {
    /// Of a task that has not run yet.
    fn new(task: Task) -> Self {
        LeastTime { task, least: f64::INFINITY, repeats: 0 }
    }

    fn once(&mut self) -> Result<f64, Error> {
        self.task.fresh()?;
        let (time, done) = seconds(|| self.task.run());
        done?;
        Ok(time)
    }

    /// Runs the task for [`REPEAT_SECONDS`] at least, the first time after a run to warm up. A long run is its own
    /// warm-up, and is not done again after [`LONG_REPEATS`].
    fn repeat(&mut self) -> Result<(), Error> {
        let mut spent = 0.0;
        if self.repeats == 0 {
            let warm_up = self.once()?;
            if warm_up > LONG_SECONDS {
                (self.least, spent) = (warm_up, warm_up);
            }
        } else if self.least > LONG_SECONDS && self.repeats >= LONG_REPEATS {
            return Ok(());
        }
        while spent < REPEAT_SECONDS {
            let time = self.once()?;
            self.least = self.least.min(time);
            spent += time;
        }
        self.repeats += 1;
        Ok(())
    }
}
