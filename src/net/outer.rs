//! Moves a weight matrix along an outer product: of one row, x (e·u)ᵀ, or of the rows of a batch, Σ_r x_r u_rᵀ (`sums.rs`). The
//! gradient is never stored as a whole: a few inputs of it at a time move their weights.

use super::Net;
use super::optim::Part;
use super::pairs::centre_sums;
use super::rule::{Rule, halves_of, store_halves, with_rule};
use super::sums::{COLUMNS, Four, INPUTS, NARROW, SumInputs, SumNarrow, Sums};
use crate::linalg::dense::over_columns;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, HALF, Job, LANES, Lanes, RowList, lanes, lanes_mut, many_registers};

pub(super) struct OuterOne<'a, T> {
    pub(super) part: Part<'a, T>,
    pub(super) x: &'a [T],
    pub(super) u: &'a [T],
    pub(super) e: T,
    pub(super) growth: Option<(&'a mut [T], T)>,
}

impl<T: Scalar> Job for OuterOne<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let OuterOne { part, x, u, e, growth } = self;
        let (u, e) = (lanes(u), A::splat(e));
        let (mut grows, s) = match growth {
            Some((grows, s)) => (Some(lanes_mut(grows)), A::splat(s)),
            None => (None, e),
        };
        with_rule!(part, A, |rule| {
            over_columns!(u.len(), col, C in [4 3 2 1], {
                let (x, mut own) = (x.iter().copied(), [A::zero::<T>(); C]);
                for c in 0..C {
                    own[c] = A::load(&u[col + c]);
                }
                if let Some(grows) = &mut grows {
                    outer_row::<T, A, _, C, true>(rule, x, own, e, (u.len(), col), grows, s);
                } else {
                    outer_row::<T, A, _, C, false>(rule, x, own, e, (u.len(), col), &mut [], s);
                }
            });
        });
    }
}

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
        let (ld, columns) = (net.ld, net.ld / LANES);
        if const { size_of::<T>() == 4 } && net.is_narrow() {
            return with_rule!(part, A, |rule| {
                for from in (0..n_in).step_by(NARROW) {
                    let own = NARROW.min(n_in - from);
                    let fours = &mut sums.fours[..own.div_ceil(4)];
                    A::call(SumNarrow { x: (x, from), u, fours });
                    if centred {
                        centre_sums::<T, A>(net, fours);
                    }
                    for (q, four) in fours.iter().enumerate() {
                        let j = from + 4 * q;
                        if n_in - j >= 4 {
                            rule.four_inputs(3 * j, four);
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
                    let sums = &mut sums.inputs[..INPUTS.min(n_in - j)];
                    for from in (0..columns).step_by(COLUMNS) {
                        let own = COLUMNS.min(columns - from);
                        over_columns!(own, col, C in [4 3 2 1], {
                            // registers of sixteen numbers, and one of eight where C is odd
                            let (x, u) = ((x, j), (u, columns, from));
                            if C > 1 {
                                A::call(SumInputs::<T, true> { x, u, sums, at: col, two: C == 4 });
                            }
                            if C % 2 == 1 {
                                A::call(SumInputs::<T, false> { x, u, sums, at: col + C - 1, two: false });
                            }
                        });
                        move_inputs::<T, A, _>(rule, sums, own, j * columns + from, columns);
                    }
                }
            });
        }
        with_rule!(part, A, |rule| {
            // nine sums, three vectors and a number leave registers to spare; twelve sums would be kept in memory
            let mut j = 0;
            while j < n_in {
                let rows = (n_in - j).min(3);
                over_columns!(columns, col, C in [3 2 1], {
                    match rows {
                        3 => outer_tile::<T, A, _, 3, C>(rule, x, j, u, ld, col),
                        2 => outer_tile::<T, A, _, 2, C>(rule, x, j, u, ld, col),
                        _ => outer_tile::<T, A, _, 1, C>(rule, x, j, u, ld, col),
                    }
                });
                j += rows;
            }
        });
    }
}

