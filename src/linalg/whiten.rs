//! ‖L⁻¹u‖² = uᵀA⁻¹u for many rows u, with A = L·Lᵀ: n²/2 multiply-adds per row, near the processor's peak.
//!
//! L⁻¹ is packed once into panels of six of its rows; rows u come in tiles of eight, a lane per row, component after
//! component. The six sums of a panel stay in registers, are squared there and never stored. A panel stays in the first
//! cache while some tiles, which stay in the second, meet it.
//!
//! **In f32** every y_i = Σ_j L⁻¹_ij u_j carries an error of the order of ε‖u‖/√λ (‖L⁻¹‖ ≤ λ^{−1/2}, ε = 6e-8), like
//! that of rounding u itself to f32. Whether that matters is for the caller to know: where the norm is subtracted from
//! something of its own size, ask the caller's rule; where it is the result itself, it is as good as the rows were.

use super::scalar::Scalar;
use super::vectors::{Job, LANES, dispatch, madd, scale_add};

/// Rows of a panel: with their sums and what is multiplied they fill the registers.
pub(crate) const HEIGHT: usize = 6;

/// Bytes of the tiles that meet a panel before the next.
const GROUP_BYTES: usize = 1 << 18;

/// Rows of a matrix in panels: column after column, six numbers each. A short panel is filled up with zeros.
#[derive(Debug, Clone)]
pub(crate) struct Panels<T> {
    columns: Vec<[T; HEIGHT]>,
    /// Where each panel begins; one entry more than panels.
    starts: Vec<usize>,
}

impl<T: Scalar> Panels<T> {
    /// Packs the matrix whose element (i, j) is `at(i, j)`; the last panel may be short.
    pub(crate) fn dense(n_rows: usize, n_cols: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let ends = (HEIGHT..n_rows).step_by(HEIGHT).chain((n_rows > 0).then_some(n_rows));
        Self::pack(ends, |_| n_cols, at)
    }

    /// Packs the lower triangle of a matrix; the first panel may be short, because its rows are. What lies behind the
    /// last row's end is not kept.
    fn lower(n: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let ends = (1..=n).filter(|end| (n - end).is_multiple_of(HEIGHT));
        Self::pack(ends, |end| end, |i, j| if j <= i { at(i, j) } else { 0.0 })
    }

    /// Panels that end before the rows `ends`, of `width(end)` columns.
    fn pack(
        ends: impl Iterator<Item = usize>,
        width: impl Fn(usize) -> usize,
        at: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let (mut columns, mut starts, mut first) = (Vec::new(), vec![0], 0);
        for end in ends {
            for j in 0..width(end) {
                let mut column = [T::ZERO; HEIGHT];
                (first..end).for_each(|i| column[i - first] = T::of(at(i, j)));
                columns.push(column);
            }
            starts.push(columns.len());
            first = end;
        }
        Panels { columns, starts }
    }

    /// Number of panels.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// W·u for the six rows of a panel and the rows u of a tile.
    #[inline(always)]
    pub(crate) fn product(&self, panel: usize, tile: &[[T; LANES]]) -> [[T; LANES]; HEIGHT] {
        let columns = &self.columns[self.starts[panel]..self.starts[panel + 1]];
        let mut sums = [[T::ZERO; LANES]; HEIGHT];
        for (w, u) in columns.iter().zip(tile) {
            for i in 0..HEIGHT {
                sums[i] = scale_add(w[i], u, sums[i]);
            }
        }
        sums
    }
}

/// Up to eight rows become a tile: `tile[j][l]` is component j of row l. Lanes without a row are zero.
#[inline(always)]
pub(crate) fn set_lanes<'a, T: Scalar>(rows: impl ExactSizeIterator<Item = &'a [f32]>, tile: &mut [[T; LANES]]) {
    let (mut own, n) = ([&[][..]; LANES], rows.len());
    for (own, row) in own.iter_mut().zip(rows) {
        *own = &row[..tile.len()];
    }
    if n < LANES {
        tile.fill([T::ZERO; LANES]);
    }
    for (j, tile) in tile.iter_mut().enumerate() {
        for (lane, row) in tile.iter_mut().zip(&own[..n]) {
            *lane = T::of_f32(row[j]);
        }
    }
}

