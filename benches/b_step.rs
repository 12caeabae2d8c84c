//! B-mode on synthetic data: Adam steps on 50 drawn samples.

mod common;

use divan::Bencher;
use neuralcb_bench::tasks;

fn main() {
    common::main();
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn d20_m20_10_rounds_of_100_steps(bencher: Bencher) {
    common::train(bencher, 1_000, || tasks::synthetic_b(10, 100));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn d20_m20_100_rounds_of_100_steps(bencher: Bencher) {
    common::train(bencher, 10_000, || tasks::synthetic_b(100, 100));
}
