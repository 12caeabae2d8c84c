//! What follows from the factors of the gradient: steps, the diagonal of Λ, and inner products, each one matrix product
//! per layer. (The width is in `wide.rs`.)

use std::ops::Range;

use super::optim::Step;
use super::{Net, Tangents};
use crate::linalg::cholesky;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, Lanes, lanes, lanes_mut};

/// What grows by s·(∇f)² of a row: the diagonal of Λ.
pub(crate) struct Growth<'a, T> {
    /// The part of W_1 that the row's block has.
    pub(crate) first: &'a mut [T],
    pub(crate) rest: &'a mut [T],
    pub(crate) s: T,
}

impl Net {
    /// first, rest += e·∇f (or e·(∇f)² if `SQUARE`) of the first row; `first` is the part of W_1 that its block has.
    #[inline(always)]
    pub(crate) fn accumulate<T: Scalar, A: Arch, const SQUARE: bool>(
        &self,
        tangents: &Tangents<T>,
        e: T,
        first: &mut [T],
        rest: &mut [T],
    ) {
        A::call(Accumulate::<T, SQUARE> { net: self, tangents, e, first, rest });
    }

    /// Moves all weights along e·∇f of the first row, whose input lies in `block`; `growth` grows by s·(∇f)².
    #[inline(always)]
    pub(crate) fn step_one<T: Scalar, A: Arch>(
        &self,
        tangents: &Tangents<T>,
        block: usize,
        e: T,
        mut step: Step<'_, T>,
        mut growth: Option<Growth<'_, T>>,
    ) {
        step.first(self.blocks(0..block)).still::<A>();
        step.first(self.blocks(block + 1..self.n_blocks)).still::<A>();
        for group in &self.groups {
            let (u, x) = (tangents.first_u(group.u), tangents.first_v(group));
            let at = group.at..group.at + x.len() * u.len();
            let (part, growth) = if group.first {
                (step.first(self.blocks(block..block + 1)), growth.as_mut().map(|g| (&mut *g.first, g.s)))
            } else {
                (step.rest(at.clone()), growth.as_mut().map(|g| (&mut g.rest[at], g.s)))
            };
            part.outer_one::<A>(x, u, e, growth);
        }
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

struct Accumulate<'a, T, const SQUARE: bool> {
    net: &'a Net,
    tangents: &'a Tangents<T>,
    e: T,
    first: &'a mut [T],
    rest: &'a mut [T],
}

impl<T: Scalar, const SQUARE: bool> Job for Accumulate<'_, T, SQUARE> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Accumulate { net, tangents, e, first, rest } = self;
        for group in &net.groups {
            let into = if group.first { &mut *first } else { &mut rest[group.at..] };
            let (u, v) = (tangents.first_u(group.u), tangents.first_v(group));
            outer::<T, A, SQUARE>(v, e, u, &mut into[..v.len() * u.len()]);
        }
    }
}

/// into (len v × len u) += v·(e·u)ᵀ, of v² and u² if `SQUARE`.
#[inline(always)]
fn outer<T: Scalar, A: Arch, const SQUARE: bool>(v: &[T], e: T, u: &[T], into: &mut [T]) {
    let (u, into) = (lanes(u), lanes_mut(into));
    let mut from = 0;
    while from + 4 <= u.len() {
        outer_columns::<T, A, SQUARE, 4>(v, e, u, from, into);
        from += 4;
    }
    match u.len() - from {
        3 => outer_columns::<T, A, SQUARE, 3>(v, e, u, from, into),
        2 => outer_columns::<T, A, SQUARE, 2>(v, e, u, from, into),
        1 => outer_columns::<T, A, SQUARE, 1>(v, e, u, from, into),
        _ => {}
    }
}

#[inline(always)]
fn outer_columns<T: Scalar, A: Arch, const SQUARE: bool, const C: usize>(
    v: &[T],
    e: T,
    u: &[Lanes<T>],
    from: usize,
    into: &mut [Lanes<T>],
) {
    let mut scaled = [A::zero::<T>(); C];
    for c in 0..C {
        let u = A::load(&u[from + c]);
        scaled[c] = A::mul(A::splat(e), if SQUARE { A::mul(u, u) } else { u });
    }
    for (&v, row) in v.iter().zip(into.chunks_exact_mut(u.len())) {
        let v = A::splat(if SQUARE { v * v } else { v });
        let row = &mut row[from..from + C];
        for c in 0..C {
            A::store(A::madd(v, scaled[c], A::load(&row[c])), &mut row[c]);
        }
    }
}

/// The factors of many gradients, group by group; grows by rows.
#[derive(Debug, Clone)]
pub(crate) struct FactorRows {
    pub(super) u: Vec<Vec<f64>>,
    pub(super) v: Vec<Vec<f64>>,
    pub(super) blocks: Vec<usize>,
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
