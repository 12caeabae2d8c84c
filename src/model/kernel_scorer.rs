//! Mean and width of KernLCB, frozen. The kernel and the mean are computed in f64; ‖L⁻¹c‖², nearly all of the work, in T.

use std::ops::Range;

use super::RewardModel;
use super::rbf::{Rbf, Samples};
use super::rows::{RowGroup, row_groups};
use crate::data::{Contexts, Encoding, Layout};
use crate::linalg::panels::set_lanes;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, LANES, Lanes, Tile, dispatch};
use crate::linalg::whiten::Whitener;

/// A fitted kernel regression.
pub(super) struct Fitted<T> {
    pub(super) rbf: Rbf,
    pub(super) lambda: f64,
    pub(super) layout: Layout,
    pub(super) blocks: Vec<FittedBlock<T>>,
    /// q = eᵀM⁻¹e over all samples.
    pub(super) q: f64,
    /// eᵀα over all samples.
    pub(super) e_alpha: f64,
}

/// The samples of one block and L_b⁻¹.
pub(super) struct FittedBlock<T> {
    pub(super) samples: Samples,
    pub(super) whitener: Whitener<T>,
}

impl<T: Scalar> RewardModel for Fitted<T> {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let mut work = Work { u: vec![[0.0; LANES]; self.layout.dim], tiles: Vec::new(), norms: Vec::new() };
        for group in &row_groups(contexts, rounds, self.layout.encoding == Encoding::Disjoint) {
            dispatch(Score { fitted: self, group, work: &mut work, mean, width });
        }
    }
}

/// Memory that every group uses again.
struct Work<T> {
    /// Eight rows side by side.
    u: Vec<Lanes<f64>>,
    /// c of the rows to be whitened.
    tiles: Vec<Tile<T>>,
    norms: Vec<f64>,
}

struct Score<'a, T> {
    fitted: &'a Fitted<T>,
    group: &'a RowGroup<'a>,
    work: &'a mut Work<T>,
    mean: &'a mut [f64],
    width: &'a mut [f64],
}

impl<T: Scalar> Job for Score<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Score { fitted, group, work, mean, width } = self;
        if fitted.rbf.linked {
            fitted.score::<A, true>(group, work, mean, width);
        } else {
            fitted.score::<A, false>(group, work, mean, width);
        }
    }
}

impl<T: Scalar> Fitted<T> {
    /// Adding less to 1 than this changes nothing in T.
    const LOST: f64 = if size_of::<T>() == 4 { 1e-9 } else { 1e-18 };

    #[inline(always)]
    fn score<A: Arch, const LINKED: bool>(
        &self,
        group: &RowGroup<'_>,
        work: &mut Work<T>,
        mean: &mut [f64],
        width: &mut [f64],
    ) {
        let FittedBlock { samples, whitener } = &self.blocks[self.layout.block(group.action)];
        let (rows_per_tile, block) = (Whitener::<T>::ROWS, whitener.rows_at_once());
        let tile_len = whitener.tile_len();
        work.tiles.resize(tile_len * block / rows_per_tile / (2 * LANES), Tile::ZERO);
        work.norms.resize(block, 0.0);
        for rows in group.rows().chunks(block) {
            // Rows that no sample reaches need no product: ‖L⁻¹c‖² ≤ ‖c‖²/λ is lost in the rounding of 1.
            let mut kept = [0; MAX_EIGHTS];
            let mut n_kept = 0;
            for (number, eight) in rows.chunks(LANES).enumerate() {
                set_lanes::<_, A>(eight.vectors(), &mut work.u);
                let at = n_kept * LANES;
                let tiles = Tile::vectors_mut(&mut work.tiles).as_flattened_mut();
                let out = &mut tiles[at / rows_per_tile * tile_len + at % rows_per_tile..];
                let sums = samples.meet::<T, A, LINKED>(self.rbf, &work.u, out, rows_per_tile);
                let mut reached = false;
                for (l, (_, place)) in eight.iter().enumerate() {
                    let (e, g_c) = (sums.e[l], sums.g[l]);
                    mean[place] = e * self.e_alpha + sums.alpha[l];
                    let linked = e * self.q + g_c;
                    width[place] = e * e * self.q + 2.0 * e * g_c - linked * linked / (1.0 + self.q);
                    reached |= sums.squares[l] > Self::LOST * self.lambda;
                }
                if reached {
                    kept[n_kept] = number;
                    n_kept += 1;
                }
            }
            let n_tiles = (n_kept * LANES).div_ceil(rows_per_tile);
            let norms = &mut work.norms[..n_tiles * rows_per_tile];
            whitener.norms_in::<A>(&Tile::vectors(&work.tiles).as_flattened()[..n_tiles * tile_len], norms);
            for (number, norms) in kept[..n_kept].iter().zip(norms.chunks_exact(LANES)) {
                for ((_, place), norm) in rows.part(number * LANES, LANES).iter().zip(norms) {
                    width[place] += norm;
                }
            }
            for (_, place) in rows.iter() {
                width[place] = (1.0 - width[place]).max(0.0).sqrt();
            }
        }
    }
}

/// Groups of eight rows that are whitened at once, at most.
const MAX_EIGHTS: usize = Whitener::<f64>::MAX_ROWS_AT_ONCE / LANES;