/// Moves the weights of fewer than four inputs, three vectors each, from a place on.
#[inline(always)]
fn few_inputs<T: Scalar, A: Arch, M: Rule<T, A>>(rule: &mut M, four: &Four<T>, at: usize, n: usize) {
    for k in 0..n {
        let [a, b] = &four.sixteen[k];
        let mut last = [T::ZERO; LANES];
        last[..HALF].copy_from_slice(&four.others.as_flattened()[k * HALF..][..HALF]);
        rule.steps(at + 3 * k, [A::load(a), A::load(b), A::load(&last)]);
    }
}

/// Moves the weights of some inputs by their gradients, `n` vectors each, from the vector `at` on: of three inputs two share
/// divisions, as in [`outer_tile`].
#[inline(always)]
fn move_inputs<T: Scalar, A: Arch, M: Rule<T, A>>(
    rule: &mut M,
    sums: &[[Lanes<T>; COLUMNS]],
    n: usize,
    at: usize,
    columns: usize,
) {
    for (i, three) in sums.chunks(3).enumerate() {
        let at = at + 3 * i * columns;
        if let [a, b, ..] = three {
            over_columns!(n, col, C in [3 2 1], {
                let at = at + col;
                rule.two_steps([at, at + columns], [vectors::<T, A, C>(a, col), vectors::<T, A, C>(b, col)]);
            });
        }
        if let [single] | [_, _, single] = three {
            let at = at + (three.len() - 1) * columns;
            over_columns!(n, col, C in [3 2 1], rule.steps(at + col, vectors::<T, A, C>(single, col)));
        }
    }
}

#[inline(always)]
fn vectors<T: Scalar, A: Arch, const C: usize>(from: &[Lanes<T>; COLUMNS], at: usize) -> [A::V<T>; C] {
    let (from, mut out) = (&from[at..at + C], [A::zero::<T>(); C]);
    for c in 0..C {
        out[c] = A::load(&from[c]);
    }
    out
}

/// Moves the weights to C vectors of outputs, from column `col` of `columns` on, by the gradient x (e·u)ᵀ of one row;
/// `grows` grows by s·x² (u²)ᵀ if `GROW`.
#[inline(always)]
fn outer_row<T: Scalar, A: Arch, M: Rule<T, A>, const C: usize, const GROW: bool>(
    rule: &mut M,
    x: impl Iterator<Item = T>,
    u: [A::V<T>; C],
    e: A::V<T>,
    (columns, col): (usize, usize),
    grows: &mut [Lanes<T>],
    s: A::V<T>,
) {
    let [scaled, square] = factors::<T, A, C>(u, e, s);
    // two inputs at a time, which can share divisions
    let (mut x, mut at) = (x, col);
    while let Some(first) = x.next() {
        let grad = weigh_row::<T, A, C, GROW>(first, scaled, square, C, at, grows);
        if let Some(second) = x.next() {
            let next = weigh_row::<T, A, C, GROW>(second, scaled, square, C, at + columns, grows);
            rule.two_steps([at, at + columns], [grad, next]);
        } else {
            rule.steps(at, grad);
        }
        at += 2 * columns;
    }
}

/// e·u and s·u².
#[inline(always)]
fn factors<T: Scalar, A: Arch, const C: usize>(u: [A::V<T>; C], e: A::V<T>, s: A::V<T>) -> [[A::V<T>; C]; 2] {
    let (mut scaled, mut square) = (u, u);
    for c in 0..C {
        scaled[c] = A::mul(e, u[c]);
        square[c] = A::mul(s, A::mul(u[c], u[c]));
    }
    [scaled, square]
}

