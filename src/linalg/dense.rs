//! The two products of a small dense layer, row-major, with the outputs padded to a multiple of [`LANES`].
//!
//! * [`multiply`]: Z = X·W for rows x (forward pass), and with squares Z = X²·W (the width);
//! * [`accumulate`]: G += Xᵀ·U (gradients), and with squares G += (X²)ᵀ·U (the diagonal of Λ).
//!
//! Both keep a tile of results in registers: four rows by up to three vectors of eight.

use super::scalar::Scalar;
use super::simd::Arith;

/// Numbers side by side in one vector; widths are padded to a multiple of it.
pub(crate) const LANES: usize = 8;

type Vector<T> = [T; LANES];

#[inline(always)]
fn power<T: Scalar, const SQUARE: bool>(v: T) -> T {
    if SQUARE { v * v } else { v }
}

/// z (rows × ld) = x (rows × n_in, rows `stride` apart) · w (n_in × ld), of x² if `SQUARE`.
#[inline(always)]
pub(crate) fn multiply<T: Scalar, A: Arith, const SQUARE: bool>(
    x: &[T],
    stride: usize,
    n_in: usize,
    w: &[T],
    ld: usize,
    z: &mut [T],
) {
    let rows = z.len() / ld;
    let mut r = 0;
    while r + 4 <= rows {
        multiply_rows::<T, A, SQUARE, 4>(&x[r * stride..(r + 4) * stride], stride, n_in, w, ld, &mut z[r * ld..(r + 4) * ld]);
        r += 4;
    }
    while r < rows {
        multiply_rows::<T, A, SQUARE, 1>(&x[r * stride..(r + 1) * stride], stride, n_in, w, ld, &mut z[r * ld..(r + 1) * ld]);
        r += 1;
    }
}

#[inline(always)]
fn multiply_rows<T: Scalar, A: Arith, const SQUARE: bool, const R: usize>(
    x: &[T],
    stride: usize,
    n_in: usize,
    w: &[T],
    ld: usize,
    z: &mut [T],
) {
    let mut col = 0;
    while col + 3 * LANES <= ld {
        multiply_tile::<T, A, SQUARE, R, 3>(x, stride, n_in, w, ld, col, z);
        col += 3 * LANES;
    }
    while col + 2 * LANES <= ld {
        multiply_tile::<T, A, SQUARE, R, 2>(x, stride, n_in, w, ld, col, z);
        col += 2 * LANES;
    }
    while col < ld {
        multiply_tile::<T, A, SQUARE, R, 1>(x, stride, n_in, w, ld, col, z);
        col += LANES;
    }
}

#[inline(always)]
fn multiply_tile<T: Scalar, A: Arith, const SQUARE: bool, const R: usize, const C: usize>(
    x: &[T],
    stride: usize,
    n_in: usize,
    w: &[T],
    ld: usize,
    col: usize,
    z: &mut [T],
) {
    let rows: [&[T]; R] = std::array::from_fn(|r| &x[r * stride..][..n_in]);
    let mut acc = [[[T::ZERO; LANES]; C]; R];
    for (j, wj) in w.chunks_exact(ld).take(n_in).enumerate() {
        let wj = vectors::<T, C>(&wj[col..]);
        for r in 0..R {
            let v = power::<T, SQUARE>(rows[r][j]);
            for c in 0..C {
                for l in 0..LANES {
                    acc[r][c][l] = A::madd(v, wj[c][l], acc[r][c][l]);
                }
            }
        }
    }
    for r in 0..R {
        for c in 0..C {
            z[r * ld + col + c * LANES..][..LANES].copy_from_slice(&acc[r][c]);
        }
    }
}

#[inline(always)]
fn vectors<T: Scalar, const C: usize>(w: &[T]) -> [&Vector<T>; C] {
    std::array::from_fn(|c| w[c * LANES..(c + 1) * LANES].try_into().expect("a slice of LANES"))
}

/// g (n_in × ld) += xᵀ (n_in × rows, rows `stride` apart) · u (rows × ld), of x² if `SQUARE`.
#[inline(always)]
pub(crate) fn accumulate<T: Scalar, A: Arith, const SQUARE: bool>(
    x: &[T],
    stride: usize,
    n_in: usize,
    u: &[T],
    ld: usize,
    g: &mut [T],
) {
    let mut j = 0;
    while j + 4 <= n_in {
        accumulate_inputs::<T, A, SQUARE, 4>(x, stride, j, u, ld, &mut g[j * ld..(j + 4) * ld]);
        j += 4;
    }
    while j < n_in {
        accumulate_inputs::<T, A, SQUARE, 1>(x, stride, j, u, ld, &mut g[j * ld..(j + 1) * ld]);
        j += 1;
    }
}

