//! Moves a weight matrix along an outer product: of one row, x (e·u)ᵀ, or of the rows of a batch, Σ_r x_r u_rᵀ (`sums.rs`). The
//! gradient is never stored as a whole: a few inputs of it at a time move their weights, two and two of which share divisions.

use super::Net;
use super::optim::{Part, TOGETHER, along};
use super::pairs::centre_sums;
use super::rule::{Halves, Place, Rule, with_rule};
use super::sums::{Four, INPUTS, NARROW, SumInputs, SumNarrow, Sums};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{
    Arch, HALF, Job, LANES, Lanes, RowList, Rows, Vectors, lanes, lanes_mut, many_registers, over_registers,
};

/// A register of eight numbers.
type Eight<A, T> = Vectors<A, T, 1>;

/// Vectors of four inputs' weights, of three each.
const OF_FOUR: usize = 12;

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
        with_rule!(part, A, |rule| {
            if let Some((grows, s)) = growth {
                outer_rows::<T, A, _, true>(rule, x, lanes(u), [e, s], lanes_mut(grows));
            } else {
                outer_rows::<T, A, _, false>(rule, x, lanes(u), [e, T::ZERO], &mut []);
            }
        });
    }
}

/// Moves all weights by x (e·u)ᵀ, in the order in which they lie; `grows` grows by s·x² (u²)ᵀ if `GROW`.
#[inline(always)]
fn outer_rows<T: Scalar, A: Arch, M: Rule<T, A>, const GROW: bool>(
    rule: &mut M,
    x: &[T],
    u: &[Lanes<T>],
    e_and_s: [T; 2],
    grows: &mut [Lanes<T>],
) {
    for (i, x) in x.chunks(2).enumerate() {
        let (rule, grows) = some::<T, A, M, GROW>(rule, grows, 2 * i * u.len(), x.len() * u.len());
        let rule = &mut { rule };
        over_registers!(u.len(), A, |at, register| {
            let factors = Factors::new(register.load(&u[at..]), e_and_s);
            factors.inputs::<T, A, _, GROW>(rule, x, at, u.len(), grows);
        });
    }
}

/// `n` vectors from a place on, of the rule's and of what grows if `GROW`.
#[inline(always)]
fn some<'a, T: Scalar, A: Arch, M: Rule<T, A>, const GROW: bool>(
    rule: &'a mut M,
    grows: &'a mut [Lanes<T>],
    at: usize,
    n: usize,
) -> (M::Within<'a>, &'a mut [Lanes<T>]) {
    (rule.within(at..at + n), if GROW { &mut grows[at..at + n] } else { grows })
}

/// As [`outer_rows`], with u in registers. If the upper half of three vectors' last is padding (`short`), four inputs at a time: what
/// is padding takes no time.
#[inline(always)]
pub(super) fn outer_inputs<T: Scalar, A: Arch, M: Rule<T, A>, const C: usize, const GROW: bool>(
    rule: &mut M,
    x: &[f32],
    u: [A::V<T>; C],
    short: bool,
    e_and_s: [T; 2],
    grows: &mut [Lanes<T>],
) {
    let mut done = 0;
    if C == 3 && short {
        let half = A::join_halves(u[C - 1], u[C - 1]);
        let sixteen = [
            Factors::new(A::Widest::of(&u), e_and_s),
            Factors::new(A::Widest::of(&u[2 - A::Widest::<T>::VECTORS..]), e_and_s),
        ];
        let others = Factors::new(Vectors([half]), e_and_s);
        for x in x.as_chunks::<4>().0 {
            let (rule, grows) = some::<T, A, M, GROW>(rule, grows, done * C, OF_FOUR);
            let four = FourOfRow::<A, T> { x: x.map(T::of_f32), sixteen, others };
            if GROW {
                four.grow(grows);
            }
            four_inputs::<T, A, _>(&mut { rule }, &four);
            done += 4;
        }
    }
    for x in x[done..].chunks(2) {
        let mut two = [T::ZERO; 2];
        for (two, &x) in two.iter_mut().zip(x) {
            *two = T::of_f32(x);
        }
        let (rule, grows) = some::<T, A, M, GROW>(rule, grows, done * C, x.len() * C);
        let (rule, x) = (&mut { rule }, &two[..x.len()]);
        over_registers!(C, A, |at, register| {
            let factors = Factors::new(register.of(&u[at..]), e_and_s);
            factors.inputs::<T, A, _, GROW>(rule, x, at, C, grows);
        });
        done += x.len();
    }
}

