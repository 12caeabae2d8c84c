//! LinLCB (Algorithm 2): ridge regression on the chosen context, minus its confidence width.
//!
//! Λ = λI + Σ x xᵀ,  θ = Λ⁻¹ Σ x r,  mean(u) = θᵀu,  width(u) = √(uᵀΛ⁻¹u)
//!
//! With disjoint encoding Λ is block-diagonal: K matrices of d × d, never one of Kd × Kd. Observe O(d²), model O(d³)
//! per block, estimate O(d²) per pair; in f64 but for the width's product, see [`Precision`].

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::precision::Precision;
use super::{Learner, RewardModel};
use crate::archive::Archive;
use crate::data::{Contexts, Encoding, Layout, Pair, RowGroup, row_groups};
use crate::error::{Error, regularisation};
use crate::linalg::cholesky::{Cholesky, Inverse};
use crate::linalg::scalar::Scalar;
use crate::linalg::scatter::Scatter;
use crate::linalg::vectors::{Job, LANES, add_scaled, dispatch};
use crate::linalg::whiten::{Whitener, set_lanes};

/// Settings of LinLCB.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `lambda` | 0.1 | λ of the ridge regression | > 0 |
/// | `precision` | auto | of the width's product | see [`Precision`] |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinearConfig {
    /// λ.
    pub lambda: f64,
    /// Precision of the width's product.
    pub precision: Precision,
}

impl Default for LinearConfig {
    fn default() -> Self {
        LinearConfig { lambda: 0.1, precision: Precision::Auto }
    }
}

/// The ridge regression in training.
#[derive(Debug, Clone)]
pub struct Linear {
    layout: Layout,
    precision: Precision,
    blocks: Vec<Block>,
}

/// Λ and Σ x r of one block.
#[derive(Debug, Clone)]
struct Block {
    lambda: Scatter,
    /// Padded to whole vectors.
    target: Vec<f64>,
}

impl Linear {
    /// Checks the settings.
    pub fn new(config: LinearConfig, layout: Layout) -> Result<Self, Error> {
        regularisation(config.lambda)?;
        let d = layout.dim;
        let block = Block { lambda: Scatter::new(d, config.lambda), target: vec![0.0; d.next_multiple_of(LANES)] };
        Ok(Linear { layout, precision: config.precision, blocks: vec![block; layout.n_blocks()] })
    }
}

/// Λ ← Λ + x xᵀ and Σ x r ← Σ x r + x r, where r is the reward.
struct Observe<'a> {
    block: &'a mut Block,
    x: &'a [f32],
    reward: f64,
}

impl Job for Observe<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Block { lambda, target } = self.block;
        add_scaled(self.reward, lambda.add(self.x), target);
    }
}

impl Learner for Linear {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        let block = &mut self.blocks[self.layout.block(chosen.action)];
        dispatch(Observe { block, x: chosen.x, reward });
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        let d = self.layout.dim;
        for (b, block) in self.blocks.iter_mut().enumerate() {
            block.lambda.archive(&format!("lambda.{b}"), archive)?;
            archive.array(&format!("target.{b}"), &[d], &mut block.target[..d])?;
        }
        Ok(())
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        let d = self.layout.dim;
        let fit = |block: &mut Block| {
            let factor = Cholesky::factor(&block.lambda.lower(), d)?;
            let mut theta = block.target[..d].to_vec();
            factor.solve(&mut theta);
            Ok((theta, factor.inverse()))
        };
        let blocks = self.blocks.iter_mut().map(fit).collect::<Result<Vec<_>, Error>>()?;
        let safe = blocks.iter().all(|(_, inverse)| (d + 4) as f64 * ROUNDING * inverse.condition <= SINGLE_LIMIT);
        Ok(match self.precision.is_single(safe) {
            true => Arc::new(Fitted::<f32>::new(self.layout, blocks)),
            false => Arc::new(Fitted::<f64>::new(self.layout, blocks)),
        })
    }
}

/// u, the rounding of f32.
const ROUNDING: f64 = f32::EPSILON as f64 / 2.0;

/// The error of a width, in proportion to it, up to which [`Precision::Auto`] is single.
const SINGLE_LIMIT: f64 = 1e-4;

/// θ and L⁻¹ of each block.
struct Fitted<T> {
    layout: Layout,
    blocks: Vec<(Vec<f64>, Whitener<T>)>,
}

impl<T: Scalar> Fitted<T> {
    fn new(layout: Layout, blocks: Vec<(Vec<f64>, Inverse)>) -> Self {
        Fitted { layout, blocks: blocks.into_iter().map(|(theta, inverse)| (theta, inverse.whitener())).collect() }
    }
}

impl<T: Scalar> RewardModel for Fitted<T> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let at_once = self.blocks[0].1.tiles_at_once();
        let mut tiles = vec![[T::ZERO; LANES]; at_once * self.layout.dim];
        let mut norms = vec![0.0; at_once * LANES];
        for group in &row_groups(contexts, rounds, self.layout.encoding == Encoding::Disjoint) {
            dispatch(Score { fitted: self, group, tiles: &mut tiles, norms: &mut norms, mean, width });
        }
    }
}

/// Scores a group, a lane per row.
struct Score<'a, T> {
    fitted: &'a Fitted<T>,
    group: &'a RowGroup<'a>,
    tiles: &'a mut [[T; LANES]],
    norms: &'a mut [f64],
    mean: &'a mut [f64],
    width: &'a mut [f64],
}

impl<T: Scalar> Job for Score<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Score { fitted, group, tiles, norms, mean, width } = self;
        let (theta, whitener) = &fitted.blocks[fitted.layout.block(group.action)];
        let d = theta.len();
        for rows in group.rows().chunks(norms.len()) {
            let n_tiles = rows.len().div_ceil(LANES);
            for (own, tile) in rows.chunks(LANES).zip(tiles.chunks_exact_mut(d)) {
                set_lanes(own.vectors(), tile);
                own.put(&mean_of(theta, tile), mean);
            }
            let norms = &mut norms[..n_tiles * LANES];
            whitener.norms_in(&tiles[..n_tiles * d], norms);
            norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
            rows.put(norms, width);
        }
    }
}

/// θᵀu of eight rows in f64, in two sums, so that none waits for the one before.
#[inline(always)]
fn mean_of<T: Scalar>(theta: &[f64], tile: &[[T; LANES]]) -> [f64; LANES] {
    let mut sums = [[0.0; LANES]; 2];
    for (j, (theta, u)) in theta.iter().zip(tile).enumerate() {
        for l in 0..LANES {
            sums[j % 2][l] = theta.mul_add(u[l].to_f64(), sums[j % 2][l]);
        }
    }
    std::array::from_fn(|l| sums[0][l] + sums[1][l])
}
