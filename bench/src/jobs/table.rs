//! The table of jobs.

use super::{B_ROUNDS, B_STEPS, CONTEXTS, Export, Job, MNIST_B_ROUNDS, ROUNDS, SAMPLES, SetUp, SetUpMeter, Work};
use crate::counts::{Counts, Shape, kernel_row};
use crate::data::MNIST_DENSITY;
use crate::export::{kernel, linear, neural};
use crate::scaling;
use crate::tasks::{self, BATCH, MNIST_ROUNDS};

/// Rows of synthetic test contexts, 30 each.
const ROWS: usize = 30 * CONTEXTS;

const fn task(
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    set_up: SetUp,
    units: usize,
    counts: fn() -> Counts,
    export: Option<Export>,
) -> Job {
    Job { name, unit, about, only_named: false, work: Work::Task { set_up, units, counts, export } }
}

const fn other(
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    only_named: bool,
    set_up: SetUpMeter,
) -> Job {
    Job { name, unit, about, only_named, work: Work::Other(set_up) }
}

/// All jobs, in the order in which they run.
pub static JOBS: &[Job] = &[
    task(
        "synthetic-s-step",
        "round",
        "S-mode, d = 20, m = 20: Λ and one Adam step on the newest sample",
        || tasks::synthetic_s(ROUNDS),
        ROUNDS,
        || Shape::SYNTHETIC.single_step(),
        Some(neural::synthetic_s),
    ),
    task(
        "synthetic-b-step",
        "Adam step",
        "B-mode, d = 20, m = 20: one Adam step on 50 drawn samples, 100 steps per round",
        || tasks::synthetic_b(B_ROUNDS, B_STEPS),
        B_ROUNDS * B_STEPS,
        || Shape::SYNTHETIC.batch_step(BATCH),
        Some(neural::synthetic_b),
    ),
    task(
        "synthetic-score",
        "300,000 rows",
        "mean and width of 10,000 contexts of 30 vectors, d = 20, m = 20",
        || tasks::synthetic_score(ROUNDS, CONTEXTS),
        1,
        || Shape::SYNTHETIC.score(ROWS),
        Some(neural::synthetic_score),
    ),
    task(
        "mnist-s-step",
        "round",
        "S-mode, d = 784, 10 blocks, m = 100: Λ and one Adam step over 784,300 parameters",
        || tasks::mnist_s(MNIST_ROUNDS),
        MNIST_ROUNDS,
        || Shape::MNIST.single_step(),
        Some(neural::mnist_s),
    ),
    task(
        "mnist-b-step",
        "Adam step",
        "B-mode, d = 784, 10 blocks, m = 100: one Adam step on 50 drawn samples, one per round",
        || tasks::mnist_b(MNIST_B_ROUNDS),
        MNIST_B_ROUNDS,
        || Shape::MNIST.batch_step(BATCH),
        Some(neural::mnist_b),
    ),
    task(
        "mnist-score-dense",
        "100,000 pairs",
        "mean and width of 10,000 dense vectors with 10 actions, d = 784, m = 100",
        || tasks::mnist_score(MNIST_ROUNDS, CONTEXTS, false),
        1,
        || Shape::MNIST.score(10 * CONTEXTS),
        Some(neural::mnist_score_dense),
    ),
    task(
        "mnist-score-sparse",
        "100,000 pairs",
        "the same with 19 % non-zero entries",
        || tasks::mnist_score(MNIST_ROUNDS, CONTEXTS, true),
        1,
        || Shape::MNIST.score_sparse(10 * CONTEXTS, MNIST_DENSITY),
        Some(neural::mnist_score_sparse),
    ),
    task(
        "kernel-score",
        "300,000 rows",
        "kernel regression on 1,000 samples: mean and width of 10,000 contexts of 30 vectors, d = 20",
        || tasks::kernel_score(SAMPLES, CONTEXTS),
        1,
        || Counts::of_f64(ROWS as f64 * kernel_row(SAMPLES, 20)),
        Some(kernel::one_block),
    ),
    task(
        "kernel-score-disjoint",
        "300,000 pairs",
        "the same with 30 blocks of 33 or 34 samples and one vector per context",
        || tasks::kernel_score_disjoint(SAMPLES, CONTEXTS),
        1,
        // 1,000 = 10·34 + 20·33
        || Counts::of_f64(CONTEXTS as f64 * (10.0 * kernel_row(34, 20) + 20.0 * kernel_row(33, 20))),
        Some(kernel::disjoint),
    ),
    task(
        "linear-observe",
        "round",
        "ridge regression, d = 20: Λ += x xᵀ and b += x r in f64",
        || tasks::linear_observe(ROUNDS),
        ROUNDS,
        || Counts::of_f64(210.0 + 20.0),
        Some(linear::observe),
    ),
    task(
        "linear-score",
        "300,000 rows",
        "ridge regression, d = 20: mean and width of 10,000 contexts of 30 vectors in f64",
        || tasks::linear_score(ROUNDS, CONTEXTS),
        1,
        || Counts::of_f64(ROWS as f64 * (210.0 + 20.0 + 20.0)),
        Some(linear::score),
    ),
    task(
        "exact-lambda",
        "10,000 rounds and 300,000 rows",
        "S-mode with the exact 460 × 460 matrix Λ in f64, then one scoring",
        || tasks::exact_lambda(ROUNDS, CONTEXTS),
        1,
        || Shape::SYNTHETIC.exact_lambda(ROUNDS, ROWS),
        None,
    ),
    other(
        "two-cores-repetitions",
        "24 learners, two threads",
        "speed-up from one thread to two: 24 learners of 10,000 rounds in S-mode",
        false,
        scaling::two_cores_repetitions,
    ),
    other(
        "two-cores-score",
        "300,000 rows, two threads",
        "speed-up from one thread to two: one scoring of 10,000 contexts of 30 vectors",
        false,
        scaling::two_cores_score,
    ),
    other(
        "growth-s",
        "round after n = 1,000,000",
        "S-mode: time of a round after n = 1,000,000 ÷ near n = 10,000",
        false,
        scaling::growth_s,
    ),
    other(
        "growth-b",
        "round after n = 1,000,000",
        "B-mode with one step per round: time of a round after n = 1,000,000 ÷ near n = 10,000",
        false,
        scaling::growth_b,
    ),
    other(
        "mnist-run-memory",
        "run",
        "15,000 rounds of B-mode (one step each) in the shape of MNIST, 30 evaluations at seven β: time and peak memory",
        true,
        scaling::mnist_run_memory,
    ),
];
