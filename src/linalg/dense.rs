//! The product of a dense layer, row-major, with the outputs padded to a multiple of [`LANES`]: Z = X·W for rows x,
//! from all their numbers ([`multiply`]) or from those that are not zero ([`multiply_sparse`]).
//!
//! A tile of results is kept in registers, and W is taken in stretches of inputs that stay in the first cache. Every
//! result is one sum over the inputs in their order.

use super::scalar::Scalar;
use super::simd::{Arch, Job, LANES, Lanes, Rows, Vectors, lanes, lanes_mut, many_registers};

/// Repeats an expression over stretches of columns from `$col` on, each as wide as the list allows without leaving a
/// single column, which would have too few sums to hide the latency of an addition; in it `$width` is a constant.
macro_rules! over_columns {
    ($columns:expr, $col:ident, $width:ident in [$($vectors:literal)+], $body:expr) => {{
        let columns = $columns;
        let mut $col = 0;
        $(
            while columns - $col >= $vectors && ($vectors == 1 || columns - $col != $vectors + 1) {
                const $width: usize = $vectors;
                $body;
                $col += $vectors;
            }
        )+
    }};
}
pub(crate) use over_columns;

/// z (rows × ld) = x (rows × n_in, rows `stride` apart) · w (n_in × ld).
#[inline(always)]
pub(crate) fn multiply<T: Scalar, A: Arch>(x: &[T], stride: usize, n_in: usize, w: &[T], ld: usize, z: &mut [T]) {
    A::call(Multiply { x, stride, n_in, w, ld, z });
}

struct Multiply<'a, T> {
    x: &'a [T],
    stride: usize,
    n_in: usize,
    w: &'a [T],
    ld: usize,
    z: &'a mut [T],
}

/// Inputs taken at a time: their weights to three vectors of outputs fill half of a first cache of 32 kB.
const STRETCH: usize = 128;

impl<T: Scalar> Job for Multiply<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Multiply { x, stride, n_in, w, ld, z } = self;
        let columns = ld / LANES;
        let mut from = 0;
        while from < n_in {
            let n = STRETCH.min(n_in - from);
            let w = &lanes(w)[from * columns..(from + n) * columns];
            let (x, z, add) = (&x[from..], lanes_mut(z), from > 0);
            Tile { x, stride, n, w, columns, z, add }.all::<A>();
            from += n;
        }
    }
}

/// A stretch of inputs of a product.
struct Tile<'a, T> {
    x: &'a [T],
    stride: usize,
    n: usize,
    w: &'a [Lanes<T>],
    /// Vectors of a row of w and z.
    columns: usize,
    z: &'a mut [Lanes<T>],
    /// Whether the sums go on from `z`.
    add: bool,
}

impl<T: Scalar> Tile<'_, T> {
    /// All columns, a stretch at a time. Where there are many registers they hold sixteen numbers, but for the last eight of an odd
    /// number of columns.
    #[inline(always)]
    fn all<A: Arch>(mut self) {
        let mut done = 0;
        if const { many_registers::<T, A>() } {
            over_columns!(self.columns / 2, pair, C in [3 2 1], self.stretch::<A, A::Sixteen<T>, C>(2 * pair));
            done = self.columns / 2 * 2;
        }
        over_columns!(self.columns - done, col, C in [3 2 1], self.stretch::<A, Vectors<A, T, 1>, C>(done + col));
    }

    /// All rows by C registers of type W from column `col` on.
    #[inline(always)]
    fn stretch<A: Arch, W: Rows<T, A::V<T>>, const C: usize>(&mut self, col: usize) {
        let (rows, mut r) = (self.z.len() / self.columns, 0);
        if const { many_registers::<T, A>() } {
            while r + 8 <= rows {
                self.run::<A, W, 8, C>(r, col);
                r += 8;
            }
        }
        while r + 4 <= rows {
            self.run::<A, W, 4, C>(r, col);
            r += 4;
        }
        match rows - r {
            3 => self.run::<A, W, 3, C>(r, col),
            2 => self.run::<A, W, 2, C>(r, col),
            1 => self.run::<A, W, 1, C>(r, col),
            _ => {}
        }
    }

    /// R rows from `row` on by C registers from column `col` on.
    #[inline(always)]
    fn run<A: Arch, W: Rows<T, A::V<T>>, const R: usize, const C: usize>(&mut self, row: usize, col: usize) {
        let own = C * W::VECTORS;
        let mut x = [self.x; R];
        for r in 0..R {
            x[r] = &self.x[(row + r) * self.stride..][..self.n];
        }
        let mut sums = [[W::splat(T::ZERO); C]; R];
        if self.add {
            for r in 0..R {
                let z = &self.z[(row + r) * self.columns + col..][..own];
                for c in 0..C {
                    sums[r][c] = W::load_from(&z[c * W::VECTORS..]);
                }
            }
        }
        for (j, w) in self.w.chunks_exact(self.columns).enumerate() {
            let w = &w[col..col + own];
            let mut wj = [W::splat(T::ZERO); C];
            for c in 0..C {
                wj[c] = W::load_from(&w[c * W::VECTORS..]);
            }
            for r in 0..R {
                let v = W::splat(x[r][j]);
                for c in 0..C {
                    sums[r][c] = v.madd(wj[c], sums[r][c]);
                }
            }
        }
        for r in 0..R {
            let z = &mut self.z[(row + r) * self.columns + col..][..own];
            for c in 0..C {
                sums[r][c].store_to(&mut z[c * W::VECTORS..]);
            }
        }
    }
}

