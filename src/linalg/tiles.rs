//! The product of a dense layer with a row per lane: Z = X·W for rows in tiles of sixteen, for a W that no first cache holds.
//!
//! A block of results, some outputs by one or two tiles, is kept in registers; W is taken in stretches of inputs, whose weights to
//! these outputs stay in the first cache while all tiles meet them. No lane is padding, whatever the number of outputs. Every
//! result is one sum over the inputs in their order, as in [`super::dense`].

use super::dense::over_columns;
use super::scalar::Scalar;
use super::simd::memory::prefetch_first;
use super::simd::{Arch, Job, Rows, Tile, many_registers};

/// Inputs taken at a time: two tiles of them and their weights are 24 kB.
const STRETCH: usize = 128;

/// z = x·w, where a tile of x is a tile per input, a tile of z one per output, and w is n_in × ld.
#[inline(always)]
pub(crate) fn multiply_tiles<T: Scalar, A: Arch>(
    (x, n_in): (&[Tile<T>], usize),
    (w, ld): (&[T], usize),
    (z, n_out): (&mut [Tile<T>], usize),
) {
    A::call(MultiplyTiles { x, n_in, w, ld, z, n_out });
}

struct MultiplyTiles<'a, T> {
    x: &'a [Tile<T>],
    n_in: usize,
    w: &'a [T],
    ld: usize,
    z: &'a mut [Tile<T>],
    n_out: usize,
}

impl<T: Scalar> Job for MultiplyTiles<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(mut self) {
        for from in (0..self.n_in).step_by(STRETCH) {
            // as many sums as hide the latency of an addition and leave registers for what is multiplied
            if const { many_registers::<T, A>() } {
                over_columns!(self.n_out, out, B in [12 8 4 3 2 1], self.outputs::<A, B, 2>(from, out));
            } else {
                over_columns!(self.n_out, out, B in [6 4 3 2 1], self.outputs::<A, B, 1>(from, out));
            }
        }
    }
}

impl<T: Scalar> MultiplyTiles<'_, T> {
    /// A stretch of inputs by B outputs, N tiles at a time.
    #[inline(always)]
    fn outputs<A: Arch, const B: usize, const N: usize>(&mut self, from: usize, out: usize) {
        let (n_tiles, mut tile) = (self.z.len() / self.n_out, 0);
        while tile + N <= n_tiles {
            self.block::<A, A::Sixteen<T>, B, N>(from, out, tile);
            tile += N;
        }
        while N > 1 && tile < n_tiles {
            self.block::<A, A::Sixteen<T>, B, 1>(from, out, tile);
            tile += 1;
        }
    }

    /// A stretch of inputs by B outputs of N tiles.
    #[inline(always)]
    fn block<A: Arch, R: Rows<T, A::V<T>>, const B: usize, const N: usize>(
        &mut self,
        from: usize,
        out: usize,
        tile: usize,
    ) {
        let (n, ld) = (STRETCH.min(self.n_in - from), self.ld);
        let w = &self.w[from * ld..(from + n) * ld];
        let (mut x, mut next) = ([self.x; N], [self.x; N]);
        let last = self.x.len() / self.n_in - 1;
        for k in 0..N {
            x[k] = &self.x[(tile + k) * self.n_in + from..][..n];
            next[k] = &self.x[(tile + N + k).min(last) * self.n_in + from..][..n];
        }
        let mut sums = [[R::splat(T::ZERO); N]; B];
        if from > 0 {
            for k in 0..N {
                let z = &self.z[(tile + k) * self.n_out + out..][..B];
                for b in 0..B {
                    sums[b][k] = R::load(&z[b]);
                }
            }
        }
        // bounds are checked here and not for every input
        assert!(out + B <= ld);
        for (j, w) in w.chunks_exact(ld).enumerate() {
            let w = &w[out..out + B];
            let mut own = [R::splat(T::ZERO); N];
            for k in 0..N {
                own[k] = R::load(&x[k][j]);
                if N > 1 {
                    // the sums of two tiles are done sooner than the second cache sends the next two
                    prefetch_first(&next[k][j]);
                }
            }
            for b in 0..B {
                let v = R::splat(w[b]);
                for k in 0..N {
                    sums[b][k] = v.madd(own[k], sums[b][k]);
                }
            }
        }
        for k in 0..N {
            let z = &mut self.z[(tile + k) * self.n_out + out..][..B];
            for b in 0..B {
                sums[b][k].store(&mut z[b]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::{LANES, Portable, dispatch};
    use crate::seed::Seed;
    use rand::RngExt;

    fn agrees<T: Scalar>(tolerance: f64) {
        let mut rng = Seed::new(11).stream("test");
        let mut numbers = |n: usize| (0..n).map(|_| T::of(rng.random_range(-1.0..1.0))).collect::<Vec<T>>();
        for (n_in, n_out, n_tiles) in [(1, 1, 1), (3, 5, 2), (127, 13, 3), (128, 20, 1), (300, 100, 4), (260, 7, 5)] {
            let (rows, ld) = (16 * n_tiles, n_out + 3);
            let (x, w) = (numbers(rows * n_in), numbers(n_in * ld));
            let mut tiles = vec![Tile::ZERO; n_tiles * n_in];
            for (i, &v) in x.iter().enumerate() {
                let (row, j) = (i / n_in, i % n_in);
                tiles[row / 16 * n_in + j].0[row % 16 / LANES][row % LANES] = v;
            }
            // what stands in z before is no matter
            let mut best = vec![Tile([[T::of(7.0); LANES]; 2]); n_tiles * n_out];
            let mut plain = best.clone();
            let job = |z| MultiplyTiles { x: &tiles, n_in, w: &w, ld, z, n_out };
            dispatch(job(&mut best));
            job(&mut plain).run::<Portable>();
            for (row, out) in (0..rows).flat_map(|row| (0..n_out).map(move |out| (row, out))) {
                let want: f64 = (0..n_in).map(|j| x[row * n_in + j].wide() * w[j * ld + out].wide()).sum();
                for z in [&best, &plain] {
                    let got = z[row / 16 * n_out + out].numbers()[row % 16].wide();
                    assert!((got - want).abs() <= tolerance * (n_in as f64).sqrt(), "{n_in} {n_out}: {got}, {want}");
                }
            }
        }
    }

    /// Sums of up to 300 products below one: some eps each.
    #[test]
    fn products_are_those_of_the_definition() {
        agrees::<f64>(16.0 * f64::EPSILON);
        agrees::<f32>(16.0 * f64::from(f32::EPSILON));
    }
}
