//! Mean and width of synthetic contexts.

mod common;

use divan::Bencher;
use neuralcb_bench::tasks;

fn main() {
    common::main();
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn d20_m20_30000_rows(bencher: Bencher) {
    common::score(bencher, 30_000, || tasks::synthetic_score(1_000, 1_000));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn d20_m20_300000_rows(bencher: Bencher) {
    common::score(bencher, 300_000, || tasks::synthetic_score(1_000, 10_000));
}
