//! Products of many rows with a matrix of weights W, input-major: `w[j·ld + i]` is the weight from input j to output i.
//!
//! * [`tiles`], [`tiles_transposed`]: a row per lane. Weights are broadcast, so no lane is padding.
//! * [`rows`]: a row after the other, outputs in lanes; [`sparse_rows`] reads only the inputs that are not zero.
//! * [`gradient`]: Σ_r v_r u_rᵀ over rows, the gradient of a weight matrix.
//!
//! A block of sums is kept in registers. Every result is one sum in the order of the inputs (or rows).

use super::scalar::Scalar;
use super::vectors::{LANES, ROWS, Tile, madd, scale_add, splat};

/// Runs `$body` for blocks of `$n` outputs from `$at` to `$end`, with as many as the list allows at a time.
macro_rules! blocks {
    ($end:expr, |$at:ident, $n:ident in [$($size:literal)+]| $body:expr) => {{
        let mut $at = 0;
        $(
            while $end - $at >= $size {
                const $n: usize = $size;
                $body;
                $at += $size;
            }
        )+
    }};
}

/// z_i = Σ_j w_ji x_j of up to sixteen rows: an input or output per tile.
#[inline(always)]
pub(crate) fn tiles<T: Scalar>(x: &[Tile<T>], w: &[T], ld: usize, z: &mut [Tile<T>]) {
    blocks!(z.len(), |at, N in [6 4 2 1]| {
        let mut sums = [[T::ZERO; _]; N];
        for (x, w) in x.iter().zip(w.chunks_exact(ld)) {
            let w: &[T; N] = w[at..].first_chunk().expect("a row of weights is as long as its outputs");
            for i in 0..N {
                sums[i] = scale_add(w[i], x, sums[i]);
            }
        }
        z[at..at + N].copy_from_slice(&sums);
    });
}

/// z_j = Σ_i w_ji x_i: from outputs back to inputs.
#[inline(always)]
pub(crate) fn tiles_transposed<T: Scalar>(x: &[Tile<T>], w: &[T], ld: usize, z: &mut [Tile<T>]) {
    blocks!(z.len(), |at, N in [6 4 2 1]| {
        let mut rows = [&w[..0]; N];
        for j in 0..N {
            rows[j] = &w[(at + j) * ld..][..x.len()];
        }
        let mut sums = [[T::ZERO; _]; N];
        for (i, x) in x.iter().enumerate() {
            for j in 0..N {
                sums[j] = scale_add(rows[j][i], x, sums[j]);
            }
        }
        z[at..at + N].copy_from_slice(&sums);
    });
}

/// z (rows × ld) = x (rows × n_in)·w. Where there are few rows, reading w takes longer than multiplying: up to six rows
/// meet it at once.
#[inline(always)]
pub(crate) fn rows<T: Scalar>(x: &[T], n_in: usize, w: &[T], ld: usize, z: &mut [T]) {
    let n = z.len() / ld;
    blocks!(ld / LANES, |column, C in [2 1]| {
        blocks!(n, |row, R in [6 5 4 3 2 1]| {
            let mut own = [&x[..0]; R];
            for r in 0..R {
                own[r] = &x[(row + r) * n_in..][..n_in];
            }
            let mut sums = [[[T::ZERO; LANES]; C]; R];
            for (j, w) in w.chunks_exact(ld).enumerate().take(n_in) {
                let w: &[[T; LANES]; C] = w[column * LANES..].as_chunks().0.first_chunk().expect("whole vectors");
                for r in 0..R {
                    for c in 0..C {
                        sums[r][c] = scale_add(own[r][j], &w[c], sums[r][c]);
                    }
                }
            }
            for r in 0..R {
                z[(row + r) * ld + column * LANES..][..C * LANES].copy_from_slice(sums[r].as_flattened());
            }
        });
    });
}

/// g (inputs × ld) = Σ_r v_r u_rᵀ for some inputs from `first` on, of rows v (`n_in` numbers each) and u (`ld` each).
#[inline(always)]
pub(crate) fn gradient<T: Scalar>(v: &[T], n_in: usize, first: usize, u: &[T], ld: usize, g: &mut [T]) {
    let inputs = g.len() / ld;
    blocks!(ld / LANES, |column, C in [2 1]| {
        blocks!(inputs, |j, N in [6 4 2 1]| {
            let mut sums = [[[T::ZERO; LANES]; C]; N];
            for (v, u) in v.chunks_exact(n_in).zip(u.chunks_exact(ld)) {
                let v: &[T; N] = v[first + j..].first_chunk().expect("inputs of a row");
                let u: &[[T; LANES]; C] = u[column * LANES..].as_chunks().0.first_chunk().expect("whole vectors");
                for i in 0..N {
                    for c in 0..C {
                        sums[i][c] = scale_add(v[i], &u[c], sums[i][c]);
                    }
                }
            }
            for i in 0..N {
                g[(j + i) * ld + column * LANES..][..C * LANES].copy_from_slice(sums[i].as_flattened());
            }
        });
    });
}

