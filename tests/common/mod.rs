//! What several test files use.
#![allow(dead_code)] // each of them uses a part

use neuralcb::net::Tensors;
use neuralcb::{Contexts, Eligible, Encoding, Layout, LoggedData, Stream};
use rand::RngExt;

pub fn uniform(rng: &mut Stream) -> f64 {
    2.0 * rng.random::<f64>() - 1.0
}

/// Contexts that offer every action, uniform in the cube.
pub fn random_contexts(layout: Layout, n: usize, rng: &mut Stream) -> Contexts {
    let rows = if layout.encoding == Encoding::Disjoint { n } else { n * layout.n_actions };
    let x = (0..rows * layout.dim).map(|_| uniform(rng) as f32).collect();
    Contexts::new(layout, x, Eligible::All).unwrap()
}

pub fn random_log(layout: Layout, n: usize, rng: &mut Stream) -> LoggedData {
    let contexts = random_contexts(layout, n, rng);
    let actions = (0..n).map(|_| rng.random_range(0..layout.n_actions as u32)).collect();
    let rewards = (0..n).map(|_| uniform(rng)).collect();
    LoggedData::new(contexts, actions, rewards, None).unwrap()
}

/// All parameters in one row.
pub fn flat(t: &Tensors) -> Vec<f64> {
    let mut out: Vec<f64> = t.weights.iter().flatten().flatten().copied().collect();
    for vectors in [&t.biases, &t.gains, &t.offsets].into_iter().flatten() {
        out.extend(vectors.iter().flatten());
    }
    out.extend(&t.output);
    out.extend(t.output_bias);
    out
}
