//! λI + Σ x xᵀ, the lower triangle in f64, for vectors that come one at a time: O(d²/2) each.

use crate::archive::Archive;
use crate::error::Error;

use super::vectors::{LANES, lanes, lanes_mut, scale_add};

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
    pub(crate) fn add(&mut self, x: &[f32]) -> &[f64] {
        if self.n_pending == BATCH {
            self.flush();
        }
        let new = &mut self.pending[self.n_pending * self.ld..][..self.ld];
        self.n_pending += 1;
        for (new, &x) in new.iter_mut().zip(x) {
            *new = f64::from(x);
        }
        new
    }

    /// The matrix, row-major d × d; only its lower triangle is meant.
    pub(crate) fn lower(&mut self) -> Vec<f64> {
        self.flush();
        self.matrix.chunks_exact(self.ld).flat_map(|row| &row[..self.d]).copied().collect()
    }

    /// Adds what is pending: to row i of the lower triangle Σ x_i·x over the pending x.
    #[inline(always)]
    fn flush(&mut self) {
        self.pending[self.n_pending * self.ld..].fill(0.0);
        self.n_pending = 0;
        let mut x = [&self.pending[..0]; BATCH];
        for b in 0..BATCH {
            x[b] = &self.pending[b * self.ld..(b + 1) * self.ld];
        }
        for (i, row) in self.matrix.chunks_exact_mut(self.ld).enumerate() {
            let mut own = [0.0; BATCH];
            for b in 0..BATCH {
                own[b] = x[b][i];
            }
            // large matrices often have sparse x
            if own == [0.0; BATCH] {
                continue;
            }
            for (v, row) in lanes_mut(row)[..=i / LANES].iter_mut().enumerate() {
                let mut sum = *row;
                for b in 0..BATCH {
                    sum = scale_add(own[b], &lanes(x[b])[v], sum);
                }
                *row = sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum_of_the_definition() {
        for d in [1, 7, 8, 9, 20, 24, 45] {
            // integers, some of them zero: exact
            let x: Vec<f32> = (0..11 * d).map(|i| ((i * i + 3 * i) % 7) as f32 - 2.0).collect();
            let mut scatter = Scatter::new(d, 0.5);
            x[..6 * d].chunks(d).for_each(|x| _ = scatter.add(x));
            scatter.lower(); // and on from where it was asked for
            x[6 * d..].chunks(d).for_each(|x| _ = scatter.add(x));
            let got = scatter.lower();
            for i in 0..d {
                for j in 0..=i {
                    let sum: f64 = x.chunks(d).map(|x| f64::from(x[i]) * f64::from(x[j])).sum();
                    assert!(got[i * d + j] == sum + if i == j { 0.5 } else { 0.0 }, "d {d}, ({i}, {j})");
                }
            }
        }
    }
}
