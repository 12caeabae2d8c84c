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

/// The inverse of a dense matrix by Gauss–Jordan with row exchange.
pub fn inverse(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| matrix[i].iter().copied().chain((0..n).map(|j| f64::from(u8::from(i == j)))).collect())
        .collect();
    for col in 0..n {
        let pivot = (col..n).max_by(|&a, &b| rows[a][col].abs().total_cmp(&rows[b][col].abs())).unwrap();
        rows.swap(col, pivot);
        let lead = rows[col][col];
        rows[col].iter_mut().for_each(|v| *v /= lead);
        let own = rows[col].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != col) {
            let factor = row[col];
            row.iter_mut().zip(&own).for_each(|(v, o)| *v -= factor * o);
        }
    }
    rows.into_iter().map(|row| row[n..].to_vec()).collect()
}
