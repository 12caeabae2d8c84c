//! Kernel regression: mean and width.

mod common;

use divan::Bencher;
use neuralcb_bench::tasks;

fn main() {
    common::main();
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn one_block_1000_samples_3000_rows(bencher: Bencher) {
    common::score(bencher, 3_000, || tasks::kernel_score(1_000, 100));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn thirty_blocks_1000_samples_30000_pairs(bencher: Bencher) {
    common::score(bencher, 30_000, || tasks::kernel_score_disjoint(1_000, 1_000));
}
