//! Mean and width of the neural models with the exact Λ, frozen: L⁻¹ over the parameters or over the samples.
//!
//! * **primal**: width = ‖L⁻¹φ‖ with Λ = L·Lᵀ, O(p²/2) per pair. Λ is kept and factored in f64; φ is whitened in the
//!   network's own type T, because rounding L⁻¹ moves L⁻¹φ no further than the rounding of φ has moved it already.
//! * **dual**: width = √((‖φ‖² − ‖L⁻¹k‖²)/λ) with K + λI = L·Lᵀ, O(n²/2) per pair, in f64: the difference loses digits.

use crate::data::RowGroup;
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::LANES;
use crate::linalg::whiten::Whitener;
use crate::net::{FactorRows, Net, Number, Params, Tangents};

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

impl<T: Number> Exact<T> {
    /// Mean and width of every row of the groups.
    pub(super) fn score(
        &self,
        net: &Net,
        weights: &Params<T>,
        groups: &[RowGroup<'_>],
        mean: &mut [f64],
        width: &mut [f64],
    ) {
        let mut pass = Pass { net, weights, tangents: Tangents::new(net), input: vec![T::ZERO; net.n_in()] };
        for group in groups {
            match self {
                Exact::Primal(primal) => primal.score(&mut pass, group, mean, width),
                Exact::Dual(dual) => dual.score(&mut pass, group, mean, width),
            }
        }
    }
}

/// Passes through the network, a row at a time.
struct Pass<'a, T> {
    net: &'a Net,
    weights: &'a Params<T>,
    tangents: Tangents<T>,
    input: Vec<T>,
}

impl<T: Number> Pass<'_, T> {
    fn run(&mut self, place: (usize, usize), x: &[f32]) -> f64 {
        self.net.write_input(x, &mut self.input);
        self.net.tangents_at(self.weights, place, &self.input, &mut self.tangents);
        self.tangents.f()[place.1].to_f64()
    }
}

/// Rows to be whitened, and their norms.
struct Tiles<T> {
    tiles: Vec<[T; LANES]>,
    norms: Vec<f64>,
    n: usize,
}

impl<T: Scalar> Tiles<T> {
    fn new(whitener: &Whitener<T>) -> Self {
        let (tiles, n) = (whitener.tiles_at_once(), whitener.dim());
        Tiles { tiles: vec![[T::ZERO; LANES]; tiles * n], norms: vec![0.0; tiles * LANES], n }
    }

    /// Writes c·v into the tiles as row `row`.
    fn set_row(&mut self, row: usize, v: &[f64], c: f64) {
        for (lanes, v) in self.tiles[row / LANES * self.n..].iter_mut().zip(v) {
            lanes[row % LANES] = T::of(v * c);
        }
    }

    /// ‖L⁻¹u‖² of the first rows.
    fn whiten(&mut self, whitener: &Whitener<T>, rows: usize) -> &[f64] {
        let tiles = rows.div_ceil(LANES);
        whitener.norms(&self.tiles[..tiles * self.n], &mut self.norms[..tiles * LANES]);
        &self.norms[..rows]
    }
}

impl<T: Number> FrozenPrimal<T> {
    fn score(&self, pass: &mut Pass<'_, T>, group: &RowGroup<'_>, mean: &mut [f64], width: &mut [f64]) {
        let (place, mut tiles) = (pass.net.place(group.action), Tiles::new(&self.whitener));
        let mut phi = vec![0.0; self.whitener.dim()];
        for rows in group.rows().chunks(tiles.norms.len()) {
            for (row, (x, to)) in rows.iter().enumerate() {
                let f = pass.run(place, x);
                pass.tangents.expand(pass.net, place.0, &mut phi);
                tiles.set_row(row, &phi, self.scale);
                mean[to] = self.theta.as_ref().map_or(f, |theta| self.scale * dot(theta, &phi));
            }
            for ((_, to), norm) in rows.iter().zip(tiles.whiten(&self.whitener, rows.len())) {
                width[to] = norm.sqrt();
            }
        }
    }
}

impl FrozenDual {
    /// Ridge mean kᵀα and width² = (φᵀφ − kᵀ(K + λI)⁻¹k)/λ of each row.
    fn score<T: Number>(&self, pass: &mut Pass<'_, T>, group: &RowGroup<'_>, mean: &mut [f64], width: &mut [f64]) {
        let (net, n, mut tiles) = (pass.net, self.rows.len(), Tiles::new(&self.whitener));
        let place = net.place(group.action);
        let mut k = Vec::new();
        for rows in group.rows().chunks(tiles.norms.len()) {
            let mut factors = FactorRows::new(net);
            for (x, to) in rows.iter() {
                mean[to] = pass.run(place, x);
                width[to] = pass.tangents.norm_squared(net) * self.scale_squared;
                factors.push(net, &pass.tangents, place.0);
            }
            k.resize(rows.len() * n, 0.0);
            net.gram(&factors, &self.rows, &mut k);
            for (row, (_, to)) in rows.iter().enumerate() {
                let k = &k[row * n..(row + 1) * n];
                tiles.set_row(row, k, self.scale_squared);
                if let Some(alpha) = &self.alpha {
                    mean[to] = self.scale_squared * dot(alpha, k);
                }
            }
            for ((_, to), norm) in rows.iter().zip(tiles.whiten(&self.whitener, rows.len())) {
                width[to] = ((width[to] - norm).max(0.0) / self.lambda).sqrt();
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
