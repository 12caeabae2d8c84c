//! What the benchmarks share: few samples, one thread, set-up outside the timed part.

use divan::Bencher;
use divan::counter::ItemsCount;
use neuralcb::Error;
use neuralcb_bench::Task;

/// Runs the benchmarks of a file with one thread for the library.
pub fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first pool of the process");
    divan::main();
}

/// Times work that changes its state, each time from its start; `units` are done in one run.
#[allow(dead_code)] // not every file trains
pub fn train(bencher: Bencher, units: usize, set_up: fn() -> Result<Task, Error>) {
    let fresh = || {
        let mut task = set_up().expect("the settings are sound");
        task.fresh().expect("the settings are sound");
        task
    };
    bencher.with_inputs(fresh).input_counter(move |_| ItemsCount::new(units)).bench_local_refs(|task| task.run());
}

/// Times work that can be done again as it is.
#[allow(dead_code)] // not every file scores
pub fn score(bencher: Bencher, units: usize, set_up: fn() -> Result<Task, Error>) {
    let mut task = set_up().expect("the settings are sound");
    bencher.counter(ItemsCount::new(units)).bench_local(|| task.run());
}
