//! What follows from the factors of the gradient: steps, the diagonal of Λ, and inner products, each one matrix product
//! per layer. (The width is in `wide.rs`.)

use std::ops::Range;

use super::optim::Step;
use super::{Factor, Net, Tangents};
use crate::linalg::cholesky;
use crate::linalg::dense::accumulate;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, LANES, lanes, map};

impl Net {
    /// into += Σ_r e_r·g_r (or e_r·g_r² if `SQUARE`) over the block's part of W_1, for the given rows.
    #[inline(always)]
    pub(crate) fn accumulate_first<T: Scalar, A: Arch, const SQUARE: bool>(
        &self,
        tangents: &mut Tangents<T>,
        rows: Range<usize>,
        e: &[T],
        into: &mut [T],
    ) {
        self.accumulate_weights::<T, A, SQUARE>(tangents, 0, rows, e, into);
    }

    /// into += Σ_r e_r·g_r (or e_r·g_r² if `SQUARE`) over all parameters but W_1, for all rows.
    #[inline(always)]
    pub(crate) fn accumulate_rest<T: Scalar, A: Arch, const SQUARE: bool>(
        &self,
        tangents: &mut Tangents<T>,
        e: &[T],
        into: &mut [T],
    ) {
        let (ld, rows) = (self.ld, tangents.rows);
        for group in self.groups.iter().filter(|g| !g.first) {
            if let (Some(n_in), Factor::DeltaZ(l)) = (group.n_in, group.u) {
                self.accumulate_weights::<T, A, SQUARE>(tangents, l, 0..rows, e, &mut into[group.at..][..n_in * ld]);
            } else if let Some(u) = tangents.factor(group.u) {
                let (u, columns) = (lanes(&u[..rows * ld]), ld / LANES);
                map!(A, &mut into[group.at..group.at + ld], |i, sum| {
                    let mut sum = sum;
                    for r in 0..rows {
                        let u = A::load(&u[r * columns + i]);
                        sum = A::madd(A::splat(e[r]), if SQUARE { A::mul(u, u) } else { u }, sum);
                    }
                    sum
                });
            } else {
                for &e in &e[..rows] {
                    into[group.at] += e;
                }
            }
        }
    }

    /// Moves all weights along e·∇f of the first row, whose input lies in `block`.
    #[inline(always)]
    pub(crate) fn step_one<T: Scalar, A: Arch>(
        &self,
        tangents: &mut Tangents<T>,
        block: usize,
        e: T,
        mut step: Step<'_, T>,
    ) {
        let ld = self.ld;
        let mut scratch = std::mem::take(&mut tangents.scratch);
        let scaled = &mut scratch[..ld];
        step.first(self.blocks(0..block)).still::<A>();
        step.first(self.blocks(block + 1..self.n_blocks)).still::<A>();
        for group in &self.groups {
            let Some(u) = tangents.factor(group.u) else {
                scaled[..LANES].fill(T::ZERO);
                scaled[0] = e;
                step.rest(group.at..group.at + LANES).along::<A>(&scaled[..LANES]);
                continue;
            };
            let (u, e) = (lanes(u), A::splat(e));
            map!(A, &mut *scaled, |i, _| A::mul(e, A::load(&u[i])));
            match (group.n_in, group.u) {
                (Some(n_in), Factor::DeltaZ(0)) => {
                    step.first(self.blocks(block..block + 1)).outer::<A>(&tangents.input, n_in, n_in, scaled, ld);
                }
                (Some(n_in), Factor::DeltaZ(l)) => {
                    let part = step.rest(group.at..group.at + n_in * ld);
                    part.outer::<A>(&tangents.layers[l - 1].h, ld, n_in, scaled, ld);
                }
                _ => step.rest(group.at..group.at + ld).along::<A>(scaled),
            }
        }
        tangents.scratch = scratch;
    }

