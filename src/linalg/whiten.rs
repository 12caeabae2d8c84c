//! ‖L⁻¹u‖² = uᵀA⁻¹u for many rows u, with A = L·Lᵀ: n²/2 multiply-adds per row, near the processor's peak.
//!
//! L⁻¹ is packed once ([`super::panels`]); rows come in tiles, a lane per row. A panel of L⁻¹ stays in the first cache while
//! a few tiles, which stay in the second, meet it; its six sums per row are squared in registers and never stored.
//!
//! **In f32** every y_i = Σ_j L⁻¹_ij u_j carries an error of the order of ε‖u‖/√λ (‖L⁻¹‖ ≤ λ^{−1/2}, ε = 6e-8), like that
//! of rounding u itself to f32. Whether that matters is for the caller to know: where the norm is subtracted from
//! something of its own size, ask the caller's rule; where it is the result itself, it is as good as the rows were.

use super::panels::{HEIGHT, Panels, product_lower};
use super::scalar::Scalar;
use super::simd::{Arch, Job, LANES, Lanes, Rows, Vectors, dispatch, lanes};

/// Bytes of the tiles that meet a panel before the next: they stay in the second cache.
const GROUP_BYTES: usize = 1 << 18;

/// L⁻¹, packed.
#[derive(Debug, Clone)]
pub(crate) struct Whitener<T> {
    inverse: Panels<T>,
}

impl<T: Scalar> Whitener<T> {
    /// Rows of a tile: as many as give twelve vector registers of sums.
    pub(crate) const ROWS: usize = if size_of::<T>() == 4 { 2 * LANES } else { LANES };

    /// Packs L⁻¹, of which `at(i, j)` gives the lower triangle.
    pub(crate) fn new(n: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        Whitener { inverse: Panels::lower(n, at) }
    }

    /// The order n of the matrix.
    pub(crate) fn dim(&self) -> usize {
        self.inverse.n_rows()
    }

    /// Numbers of a tile: room for n components rounded up to whole panels; what stands behind the n-th is not read.
    pub(crate) fn tile_len(&self) -> usize {
        Self::ROWS * self.dim().next_multiple_of(HEIGHT)
    }

    /// Vectors of a tile.
    pub(crate) fn tile_vectors(&self) -> usize {
        self.tile_len() / LANES
    }

    /// Whether half of a first cache of 32 kB holds L⁻¹.
    pub(crate) fn is_small(&self) -> bool {
        self.inverse.bytes() <= 1 << 14
    }

    /// Rows that [`Whitener::rows_at_once`] gives at most.
    pub(crate) const MAX_ROWS_AT_ONCE: usize = 128;

    /// Rows to whiten at a time, in whole tiles, so that they stay in the second cache between being made and whitened.
    pub(crate) fn rows_at_once(&self) -> usize {
        let tiles = GROUP_BYTES / size_of::<T>() / self.tile_len().max(1);
        // at least four: reading a panel must not cost more than using it
        tiles.clamp(4, Self::MAX_ROWS_AT_ONCE / Self::ROWS) * Self::ROWS
    }

    /// ‖L⁻¹u‖² of each row u of some tiles, n × [`Self::ROWS`] each.
    pub(crate) fn norms(&self, tiles: &[T], out: &mut [f64]) {
        dispatch(Norms { whitener: self, tiles, out });
    }

    /// ‖L⁻¹u‖ of each row u of N tiles, all in T, where L⁻¹ [is small](Whitener::is_small): sums stay in registers from panel to
    /// panel.
    #[inline(always)]
    pub(crate) fn lengths_in<A: Arch, const N: usize>(&self, tiles: [&[Lanes<T>]; N], out: &mut [[Lanes<T>; 2]; N]) {
        if const { size_of::<T>() == 4 } {
            self.lengths_of::<A, A::Sixteen<T>, 2, N>(tiles.map(|tile| tile.as_chunks().0), out);
        } else {
            self.lengths_of::<A, Vectors<A, T, 1>, 1, N>(tiles.map(|tile| tile.as_chunks().0), out);
        }
    }

    #[inline(always)]
    fn lengths_of<A: Arch, W: Rows<T, A::V<T>>, const C: usize, const N: usize>(
        &self,
        tiles: [&[[Lanes<T>; C]]; N],
        out: &mut [[Lanes<T>; 2]; N],
    ) {
        // three sums, so that none waits for its own last addition
        let mut squares = [[W::splat(T::ZERO); 3]; N];
        for p in 0..self.inverse.len() {
            let y = product_lower::<T, A, W, C, N>(self.inverse.panel(p), tiles);
            for i in 0..HEIGHT {
                for k in 0..N {
                    squares[k][i % 3] = y[i][k].madd(y[i][k], squares[k][i % 3]);
                }
            }
        }
        for k in 0..N {
            squares[k][0].add(squares[k][1]).add(squares[k][2]).sqrt().store_to(&mut out[k]);
        }
    }

