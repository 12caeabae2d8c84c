//! The jobs: what can be measured by name.

mod table;

use neuralcb::Error as LibraryError;

pub use table::JOBS;

use crate::counts::Counts;
use crate::error::Error;
use crate::export::Folder;
use crate::measure::Meter;
use crate::task::Task;

/// Rounds of the synthetic log.
pub(crate) const ROUNDS: usize = 10_000;
/// Test contexts.
pub(crate) const CONTEXTS: usize = 10_000;
/// Samples of the kernel regression.
pub(crate) const SAMPLES: usize = 1000;
/// Rounds and steps per round of B-mode on synthetic data.
pub(crate) const B_ROUNDS: usize = 200;
pub(crate) const B_STEPS: usize = 100;
/// Rounds of B-mode in the shape of MNIST, of one step each.
pub(crate) const MNIST_B_ROUNDS: usize = 60;

/// One measurement that can be asked for by name.
pub struct Job {
    /// Its name.
    pub name: &'static str,
    /// What its seconds are the time of.
    pub unit: &'static str,
    /// What is done, in one line.
    pub about: &'static str,
    /// Whether it runs only when named.
    pub only_named: bool,
    pub(crate) work: Work,
}

/// Makes the work of a job.
pub(crate) type SetUp = fn() -> Result<Task, LibraryError>;
/// Makes a measurement of another kind.
pub(crate) type SetUpMeter = fn() -> Result<Box<dyn Meter>, Error>;
/// Writes inputs and results of a job.
pub(crate) type Export = fn(&Folder) -> Result<(), Error>;

pub(crate) enum Work {
    /// The time of a task, against its limit.
    Task {
        set_up: SetUp,
        /// Units in one run of the task.
        units: usize,
        /// Operations of one unit.
        counts: fn() -> Counts,
        /// Writes inputs and results.
        export: Option<Export>,
    },
    /// Numbers of another kind.
    Other(SetUpMeter),
}

impl Job {
    /// Operations of one unit, where a limit is stated.
    pub fn counts(&self) -> Option<Counts> {
        match self.work {
            Work::Task { counts, .. } => Some(counts()),
            Work::Other(_) => None,
        }
    }

    /// Whether its inputs and results can be exported.
    pub fn has_arrays(&self) -> bool {
        matches!(self.work, Work::Task { export: Some(_), .. })
    }
}

/// The job of that name.
pub fn job(name: &str) -> Option<&'static Job> {
    JOBS.iter().find(|job| job.name == name)
}
