//! Moves a weight matrix along the gradient of a batch, Σ_r x_r u_rᵀ (`sums.rs`): a few inputs of it at a time move their weights, two and
//! two of which share divisions. One row: `outer.rs`.

use super::Net;
use super::optim::{Part, TOGETHER, along};
use super::outer::{Eight, OF_FOUR, OfFour, four_inputs};
use super::pairs::centre_sums;
use super::rule::{Rule, with_rule};
use super::sums::{Four, INPUTS, NARROW, SumInputs, SumNarrow, Sums};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, HALF, Job, LANES, RowList, Rows, Vectors, lanes, lanes_mut, many_registers};

pub(super) struct Outer<'a, T> {
    pub(super) part: Part<'a, T>,
    pub(super) net: &'a Net,
    pub(super) x: RowList<'a, T>,
    pub(super) n_in: usize,
    pub(super) u: &'a [T],
    pub(super) sums: &'a mut Sums<T>,
    pub(super) centred: bool,
}

impl<T: Scalar> Job for Outer<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Outer { part, net, x, n_in, u, sums, centred } = self;
        let columns = net.ld / LANES;
        if const { size_of::<T>() == 4 } && net.is_narrow() {
            return with_rule!(part, A, |rule| {
                for from in (0..n_in).step_by(NARROW) {
                    let own = NARROW.min(n_in - from);
                    let fours = &mut sums.fours[..own.div_ceil(4)];
                    A::call(SumNarrow { x: (x, from), u, fours });
                    if centred {
                        centre_sums::<T, A>(net, fours);
                    }
                    for (j, four) in (from..).step_by(4).zip(&*fours) {
                        if n_in - j >= 4 {
                            four_inputs::<T, A, _>(&mut Rule::<T, A>::within(rule, 3 * j..3 * j + OF_FOUR), four);
                        } else {
                            few_inputs::<T, A, _>(rule, four, 3 * j, n_in - j);
                        }
                    }
                }
            });
        }
        if const { many_registers::<T, A>() } {
            return with_rule!(part, A, |rule| {
                for j in (0..n_in).step_by(INPUTS) {
                    let n = INPUTS.min(n_in - j);
                    let sums = &mut lanes_mut(&mut sums.inputs)[..n * columns];
                    A::call(SumInputs { x: (x, j), n, u, columns, sums });
                    for (i, sums) in sums.chunks_exact(columns).enumerate() {
                        let at = (j + i) * columns;
                        along::<T, A, _>(&mut Rule::<T, A>::within(rule, at..at + columns), Some(sums), columns);
                    }
                }
            });
        }
        with_rule!(part, A, |rule| {
            let summed = Summed { x, u, columns };
            let (fours, whole) = (n_in / 4 * 4, columns / TOGETHER * TOGETHER);
            for j in (0..fours).step_by(4) {
                for col in (0..whole).step_by(TOGETHER) {
                    summed.tile::<A, _, 2, TOGETHER>(rule, j, col);
                    summed.tile::<A, _, 2, TOGETHER>(rule, j + 2, col);
                }
                for col in whole..columns {
                    summed.tile::<A, _, 4, 1>(rule, j, col);
                }
            }
            for j in fours..n_in {
                for col in (0..whole).step_by(TOGETHER) {
                    summed.tile::<A, _, 1, TOGETHER>(rule, j, col);
                }
                for col in whole..columns {
                    summed.tile::<A, _, 1, 1>(rule, j, col);
                }
            }
        });
    }
}

/// Moves the weights of fewer than four inputs, three vectors each, from a place on.
#[inline(always)]
fn few_inputs<T: Scalar, A: Arch, M: Rule<T, A>>(rule: &mut M, four: &Four<T>, at: usize, n: usize) {
    for k in 0..n {
        let mut last = [T::ZERO; LANES];
        last[..HALF].copy_from_slice(&four.others.as_flattened()[k * HALF..][..HALF]);
        for part in (0..2).step_by(A::Widest::<T>::VECTORS) {
            rule.one(at + 3 * k + part, OfFour::<T, A>::sixteen(four, k, part));
        }
        rule.one::<Eight<A, T>>(at + 3 * k + 2, Vectors([A::load(&last)]));
    }
}

/// The rows of a batch, to be summed.
struct Summed<'a, T> {
    x: RowList<'a, T>,
    u: &'a [T],
    /// Vectors of u of a row.
    columns: usize,
}

impl<T: Scalar> Summed<'_, T> {
    /// Sums R inputs (from input `j`) by C vectors of outputs of the gradient, and moves their weights, as [`along`] does: while these wait
    /// for their roots and divisions, the next are summed. Eight sums, four vectors and a number leave registers to spare; twelve
    /// sums would be kept in memory.
    #[inline(always)]
    fn tile<A: Arch, M: Rule<T, A>, const R: usize, const C: usize>(&self, rule: &mut M, j: usize, col: usize) {
        let columns = self.columns;
        let mut sums: [[Eight<A, T>; C]; R] = [[Vectors([A::zero()]); C]; R];
        // bounds are checked here and not for every row
        assert!(col + C <= columns && j + R <= self.x.len());
        for (u, x) in lanes(self.u).chunks_exact(columns).zip(self.x.iter()) {
            let (u, x) = (&u[col..col + C], &x[j..j + R]);
            let mut own = [A::zero::<T>(); C];
            for c in 0..C {
                own[c] = A::load(&u[c]);
            }
            for r in 0..R {
                let v = A::splat(x[r]);
                for c in 0..C {
                    sums[r][c].0[0] = A::madd(v, own[c], sums[r][c].0[0]);
                }
            }
        }
        for r in 0..R {
            let at = (j + r) * columns + col;
            let rule = &mut rule.within(at..at + C);
            if C == TOGETHER {
                rule.two([0, 2], [sums[r][0], sums[r][C / 2]]);
                rule.two([1, 3], [sums[r][C / 4], sums[r][C - 1]]);
            } else {
                rule.one(0, sums[r][0]);
            }
        }
    }
}