/// z = x·w of one row, outputs in lanes: two sums of each output, inputs of even and of odd place, so that no addition
/// waits for the one before.
#[inline(always)]
pub(crate) fn one_row<T: Scalar>(x: &[T], w: &[T], ld: usize, z: &mut [[T; LANES]]) {
    let w = w.as_chunks::<LANES>().0;
    let columns = ld / LANES;
    blocks!(columns, |column, C in [4 3 2 1]| {
        let (mut even, mut odd) = ([[T::ZERO; LANES]; C], [[T::ZERO; LANES]; C]);
        let (pairs, last) = x.as_chunks::<2>();
        for (x, w) in pairs.iter().zip(w.chunks_exact(2 * columns)) {
            for c in 0..C {
                even[c] = scale_add(x[0], &w[column + c], even[c]);
                odd[c] = scale_add(x[1], &w[columns + column + c], odd[c]);
            }
        }
        if let [x] = last {
            let w = &w[pairs.len() * 2 * columns..];
            for c in 0..C {
                even[c] = scale_add(*x, &w[column + c], even[c]);
            }
        }
        for c in 0..C {
            z[column + c] = madd(splat(T::ONE), odd[c], even[c]);
        }
    });
}

/// Of rows of inputs, where they are not zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct NonZero {
    /// Where each row's part of each stretch of inputs begins in `index`; one more at the end.
    starts: Vec<u32>,
    index: Vec<u32>,
    stretches: usize,
}

/// Inputs of a sparse product taken at a time: their weights to a hundred outputs stay in a first cache of 32 kB.
const STRETCH: usize = 64;

impl NonZero {
    /// Notes where the rows (`n_in` numbers each) are not zero.
    pub(crate) fn note<T: Scalar>(&mut self, rows: &[T], n_in: usize) {
        self.stretches = n_in.div_ceil(STRETCH);
        self.starts.clear();
        self.index.resize(rows.len(), 0);
        let mut n = 0;
        for row in rows.chunks_exact(n_in) {
            for (j, x) in row.iter().enumerate() {
                if j.is_multiple_of(STRETCH) {
                    self.starts.push(n as u32);
                }
                // without a branch, which nobody could foresee: a zero is overwritten by the next number
                self.index[n] = j as u32;
                n += usize::from(*x != T::ZERO);
            }
        }
        self.starts.push(n as u32);
    }
}

/// As [`rows`], reading only the numbers of x that are noted.
#[inline(always)]
pub(crate) fn sparse_rows<T: Scalar>(noted: &NonZero, x: &[T], n_in: usize, w: &[T], ld: usize, z: &mut [T]) {
    z.fill(T::ZERO);
    let (columns, w) = (ld / LANES, w.as_chunks::<LANES>().0);
    for stretch in 0..noted.stretches {
        for (r, (x, z)) in x.chunks_exact(n_in).zip(z.chunks_exact_mut(ld)).enumerate() {
            let at = r * noted.stretches + stretch;
            let index = &noted.index[noted.starts[at] as usize..noted.starts[at + 1] as usize];
            let z = z.as_chunks_mut::<LANES>().0;
            blocks!(columns, |column, C in [13 7 4 2 1]| {
                let z: &mut [[T; LANES]; C] = z[column..].first_chunk_mut().expect("whole vectors");
                let mut sums = *z;
                for &j in index {
                    let x = x[j as usize];
                    let w: &[[T; LANES]; C] = w[j as usize * columns + column..].first_chunk().expect("whole vectors");
                    for c in 0..C {
                        sums[c] = scale_add(x, &w[c], sums[c]);
                    }
                }
                *z = sums;
            });
        }
    }
}

/// Rows (`stride` numbers each, up to sixteen) become tiles, one per number; lanes without a row repeat the last.
#[inline(always)]
pub(crate) fn to_tiles<T: Scalar>(rows: &[T], stride: usize, tiles: &mut [Tile<T>]) {
    let last = rows.len() / stride - 1;
    let mut own = [rows; ROWS];
    for (r, own) in own.iter_mut().enumerate() {
        *own = &rows[r.min(last) * stride..][..tiles.len()];
    }
    for (j, tile) in tiles.iter_mut().enumerate() {
        for (lane, row) in tile.iter_mut().zip(&own) {
            *lane = row[j];
        }
    }
}

