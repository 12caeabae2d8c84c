//! Small runs of the kernels, for a count of their instructions, which no clock and no neighbour disturbs.
//!
//! The count of a whole process holds its set-up as well; that of twice as many runs less that of one leaves the kernel
//! alone (`bench/tests/instructions.rs`).

use neuralcb::Error as LibraryError;
use rayon::ThreadPoolBuilder;

use crate::error::Error;
use crate::practical::{self, SMALL, Size};
use crate::task::Task;
use crate::tasks;

/// A kernel to be counted.
pub struct Probe {
    /// Its name.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// Units in one run.
    pub units: usize,
    /// Runs of the shorter process; the longer one does twice as many.
    pub runs: usize,
    set_up: fn() -> Result<Task, LibraryError>,
}

const fn probe(
    name: &'static str,
    unit: &'static str,
    units: usize,
    runs: usize,
    set_up: fn() -> Result<Task, LibraryError>,
) -> Probe {
    Probe { name, unit, units, runs, set_up }
}

/// All kernels that are counted.
pub static PROBES: &[Probe] = &[
    probe("synthetic-s-step", "round", 100, 10, || tasks::synthetic_s(100)),
    probe("synthetic-b-step", "Adam step", 100, 2, || tasks::synthetic_b(20, 5)),
    probe("synthetic-score", "row", 6000, 2, || tasks::synthetic_score(20, 200)),
    probe("mnist-s-step", "round", 2, 1, || tasks::mnist_s(2)),
    probe("mnist-b-step", "Adam step", 2, 1, || tasks::mnist_b(2)),
    // tiles enough that the product of many rows is what is counted
    probe("mnist-score-dense", "pair", 640, 1, || tasks::mnist_score(1, 64, false)),
    probe("mnist-score-sparse", "pair", 320, 1, || tasks::mnist_score(1, 32, true)),
    probe("practical-round", "round", 20, 1, || practical::rounds(Size { rounds: 20, ..SMALL })),
    probe("practical-batch", "Adam step", 5, 1, || practical::batches(Size { batches: 5, ..SMALL })),
    probe("practical-score", "pair", 640, 1, || practical::score(Size { rounds: 2, contexts: 64, ..SMALL })),
    probe("practical-trunk-batch", "Adam step", 5, 1, || practical::trunk_batches(Size { batches: 5, ..SMALL })),
    probe("kernel-score", "row", 600, 1, || tasks::kernel_score(250, 20)),
    probe("kernel-score-disjoint", "pair", 3000, 1, || tasks::kernel_score_disjoint(300, 100)),
    probe("linear-observe", "round", 100, 20, || tasks::linear_observe(100)),
    probe("linear-score", "row", 3000, 4, || tasks::linear_score(100, 100)),
    probe("exact-lambda", "20 rounds and 120 rows", 1, 1, || tasks::exact_lambda(20, 4)),
];

/// Sets up the kernel and runs it so many times, on this thread alone: idle threads would count as well.
pub fn run_probe(probe: &Probe, runs: usize) -> Result<(), Error> {
    ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let mut task = (probe.set_up)()?;
    for _ in 0..runs {
        task.run()?;
    }
    Ok(())
}