#[inline(always)]
fn accumulate_inputs<T: Scalar, A: Arith, const SQUARE: bool, const R: usize>(
    x: &[T],
    stride: usize,
    j: usize,
    u: &[T],
    ld: usize,
    g: &mut [T],
) {
    let mut col = 0;
    while col + 3 * LANES <= ld {
        accumulate_tile::<T, A, SQUARE, R, 3>(x, stride, j, u, ld, col, g);
        col += 3 * LANES;
    }
    while col + 2 * LANES <= ld {
        accumulate_tile::<T, A, SQUARE, R, 2>(x, stride, j, u, ld, col, g);
        col += 2 * LANES;
    }
    while col < ld {
        accumulate_tile::<T, A, SQUARE, R, 1>(x, stride, j, u, ld, col, g);
        col += LANES;
    }
}

#[inline(always)]
fn accumulate_tile<T: Scalar, A: Arith, const SQUARE: bool, const R: usize, const C: usize>(
    x: &[T],
    stride: usize,
    j: usize,
    u: &[T],
    ld: usize,
    col: usize,
    g: &mut [T],
) {
    let mut acc = [[[T::ZERO; LANES]; C]; R];
    for r in 0..R {
        for c in 0..C {
            acc[r][c].copy_from_slice(&g[r * ld + col + c * LANES..][..LANES]);
        }
    }
    for (ur, xr) in u.chunks_exact(ld).zip(x.chunks_exact(stride)) {
        let ur = vectors::<T, C>(&ur[col..]);
        let xr = &xr[j..j + R];
        for r in 0..R {
            let v = power::<T, SQUARE>(xr[r]);
            for c in 0..C {
                for l in 0..LANES {
                    acc[r][c][l] = A::madd(v, ur[c][l], acc[r][c][l]);
                }
            }
        }
    }
    for r in 0..R {
        for c in 0..C {
            g[r * ld + col + c * LANES..][..LANES].copy_from_slice(&acc[r][c]);
        }
    }
}

/// Σ a·b over slices whose length is a multiple of [`LANES`]: eight partial sums, added in a fixed order.
#[inline(always)]
pub(crate) fn dot<T: Scalar, A: Arith>(a: &[T], b: &[T]) -> T {
    let mut acc = [T::ZERO; LANES];
    for (va, vb) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for l in 0..LANES {
            acc[l] = A::madd(va[l], vb[l], acc[l]);
        }
    }
    total(acc)
}

/// The sum of the lanes, as a tree.
#[inline(always)]
pub(crate) fn total<T: Scalar>(v: Vector<T>) -> T {
    ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::{Fused, Job, Plain, dispatch};
    use proptest::prelude::*;

    struct Both<'a, const SQUARE: bool> {
        x: &'a [f64],
        n_in: usize,
        w: &'a [f64],
        ld: usize,
        z: &'a mut [f64],
        g: &'a mut [f64],
    }

    impl<const SQUARE: bool> Job for Both<'_, SQUARE> {
        type Out = ();
        #[inline(always)]
        fn run<A: Arith>(self) {
            multiply::<f64, A, SQUARE>(self.x, self.n_in, self.n_in, self.w, self.ld, self.z);
            accumulate::<f64, A, SQUARE>(self.x, self.n_in, self.n_in, self.z, self.ld, self.g);
        }
    }

    fn check<const SQUARE: bool>(rows: usize, n_in: usize, ld: usize, values: &[f64]) {
        let take = |n: usize, from: usize| (0..n).map(|i| values[(from + i * 7) % values.len()]).collect::<Vec<_>>();
        let (x, w) = (take(rows * n_in, 0), take(n_in * ld, 3));
        let p = |v: f64| if SQUARE { v * v } else { v };
        let mut naive_z = vec![0.0; rows * ld];
        let mut naive_g = vec![1.0; n_in * ld];
        for r in 0..rows {
            for i in 0..ld {
                naive_z[r * ld + i] = (0..n_in).map(|j| p(x[r * n_in + j]) * w[j * ld + i]).sum();
                for j in 0..n_in {
                    naive_g[j * ld + i] += p(x[r * n_in + j]) * naive_z[r * ld + i];
                }
            }
        }
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
        for path in 0..3 {
            let (mut z, mut g) = (vec![9.0; rows * ld], vec![1.0; n_in * ld]);
            let job = Both::<SQUARE> { x: &x, n_in, w: &w, ld, z: &mut z, g: &mut g };
            match path {
                0 => dispatch(job),
                1 => job.run::<Fused>(),
                _ => job.run::<Plain>(),
            }
            assert!(close(&z, &naive_z) && close(&g, &naive_g), "path {path}");
        }
    }

    proptest! {
        #[test]
        fn products_equal_the_naive_loops_on_every_path(
            rows in 1usize..11, n_in in 1usize..11, lanes in 1usize..8,
            values in prop::collection::vec(-1.0f64..1.0, 50),
        ) {
            check::<false>(rows, n_in, lanes * LANES, &values);
            check::<true>(rows, n_in, lanes * LANES, &values);
        }
    }
}
