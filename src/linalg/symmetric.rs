//! Large symmetric matrices in f64, kept as the square tiles of their lower triangle: half the memory, and one tile is
//! one task.
//!
//! Every tile is computed, multiplied or factored on one thread in a fixed order of operations, so that results are the
//! same bits with any number of threads. Fill and product O(n²) per column, factor O(n³/3), solve O(n²).

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::cholesky::factor_in_place;
use crate::error::Error;

/// Rows of a tile: three tiles of f64 fill a second cache of 1.5 MB.
const TILE: usize = 256;

/// Rows `i` by columns `j` of the lower triangle, in units of [`TILE`], row-major.
#[derive(Debug, Clone)]
struct Tile {
    i: usize,
    j: usize,
    values: Vec<f64>,
}

/// A symmetric matrix.
#[derive(Debug, Clone)]
pub(crate) struct Symmetric {
    n: usize,
    /// (0, 0), (1, 0), (1, 1), (2, 0), …
    tiles: Vec<Tile>,
}

/// A stretch of rows or columns.
pub(crate) type Stretch = std::ops::Range<usize>;

fn stretch(n: usize, block: usize) -> Stretch {
    block * TILE..(block * TILE + TILE).min(n)
}

/// The place of tile (i, j), j ≤ i.
fn place(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

impl Symmetric {
    /// Fills the tiles in parallel: `fill` gets rows, columns and the values (row-major). Above the diagonal of a
    /// tile on the diagonal it must give the mirrored values.
    pub(crate) fn from_tiles<E: Send>(
        n: usize,
        fill: impl Fn(Stretch, Stretch, &mut [f64]) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        let places: Vec<(usize, usize)> = (0..n.div_ceil(TILE)).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        let tile = |(i, j): (usize, usize)| {
            let (rows, cols) = (stretch(n, i), stretch(n, j));
            let mut values = vec![0.0; rows.len() * cols.len()];
            fill(rows, cols, &mut values)?;
            Ok(Tile { i, j, values })
        };
        Ok(Symmetric { n, tiles: places.into_par_iter().map(tile).collect::<Result<_, E>>()? })
    }

    /// The order n.
    pub(crate) fn order(&self) -> usize {
        self.n
    }

    /// The entry in row i and column j.
    pub(crate) fn get(&self, i: usize, j: usize) -> f64 {
        let (i, j) = (i.max(j), i.min(j));
        let tile = &self.tiles[place(i / TILE, j / TILE)];
        tile.values[(i % TILE) * stretch(self.n, tile.j).len() + j % TILE]
    }

    /// Changes every entry of the lower triangle (and the mirrored ones of the tiles on the diagonal).
    pub(crate) fn map(mut self, f: impl Fn(f64) -> f64 + Sync) -> Self {
        self.tiles.par_iter_mut().for_each(|tile| tile.values.iter_mut().for_each(|v| *v = f(*v)));
        self
    }

    /// A ← A + c·I.
    pub(crate) fn add_identity(mut self, c: f64) -> Self {
        for block in 0..self.n.div_ceil(TILE) {
            let len = stretch(self.n, block).len();
            self.tiles[place(block, block)].values.iter_mut().step_by(len + 1).for_each(|v| *v += c);
        }
        self
    }

    /// The leading part of order `n`.
    pub(crate) fn leading(&self, n: usize) -> Self {
        let fill = |rows: Stretch, cols: Stretch, values: &mut [f64]| {
            let tile = &self.tiles[place(rows.start / TILE, cols.start / TILE)];
            let from = tile.values.chunks_exact(stretch(self.n, tile.j).len());
            for (to, from) in values.chunks_exact_mut(cols.len()).zip(from) {
                to.copy_from_slice(&from[..cols.len()]);
            }
            Ok::<(), std::convert::Infallible>(())
        };
        Symmetric::from_tiles(n, fill).unwrap_or_else(|never| match never {})
    }

    /// A·V for V of `k` columns, row-major.
    pub(crate) fn product(&self, v: &[f64], k: usize) -> Vec<f64> {
        let mut out = vec![0.0; self.n * k];
        out.par_chunks_mut(TILE * k).enumerate().for_each(|(i, out)| {
            let rows = stretch(self.n, i).len();
            for block in 0..self.n.div_ceil(TILE) {
                let cols = stretch(self.n, block);
                let part = MatRef::from_row_major_slice(&v[cols.start * k..cols.end * k], cols.len(), k);
                let out = MatMut::from_row_major_slice_mut(&mut *out, rows, k);
                let tile = &self.tiles[place(i.max(block), i.min(block))].values;
                let tile = if block <= i {
                    MatRef::from_row_major_slice(tile, rows, cols.len())
                } else {
                    MatRef::from_row_major_slice(tile, cols.len(), rows).transpose()
                };
                matmul(out, Accum::Add, tile, part, 1.0, Par::Seq);
            }
        });
        out
    }

    /// A = L·Lᵀ, in the memory of A.
    pub(crate) fn factor(mut self) -> Result<TiledCholesky, Error> {
        for k in 0..self.n.div_ceil(TILE) {
            let own = stretch(self.n, k);
            let size = own.len();
            let diagonal = &mut self.tiles[place(k, k)].values;
            factor_in_place(MatMut::from_row_major_slice_mut(diagonal, size, size), own.start)?;
            let diagonal = std::mem::take(diagonal);
            let l = MatRef::from_row_major_slice(&diagonal, size, size);
            let mut column: Vec<Vec<f64>> =
                (k + 1..self.n.div_ceil(TILE)).map(|i| std::mem::take(&mut self.tiles[place(i, k)].values)).collect();
            column.par_iter_mut().for_each(|tile| {
                // X·Lᵀ = A, that is L·Xᵀ = Aᵀ
                let rows = tile.len() / size;
                let rhs = MatMut::from_row_major_slice_mut(tile, rows, size).transpose_mut();
                solve_lower_triangular_in_place(l, rhs, Par::Seq);
            });
            self.tiles.par_iter_mut().filter(|t| t.j > k).for_each(|tile| {
                let part = |block: usize| {
                    let values = &column[block - k - 1];
                    MatRef::from_row_major_slice(values, values.len() / size, size)
                };
                let (a, b) = (part(tile.i), part(tile.j));
                let out = MatMut::from_row_major_slice_mut(&mut tile.values, a.nrows(), b.nrows());
                matmul(out, Accum::Add, a, b.transpose(), -1.0, Par::Seq);
            });
            self.tiles[place(k, k)].values = diagonal;
            for (i, tile) in column.into_iter().enumerate() {
                self.tiles[place(k + 1 + i, k)].values = tile;
            }
        }
        Ok(TiledCholesky(self))
    }
}

/// The lower factor of a large positive definite matrix.
#[derive(Debug, Clone)]
pub(crate) struct TiledCholesky(Symmetric);

impl TiledCholesky {
    /// log det A = 2 Σ log l_kk.
    pub(crate) fn log_det(&self) -> f64 {
        (0..self.0.n).map(|k| 2.0 * self.0.get(k, k).ln()).sum()
    }

    /// b ← L⁻¹·b.
    pub(crate) fn solve_lower(&self, b: &mut [f64]) {
        let Symmetric { n, tiles } = &self.0;
        for i in 0..n.div_ceil(TILE) {
            let own = stretch(*n, i);
            let (before, rest) = b.split_at_mut(own.start);
            let b_i = &mut rest[..own.len()];
            for j in 0..i {
                for (row, b) in tiles[place(i, j)].values.chunks_exact(TILE).zip(b_i.iter_mut()) {
                    *b -= dot(row, &before[j * TILE..(j + 1) * TILE]);
                }
            }
            let l = MatRef::from_row_major_slice(&tiles[place(i, i)].values, own.len(), own.len());
            solve_lower_triangular_in_place(l, MatMut::from_column_major_slice_mut(b_i, own.len(), 1), Par::Seq);
        }
    }

    /// b ← A⁻¹·b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        self.solve_lower(b);
        let Symmetric { n, tiles } = &self.0;
        let blocks = n.div_ceil(TILE);
        for i in (0..blocks).rev() {
            let own = stretch(*n, i);
            let (rest, after) = b.split_at_mut(own.end);
            let b_i = &mut rest[own.start..];
            for j in i + 1..blocks {
                let from = (j - i - 1) * TILE;
                for (row, &v) in tiles[place(j, i)].values.chunks_exact(TILE).zip(&after[from..]) {
                    b_i.iter_mut().zip(row).for_each(|(b, l)| *b -= l * v);
                }
            }
            let l = MatRef::from_row_major_slice(&tiles[place(i, i)].values, own.len(), own.len());
            let rhs = MatMut::from_column_major_slice_mut(b_i, own.len(), 1);
            solve_upper_triangular_in_place(l.transpose(), rhs, Par::Seq);
        }
    }
}

