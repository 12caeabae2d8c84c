//! Mean and width of the neural models with the exact Λ, frozen: L⁻¹ over the parameters or over the samples.
//!
//! * **primal**: width = ‖L⁻¹φ‖ with Λ = L·Lᵀ, O(p²/2) per pair. Λ is kept and factored in f64; φ is whitened in the
//!   network's own type T, because rounding L⁻¹ moves L⁻¹φ no further than the rounding of φ has moved it already.
//! * **dual**: width = √((‖φ‖² − ‖L⁻¹k‖²)/λ) with K + λI = L·Lᵀ, O(n²/2) per pair, in f64: the difference loses digits.

use super::rows::{RowGroup, Rows};
use crate::data::Layout;
use crate::linalg::scalar::Scalar;
use crate::linalg::whiten::Whitener;
use crate::net::{FactorRows, Net, Params, ROWS, Tangents};

/// The exact Λ, ready to score.
pub(super) enum Exact<T> {
    Primal(FrozenPrimal<T>),
    Dual(FrozenDual),
}

/// L⁻¹ over the parameters, and θ for the ridge mean.
pub(super) struct FrozenPrimal<T> {
    pub(super) whitener: Whitener<T>,
    pub(super) theta: Option<Vec<f64>>,
    /// c of φ = c·∇f.
    pub(super) scale: f64,
}

/// The samples, L⁻¹ over them, and (K + λI)⁻¹r for the ridge mean.
pub(super) struct FrozenDual {
    pub(super) rows: FactorRows,
    pub(super) whitener: Whitener<f64>,
    pub(super) alpha: Option<Vec<f64>>,
    pub(super) scale_squared: f64,
    pub(super) lambda: f64,
}

impl<T: Scalar> Exact<T> {
    /// Mean and width of every row of the groups.
    pub(super) fn score(
        &self,
        net: &Net,
        layout: Layout,
        weights: &Params<T>,
        groups: &[RowGroup<'_>],
        mean: &mut [f64],
        width: &mut [f64],
    ) {
        let (tangents, input) = (Tangents::new(net, ROWS), vec![T::ZERO; ROWS * net.n_in()]);
        let mut pass = Pass { net, weights, tangents, input };
        match self {
            Exact::Primal(primal) => {
                let mut work = Work::new(&primal.whitener);
                for group in groups {
                    primal.score(&mut pass, layout.block(group.action), group, &mut work, mean, width);
                }
            }
            Exact::Dual(dual) => {
                let mut work = Work::new(&dual.whitener);
                for group in groups {
                    dual.score(&mut pass, layout.block(group.action), group, &mut work, mean, width);
                }
            }
        }
    }
}

/// Passes through the network, up to [`ROWS`] rows at a time.
struct Pass<'a, T> {
    net: &'a Net,
    weights: &'a Params<T>,
    tangents: Tangents<T>,
    input: Vec<T>,
}

impl<T: Scalar> Pass<'_, T> {
    fn run(&mut self, block: usize, rows: Rows<'_>) {
        let n_in = self.net.n_in();
        for (input, x) in self.input.chunks_exact_mut(n_in).zip(rows.vectors()) {
            self.net.write_input(x, input);
        }
        self.net.tangents(self.weights, block, &self.input[..rows.len() * n_in], &mut self.tangents);
    }
}

/// Memory that every group uses again: rows to be whitened, in tiles, and their norms.
struct Work<T> {
    tiles: Vec<T>,
    norms: Vec<f64>,
    tile_len: usize,
    /// One φ, or k of some rows.
    scratch: Vec<f64>,
}

impl<T: Scalar> Work<T> {
    fn new(whitener: &Whitener<T>) -> Self {
        let (rows, tile_len) = (whitener.rows_at_once(), whitener.tile_len());
        let tiles = vec![T::ZERO; rows / Whitener::<T>::ROWS * tile_len];
        Work { tiles, norms: vec![0.0; rows], tile_len, scratch: vec![0.0; whitener.dim()] }
    }

    /// Writes c·v, with the v in `scratch[at..]`, into the tiles as row `row`.
    fn set_row(&mut self, row: usize, at: usize, c: f64) {
        let lanes = Whitener::<T>::ROWS;
        let tile = &mut self.tiles[row / lanes * self.tile_len..][..self.tile_len];
        for (lanes, v) in tile.chunks_exact_mut(lanes).zip(&self.scratch[at..]) {
            lanes[row % lanes.len()] = T::of(v * c);
        }
    }

    /// ‖L⁻¹u‖² of the first rows.
    fn whiten(&mut self, whitener: &Whitener<T>, rows: usize) -> &[f64] {
        let n_tiles = rows.div_ceil(Whitener::<T>::ROWS);
        let norms = &mut self.norms[..n_tiles * Whitener::<T>::ROWS];
        whitener.norms(&self.tiles[..n_tiles * self.tile_len], norms);
        &norms[..rows]
    }
}

impl<T: Scalar> FrozenPrimal<T> {
    fn score(
        &self,
        pass: &mut Pass<'_, T>,
        block: usize,
        group: &RowGroup<'_>,
        work: &mut Work<T>,
        mean: &mut [f64],
        width: &mut [f64],
    ) {
        for rows in group.rows().chunks(work.norms.len()) {
            for (number, few) in rows.chunks(ROWS).enumerate() {
                pass.run(block, few);
                for (i, (_, place)) in few.iter().enumerate() {
                    pass.tangents.expand(pass.net, block, i, &mut work.scratch);
                    work.set_row(number * ROWS + i, 0, self.scale);
                    mean[place] = match &self.theta {
                        Some(theta) => self.scale * dot(theta, &work.scratch),
                        None => pass.tangents.f()[i].wide(),
                    };
                }
            }
            for ((_, place), norm) in rows.iter().zip(work.whiten(&self.whitener, rows.len())) {
                width[place] = norm.sqrt();
            }
        }
    }
}

impl FrozenDual {
    /// Ridge mean kᵀα and width² = (φᵀφ − kᵀ(K + λI)⁻¹k)/λ of each row.
    fn score<T: Scalar>(
        &self,
        pass: &mut Pass<'_, T>,
        block: usize,
        group: &RowGroup<'_>,
        work: &mut Work<f64>,
        mean: &mut [f64],
        width: &mut [f64],
    ) {
        let (net, n) = (pass.net, self.rows.len());
        for rows in group.rows().chunks(work.norms.len()) {
            let mut factors = FactorRows::new(net);
            for few in rows.chunks(ROWS) {
                pass.run(block, few);
                for (i, (_, place)) in few.iter().enumerate() {
                    factors.push(net, &pass.tangents, block, i);
                    mean[place] = pass.tangents.f()[i].wide();
                    width[place] = pass.tangents.norm_squared(net, i) * self.scale_squared;
                }
            }
            work.scratch.resize(rows.len() * n, 0.0);
            net.gram(&factors, &self.rows, &mut work.scratch);
            for (i, (_, place)) in rows.iter().enumerate() {
                work.set_row(i, i * n, self.scale_squared);
                if let Some(alpha) = &self.alpha {
                    mean[place] = self.scale_squared * dot(alpha, &work.scratch[i * n..]);
                }
            }
            for ((_, place), norm) in rows.iter().zip(work.whiten(&self.whitener, rows.len())) {
                width[place] = ((width[place] - norm).max(0.0) / self.lambda).sqrt();
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
