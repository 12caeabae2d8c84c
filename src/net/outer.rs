//! Moves parameters along the gradient of one row: a weight matrix by x (e·u)ᵀ, vectors of parameters by e·u. The gradient is never
//! stored as a whole: that of a few inputs at a time moves their weights, two and two of which share divisions. The rows of a batch:
//! `outer_batch.rs`.

use super::optim::Part;
use super::rule::{Halves, Place, Rule, with_rule};
use super::sums::Four;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, LANES, Lanes, Rows, Vectors, lanes, lanes_mut, over_registers};

/// A register of eight numbers.
pub(super) type Eight<A, T> = Vectors<A, T, 1>;

/// Vectors of four inputs' weights, of three each.
pub(super) const OF_FOUR: usize = 12;

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

/// The gradient of four inputs by seventeen to twenty outputs, a part of it at a time.
pub(super) trait OfFour<T: Scalar, A: Arch> {
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
pub(super) fn four_inputs<T: Scalar, A: Arch, M: Rule<T, A>>(rule: &mut M, four: &impl OfFour<T, A>) {
    for k in [0, 2] {
        for part in (0..2).step_by(A::Widest::<T>::VECTORS) {
            rule.two([3 * k + part, 3 * k + 3 + part], [four.sixteen(k, part), four.sixteen(k + 1, part)]);
        }
    }
    rule.two([others_at(0), others_at(1)], [four.others(0), four.others(1)]);
}