/// Σ a·b in eight sums, so that none waits for another.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a8.iter().zip(b8) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// out (rows × cols) = a (rows × k) · bᵀ, all row-major, on the calling thread.
pub(crate) use super::cholesky::gram;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::cholesky::Cholesky;

    /// A well-conditioned matrix that no tile boundary divides evenly.
    fn matrix(n: usize) -> Symmetric {
        let entry =
            |i: usize, j: usize| (-((i as f64 - j as f64) / 40.0).powi(2)).exp() + 0.3 * f64::from(u8::from(i == j));
        let fill = |rows: Stretch, cols: Stretch, values: &mut [f64]| {
            for (row, i) in values.chunks_exact_mut(cols.len()).zip(rows) {
                row.iter_mut().zip(cols.clone()).for_each(|(v, j)| *v = entry(i, j));
            }
            Ok::<(), Error>(())
        };
        Symmetric::from_tiles(n, fill).unwrap()
    }

    #[test]
    fn factor_solve_and_determinant_equal_those_of_the_whole_matrix() {
        for n in [1, 100, 256, 257, 700] {
            let a = matrix(n);
            let dense: Vec<f64> = (0..n * n).map(|at| a.get(at / n, at % n)).collect();
            let (whole, tiled) = (Cholesky::factor(&dense, n).unwrap(), a.clone().factor().unwrap());
            assert!((whole.log_det() - tiled.log_det()).abs() < 1e-12 * n as f64);
            let mut x: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin()).collect();
            let b = x.clone();
            tiled.solve(&mut x);
            // cond(A) is about 300
            let residual = a.product(&x, 1).iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(residual < 1e-11, "{n}: {residual}");
        }
    }

    #[test]
    fn a_product_with_several_columns_is_the_naive_one_and_a_leading_part_is_a_part() {
        let (n, k) = (300, 3);
        let a = matrix(n);
        let v: Vec<f64> = (0..n * k).map(|i| (i as f64).cos()).collect();
        for (at, got) in a.product(&v, k).iter().enumerate() {
            let want: f64 = (0..n).map(|j| a.get(at / k, j) * v[j * k + at % k]).sum();
            assert!((got - want).abs() < 1e-12);
        }
        let part = a.leading(270);
        assert!((0..270).all(|i| (0..270).all(|j| part.get(i, j) == a.get(i, j))));
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_refused_with_its_pivot() {
        let a = matrix(600).add_identity(-1.3);
        assert_eq!(a.factor().unwrap_err(), Error::NotPositiveDefinite { pivot: 0 });
    }
}
