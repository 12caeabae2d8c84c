//! S-mode on synthetic data: Λ and one Adam step per round.

mod common;

use divan::Bencher;
use neuralcb_bench::tasks;

fn main() {
    common::main();
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn d20_m20_1000_rounds(bencher: Bencher) {
    common::train(bencher, 1_000, || tasks::synthetic_s(1_000));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn d20_m20_10000_rounds(bencher: Bencher) {
    common::train(bencher, 10_000, || tasks::synthetic_s(10_000));
}
