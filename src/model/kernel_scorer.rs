//! Mean and width of KernLCB, frozen. The kernel and the mean are computed in f64; ‖L⁻¹c‖², nearly all of the work, in
//! T.

use std::ops::Range;

use super::RewardModel;
use super::rbf::{Rbf, Samples};
use crate::data::{Contexts, Encoding, Layout, RowGroup, row_groups};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{Job, LANES, dispatch};
use crate::linalg::whiten::{Whitener, set_lanes};

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
    u: Vec<[f64; LANES]>,
    /// c of the rows to be whitened.
    tiles: Vec<[T; LANES]>,
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
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Score { fitted, group, work, mean, width } = self;
        if fitted.rbf.linked {
            fitted.score::<true>(group, work, mean, width);
        } else {
            fitted.score::<false>(group, work, mean, width);
        }
    }
}

impl<T: Scalar> Fitted<T> {
    /// Adding less to 1 than this changes nothing in T.
    const LOST: f64 = if size_of::<T>() == 4 { 1e-9 } else { 1e-18 };

    #[inline(always)]
    fn score<const LINKED: bool>(&self, group: &RowGroup<'_>, work: &mut Work<T>, mean: &mut [f64], width: &mut [f64]) {
        let FittedBlock { samples, whitener } = &self.blocks[self.layout.block(group.action)];
        let (n, at_once) = (whitener.dim(), whitener.tiles_at_once());
        // what fills the last panel of samples is written behind c, and then over
        work.tiles.resize(at_once * n + samples.padded(), [T::ZERO; LANES]);
        work.norms.resize(at_once * LANES, 0.0);
        for rows in group.rows().chunks(at_once * LANES) {
            // Rows that no sample reaches need no product: ‖L⁻¹c‖² ≤ ‖c‖²/λ is lost in the rounding of 1.
            let mut kept = Vec::with_capacity(at_once);
            for (number, eight) in rows.chunks(LANES).enumerate() {
                set_lanes(eight.vectors(), &mut work.u);
                let out = &mut work.tiles[kept.len() * n..][..samples.padded()];
                let sums = samples.meet::<T, LINKED>(self.rbf, &work.u, out);
                let mut reached = false;
                for (l, (_, place)) in eight.iter().enumerate() {
                    let (e, g_c) = (sums.e[l], sums.g[l]);
                    mean[place] = e * self.e_alpha + sums.alpha[l];
                    let linked = e * self.q + g_c;
                    width[place] = e * e * self.q + 2.0 * e * g_c - linked * linked / (1.0 + self.q);
                    reached |= sums.squares[l] > Self::LOST * self.lambda;
                }
                if reached {
                    kept.push(number);
                }
            }
            let norms = &mut work.norms[..kept.len() * LANES];
            whitener.norms_in(&work.tiles[..kept.len() * n], norms);
            for (number, norms) in kept.iter().zip(norms.chunks_exact(LANES)) {
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
