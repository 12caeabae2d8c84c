//! LinLCB (Algorithm 2): ridge regression on the chosen context, minus its confidence width.
//!
//! Λ = λI + Σ x xᵀ,  θ = Λ⁻¹ Σ x r,  mean(u) = θᵀu,  width(u) = √(uᵀΛ⁻¹u)
//!
//! With disjoint encoding Λ is block-diagonal: K matrices of d × d, never one of Kd × Kd.
//! Observe O(d²), model O(d³) per block, estimate O(d²) per pair, all in f64.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::rows::{RowGroup, row_groups};
use super::{Learner, RewardModel};
use crate::archive::Archive;
use crate::data::{Contexts, Encoding, Layout, Pair};
use crate::error::{Error, positive};
use crate::linalg::cholesky::Cholesky;
use crate::linalg::panels::set_lanes;
use crate::linalg::scatter::Scatter;
use crate::linalg::simd::{Arch, Job, LANES, Lanes, dispatch, lanes, lanes_mut};
use crate::linalg::whiten::Whitener;

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
        positive("lambda", config.lambda)?;
        let d = layout.dim;
        let block = Block { lambda: Scatter::new(d, config.lambda), target: vec![0.0; d.next_multiple_of(LANES)] };
        Ok(Linear { layout, blocks: vec![block; layout.n_blocks()] })
    }
}

/// Λ ← Λ + x xᵀ and Σ x r ← Σ x r + x r, where r is the reward.
struct Observe<'a> {
    block: &'a mut Block,
    x: &'a [f32],
    reward: f64,
}

impl Job for Observe<'_> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let reward = A::splat(self.reward);
        let x = lanes(self.block.lambda.add::<A>(self.x));
        for (target, x) in lanes_mut(&mut self.block.target).iter_mut().zip(x) {
            A::store(A::madd(reward, A::load(x), A::load(target)), target);
        }
    }
}

/// Λ as the factor reads it.
struct Lower<'a>(&'a mut Scatter);

impl Job for Lower<'_> {
    type Out = Vec<f64>;

    #[inline(always)]
    fn run<A: Arch>(self) -> Vec<f64> {
        self.0.lower::<A>()
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
            let factor = Cholesky::factor(&dispatch(Lower(&mut block.lambda)), d)?;
            let mut theta = block.target[..d].to_vec();
            factor.solve(&mut theta);
            Ok((theta, factor.whitener()))
        };
        let blocks = self.blocks.iter_mut().map(fit).collect::<Result<_, Error>>()?;
        Ok(Arc::new(Fitted { layout: self.layout, blocks }))
    }
}

/// θ and L⁻¹ of each block.
struct Fitted {
    layout: Layout,
    blocks: Vec<(Vec<f64>, Whitener<f64>)>,
}

impl RewardModel for Fitted {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let whitener = &self.blocks[0].1;
        let rows = whitener.rows_at_once();
        let mut tiles = vec![[0.0; LANES]; rows / LANES * whitener.tile_vectors()];
        let mut norms = vec![0.0; rows];
        for group in &row_groups(contexts, rounds, self.layout.encoding == Encoding::Disjoint) {
            dispatch(Score { fitted: self, group, tiles: &mut tiles, norms: &mut norms, mean, width });
        }
    }
}

/// Scores a group: rows in f64, a lane per row.
struct Score<'a> {
    fitted: &'a Fitted,
    group: &'a RowGroup<'a>,
    tiles: &'a mut [Lanes<f64>],
    norms: &'a mut [f64],
    mean: &'a mut [f64],
    width: &'a mut [f64],
}

impl Job for Score<'_> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (theta, whitener) = &self.fitted.blocks[self.fitted.layout.block(self.group.action)];
        for rows in self.group.rows().chunks(self.norms.len()) {
            let tiles = self.tiles.chunks_exact_mut(whitener.tile_vectors());
            for ((eight, tile), number) in rows.chunks(LANES).zip(tiles).zip(2..) {
                rows.part((number * LANES).min(rows.len()), LANES).prefetch();
                set_lanes::<f64, A>(eight.vectors(), tile);
                let mut means = [0.0; LANES];
                A::store(mean_of::<A>(theta, tile), &mut means);
                eight.put(&means, self.mean);
            }
            let n_tiles = rows.len().div_ceil(LANES);
            let norms = &mut self.norms[..n_tiles * LANES];
            whitener.norms_in::<A>(self.tiles[..n_tiles * whitener.tile_vectors()].as_flattened(), norms);
            norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
            rows.put(norms, self.width);
        }
    }
}

/// θᵀu of eight rows: four sums, so that none waits for another.
#[inline(always)]
fn mean_of<A: Arch>(theta: &[f64], tile: &[Lanes<f64>]) -> A::V<f64> {
    let mut sums = [A::zero(); 4];
    let (fours, rest) = theta.as_chunks::<4>();
    for (t, u) in fours.iter().zip(tile.as_chunks::<4>().0) {
        for i in 0..4 {
            sums[i] = A::madd(A::splat(t[i]), A::load(&u[i]), sums[i]);
        }
    }
    for (t, u) in rest.iter().zip(&tile[theta.len() - rest.len()..]) {
        sums[0] = A::madd(A::splat(*t), A::load(u), sums[0]);
    }
    A::add(A::add(sums[0], sums[1]), A::add(sums[2], sums[3]))
}
