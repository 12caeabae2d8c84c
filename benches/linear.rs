//! Ridge regression: observe and score.

mod common;

use divan::Bencher;
use neuralcb_bench::tasks;

fn main() {
    common::main();
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn observe_d20_10000_rounds(bencher: Bencher) {
    common::train(bencher, 10_000, || tasks::linear_observe(10_000));
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn score_d20_30000_rows(bencher: Bencher) {
    common::score(bencher, 30_000, || tasks::linear_score(1_000, 1_000));
}