/// L⁻¹, packed.
#[derive(Debug, Clone)]
pub(crate) struct Whitener<T> {
    n: usize,
    inverse: Panels<T>,
}

impl<T: Scalar> Whitener<T> {
    /// Packs L⁻¹, of which `at(i, j)` gives the lower triangle.
    pub(crate) fn new(n: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        Whitener { n, inverse: Panels::lower(n, at) }
    }

    /// The order n of the matrix.
    pub(crate) fn dim(&self) -> usize {
        self.n
    }

    /// Tiles to whiten at a time, so that they stay in the second cache between being made and whitened. At least four:
    /// reading a panel must not cost more than using it.
    pub(crate) fn tiles_at_once(&self) -> usize {
        (GROUP_BYTES / size_of::<[T; LANES]>() / self.n.max(1)).clamp(4, 16)
    }

    /// ‖L⁻¹u‖² of each row u of some tiles, of n vectors each.
    pub(crate) fn norms(&self, tiles: &[[T; LANES]], out: &mut [f64]) {
        dispatch(Norms { whitener: self, tiles, out });
    }

    /// As [`Whitener::norms`], inside a job.
    #[inline(always)]
    pub(crate) fn norms_in(&self, tiles: &[[T; LANES]], out: &mut [f64]) {
        out.fill(0.0);
        for panel in 0..self.inverse.len() {
            for (tile, out) in tiles.chunks_exact(self.n).zip(out.as_chunks_mut::<LANES>().0) {
                let sums = self.inverse.product(panel, tile);
                let mut squares = [T::ZERO; LANES];
                for y in sums {
                    squares = madd(y, y, squares);
                }
                for l in 0..LANES {
                    out[l] += squares[l].to_f64();
                }
            }
        }
    }
}

struct Norms<'a, T> {
    whitener: &'a Whitener<T>,
    tiles: &'a [[T; LANES]],
    out: &'a mut [f64],
}

impl<T: Scalar> Job for Norms<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.whitener.norms_in(self.tiles, self.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use crate::linalg::cholesky::{Cholesky, add_gram};
    use rand_distr::{Distribution, StandardNormal};

    /// The largest |‖L⁻¹u‖² − uᵀA⁻¹u| / uᵀA⁻¹u over the rows.
    fn largest_error<T: Scalar>(factor: &Cholesky, rows: &[f64]) -> f64 {
        let whitener: Whitener<T> = factor.inverse().whitener();
        let n = whitener.dim();
        let n_tiles = (rows.len() / n).div_ceil(LANES);
        let mut tiles = vec![[T::ZERO; LANES]; n_tiles * n];
        for (r, row) in rows.chunks(n).enumerate() {
            for (j, v) in row.iter().enumerate() {
                tiles[r / LANES * n + j][r % LANES] = T::of(*v);
            }
        }
        let mut norms = vec![0.5; n_tiles * LANES];
        whitener.norms(&tiles, &mut norms);
        let mut worst = 0.0f64;
        for (row, got) in rows.chunks(n).zip(norms) {
            let mut solved = row.to_vec();
            factor.solve(&mut solved);
            let want = row.iter().zip(&solved).map(|(a, b)| a * b).sum::<f64>();
            worst = worst.max((got - want).abs() / want);
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
            let rows = normals(150 * n); // no whole tile at the end
            // cond(A) < 1e3; the error of a row is below √cond·eps·√n, of its square twice that
            let (double, single) = (largest_error::<f64>(&factor, &rows), largest_error::<f32>(&factor, &rows));
            assert!(double < 1e-12, "n {n}: {double}");
            assert!(single < 2e-5, "n {n}: {single}");
        }
    }

    #[test]
    fn a_product_with_a_panel_is_that_of_the_definition() {
        // small integers and halves: exact
        let at = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 4.0;
        for n in [1, 6, 20] {
            let tile: Vec<[f64; LANES]> = (0..n).map(|j| [j as f64 - 2.5; LANES]).collect();
            let panels = Panels::dense(13, n, at);
            for i in 0..18 {
                let want: f64 = if i < 13 { (0..n).map(|j| at(i, j) * (j as f64 - 2.5)).sum() } else { 0.0 };
                assert_eq!(panels.product(i / HEIGHT, &tile)[i % HEIGHT], [want; LANES]);
            }
        }
    }
}
