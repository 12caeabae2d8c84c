//! Products with many rows at once, where a vector lane holds a row and the coefficients of the matrix are broadcast.
//!
//! A *tile* is a handful of rows u side by side, component after component: `tile[j]` holds u_j of every row. A matrix W is
//! packed once into *panels* of six of its rows, so that W·u of a tile runs in registers: six sums per row, nothing stored
//! until they are complete. A row of W may end early (a triangle): the zeros behind its end are not multiplied.

use super::scalar::Scalar;
use super::simd::{Arch, LANES, Lanes, Rows, columns};

/// Rows of the matrix that a panel holds: with two registers of rows twelve sums, which hide the latency of an addition.
pub(crate) const HEIGHT: usize = 6;

/// A matrix packed in panels.
#[derive(Debug, Clone)]
pub(crate) struct Panels<T> {
    /// Column after column, six rows of the matrix; a short panel is filled up with zeros.
    coefficients: Vec<[T; HEIGHT]>,
    /// Where each panel begins; one entry more than panels.
    starts: Vec<usize>,
    n_rows: usize,
}

impl<T: Scalar> Panels<T> {
    /// Packs the matrix whose element (i, j) is `at(i, j)`; the last panel may be short.
    pub(crate) fn dense(n_rows: usize, n_cols: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let ends = (HEIGHT..n_rows).step_by(HEIGHT).chain((n_rows > 0).then_some(n_rows));
        Self::pack(n_rows, ends, |_| n_cols, at)
    }

    /// Packs the lower triangle of the matrix whose element (i, j) is `at(i, j)`; the first panel may be short, because
    /// its rows are.
    pub(crate) fn lower(n: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let ends = (1..=n).filter(|end| (n - end).is_multiple_of(HEIGHT));
        Self::pack(n, ends, |end| end, |i, j| if j <= i { at(i, j) } else { 0.0 })
    }

    /// Panels that end before the rows `ends`, of `width(end)` columns.
    fn pack(
        n_rows: usize,
        ends: impl Iterator<Item = usize>,
        width: impl Fn(usize) -> usize,
        at: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let mut coefficients = Vec::new();
        let mut starts = vec![0];
        let mut first = 0;
        for end in ends {
            for j in 0..width(end) {
                let mut column = [T::ZERO; HEIGHT];
                for i in first..end {
                    column[i - first] = T::of(at(i, j));
                }
                coefficients.push(column);
            }
            starts.push(coefficients.len());
            first = end;
        }
        Panels { coefficients, starts, n_rows }
    }

    /// Rows of the matrix.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// What it takes of the memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.coefficients[..])
    }

    /// Number of panels.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The columns of one panel.
    #[inline(always)]
    pub(crate) fn panel(&self, p: usize) -> &[[T; HEIGHT]] {
        &self.coefficients[self.starts[p]..self.starts[p + 1]]
    }
}

/// Six sums of the rows of each of N tiles, whose rows are as many as W holds.
pub(crate) type Sums<W, const N: usize> = [[W; N]; HEIGHT];

/// W·u for the six rows of a panel and the rows of N tiles of C vectors, with a register (or what W is) for each sum.
#[inline(always)]
pub(crate) fn product<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const C: usize, const N: usize>(
    panel: &[[T; HEIGHT]],
    tiles: [&[[Lanes<T>; C]]; N],
) -> Sums<W, N> {
    let mut own = tiles;
    for k in 0..N {
        own[k] = &tiles[k][..panel.len()]; // all of one length: what follows needs no check
    }
    let mut sums = [[W::splat(T::ZERO); N]; HEIGHT];
    for j in 0..panel.len() {
        add_column::<T, A, W, C, N>(&panel[j], 0, own, j, &mut sums);
    }
    sums
}

/// As [`product`], for a panel of a triangle: what lies above the diagonal in its last six columns is not multiplied.
#[inline(always)]
pub(crate) fn product_lower<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const C: usize, const N: usize>(
    panel: &[[T; HEIGHT]],
    tiles: [&[[Lanes<T>; C]]; N],
) -> Sums<W, N> {
    let Some((before, corner)) = panel.split_last_chunk::<HEIGHT>() else {
        return product::<T, A, W, C, N>(panel, tiles);
    };
    let (mut sums, mut own) = (product::<T, A, W, C, N>(before, tiles), tiles);
    for k in 0..N {
        own[k] = &tiles[k][before.len()..before.len() + HEIGHT];
    }
    for j in 0..HEIGHT {
        add_column::<T, A, W, C, N>(&corner[j], j, own, j, &mut sums);
    }
    sums
}

/// sums += w·u_j for the rows of the panel from `first` on.
#[inline(always)]
fn add_column<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const C: usize, const N: usize>(
    w: &[T; HEIGHT],
    first: usize,
    tiles: [&[[Lanes<T>; C]]; N],
    j: usize,
    sums: &mut Sums<W, N>,
) {
    const { assert!(C == W::VECTORS) }
    let mut u = [W::splat(T::ZERO); N];
    for k in 0..N {
        u[k] = W::load_from(&tiles[k][j]);
    }
    for i in 0..HEIGHT {
        // asked of each, so that sums stay in registers
        if i >= first {
            let w = W::splat(w[i]);
            for k in 0..N {
                sums[i][k] = w.madd(u[k], sums[i][k]);
            }
        }
    }
}

