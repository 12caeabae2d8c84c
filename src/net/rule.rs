//! How weights move, given their gradient: a [`Rule`] is an optimiser with its numbers for one step and the weights and memory of
//! one stretch of parameters. What it is, is chosen once, outside the loops, by [`with_rule`].
//!
//! A rule moves a register of weights at a time, or two that share a division. Registers hold eight numbers or sixteen: there are
//! processors on which the root of sixteen takes no longer than that of eight. Which two weights share a division does not depend
//! on the register, so neither do the bits.

use std::ops::Range;

use super::optim::{BETA1, BETA2};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Lanes, Rows, Vectors, lanes, lanes_mut};

/// Chooses the rule once, outside the loops.
macro_rules! with_rule {
    ($part:expr, $arch:ident, |$rule:ident| $body:expr) => {{
        let part = $part;
        match (part.scalars, part.initial, part.moments) {
            ($crate::net::optim::Scalars::Adam { step, eps, l2 }, None, Some(moments)) => {
                let $rule = &mut $crate::net::rule::Adam::<T, false>::new(part.w, moments, &[], [step, eps, l2]);
                $body
            }
            ($crate::net::optim::Scalars::Adam { step, eps, l2 }, Some(initial), Some(moments)) => {
                let $rule = &mut $crate::net::rule::Adam::<T, true>::new(part.w, moments, initial, [step, eps, l2]);
                $body
            }
            ($crate::net::optim::Scalars::Sgd { eta, pull }, Some(initial), _) => {
                let $rule = &mut $crate::net::rule::Sgd::<T>::new(part.w, initial, eta, pull);
                $body
            }
            _ => unreachable!("Adam keeps its moments and SGD the initial weights"),
        }
    }};
}
pub(super) use with_rule;

/// Where the numbers of a register lie in a list of vectors: one after another from a vector on, or as [`Halves`].
pub(super) trait Place<T: Scalar, A: Arch, W>: Copy {
    fn load(self, list: &[Lanes<T>]) -> W;
    fn store(self, v: W, list: &mut [Lanes<T>]);
}

impl<T: Scalar, A: Arch, W: Rows<T, A::V<T>>> Place<T, A, W> for usize {
    #[inline(always)]
    fn load(self, list: &[Lanes<T>]) -> W {
        W::load_from(&list[self..self + W::VECTORS])
    }

    #[inline(always)]
    fn store(self, v: W, list: &mut [Lanes<T>]) {
        v.store_to(&mut list[self..self + W::VECTORS]);
    }
}

/// The lower halves of two vectors, the lower place first.
#[derive(Clone, Copy)]
pub(super) struct Halves(pub(super) [usize; 2]);

impl<T: Scalar, A: Arch> Place<T, A, Vectors<A, T, 1>> for Halves {
    #[inline(always)]
    fn load(self, list: &[Lanes<T>]) -> Vectors<A, T, 1> {
        Vectors([A::join_halves(A::load(&list[self.0[0]]), A::load(&list[self.0[1]]))])
    }

    #[inline(always)]
    fn store(self, v: Vectors<A, T, 1>, list: &mut [Lanes<T>]) {
        let (low, high) = list.split_at_mut(self.0[1]);
        A::store_halves(v.0[0], &mut low[self.0[0]], &mut high[0]);
    }
}

/// What moves the weights.
pub(super) trait Rule<T: Scalar, A: Arch> {
    /// The same rule.
    type Within<'b>: Rule<T, A>
    where
        Self: 'b;

    /// For some of the vectors: where their number is known to the compiler, places among them are not checked.
    fn within(&mut self, at: Range<usize>) -> Self::Within<'_>;

    /// Moves the weights at a place, given their gradient.
    fn one<W: Rows<T, A::V<T>>>(&mut self, at: impl Place<T, A, W>, grad: W);

    /// Moves the weights at two places, which share a division.
    fn two<W: Rows<T, A::V<T>>, P: Place<T, A, W>>(&mut self, at: [P; 2], grad: [W; 2]);
}

/// W ← W − η (∇ + pull·(W − W⁽⁰⁾)).
pub(super) struct Sgd<'a, T> {
    w: &'a mut [Lanes<T>],
    initial: &'a [Lanes<T>],
    eta: T,
    pull: T,
}

impl<'a, T: Scalar> Sgd<'a, T> {
    #[inline(always)]
    pub(super) fn new(w: &'a mut [T], initial: &'a [T], eta: T, pull: T) -> Self {
        Sgd { w: lanes_mut(w), initial: lanes(initial), eta, pull }
    }
}