/// As [`outer_row`], for all outputs. If the upper half of the last vector is padding (`short`), the lower halves of two
/// inputs move as one vector: what is padding takes no time.
#[inline(always)]
pub(super) fn outer_inputs<T: Scalar, A: Arch, M: Rule<T, A>, const C: usize, const GROW: bool>(
    rule: &mut M,
    x: &[f32],
    u: [A::V<T>; C],
    short: bool,
    e: A::V<T>,
    grows: &mut [Lanes<T>],
    s: A::V<T>,
) {
    let (pairs, _) = x.as_chunks::<2>();
    let pairs = if short { pairs } else { &[] };
    let [scaled, square] = factors::<T, A, C>(u, e, s);
    let last = C - 1;
    let half = [A::join_halves(scaled[last], scaled[last]), A::join_halves(square[last], square[last])];
    let mut at = 0;
    for x in pairs {
        let (first, second, next) = (T::of_f32(x[0]), T::of_f32(x[1]), at + C);
        let grad = weigh_row::<T, A, C, GROW>(first, scaled, square, last, at, grows);
        let next_grad = weigh_row::<T, A, C, GROW>(second, scaled, square, last, next, grows);
        for c in 0..last {
            rule.two_steps([at + c, next + c], [[grad[c]], [next_grad[c]]]);
        }
        let (x, ends) = (A::join_halves(A::splat(first), A::splat(second)), [at + last, next + last]);
        if GROW {
            let grown = A::madd(A::mul(x, x), half[1], halves_of::<T, A>(grows, ends));
            store_halves::<T, A>(grown, grows, ends);
        }
        rule.two_halves(ends, A::mul(x, half[0]));
        at += 2 * C;
    }
    let x = x[2 * pairs.len()..].iter().map(|&x| T::of_f32(x));
    outer_row::<T, A, M, C, GROW>(rule, x, u, e, (C, at), grows, s);
}

/// x·u of the first `n` vectors; `grows`, from `at` on, grows by x²·square if `GROW`.
#[inline(always)]
fn weigh_row<T: Scalar, A: Arch, const C: usize, const GROW: bool>(
    x: T,
    mut u: [A::V<T>; C],
    square: [A::V<T>; C],
    n: usize,
    at: usize,
    grows: &mut [Lanes<T>],
) -> [A::V<T>; C] {
    if GROW {
        let (grows, x) = (&mut grows[at..at + n], A::splat(x * x));
        for c in 0..n {
            A::store(A::madd(x, square[c], A::load(&grows[c])), &mut grows[c]);
        }
    }
    let x = A::splat(x);
    for c in 0..n {
        u[c] = A::mul(x, u[c]);
    }
    u
}

/// e·u; `grows`, unless empty, grows by s·u² from `at` on.
#[inline(always)]
pub(super) fn grow_row<T: Scalar, A: Arch, const C: usize>(
    mut u: [A::V<T>; C],
    e: A::V<T>,
    grows: &mut [Lanes<T>],
    s: A::V<T>,
    at: usize,
) -> [A::V<T>; C] {
    if let Some(grows) = grows.get_mut(at..at + C) {
        for c in 0..C {
            A::store(A::madd(s, A::mul(u[c], u[c]), A::load(&grows[c])), &mut grows[c]);
        }
    }
    for c in 0..C {
        u[c] = A::mul(e, u[c]);
    }
    u
}

/// Sums R inputs (from input `j`) by C vectors of outputs of the gradient, and moves their weights.
#[inline(always)]
fn outer_tile<T: Scalar, A: Arch, M: Rule<T, A>, const R: usize, const C: usize>(
    rule: &mut M,
    x: RowList<'_, T>,
    j: usize,
    u: &[T],
    ld: usize,
    col: usize,
) {
    let columns = ld / LANES;
    let mut sums = [[A::zero::<T>(); C]; R];
    // bounds are checked here and not for every row
    assert!(col + C <= columns && j + R <= x.len());
    for (u, x) in lanes(u).chunks_exact(columns).zip(x.iter()) {
        let (u, x) = (&u[col..col + C], &x[j..j + R]);
        let mut uk = [A::zero::<T>(); C];
        for c in 0..C {
            uk[c] = A::load(&u[c]);
        }
        for r in 0..R {
            let v = A::splat(x[r]);
            for c in 0..C {
                sums[r][c] = A::madd(v, uk[c], sums[r][c]);
            }
        }
    }
    let mut r = 0;
    while r + 1 < R {
        let at = (j + r) * columns + col;
        rule.two_steps([at, at + columns], [sums[r], sums[r + 1]]);
        r += 2;
    }
    if r < R {
        rule.steps((j + r) * columns + col, sums[r]);
    }
}