/// Turns up to eight rows into a tile of one vector: `tile[j][l]` is component j of row l. Lanes without a row are zero.
#[inline(always)]
pub(crate) fn set_lanes<'a, T: Scalar, A: Arch>(rows: impl ExactSizeIterator<Item = &'a [f32]>, tile: &mut [Lanes<T>]) {
    let mut eight: [&[f32]; LANES] = [&[]; LANES];
    let n = rows.len();
    for (own, row) in eight.iter_mut().zip(rows) {
        *own = row;
    }
    let d = eight[0].len();
    if n < LANES || d < LANES {
        tile.fill([T::ZERO; LANES]);
        for (l, row) in eight[..n].iter().enumerate() {
            for (u, &x) in tile.iter_mut().zip(*row) {
                u[l] = T::of_f32(x);
            }
        }
        return;
    }
    for own in &mut eight {
        *own = &own[..d];
    }
    let mut at = 0;
    while at < d {
        // the last stretch overlaps the one before
        at = at.min(d - LANES);
        for (u, column) in tile[at..at + LANES].iter_mut().zip(columns::<A>(&eight, at)) {
            A::store(A::load_f32::<T>(&column), u);
        }
        at += LANES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::{Job, Portable, Vectors, dispatch};

    /// A tile of the rows, by the best instructions.
    struct SetLanes<'a>(&'a [&'a [f32]], &'a mut [Lanes<f64>]);

    impl Job for SetLanes<'_> {
        type Out = ();
        #[inline(always)]
        fn run<A: Arch>(self) {
            set_lanes::<f64, A>(self.0.iter().copied(), self.1);
        }
    }

    /// W·u of row 3 of a tile.
    struct Product<'a>(&'a Panels<f64>, &'a [[Lanes<f64>; 1]], bool);

    impl Job for Product<'_> {
        type Out = Vec<f64>;
        #[inline(always)]
        fn run<A: Arch>(self) -> Vec<f64> {
            let Product(panels, tile, lower) = self;
            let mut out = Vec::new();
            for p in 0..panels.len() {
                let panel = panels.panel(p);
                let sums: Sums<Vectors<A, f64, 1>, 1> = if lower {
                    product_lower::<f64, A, _, 1, 1>(panel, [tile])
                } else {
                    product::<f64, A, _, 1, 1>(panel, [tile])
                };
                for [sum] in sums {
                    let mut lanes = [[0.0; LANES]];
                    sum.store_to(&mut lanes);
                    out.push(lanes[0][3]);
                }
            }
            out
        }
    }

    #[test]
    fn products_are_those_of_the_definition() {
        let at = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 4.0;
        for n in [1, 2, 5, 6, 7, 12, 20] {
            let row: Vec<f32> = (0..n).map(|j| j as f32 - 2.5).collect();
            let rows = [&vec![0.0; n][..], &vec![1.0; n], &vec![2.0; n], &row];
            let mut tile = vec![[9.0; LANES]; n];
            dispatch(SetLanes(&rows, &mut tile));
            assert_eq!(tile[n - 1], [0.0, 1.0, 2.0, n as f64 - 3.5, 0.0, 0.0, 0.0, 0.0]);
            let mut full = vec![[9.0; LANES]; n];
            let twice = [rows, rows].concat();
            let mut plain = full.clone();
            dispatch(SetLanes(&twice, &mut full));
            SetLanes(&twice, &mut plain).run::<Portable>();
            assert_eq!(full, plain);
            assert!(tile.iter().zip(&full).all(|(few, all)| few[..4] == all[..4] && few[..4] == all[4..]));
            let tile = tile.as_chunks().0;
            let product = |i: usize, columns: usize| (0..columns).map(|j| at(i, j) * f64::from(row[j])).sum::<f64>();
            let filled_up = |v: Vec<f64>| v.into_iter().chain(std::iter::repeat(0.0));

            // small integers and halves: exact
            let got = dispatch(Product(&Panels::dense(13, n, at), tile, false));
            let want: Vec<f64> = filled_up((0..13).map(|i| product(i, n)).collect()).take(18).collect();
            assert_eq!(got, want);

            let triangle = Panels::lower(n, at);
            let short = (n - 1) % HEIGHT + 1;
            let want: Vec<f64> = filled_up((0..short).map(|i| product(i, i + 1)).collect())
                .take(HEIGHT)
                .chain((short..n).map(|i| product(i, i + 1)))
                .collect();
            assert_eq!(dispatch(Product(&triangle, tile, true)), want);
            assert_eq!(dispatch(Product(&triangle, tile, false)), want);
            assert_eq!(triangle.n_rows(), n);
        }
    }
}
