//! The shape of MNIST: steps over 784,300 parameters, and scoring of dense and of sparse vectors.

mod common;

use divan::Bencher;
use neuralcb_bench::tasks;

fn main() {
    common::main();
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn s_step_d784x10_m100_50_rounds(bencher: Bencher) {
    common::train(bencher, 50, || tasks::mnist_s(50));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn b_step_d784x10_m100_50_rounds(bencher: Bencher) {
    common::train(bencher, 50, || tasks::mnist_b(50));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn score_dense_d784_m100_10000_pairs(bencher: Bencher) {
    common::score(bencher, 10_000, || tasks::mnist_score(10, 1_000, false));
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn score_sparse_d784_m100_10000_pairs(bencher: Bencher) {
    common::score(bencher, 10_000, || tasks::mnist_score(10, 1_000, true));
}
