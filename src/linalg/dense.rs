//! The two products of a small dense layer, row-major, with the outputs padded to a multiple of [`LANES`].
//!
//! * [`multiply`]: Z = X·W for rows x (forward pass), and with squares Z = X²·W (the width);
//! * [`accumulate`]: G += Xᵀ·U (gradients), and with squares G += (X²)ᵀ·U (the diagonal of Λ).
//!
//! Both keep a tile of results in registers: four rows by up to three vectors of eight.

use super::scalar::Scalar;
use super::simd::{Arch, Job, LANES, lanes, lanes_mut};

/// Calls a tile kernel for each stretch of columns: three vectors at a time, then two, then one.
macro_rules! over_columns {
    ($ld:expr, $col:ident, $three:expr, $two:expr, $one:expr) => {
        let columns = $ld / LANES;
        let mut $col = 0;
        while $col + 3 <= columns {
            $three;
            $col += 3;
        }
        if $col + 2 <= columns {
            $two;
            $col += 2;
        }
        if $col < columns {
            $one;
        }
    };
}
pub(crate) use over_columns;

/// z (rows × ld) = x (rows × n_in, rows `stride` apart) · w (n_in × ld), of x² if `SQUARE`.
#[inline(always)]
pub(crate) fn multiply<T: Scalar, A: Arch, const SQUARE: bool>(
    x: &[T],
    stride: usize,
    n_in: usize,
    w: &[T],
    ld: usize,
    z: &mut [T],
) {
    A::call(Multiply::<T, SQUARE> { x, stride, n_in, w, ld, z });
}

struct Multiply<'a, T, const SQUARE: bool> {
    x: &'a [T],
    stride: usize,
    n_in: usize,
    w: &'a [T],
    ld: usize,
    z: &'a mut [T],
}

impl<T: Scalar, const SQUARE: bool> Job for Multiply<'_, T, SQUARE> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Multiply { x, stride, n_in, w, ld, z } = self;
        let rows = z.len() / ld;
        let mut r = 0;
        while r + 4 <= rows {
            let (x, z) = (&x[r * stride..], &mut z[r * ld..(r + 4) * ld]);
            over_columns!(
                ld,
                col,
                multiply_tile::<T, A, SQUARE, 4, 3>(x, stride, n_in, w, ld, col, z),
                multiply_tile::<T, A, SQUARE, 4, 2>(x, stride, n_in, w, ld, col, z),
                multiply_tile::<T, A, SQUARE, 4, 1>(x, stride, n_in, w, ld, col, z)
            );
            r += 4;
        }
        while r < rows {
            let (x, z) = (&x[r * stride..], &mut z[r * ld..(r + 1) * ld]);
            over_columns!(
                ld,
                col,
                multiply_tile::<T, A, SQUARE, 1, 3>(x, stride, n_in, w, ld, col, z),
                multiply_tile::<T, A, SQUARE, 1, 2>(x, stride, n_in, w, ld, col, z),
                multiply_tile::<T, A, SQUARE, 1, 1>(x, stride, n_in, w, ld, col, z)
            );
            r += 1;
        }
    }
}

#[inline(always)]
fn multiply_tile<T: Scalar, A: Arch, const SQUARE: bool, const R: usize, const C: usize>(
    x: &[T],
    stride: usize,
    n_in: usize,
    w: &[T],
    ld: usize,
    col: usize,
    z: &mut [T],
) {
    let (w, z, columns) = (lanes(w), lanes_mut(z), ld / LANES);
    let mut rows = [&x[..0]; R];
    for r in 0..R {
        rows[r] = &x[r * stride..r * stride + n_in];
    }
    let mut acc = [[A::zero::<T>(); C]; R];
    for j in 0..n_in {
        let from = &w[j * columns + col..j * columns + col + C];
        let mut wj = [A::zero::<T>(); C];
        for c in 0..C {
            wj[c] = A::load(&from[c]);
        }
        for r in 0..R {
            let v = rows[r][j];
            let v = A::splat(if SQUARE { v * v } else { v });
            for c in 0..C {
                acc[r][c] = A::madd(v, wj[c], acc[r][c]);
            }
        }
    }
    for r in 0..R {
        for c in 0..C {
            A::store(acc[r][c], &mut z[r * columns + col + c]);
        }
    }
}

/// g (n_in × ld) += xᵀ (n_in × rows, rows `stride` apart) · u (rows × ld), of x² if `SQUARE`.
#[inline(always)]
pub(crate) fn accumulate<T: Scalar, A: Arch, const SQUARE: bool>(
    x: &[T],
    stride: usize,
    n_in: usize,
    u: &[T],
    ld: usize,
    g: &mut [T],
) {
    let mut j = 0;
    while j + 4 <= n_in {
        let (x, g) = (&x[j..], &mut g[j * ld..(j + 4) * ld]);
        over_columns!(
            ld,
            col,
            accumulate_tile::<T, A, SQUARE, 4, 3>(x, stride, u, ld, col, g),
            accumulate_tile::<T, A, SQUARE, 4, 2>(x, stride, u, ld, col, g),
            accumulate_tile::<T, A, SQUARE, 4, 1>(x, stride, u, ld, col, g)
        );
        j += 4;
    }
    while j < n_in {
        let (x, g) = (&x[j..], &mut g[j * ld..(j + 1) * ld]);
        over_columns!(
            ld,
            col,
            accumulate_tile::<T, A, SQUARE, 1, 3>(x, stride, u, ld, col, g),
            accumulate_tile::<T, A, SQUARE, 1, 2>(x, stride, u, ld, col, g),
            accumulate_tile::<T, A, SQUARE, 1, 1>(x, stride, u, ld, col, g)
        );
        j += 1;
    }
}

/// R inputs by C vectors of `g`; the inputs are the first R numbers of each row of `x`.
#[inline(always)]
fn accumulate_tile<T: Scalar, A: Arch, const SQUARE: bool, const R: usize, const C: usize>(
    x: &[T],
    stride: usize,
    u: &[T],
    ld: usize,
    col: usize,
    g: &mut [T],
) {
    let (u, g, columns) = (lanes(u), lanes_mut(g), ld / LANES);
    let mut acc = [[A::zero::<T>(); C]; R];
    for r in 0..R {
        for c in 0..C {
            acc[r][c] = A::load(&g[r * columns + col + c]);
        }
    }
    for k in 0..u.len() / columns {
        let from = &u[k * columns + col..k * columns + col + C];
        let xk = &x[k * stride..k * stride + R];
        let mut uk = [A::zero::<T>(); C];
        for c in 0..C {
            uk[c] = A::load(&from[c]);
        }
        for r in 0..R {
            let v = A::splat(if SQUARE { xk[r] * xk[r] } else { xk[r] });
            for c in 0..C {
                acc[r][c] = A::madd(v, uk[c], acc[r][c]);
            }
        }
    }
    for r in 0..R {
        for c in 0..C {
            A::store(acc[r][c], &mut g[r * columns + col + c]);
        }
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
    use crate::linalg::simd::{Job, Portable, dispatch};
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
        fn run<A: Arch>(self) {
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
        for path in 0..2 {
            let (mut z, mut g) = (vec![9.0; rows * ld], vec![1.0; n_in * ld]);
            let job = Both::<SQUARE> { x: &x, n_in, w: &w, ld, z: &mut z, g: &mut g };
            match path {
                0 => dispatch(job),
                _ => job.run::<Portable>(),
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