impl<T: Scalar, A: Arch> Rule<T, A> for Sgd<'_, T> {
    type Within<'b>
        = Sgd<'b, T>
    where
        Self: 'b;

    #[inline(always)]
    fn within(&mut self, at: Range<usize>) -> Sgd<'_, T> {
        Sgd { w: &mut self.w[at.clone()], initial: &self.initial[at], ..*self }
    }

    #[inline(always)]
    fn one<W: Rows<T, A::V<T>>>(&mut self, at: impl Place<T, A, W>, grad: W) {
        let w = at.load(self.w);
        let g = W::splat(self.pull).madd(w.sub(at.load(self.initial)), grad);
        at.store(w.sub(W::splat(self.eta).mul(g)), self.w);
    }

    #[inline(always)]
    fn two<W: Rows<T, A::V<T>>, P: Place<T, A, W>>(&mut self, at: [P; 2], grad: [W; 2]) {
        Rule::<T, A>::one(self, at[0], grad[0]);
        Rule::<T, A>::one(self, at[1], grad[1]);
    }
}

/// Adam with the penalty towards W⁽⁰⁾ (`TOWARDS`), or 0.
pub(super) struct Adam<'a, T, const TOWARDS: bool> {
    w: &'a mut [Lanes<T>],
    /// Σg and Σg², discounted.
    first: &'a mut [Lanes<T>],
    second: &'a mut [Lanes<T>],
    /// W⁽⁰⁾, or empty.
    initial: &'a [Lanes<T>],
    step: T,
    eps: T,
    l2: T,
}

impl<'a, T: Scalar, const TOWARDS: bool> Adam<'a, T, TOWARDS> {
    #[inline(always)]
    pub(super) fn new(
        w: &'a mut [T],
        moments: (&'a mut [T], &'a mut [T]),
        initial: &'a [T],
        [step, eps, l2]: [T; 3],
    ) -> Self {
        let w = lanes_mut(w);
        let n = w.len();
        let (first, second) = (&mut lanes_mut(moments.0)[..n], &mut lanes_mut(moments.1)[..n]);
        let initial = &lanes(initial)[..if TOWARDS { n } else { 0 }];
        Adam { w, first, second, initial, step, eps, l2 }
    }

    /// Moves Σg and Σg² at a place by the whole gradient: `grad`, and the penalty's l2·(W − C). Returns W, Σg and √Σg² + eps.
    #[inline(always)]
    fn moments<A: Arch, W: Rows<T, A::V<T>>>(&mut self, at: impl Place<T, A, W>, grad: W) -> [W; 3] {
        let w = at.load(self.w);
        let away = if TOWARDS { w.sub(at.load(self.initial)) } else { w };
        let g = W::splat(self.l2).madd(away, grad);
        let mu = W::splat(T::of(BETA1)).madd(at.load(self.first), g);
        let nu = g.madd(g, W::splat(T::of(BETA2)).mul(at.load(self.second)));
        at.store(mu, self.first);
        at.store(nu, self.second);
        [w, mu, nu.sqrt().add(W::splat(self.eps))]
    }
}

impl<T: Scalar, A: Arch, const TOWARDS: bool> Rule<T, A> for Adam<'_, T, TOWARDS> {
    type Within<'b>
        = Adam<'b, T, TOWARDS>
    where
        Self: 'b;

    #[inline(always)]
    fn within(&mut self, at: Range<usize>) -> Adam<'_, T, TOWARDS> {
        Adam {
            w: &mut self.w[at.clone()],
            first: &mut self.first[at.clone()],
            second: &mut self.second[at.clone()],
            initial: if TOWARDS { &self.initial[at] } else { &[] },
            ..*self
        }
    }

    #[inline(always)]
    fn one<W: Rows<T, A::V<T>>>(&mut self, at: impl Place<T, A, W>, grad: W) {
        let [w, mu, root] = self.moments::<A, W>(at, grad);
        at.store(w.sub(W::splat(self.step).mul(mu).div(root)), self.w);
    }

    /// step·μ/a and step·μ′/b are step·μ·b/(a·b) and step·μ′·a/(a·b): a division takes longer than all that replaces it.
    /// a and b lie between 1e-8 and the root of the largest number, so that a·b is in range.
    #[inline(always)]
    fn two<W: Rows<T, A::V<T>>, P: Place<T, A, W>>(&mut self, at: [P; 2], grad: [W; 2]) {
        let [w, mu, a] = self.moments::<A, W>(at[0], grad[0]);
        let [other_w, other_mu, b] = self.moments::<A, W>(at[1], grad[1]);
        let both = W::splat(self.step).div(a.mul(b));
        at[0].store(mu.nmadd(both.mul(b), w), self.w);
        at[1].store(other_mu.nmadd(both.mul(a), other_w), self.w);
    }
}