/// As many rows (`stride` numbers each) as there is room for, out of tiles.
#[inline(always)]
pub(crate) fn from_tiles<T: Scalar>(tiles: &[Tile<T>], rows: &mut [T], stride: usize) {
    let (eights, rest) = tiles.as_chunks::<LANES>();
    for (at, eight) in eights.iter().enumerate() {
        let mut own = [[T::ZERO; LANES]; ROWS];
        for r in 0..ROWS {
            for j in 0..LANES {
                own[r][j] = eight[j][r];
            }
        }
        for (row, own) in rows.chunks_exact_mut(stride).zip(&own) {
            row[at * LANES..][..LANES].copy_from_slice(own);
        }
    }
    for (r, row) in rows.chunks_exact_mut(stride).enumerate() {
        for (to, tile) in row[eights.len() * LANES..].iter_mut().zip(rest) {
            *to = tile[r];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::vectors::{Job, dispatch};
    use proptest::prelude::*;

    /// Every product of the same numbers, as rows × outputs (or inputs × outputs).
    struct All<'a, T> {
        x: &'a [T],
        n_in: usize,
        w: &'a [T],
        ld: usize,
    }

    struct Products<T> {
        forward: Vec<Vec<T>>,
        back: Vec<T>,
        gradient: Vec<T>,
    }

    impl<T: Scalar> Job for All<'_, T> {
        type Output = Products<T>;
        #[inline(always)]
        fn call(self) -> Products<T> {
            let All { x, n_in, w, ld } = self;
            let n = x.len() / n_in;
            let zeros = || vec![T::of(9.0); n * ld];
            let (mut plain, mut sparse, mut single, mut lanes) = (zeros(), zeros(), zeros(), zeros());
            rows(x, n_in, w, ld, &mut plain);
            let mut noted = NonZero::default();
            noted.note(x, n_in);
            sparse_rows(&noted, x, n_in, w, ld, &mut sparse);
            for (x, z) in x.chunks(n_in).zip(single.chunks_mut(ld)) {
                one_row(x, w, ld, z.as_chunks_mut().0);
            }
            let mut back = vec![T::ZERO; n * n_in];
            for at in (0..n).step_by(ROWS) {
                let few = ROWS.min(n - at);
                let (mut input, mut z) = (vec![[T::ZERO; ROWS]; n_in], vec![[T::ZERO; ROWS]; ld]);
                to_tiles(&x[at * n_in..(at + few) * n_in], n_in, &mut input);
                tiles(&input, w, ld, &mut z);
                from_tiles(&z, &mut lanes[at * ld..(at + few) * ld], ld);
                tiles_transposed(&z, w, ld, &mut input);
                from_tiles(&input, &mut back[at * n_in..(at + few) * n_in], n_in);
            }
            let mut whole = vec![T::ZERO; n_in * ld];
            let (first, second) = whole.split_at_mut(n_in / 2 * ld);
            gradient(x, n_in, 0, &plain, ld, first);
            gradient(x, n_in, n_in / 2, &plain, ld, second);
            Products { forward: vec![plain, sparse, single, lanes], back, gradient: whole }
        }
    }

    proptest! {
        #[test]
        fn products_equal_the_naive_loop(
            n in 1usize..40, n_in in 1usize..150, vectors in 1usize..16, zeros in prop::bool::ANY,
            values in prop::collection::vec(-1.0f64..1.0, 50),
        ) {
            let take = |n: usize, from: usize| (0..n).map(|i| values[(from + i * 7) % 50]).collect::<Vec<f64>>();
            let (ld, mut x) = (vectors * LANES, take(n * n_in, 0));
            if zeros {
                x.iter_mut().enumerate().filter(|(i, _)| i % 5 != 0).for_each(|(_, x)| *x = 0.0);
            }
            let w = take(n_in * ld, 3);
            let z = |r: usize, i: usize| (0..n_in).map(|j| x[r * n_in + j] * w[j * ld + i]).sum::<f64>();
            let forward: Vec<f64> = (0..n * ld).map(|at| z(at / ld, at % ld)).collect();
            let back_of = |r: usize, j: usize| (0..ld).map(|i| forward[r * ld + i] * w[j * ld + i]).sum::<f64>();
            let back: Vec<f64> = (0..n * n_in).map(|at| back_of(at / n_in, at % n_in)).collect();
            let slope = |j: usize, i: usize| (0..n).map(|r| x[r * n_in + j] * forward[r * ld + i]).sum::<f64>();
            let gradient: Vec<f64> = (0..n_in * ld).map(|at| slope(at / ld, at % ld)).collect();
            prop_assert!(agree::<f64>(&x, n_in, &w, ld, [&forward, &back, &gradient], f64::EPSILON));
            prop_assert!(agree::<f32>(&x, n_in, &w, ld, [&forward, &back, &gradient], f64::from(f32::EPSILON)));
        }
    }

    /// Sums of at most 150 products below one, then sums of at most 150 of these.
    fn agree<T: Scalar>(x: &[f64], n_in: usize, w: &[f64], ld: usize, want: [&[f64]; 3], eps: f64) -> bool {
        let of = |v: &[f64]| v.iter().map(|&v| T::of(v)).collect::<Vec<T>>();
        let (x, w) = (of(x), of(w));
        let got = dispatch(All { x: &x, n_in, w: &w, ld });
        let close = |got: &[T], want: &[f64], tolerance: f64| {
            got.iter().zip(want).all(|(a, b)| (a.to_f64() - b).abs() <= tolerance * eps)
        };
        got.forward.iter().all(|z| close(z, want[0], 2e3 * 10.0))
            && close(&got.back, want[1], 3e6)
            && close(&got.gradient, want[2], 3e6)
    }
}