    #[inline(always)]
    fn accumulate_weights<T: Scalar, A: Arch, const SQUARE: bool>(
        &self,
        tangents: &mut Tangents<T>,
        l: usize,
        rows: Range<usize>,
        e: &[T],
        into: &mut [T],
    ) {
        let ld = self.ld;
        let mut scratch = std::mem::take(&mut tangents.scratch);
        let scaled = &mut scratch[..rows.len() * ld];
        let u = tangents.factor(Factor::DeltaZ(l)).expect("weights have factors");
        let u = &u[rows.start * ld..rows.end * ld];
        for r in 0..rows.len() {
            let factor = A::splat(e[rows.start + r]);
            let u = lanes(&u[r * ld..(r + 1) * ld]);
            map!(A, &mut scaled[r * ld..(r + 1) * ld], |i, _| {
                let u = A::load(&u[i]);
                A::mul(factor, if SQUARE { A::mul(u, u) } else { u })
            });
        }
        if l == 0 {
            let input = &tangents.input[rows.start * self.n_in..rows.end * self.n_in];
            accumulate::<T, A, SQUARE>(input, self.n_in, self.n_in, scaled, ld, into);
        } else {
            let input = &tangents.layers[l - 1].h[rows.start * ld..rows.end * ld];
            accumulate::<T, A, SQUARE>(input, ld, self.layers[l].n_in, scaled, ld, into);
        }
        tangents.scratch = scratch;
    }

    /// ⟨∇f(x_i), ∇f(y_j)⟩ for all i, j: Σ over the groups of (u_i·u_j)(v_i·v_j), where the inputs of W_1 meet only
    /// within the same block. Factors are given group by group, rows × length, with the block of each row.
    pub(crate) fn gram(&self, a: &FactorRows, b: &FactorRows, out: &mut [f64]) {
        let (rows, cols) = (a.blocks.len(), b.blocks.len());
        out.fill(0.0);
        let mut u = vec![0.0; rows * cols];
        let mut v = vec![0.0; rows * cols];
        for (g, group) in self.groups.iter().enumerate() {
            cholesky::gram(&a.u[g], &b.u[g], group.n_out, &mut u);
            if let Some(n_in) = group.n_in {
                cholesky::gram(&a.v[g], &b.v[g], n_in, &mut v);
                if group.first {
                    for i in 0..rows {
                        for j in 0..cols {
                            if a.blocks[i] != b.blocks[j] {
                                v[i * cols + j] = 0.0;
                            }
                        }
                    }
                }
                u.iter_mut().zip(&v).for_each(|(u, v)| *u *= v);
            }
            out.iter_mut().zip(&u).for_each(|(out, u)| *out += u);
        }
    }
}

/// The factors of many gradients, group by group; grows by rows.
#[derive(Debug, Clone)]
pub(crate) struct FactorRows {
    u: Vec<Vec<f64>>,
    v: Vec<Vec<f64>>,
    blocks: Vec<usize>,
}

impl FactorRows {
    /// No rows yet.
    pub(crate) fn new(net: &Net) -> Self {
        let empty = vec![Vec::new(); net.groups.len()];
        FactorRows { u: empty.clone(), v: empty, blocks: Vec::new() }
    }

    /// Appends row `row` of the tangents, whose input lies in `block`.
    pub(crate) fn push<T: Scalar>(&mut self, net: &Net, tangents: &Tangents<T>, block: usize, row: usize) {
        for (g, (u, v)) in tangents.factors(net, row).into_iter().enumerate() {
            self.u[g].extend(u);
            self.v[g].extend(v.into_iter().flatten());
        }
        self.blocks.push(block);
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// A copy of some rows.
    pub(crate) fn slice(&self, rows: Range<usize>) -> FactorRows {
        let n = self.len().max(1);
        let cut = |arrays: &[Vec<f64>]| {
            arrays.iter().map(|a| a[a.len() / n * rows.start..a.len() / n * rows.end].to_vec()).collect()
        };
        FactorRows { u: cut(&self.u), v: cut(&self.v), blocks: self.blocks[rows.clone()].to_vec() }
    }
}