/// Moves rows of C vectors of parameters, those that have a place, by e·u, and the first number of the vector `one` by e; `grows` grows by
/// s·u², or s, if `GROW`. The first two, which lie side by side, if at all, move together.
#[inline(always)]
pub(super) fn vectors<T: Scalar, A: Arch, M: Rule<T, A>, const C: usize, const GROW: bool>(
    rule: &mut M,
    places: [Option<usize>; 4],
    rows: [[A::V<T>; C]; 4],
    short: bool,
    one: Option<usize>,
    e_and_s: [T; 2],
    grows: &mut [Lanes<T>],
) {
    if let (Some(a), Some(b)) = (places[0], places[1]) {
        let [u, v] = [rows[0], rows[1]];
        assert!(b == a + C, "gain and offset lie side by side");
        let (rule, grows) = some::<T, A, M, GROW>(rule, grows, a, 2 * C);
        let rule = &mut { rule };
        if short {
            two_rows::<T, A, _, C, GROW>(rule, [u, v], C - 1, e_and_s, grows);
            let (joined, at) = (Vectors([A::join_halves(u[C - 1], v[C - 1])]), Halves([C - 1, 2 * C - 1]));
            rule.one(at, scaled::<T, A, Eight<A, T>, _, GROW>(joined, e_and_s, grows, at));
        } else {
            two_rows::<T, A, _, C, GROW>(rule, [u, v], C, e_and_s, grows);
        }
    }
    for k in 2..4 {
        if let Some(at) = places[k] {
            let (rule, grows) = some::<T, A, M, GROW>(rule, grows, at, C);
            let rule = &mut { rule };
            over_registers!(C, A, |c, register| {
                rule.one(c, scaled::<T, A, _, _, GROW>(register.of(&rows[k][c..]), e_and_s, grows, c));
            });
        }
    }
    if let Some(at) = one {
        let mut unit = [T::ZERO; LANES];
        unit[0] = T::ONE;
        rule.one(at, scaled::<T, A, Eight<A, T>, _, GROW>(Vectors([A::load(&unit)]), e_and_s, grows, at));
    }
}

/// Moves the first `n` vectors of two rows that lie side by side.
#[inline(always)]
fn two_rows<T: Scalar, A: Arch, M: Rule<T, A>, const C: usize, const GROW: bool>(
    rule: &mut M,
    [u, v]: [[A::V<T>; C]; 2],
    n: usize,
    e_and_s: [T; 2],
    grows: &mut [Lanes<T>],
) {
    over_registers!(n, A, |c, register| {
        let u = scaled::<T, A, _, _, GROW>(register.of(&u[c..]), e_and_s, grows, c);
        let v = scaled::<T, A, _, _, GROW>(register.of(&v[c..]), e_and_s, grows, C + c);
        rule.two([c, C + c], [u, v]);
    });
}

/// e·u; `grows` grows by s·u² if `GROW`.
#[inline(always)]
fn scaled<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, P: Place<T, A, W>, const GROW: bool>(
    u: W,
    [e, s]: [T; 2],
    grows: &mut [Lanes<T>],
    at: P,
) -> W {
    if GROW {
        grow::<T, A, W, P>(grows, at, W::splat(s), u.mul(u));
    }
    W::splat(e).mul(u)
}

/// e·u and s·u² of a register of outputs.
#[derive(Clone, Copy)]
struct Factors<W> {
    scaled: W,
    square: W,
}

impl<W> Factors<W> {
    #[inline(always)]
    fn new<T: Scalar, V>(u: W, [e, s]: [T; 2]) -> Self
    where
        W: Rows<T, V>,
    {
        Factors { scaled: W::splat(e).mul(u), square: W::splat(s).mul(u.mul(u)) }
    }

    /// Moves the weights of one input or two to these outputs, whose vectors begin at `at` of each input's `columns`.
    #[inline(always)]
    fn inputs<T: Scalar, A: Arch, M: Rule<T, A>, const GROW: bool>(
        self,
        rule: &mut M,
        x: &[T],
        at: usize,
        columns: usize,
        grows: &mut [Lanes<T>],
    ) where
        W: Rows<T, A::V<T>>,
    {
        match *x {
            [a, b] => rule.two([at, at + columns], [W::splat(a).mul(self.scaled), W::splat(b).mul(self.scaled)]),
            [a] => rule.one(at, W::splat(a).mul(self.scaled)),
            _ => unreachable!("one input or two"),
        }
        if GROW {
            for (k, &x) in x.iter().enumerate() {
                grow::<T, A, W, usize>(grows, at + k * columns, W::splat(x * x), self.square);
            }
        }
    }
}

/// Adds a·b to what grows, at a place.
#[inline(always)]
fn grow<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, P: Place<T, A, W>>(grows: &mut [Lanes<T>], at: P, a: W, b: W) {
    at.store(a.madd(b, at.load(grows)), grows);
}

/// The gradient of four inputs by seventeen to [`NARROW`] outputs, a part of it at a time.
trait OfFour<T: Scalar, A: Arch> {
    /// Of the sixteen outputs of an input those from a vector on, the first or the second.
    fn sixteen(&self, input: usize, vector: usize) -> A::Widest<T>;
    /// The others of a pair of inputs.
    fn others(&self, pair: usize) -> Eight<A, T>;
}

