//! LinUCB (Abbasi-Yadkori et al. 2011): the optimistic linear learner inside Appendix F's adaptive behaviour policy.
//!
//! plays argmax_a θᵀx_a + α‖x_a‖_{Λ⁻¹} with Λ = λI + Σ x xᵀ and θ = Λ⁻¹ Σ x r, both current after every round:
//! the Cholesky factor is updated by rank one, O(d²), and a round costs O(Kd²). Block-diagonal with disjoint encoding.

use serde::{Deserialize, Serialize};

use crate::data::{Contexts, Layout, Pair};
use crate::error::{Error, not_negative, positive};
use crate::linalg::cholesky::Cholesky;

/// Settings of LinUCB.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `alpha` | 0.1 | weight of the optimism | ≥ 0 |
/// | `lambda` | 0.1 | λ of the ridge regression | > 0 |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinUcbConfig {
    /// Weight of the optimism.
    pub alpha: f64,
    /// λ.
    pub lambda: f64,
}

impl Default for LinUcbConfig {
    fn default() -> Self {
        LinUcbConfig { alpha: 0.1, lambda: 0.1 }
    }
}

/// The optimistic linear learner.
#[derive(Debug, Clone)]
pub struct LinUcb {
    config: LinUcbConfig,
    layout: Layout,
    blocks: Vec<Block>,
    scratch: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Block {
    factor: Cholesky,
    target: Vec<f64>,
    theta: Vec<f64>,
}

impl LinUcb {
    /// Checks the settings.
    pub fn new(config: LinUcbConfig, layout: Layout) -> Result<Self, Error> {
        not_negative("alpha", config.alpha)?;
        positive("lambda", config.lambda)?;
        let zeros = vec![0.0; layout.dim];
        let factor = Cholesky::of_identity(layout.dim, config.lambda);
        let block = Block { factor, target: zeros.clone(), theta: zeros.clone() };
        Ok(LinUcb { config, layout, blocks: vec![block; layout.n_blocks()], scratch: zeros })
    }

    /// θᵀx + α‖x‖_{Λ⁻¹}.
    pub fn bound(&mut self, pair: Pair<'_>) -> f64 {
        let block = &self.blocks[self.layout.block(pair.action)];
        self.scratch.iter_mut().zip(pair.x).for_each(|(s, &x)| *s = f64::from(x));
        let mean: f64 = self.scratch.iter().zip(&block.theta).map(|(x, t)| x * t).sum();
        block.factor.solve_lower(&mut self.scratch);
        mean + self.config.alpha * self.scratch.iter().map(|v| v * v).sum::<f64>().sqrt()
    }

    /// The place of the action it plays in `round`; of equal ones, the first.
    pub fn play(&mut self, contexts: &Contexts, round: usize) -> usize {
        let mut best = (0, f64::NEG_INFINITY);
        for place in 0..contexts.pairs(round).len() {
            let bound = self.bound(contexts.pair(round, place));
            if bound > best.1 {
                best = (place, bound);
            }
        }
        best.0
    }

    /// Learns from one round.
    pub fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        let block = &mut self.blocks[self.layout.block(chosen.action)];
        for ((s, target), &x) in self.scratch.iter_mut().zip(&mut block.target).zip(chosen.x) {
            *s = f64::from(x);
            *target += *s * reward;
        }
        block.factor.update(&mut self.scratch);
        block.theta.copy_from_slice(&block.target);
        block.factor.solve(&mut block.theta);
    }
}