    /// As [`Whitener::norms`], inside a job.
    #[inline(always)]
    pub(crate) fn norms_in<A: Arch>(&self, tiles: &[T], out: &mut [f64]) {
        out.fill(0.0);
        let len = self.tile_len();
        if len == 0 {
            return;
        }
        let group = self.rows_at_once();
        for (tiles, out) in tiles.chunks(group / Self::ROWS * len).zip(out.chunks_mut(group)) {
            for p in 0..self.inverse.len() {
                let panel = self.inverse.panel(p);
                if const { size_of::<T>() == 4 } {
                    add_squares::<T, A, A::Sixteen<T>, 2>(panel, tiles, len, out);
                } else {
                    add_squares::<T, A, Vectors<A, T, 1>, 1>(panel, tiles, len, out);
                }
            }
        }
    }
}

/// out += Σ y² over the six y of a panel, for each row of some tiles, which hold as many as W does: C vectors.
#[inline(always)]
fn add_squares<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const C: usize>(
    panel: &[[T; HEIGHT]],
    tiles: &[T],
    len: usize,
    out: &mut [f64],
) {
    let (vectors, len, rows) = (lanes(tiles).as_chunks().0, len / (C * LANES), C * LANES);
    let (n, mut k) = (out.len() / rows, 0);
    // the rows of a tile are 64 bytes: twelve registers of sums are two tiles of them, or one
    if const { A::WIDE_REGISTERS } {
        while k + 2 <= n {
            let (a, b) = vectors[k * len..(k + 2) * len].split_at(len);
            add_squares_of::<T, A, W, C, 2>(panel, [a, b], &mut out[k * rows..(k + 2) * rows]);
            k += 2;
        }
    }
    while k < n {
        add_squares_of::<T, A, W, C, 1>(panel, [&vectors[k * len..(k + 1) * len]], &mut out[k * rows..(k + 1) * rows]);
        k += 1;
    }
}

/// As [`add_squares`], of N tiles.
#[inline(always)]
fn add_squares_of<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const C: usize, const N: usize>(
    panel: &[[T; HEIGHT]],
    tiles: [&[[Lanes<T>; C]]; N],
    out: &mut [f64],
) {
    let (sums, rows) = (product_lower::<T, A, W, C, N>(panel, tiles), C * LANES);
    for k in 0..N {
        let out = &mut out[k * rows..(k + 1) * rows];
        let mut squares = sums[0][k].mul(sums[0][k]);
        for i in 1..HEIGHT {
            squares = sums[i][k].madd(sums[i][k], squares);
        }
        let mut lanes = [[T::ZERO; LANES]; 2];
        squares.store_to(&mut lanes);
        for (out, v) in out.iter_mut().zip(lanes.as_flattened()) {
            *out += v.wide();
        }
    }
}

struct Norms<'a, T> {
    whitener: &'a Whitener<T>,
    tiles: &'a [T],
    out: &'a mut [f64],
}

impl<T: Scalar> Job for Norms<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        self.whitener.norms_in::<A>(self.tiles, self.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use crate::linalg::cholesky::{Cholesky, add_gram};
    use crate::linalg::simd::Portable;
    use rand_distr::{Distribution, StandardNormal};

    /// Σ over the rows of (‖L⁻¹u‖² − uᵀA⁻¹u)/uᵀA⁻¹u, the largest, with the processor's best instructions and without.
    fn largest_error<T: Scalar>(factor: &Cholesky, rows: &[f64]) -> f64 {
        let whitener: Whitener<T> = factor.whitener();
        let (n, lanes) = (whitener.dim(), Whitener::<T>::ROWS);
        let n_tiles = (rows.len() / n).div_ceil(lanes);
        let mut tiles = vec![T::ZERO; n_tiles * whitener.tile_len()];
        for (r, row) in rows.chunks(n).enumerate() {
            for (j, v) in row.iter().enumerate() {
                tiles[r / lanes * whitener.tile_len() + j * lanes + r % lanes] = T::of(*v);
            }
        }
        let (mut best, mut plain) = (vec![0.5; n_tiles * lanes], vec![0.5; n_tiles * lanes]);
        whitener.norms(&tiles, &mut best);
        whitener.norms_in::<Portable>(&tiles, &mut plain);
        let mut worst = 0.0f64;
        for (r, row) in rows.chunks(n).enumerate() {
            let mut solved = row.to_vec();
            factor.solve(&mut solved);
            let want = row.iter().zip(&solved).map(|(a, b)| a * b).sum::<f64>();
            for got in [best[r], plain[r]] {
                worst = worst.max((got - want).abs() / want);
            }
        }
        worst
    }

    #[test]
    fn whitening_gives_the_quadratic_form() {
        for n in [1, 5, 6, 20, 151] {
            let mut rng = Seed::new(5).stream("whiten");
            let mut normals = |k: usize| (0..k).map(|_| StandardNormal.sample(&mut rng)).collect::<Vec<f64>>();
            let mut a = vec![0.0; n * n];
            a.iter_mut().step_by(n + 1).for_each(|v| *v = 1.0);
            add_gram(&normals(40 * n), n, &mut a);
            let factor = Cholesky::factor(&a, n).unwrap();
            let rows = normals(150 * n); // more than are whitened at once, and no whole tile at the end
            // cond(A) < 1e3; the error of a row is below √cond·eps·√n, of its square twice that
            let (double, single) = (largest_error::<f64>(&factor, &rows), largest_error::<f32>(&factor, &rows));
            assert!(double < 1e-12, "n {n}: {double}");
            assert!(single < 2e-5, "n {n}: {single}");
        }
    }
}