/// Of the rows of a batch.
impl<T: Scalar, A: Arch> OfFour<T, A> for Four<T> {
    #[inline(always)]
    fn sixteen(&self, input: usize, vector: usize) -> A::Widest<T> {
        A::Widest::load_from(&self.sixteen[input][vector..])
    }

    #[inline(always)]
    fn others(&self, pair: usize) -> Eight<A, T> {
        Eight::load_from(&self.others[pair..])
    }
}

/// Of one row.
struct FourOfRow<A: Arch, T: Scalar> {
    x: [T; 4],
    /// From the first vector on, and from the second.
    sixteen: [Factors<A::Widest<T>>; 2],
    /// Twice.
    others: Factors<Eight<A, T>>,
}

impl<A: Arch, T: Scalar> FourOfRow<A, T> {
    /// A pair of inputs, four times each.
    #[inline(always)]
    fn four_times(&self, pair: usize) -> Eight<A, T> {
        Vectors([A::either_half(A::splat(self.x[2 * pair]), A::splat(self.x[2 * pair + 1]))])
    }

    #[inline(always)]
    fn grow(&self, grows: &mut [Lanes<T>]) {
        for k in 0..4 {
            let square = A::Widest::splat(self.x[k] * self.x[k]);
            for part in (0..2).step_by(A::Widest::<T>::VECTORS) {
                grow::<T, A, _, _>(grows, 3 * k + part, square, self.sixteen[part].square);
            }
        }
        for pair in 0..2 {
            let x = self.four_times(pair);
            grow::<T, A, _, _>(grows, others_at(pair), x.mul(x), self.others.square);
        }
    }
}

impl<A: Arch, T: Scalar> OfFour<T, A> for FourOfRow<A, T> {
    #[inline(always)]
    fn sixteen(&self, input: usize, vector: usize) -> A::Widest<T> {
        A::Widest::splat(self.x[input]).mul(self.sixteen[vector].scaled)
    }

    #[inline(always)]
    fn others(&self, pair: usize) -> Eight<A, T> {
        self.four_times(pair).mul(self.others.scaled)
    }
}

/// Where the others of a pair of inputs lie.
#[inline(always)]
fn others_at(pair: usize) -> Halves {
    Halves([6 * pair + 2, 6 * pair + 5])
}

/// Moves the weights of four inputs, which are the rule's, three vectors each.
#[inline(always)]
fn four_inputs<T: Scalar, A: Arch, M: Rule<T, A>>(rule: &mut M, four: &impl OfFour<T, A>) {
    for k in [0, 2] {
        for part in (0..2).step_by(A::Widest::<T>::VECTORS) {
            rule.two([3 * k + part, 3 * k + 3 + part], [four.sixteen(k, part), four.sixteen(k + 1, part)]);
        }
    }
    rule.two([others_at(0), others_at(1)], [four.others(0), four.others(1)]);
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
            let (batch, fours) = (Batch { x, u, columns }, n_in / 4 * 4);
            for j in (0..fours).step_by(4) {
                let mut col = 0;
                while col + TOGETHER <= columns {
                    batch.tile::<A, _, 2, TOGETHER>(rule, j, col);
                    batch.tile::<A, _, 2, TOGETHER>(rule, j + 2, col);
                    col += TOGETHER;
                }
                while col < columns {
                    batch.tile::<A, _, 4, 1>(rule, j, col);
                    col += 1;
                }
            }
            for j in fours..n_in {
                let mut col = 0;
                while col + TOGETHER <= columns {
                    batch.tile::<A, _, 1, TOGETHER>(rule, j, col);
                    col += TOGETHER;
                }
                while col < columns {
                    batch.tile::<A, _, 1, 1>(rule, j, col);
                    col += 1;
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
        rule.one(at + 3 * k + 2, Vectors::<A, T, 1>([A::load(&last)]));
    }
}

/// The rows of a batch.
struct Batch<'a, T> {
    x: RowList<'a, T>,
    u: &'a [T],
    /// Vectors of u of a row.
    columns: usize,
}

impl<T: Scalar> Batch<'_, T> {
    /// Sums R inputs (from input `j`) by C vectors of outputs of the gradient, and moves their weights, as [`along`] does: while these wait
    /// for their roots and divisions, the next are summed. Eight sums, four vectors and a number leave registers to spare; twelve
    /// sums would be kept in memory.
    #[inline(always)]
    fn tile<A: Arch, M: Rule<T, A>, const R: usize, const C: usize>(&self, rule: &mut M, j: usize, col: usize) {
        let columns = self.columns;
        let mut sums = [[Vectors::<A, T, 1>([A::zero()]); C]; R];
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
