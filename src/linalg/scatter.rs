//! λI + Σ x xᵀ, the lower triangle in f64, for vectors that come one at a time: O(d²/2) each.

use crate::archive::Archive;
use crate::error::Error;

use super::simd::{Arch, LANES, lanes, lanes_mut};

/// Vectors x that are added at a time, so that the matrix is read and written once for all of them.
const BATCH: usize = 4;

/// The matrix, and the vectors it does not know yet.
#[derive(Debug, Clone)]
pub(crate) struct Scatter {
    d: usize,
    /// d rounded up to whole vectors.
    ld: usize,
    /// Row-major, d × ld; of the upper triangle only what shares a vector with the lower one is kept.
    matrix: Vec<f64>,
    /// BATCH × ld, padded with zeros.
    pending: Vec<f64>,
    n_pending: usize,
}

impl Scatter {
    /// λI of order d.
    pub(crate) fn new(d: usize, lambda: f64) -> Self {
        let ld = d.next_multiple_of(LANES);
        let mut matrix = vec![0.0; d * ld];
        matrix.iter_mut().step_by(ld + 1).for_each(|v| *v = lambda);
        Scatter { d, ld, matrix, pending: vec![0.0; BATCH * ld], n_pending: 0 }
    }

    /// Goes through matrix and waiting vectors under `name`.
    pub(crate) fn archive(&mut self, name: &str, archive: &mut Archive) -> Result<(), Error> {
        let (d, ld) = (self.d, self.ld);
        let mut lower: Vec<f64> =
            (0..d * d).map(|i| if i % d <= i / d { self.matrix[i / d * ld + i % d] } else { 0.0 }).collect();
        let waiting = self.pending[..self.n_pending * ld].chunks_exact(ld);
        let mut waiting: Vec<f64> = waiting.flat_map(|x| &x[..d]).copied().collect();
        archive.array(name, &[d, d], &mut lower)?;
        archive.list(&format!("{name}.pending"), d, &mut waiting)?;
        if archive.is_reading() {
            self.n_pending = waiting.len() / d;
            if self.n_pending > BATCH {
                return Err(Error::Shape {
                    what: "vectors waiting for Λ, at most",
                    expected: BATCH,
                    got: self.n_pending,
                });
            }
            for (i, row) in self.matrix.chunks_exact_mut(ld).enumerate() {
                row[..=i].copy_from_slice(&lower[i * d..=i * d + i]);
            }
            for (to, x) in self.pending.chunks_exact_mut(ld).zip(waiting.chunks_exact(d)) {
                to[..d].copy_from_slice(x);
            }
        }
        Ok(())
    }

    /// Adds x xᵀ, and returns x in f64, padded with zeros.
    #[inline(always)]
    pub(crate) fn add<A: Arch>(&mut self, x: &[f32]) -> &[f64] {
        if self.n_pending == BATCH {
            self.flush::<A>();
        }
        let new = &mut self.pending[self.n_pending * self.ld..][..self.ld];
        self.n_pending += 1;
        for (new, &x) in new.iter_mut().zip(x) {
            *new = f64::from(x);
        }
        new
    }

    /// The matrix, row-major d × d; only its lower triangle is meant.
    pub(crate) fn lower<A: Arch>(&mut self) -> Vec<f64> {
        self.flush::<A>();
        self.matrix.chunks_exact(self.ld).flat_map(|row| &row[..self.d]).copied().collect()
    }

    #[inline(always)]
    fn flush<A: Arch>(&mut self) {
        self.pending[self.n_pending * self.ld..].fill(0.0);
        self.n_pending = 0;
        let mut x = [&self.pending[..0]; BATCH];
        for b in 0..BATCH {
            x[b] = &self.pending[b * self.ld..(b + 1) * self.ld];
        }
        // eight rows of the lower triangle end in the same vector
        for (last, rows) in self.matrix.chunks_mut(LANES * self.ld).enumerate() {
            match last {
                0 => add_rows::<A, 1>(rows, 0, x),
                1 => add_rows::<A, 2>(rows, 1, x),
                2 => add_rows::<A, 3>(rows, 2, x),
                _ => add_long_rows::<A>(rows, last, x),
            }
        }
    }
}

/// Adds x_i·x of each vector x to up to eight rows i of the matrix, from 8·`last` on, of which V vectors are kept.
#[inline(always)]
fn add_rows<A: Arch, const V: usize>(rows: &mut [f64], last: usize, x: [&[f64]; BATCH]) {
    let ld = x[0].len();
    let (mut own, mut vectors) = ([[0.0; LANES]; BATCH], [[[0.0; LANES]; V]; BATCH]);
    for b in 0..BATCH {
        own[b] = lanes(x[b])[last];
        vectors[b].copy_from_slice(&lanes(x[b])[..V]);
    }
    for (i, row) in rows.chunks_exact_mut(ld).enumerate() {
        let row = &mut lanes_mut(row)[..V];
        for v in 0..V {
            let mut sum = A::load(&row[v]);
            for b in 0..BATCH {
                sum = A::madd(A::splat(own[b][i % LANES]), A::load(&vectors[b][v]), sum);
            }
            A::store(sum, &mut row[v]);
        }
    }
}

/// As [`add_rows`], for any number of vectors. Where the matrix is large, x is often sparse: zeros are passed over.
#[inline(always)]
fn add_long_rows<A: Arch>(rows: &mut [f64], last: usize, x: [&[f64]; BATCH]) {
    for (i, row) in rows.chunks_exact_mut(x[0].len()).enumerate() {
        for x in x {
            let own = x[last * LANES + i];
            if own != 0.0 {
                let own = A::splat(own);
                for (l, x) in lanes_mut(row)[..=last].iter_mut().zip(lanes(x)) {
                    A::store(A::madd(own, A::load(x), A::load(l)), l);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::{Job, Portable, dispatch};

    struct All<'a>(&'a mut Scatter, &'a [f32]);

    impl Job for All<'_> {
        type Out = Vec<f64>;
        #[inline(always)]
        fn run<A: Arch>(self) -> Vec<f64> {
            for x in self.1.chunks(self.0.d) {
                self.0.add::<A>(x);
            }
            self.0.lower::<A>()
        }
    }

    #[test]
    fn it_is_the_sum_of_the_definition() {
        for d in [1, 7, 8, 9, 20, 24, 45] {
            // integers, some of them zero: exact
            let x: Vec<f32> = (0..11 * d).map(|i| ((i * i + 3 * i) % 7) as f32 - 2.0).collect();
            let (mut best, mut plain) = (Scatter::new(d, 0.5), Scatter::new(d, 0.5));
            let mut got = [All(&mut best, &x[..6 * d]).run::<Portable>(), dispatch(All(&mut plain, &x[..6 * d]))];
            // on from where `lower` was asked for
            got[0] = dispatch(All(&mut best, &x[6 * d..]));
            got[1] = All(&mut plain, &x[6 * d..]).run::<Portable>();
            for i in 0..d {
                for j in 0..=i {
                    let sum: f64 = x.chunks(d).map(|x| f64::from(x[i]) * f64::from(x[j])).sum();
                    let want = sum + if i == j { 0.5 } else { 0.0 };
                    assert!(got.iter().all(|g| g[i * d + j] == want), "d {d}, ({i}, {j})");
                }
            }
        }
    }
}