/// Rows of which only the numbers that are not zero are kept, in stretches of inputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseRows {
    stretches: usize,
    /// Where each row's part of each stretch begins in `index`; one more at the end.
    starts: Vec<u32>,
    index: Vec<u32>,
}

/// Inputs of a sparse product taken at a time: with 104 outputs their weights stay in a first cache of 32 kB.
const SPARSE_STRETCH: usize = 64;

/// Whether no more than one number in three of the rows is not zero.
pub(crate) fn is_sparse<'a>(rows: impl Iterator<Item = &'a [f32]>) -> bool {
    let (mut numbers, mut full) = (0, 0);
    for row in rows {
        numbers += row.len();
        full += row.iter().filter(|&&x| x != 0.0).count();
        // soon clear, if the first rows are not much fuller than the others
        if 3 * full > numbers + 2 * row.len() {
            return false;
        }
    }
    3 * full <= numbers
}

impl SparseRows {
    /// Notes where the rows (row-major, `n_in` numbers each) are not zero.
    pub(crate) fn note<T: Scalar>(&mut self, rows: &[T], n_in: usize) {
        self.stretches = n_in.div_ceil(SPARSE_STRETCH);
        self.starts.clear();
        self.index.clear();
        for row in rows.chunks_exact(n_in) {
            for (at, stretch) in row.chunks(SPARSE_STRETCH).enumerate() {
                self.starts.push(self.index.len() as u32);
                for (j, &x) in stretch.iter().enumerate() {
                    if x != T::ZERO {
                        self.index.push((at * SPARSE_STRETCH + j) as u32);
                    }
                }
            }
        }
        self.starts.push(self.index.len() as u32);
    }
}

/// As [`multiply`], reading only the numbers of x that are noted.
#[inline(always)]
pub(crate) fn multiply_sparse<T: Scalar, A: Arch>(
    noted: &SparseRows,
    x: &[T],
    n_in: usize,
    w: &[T],
    ld: usize,
    z: &mut [T],
) {
    A::call(MultiplySparse { noted, x, n_in, w, ld, z });
}

struct MultiplySparse<'a, T> {
    noted: &'a SparseRows,
    x: &'a [T],
    n_in: usize,
    w: &'a [T],
    ld: usize,
    z: &'a mut [T],
}

impl<T: Scalar> Job for MultiplySparse<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let MultiplySparse { noted, x, n_in, w, ld, z } = self;
        let (w, z, columns) = (lanes(w), lanes_mut(z), ld / LANES);
        z.fill([T::ZERO; LANES]);
        for stretch in 0..noted.stretches {
            for (r, (x, z)) in x.chunks_exact(n_in).zip(z.chunks_exact_mut(columns)).enumerate() {
                let at = r * noted.stretches + stretch;
                let index = &noted.index[noted.starts[at] as usize..noted.starts[at + 1] as usize];
                // thirteen sums, a number and no more: the weights are read from memory by the multiplication itself
                over_columns!(columns, col, C in [13 7 4 2 1], {
                    sparse_row::<T, A, C>(index, x, w, columns, col, &mut z[col..col + C]);
                });
            }
        }
    }
}

