//! The exact Λ over 460 parameters: rounds of S-mode, then one scoring.

mod common;

use divan::Bencher;
use neuralcb_bench::tasks;

fn main() {
    common::main();
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn d20_m20_1000_rounds_3000_rows(bencher: Bencher) {
    common::train(bencher, 1, || tasks::exact_lambda(1_000, 100));
}
