//! LinLCB (Algorithm 2): ridge regression on the chosen context, minus its confidence width.
//!
//! Λ = λI + Σ x xᵀ,  θ = Λ⁻¹ Σ x r,  mean(u) = θᵀu,  width(u) = √(uᵀΛ⁻¹u)
//!
//! With disjoint encoding Λ is block-diagonal: K matrices of d × d, never one of Kd × Kd.
//! Observe O(d²), model O(d³) per block, estimate O(d²) per pair; in f64 but for the width's product, see [`Precision`].

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::precision::Precision;
use super::rows::{RowGroup, Rows, row_groups};
use super::{Learner, RewardModel};
use crate::archive::Archive;
use crate::data::{Contexts, Encoding, Layout, Pair};
use crate::error::{Error, positive};
use crate::linalg::cholesky::{Cholesky, Inverse};
use crate::linalg::panels::set_lanes;
use crate::linalg::scalar::Scalar;
use crate::linalg::scatter::Scatter;
use crate::linalg::simd::{Arch, Job, LANES, Lanes, Tile, dispatch, lanes, lanes_mut};
use crate::linalg::turn::{turn_all, turn_rows};
use crate::linalg::whiten::Whitener;

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
        positive("lambda", config.lambda)?;
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

impl<T: Whitened> Fitted<T> {
    fn new(layout: Layout, blocks: Vec<(Vec<f64>, Inverse)>) -> Self {
        Fitted { layout, blocks: blocks.into_iter().map(|(theta, inverse)| (theta, inverse.whitener())).collect() }
    }
}

impl<T: Whitened> RewardModel for Fitted<T> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let whitener = &self.blocks[0].1;
        let rows = whitener.rows_at_once();
        let mut tiles = vec![Tile::ZERO; rows / Whitener::<T>::ROWS * whitener.tile_vectors() / 2];
        let mut norms = vec![0.0; rows];
        for group in &row_groups(contexts, rounds, self.layout.encoding == Encoding::Disjoint) {
            dispatch(Score { fitted: self, group, tiles: &mut tiles, norms: &mut norms, mean, width });
        }
    }
}

/// How rows lie before a [`Whitener`] of this type.
trait Whitened: Scalar {
    /// Turns as many rows as a tile of the whitener holds, at most.
    fn set<A: Arch>(rows: Rows<'_>, d: usize, tile: &mut [Tile<Self>]);

    /// Eight numbers in f64.
    fn load_wide<A: Arch>(v: &Lanes<Self>) -> A::V<f64>;
}

impl Whitened for f32 {
    #[inline(always)]
    fn set<A: Arch>(rows: Rows<'_>, d: usize, tile: &mut [Tile<f32>]) {
        let (sixteen, tile) = (rows.side_by_side(Whitener::<f32>::ROWS), &mut tile[..d]);
        if !sixteen.is_some_and(|all| turn_all::<f32, A, A::Sixteen<f32>>(all, tile)) {
            turn_rows::<f32, A, A::Sixteen<f32>>(&rows.first_vectors(), tile);
        }
    }

    #[inline(always)]
    fn load_wide<A: Arch>(v: &Lanes<f32>) -> A::V<f64> {
        A::load_f32(v)
    }
}

impl Whitened for f64 {
    #[inline(always)]
    fn set<A: Arch>(rows: Rows<'_>, _: usize, tile: &mut [Tile<f64>]) {
        set_lanes::<f64, A>(rows.vectors(), Tile::vectors_mut(tile));
    }

    #[inline(always)]
    fn load_wide<A: Arch>(v: &Lanes<f64>) -> A::V<f64> {
        A::load(v)
    }
}

/// A tile is asked for so many tiles ahead of its use.
const AHEAD: usize = 2;

/// Tiles that are whitened at a time where there are registers for it.
const TOGETHER: usize = 2;

/// Scores a group, a lane per row.
struct Score<'a, T> {
    fitted: &'a Fitted<T>,
    group: &'a RowGroup<'a>,
    tiles: &'a mut [Tile<T>],
    norms: &'a mut [f64],
    mean: &'a mut [f64],
    width: &'a mut [f64],
}

impl<T: Whitened> Job for Score<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let per_tile = Whitener::<T>::ROWS;
        let (theta, whitener) = &self.fitted.blocks[self.fitted.layout.block(self.group.action)];
        let (all, mut ahead, small) = (self.group.rows(), AHEAD * per_tile, whitener.is_small());
        for rows in all.chunks(self.norms.len()) {
            let vectors = whitener.tile_vectors();
            let together = if A::WIDE_REGISTERS { TOGETHER } else { 1 };
            let tiles = self.tiles.chunks_mut(together * vectors / 2);
            for (own, tiles) in rows.chunks(together * per_tile).zip(tiles) {
                for (own, tile) in own.chunks(per_tile).zip(tiles.chunks_exact_mut(vectors / 2)) {
                    all.part(ahead.min(all.len()), per_tile).prefetch();
                    ahead += per_tile;
                    T::set::<A>(own, theta.len(), tile);
                    let (tile, mut means) = (Tile::vectors(tile), [[0.0; LANES]; 2]);
                    for (c, mean) in means.iter_mut().enumerate().take(per_tile / LANES) {
                        A::store(mean_of::<T, A>(theta, tile, per_tile / LANES, c), mean);
                    }
                    own.put(means.as_flattened(), self.mean);
                }
                if small {
                    let mut widths = [[[T::ZERO; LANES]; 2]; TOGETHER];
                    let (first, second) = Tile::vectors(tiles).split_at(vectors);
                    if A::WIDE_REGISTERS && own.len() > per_tile {
                        whitener.lengths_in::<A, TOGETHER>([first, second], &mut widths);
                    } else {
                        whitener.lengths_in::<A, 1>([first], widths.first_chunk_mut().expect("one tile or two"));
                    }
                    for (own, widths) in own.chunks(per_tile).zip(&widths) {
                        own.put(widths.as_flattened(), self.width);
                    }
                }
            }
            if small {
                continue;
            }
            let n_tiles = rows.len().div_ceil(per_tile);
            let norms = &mut self.norms[..n_tiles * per_tile];
            let tiles = &Tile::vectors(self.tiles)[..n_tiles * whitener.tile_vectors()];
            whitener.norms_in::<A>(tiles.as_flattened(), norms);
            norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
            rows.put(norms, self.width);
        }
    }
}

/// θᵀu of the eight rows in vector c of `per_tile` for each number: four sums, so that none waits for another.
#[inline(always)]
fn mean_of<T: Whitened, A: Arch>(theta: &[f64], tile: &[Lanes<T>], per_tile: usize, c: usize) -> A::V<f64> {
    let mut sums = [A::zero(); 4];
    let (fours, rest) = theta.as_chunks::<4>();
    let tile = &tile[..theta.len() * per_tile];
    for (t, u) in fours.iter().zip(tile.chunks_exact(4 * per_tile)) {
        for i in 0..4 {
            sums[i] = A::madd(A::splat(t[i]), T::load_wide::<A>(&u[i * per_tile + c]), sums[i]);
        }
    }
    for (t, u) in rest.iter().zip(tile[(theta.len() - rest.len()) * per_tile..].chunks_exact(per_tile)) {
        sums[0] = A::madd(A::splat(*t), T::load_wide::<A>(&u[c]), sums[0]);
    }
    A::add(A::add(sums[0], sums[1]), A::add(sums[2], sums[3]))
}