#[inline(always)]
fn sparse_row<T: Scalar, A: Arch, const C: usize>(
    index: &[u32],
    x: &[T],
    w: &[Lanes<T>],
    columns: usize,
    col: usize,
    z: &mut [Lanes<T>],
) {
    let mut sums = [A::zero::<T>(); C];
    for c in 0..C {
        sums[c] = A::load(&z[c]);
    }
    for &j in index {
        let j = j as usize;
        let v = A::splat(x[j]);
        let w = &w[j * columns + col..][..C];
        for c in 0..C {
            sums[c] = A::madd(v, A::load(&w[c]), sums[c]);
        }
    }
    for c in 0..C {
        A::store(sums[c], &mut z[c]);
    }
}

/// Σ a·b over slices whose length is a multiple of [`LANES`].
#[inline(always)]
pub(crate) fn dot<T: Scalar, A: Arch>(a: &[T], b: &[T]) -> T {
    let (a, b) = (lanes(a), lanes(b));
    let b = &b[..a.len()];
    let mut acc = A::zero::<T>();
    for i in 0..a.len() {
        acc = A::madd(A::load(&a[i]), A::load(&b[i]), acc);
    }
    A::total(acc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::{Neon, Portable, dispatch};
    use proptest::prelude::*;

    struct Both<'a, T> {
        x: &'a [T],
        n_in: usize,
        w: &'a [T],
        ld: usize,
        dense: &'a mut [T],
        sparse: &'a mut [T],
    }

    impl<T: Scalar> Job for Both<'_, T> {
        type Out = ();
        #[inline(always)]
        fn run<A: Arch>(self) {
            multiply::<T, A>(self.x, self.n_in, self.n_in, self.w, self.ld, self.dense);
            let mut noted = SparseRows::default();
            noted.note(self.x, self.n_in);
            multiply_sparse::<T, A>(&noted, self.x, self.n_in, self.w, self.ld, self.sparse);
        }
    }

    proptest! {
        #[test]
        fn products_equal_the_naive_loop_on_every_path(
            rows in prop_oneof![1usize..11, 62usize..69], n_in in 1usize..300, lanes in 1usize..16, zeros in prop::bool::ANY,
            values in prop::collection::vec(-1.0f64..1.0, 50),
        ) {
            let take = |n: usize, from: usize| (0..n).map(|i| values[(from + i * 7) % 50]).collect::<Vec<_>>();
            let (ld, mut x) = (lanes * LANES, take(rows * n_in, 0));
            if zeros {
                x.iter_mut().enumerate().filter(|(i, _)| i % 5 != 0).for_each(|(_, x)| *x = 0.0);
            }
            let w = take(n_in * ld, 3);
            let mut naive = vec![0.0; rows * ld];
            for r in 0..rows {
                for i in 0..ld {
                    naive[r * ld + i] = (0..n_in).map(|j| x[r * n_in + j] * w[j * ld + i]).sum();
                }
            }
            for path in ["best", "portable", "fused"] {
                prop_assert!(products_are::<f64>(&naive, &x, n_in, &w, ld, path, f64::EPSILON), "f64, {path}");
                prop_assert!(products_are::<f32>(&naive, &x, n_in, &w, ld, path, f64::from(f32::EPSILON)), "f32, {path}");
            }
        }
    }

    /// Both products against the naive one: n_in sums of numbers below one, n_in·eps, as are their roundings.
    fn products_are<T: Scalar>(
        naive: &[f64],
        x: &[f64],
        n_in: usize,
        w: &[f64],
        ld: usize,
        path: &str,
        eps: f64,
    ) -> bool {
        let of = |v: &[f64]| v.iter().map(|&v| T::of(v)).collect::<Vec<T>>();
        let (x, w) = (of(x), of(w));
        let (mut dense, mut sparse) = (of(&vec![9.0; naive.len()]), of(&vec![9.0; naive.len()]));
        let job = Both { x: &x, n_in, w: &w, ld, dense: &mut dense, sparse: &mut sparse };
        match path {
            "best" => dispatch(job),
            "portable" => job.run::<Portable>(),
            _ => job.run::<Neon>(),
        }
        dense
            .iter()
            .zip(naive)
            .chain(sparse.iter().zip(naive))
            .all(|(a, b)| (a.wide() - b).abs() <= 300.0 * eps * 300.0)
    }
}
