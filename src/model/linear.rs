//! LinLCB (Algorithm 2): ridge regression on the chosen context, minus its confidence width.
//!
//! Λ = λI + Σ x xᵀ,  θ = Λ⁻¹ Σ x r,  mean(u) = θᵀu,  width(u) = √(uᵀΛ⁻¹u)
//!
//! With disjoint encoding Λ is block-diagonal: K matrices of d × d, never one of Kd × Kd.
//! Observe O(d²), model O(d³) per block, estimate O(d²) per pair, all in f64.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Learner, RewardModel, row_groups};
use crate::data::{Contexts, Encoding, Layout, Pair};
use crate::error::{Error, positive};
use crate::linalg::cholesky::{Cholesky, Whitener};

/// Settings of LinLCB.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `lambda` | 0.1 | λ of the ridge regression | > 0 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinearConfig {
    /// λ.
    pub lambda: f64,
}

impl Default for LinearConfig {
    fn default() -> Self {
        LinearConfig { lambda: 0.1 }
    }
}

/// The ridge regression in training.
#[derive(Debug, Clone)]
pub struct Linear {
    layout: Layout,
    blocks: Vec<Block>,
    wide: Vec<f64>,
}

/// Λ and Σ x r of one block.
#[derive(Debug, Clone)]
struct Block {
    lambda: Vec<f64>,
    target: Vec<f64>,
}

impl Linear {
    /// Checks the settings.
    pub fn new(config: LinearConfig, layout: Layout) -> Result<Self, Error> {
        positive("lambda", config.lambda)?;
        let d = layout.dim;
        let mut lambda = vec![0.0; d * d];
        lambda.iter_mut().step_by(d + 1).for_each(|v| *v = config.lambda);
        let block = Block { lambda, target: vec![0.0; d] };
        Ok(Linear { layout, blocks: vec![block; layout.n_blocks()], wide: vec![0.0; d] })
    }
}

impl Learner for Linear {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        let d = self.layout.dim;
        let Block { lambda, target } = &mut self.blocks[self.layout.block(chosen.action)];
        self.wide.iter_mut().zip(chosen.x).for_each(|(w, &x)| *w = f64::from(x));
        for (i, row) in lambda.chunks_exact_mut(d).enumerate() {
            let xi = self.wide[i];
            target[i] += xi * reward;
            if xi != 0.0 {
                // the lower triangle is all that the factor reads
                row[..=i].iter_mut().zip(&self.wide).for_each(|(l, x)| *l += xi * x);
            }
        }
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        let fit = |block: &Block| {
            let factor = Cholesky::factor(&block.lambda, self.layout.dim)?;
            let mut theta = block.target.clone();
            factor.solve(&mut theta);
            Ok((theta, factor.whitener()))
        };
        let blocks = self.blocks.iter().map(fit).collect::<Result<_, Error>>()?;
        Ok(Arc::new(Fitted { layout: self.layout, blocks }))
    }
}

/// θ and L⁻¹ of each block.
struct Fitted {
    layout: Layout,
    blocks: Vec<(Vec<f64>, Whitener)>,
}

/// Rows that are widened and whitened at a time.
const ROWS: usize = 128;

impl RewardModel for Fitted {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let d = self.layout.dim;
        let mut wide = vec![0.0; ROWS * d];
        let mut norms = [0.0; ROWS];
        for group in row_groups(contexts, rounds, self.layout.encoding == Encoding::Disjoint) {
            let (theta, whitener) = &self.blocks[self.layout.block(group.action)];
            for rows in group.rows.chunks(ROWS) {
                let wide = &mut wide[..rows.len() * d];
                let norms = &mut norms[..rows.len()];
                for (wide, (x, place)) in wide.chunks_exact_mut(d).zip(rows) {
                    wide.iter_mut().zip(*x).for_each(|(w, &x)| *w = f64::from(x));
                    mean[*place] = wide.iter().zip(theta).map(|(x, t)| x * t).sum();
                }
                norms.fill(0.0);
                whitener.add_norms(wide, norms);
                for (norm, (_, place)) in norms.iter().zip(rows) {
                    width[*place] = norm.sqrt();
                }
            }
        }
    }
}
