//! The two optimisers: Algorithm 1's stochastic gradient descent, and the experiments' Adam.
//!
//! SGD:  W ← W − η_t (∇ + mλ (W − W⁽⁰⁾)),  η_t constant or ι/√t
//! Adam: g = ∇ + l2·(W − C);  μ ← 0.9 μ + 0.1 g;  ν ← 0.999 ν + 0.001 g²;  W ← W − lr · μ̂ / (√ν̂ + 1e-8)
//!
//! where C is 0 or W⁽⁰⁾, μ̂ = μ/(1 − 0.9ᵗ) and ν̂ = ν/(1 − 0.999ᵗ). Blocks of W_1 that no sample of the step touches have ∇ = 0
//! but still move: with l2 and momentum every weight moves at every step.
//!
//! What Adam costs is a square root, a division and the multiplications of every weight. Kept are therefore the discounted
//! sums μ/0.1 and ν/0.001, which need one multiplication less each; what is the same for all weights is worked out
//! once a step; and two weights share a division.
//!
//! Here are their settings and their memory; what a step does to some weights, given their gradient, stands in `rule.rs`, and how it
//! meets the gradient of a weight matrix, Σ_r x_r u_rᵀ over the rows of the step, in `outer.rs` for one and in `outer_batch.rs` and
//! `sums.rs` for some.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::outer::{OuterOne, outer_inputs, vectors};
use super::outer_batch::Outer;
use super::rule::{Rule, with_rule};
use super::sums::Sums;
use super::{Net, Params};
use crate::archive::Archive;
use crate::error::{Error, not_negative, positive};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, HALF, Job, LANES, Lanes, RowList, Rows, Vectors, lanes, lanes_mut};

pub(super) const BETA1: f64 = 0.9;
pub(super) const BETA2: f64 = 0.999;
const EPS: f64 = 1e-8;

/// Step sizes η_t.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// η_t = η.
    Constant(f64),
    /// η_t = ι/√t, as in Theorem 4.1.
    InverseRoot(f64),
}

/// What the l2 penalty of Adam pulls towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Towards {
    /// ½·l2·‖W‖².
    Zero,
    /// ½·l2·‖W − W⁽⁰⁾‖².
    Initial,
}

/// How the weights are moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// Algorithm 1: SGD on ½(f − r)² + (mλ/2)‖W − W⁽⁰⁾‖².
    Sgd {
        /// Step sizes.
        schedule: Schedule,
    },
    /// The experiments: Adam (0.9, 0.999, 1e-8) on ½(f − r)² + (l2/2)‖W − C‖².
    Adam {
        /// Learning rate, > 0.
        lr: f64,
        /// Weight of the penalty, ≥ 0.
        l2: f64,
        /// What the penalty pulls towards.
        towards: Towards,
    },
}

impl Optimiser {
    fn check(&self) -> Result<(), Error> {
        match *self {
            Optimiser::Sgd { schedule: Schedule::Constant(eta) } => positive("step size", eta),
            Optimiser::Sgd { schedule: Schedule::InverseRoot(iota) } => positive("iota", iota),
            Optimiser::Adam { lr, l2, .. } => positive("learning rate", lr).and(not_negative("l2", l2)),
        }
    }
}

/// An optimiser with its memory.
#[derive(Debug, Clone)]
pub(crate) struct Stepper<T> {
    optimiser: Optimiser,
    /// mλ, the weight of Algorithm 1's penalty.
    pull: f64,
    /// W⁽⁰⁾, where the penalty needs it.
    initial: Option<Params<T>>,
    /// Adam's Σ 0.9^(t−i) g_i = μ/0.1 and Σ 0.999^(t−i) g_i² = ν/0.001.
    moments: Option<(Params<T>, Params<T>)>,
    /// 0.9ᵗ and 0.999ᵗ after t steps of Adam.
    powers: (f64, f64),
}

impl<T: Scalar> Stepper<T> {
    /// An optimiser at its start, for the weights W⁽⁰⁾ = `initial` of a network with regularisation λ.
    pub(crate) fn new(optimiser: Optimiser, net: &Net, initial: &Params<T>, lambda: f64) -> Result<Self, Error> {
        optimiser.check()?;
        let zero = || initial.filled(T::ZERO);
        let (keep_initial, moments) = match optimiser {
            Optimiser::Sgd { .. } => (true, None),
            Optimiser::Adam { towards, .. } => (towards == Towards::Initial, Some((zero(), zero()))),
        };
        Ok(Stepper {
            optimiser,
            pull: net.width() as f64 * lambda,
            initial: keep_initial.then(|| initial.clone()),
            moments,
            powers: (1.0, 1.0),
        })
    }

    /// Goes through the optimiser's memory: W⁽⁰⁾ as `initial`, Adam's sums as `gradients` and `squared_gradients`.
    pub(crate) fn archive(&mut self, net: &Net, archive: &mut Archive) -> Result<(), Error> {
        if let Some(initial) = &mut self.initial {
            net.archive("initial", initial, archive)?;
        }
        if let Some((first, second)) = &mut self.moments {
            net.archive("gradients", first, archive)?;
            net.archive("squared_gradients", second, archive)?;
        }
        let mut powers = [self.powers.0, self.powers.1];
        archive.array("powers", &[2], &mut powers)?;
        self.powers = (powers[0], powers[1]);
        Ok(())
    }

    /// Begins a step of round `t` (from 1). Every part of the weights must then be moved once.
    #[inline(always)]
    pub(crate) fn begin<'a>(&'a mut self, t: usize, weights: &'a mut Params<T>) -> Step<'a, T> {
        let scalars = match self.optimiser {
            Optimiser::Sgd { schedule } => {
                let eta = match schedule {
                    Schedule::Constant(eta) => eta,
                    Schedule::InverseRoot(iota) => iota / (t as f64).sqrt(),
                };
                Scalars::Sgd { eta: T::of(eta), pull: T::of(self.pull) }
            }
            Optimiser::Adam { lr, l2, .. } => {
                self.powers = (self.powers.0 * BETA1, self.powers.1 * BETA2);
                // lr·μ̂ / (√ν̂ + ε) = step·Σg / (√Σg² + eps)
                let root = ((1.0 - self.powers.1) * (1.0 / (1.0 - BETA2))).sqrt();
                let mut step = lr * (1.0 - BETA1) * root;
                if self.powers.0 > f64::EPSILON / 4.0 {
                    step /= 1.0 - self.powers.0; // exactly one from round 350 on: the weights need the divider
                }
                Scalars::Adam { step: T::of(step), eps: T::of(EPS * root), l2: T::of(l2) }
            }
        };
        Step { scalars, weights, initial: self.initial.as_ref(), moments: self.moments.as_mut() }
    }
}

/// The scalars of one step.
#[derive(Clone, Copy)]
pub(super) enum Scalars<T> {
    Sgd { eta: T, pull: T },
    Adam { step: T, eps: T, l2: T },
}

/// One step of the optimiser.
pub(crate) struct Step<'a, T> {
    scalars: Scalars<T>,
    weights: &'a mut Params<T>,
    initial: Option<&'a Params<T>>,
    moments: Option<&'a mut (Params<T>, Params<T>)>,
}

impl<T: Scalar> Step<'_, T> {
    /// The weights as they are.
    #[inline(always)]
    pub(super) fn weights(&self) -> &Params<T> {
        self.weights
    }

    /// A stretch of W_1.
    #[inline(always)]
    pub(crate) fn first(&mut self, at: Range<usize>) -> Part<'_, T> {
        Part {
            scalars: self.scalars,
            w: &mut self.weights.first[at.clone()],
            initial: self.initial.map(|c| &c.first[at.clone()]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m.first[at.clone()], &mut v.first[at])),
        }
    }

    /// A stretch of the other parameters.
    #[inline(always)]
    pub(crate) fn rest(&mut self, at: Range<usize>) -> Part<'_, T> {
        Part {
            scalars: self.scalars,
            w: &mut self.weights.rest[at.clone()],
            initial: self.initial.map(|c| &c.rest[at.clone()]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m.rest[at.clone()], &mut v.rest[at])),
        }
    }
}

/// A stretch of parameters with all that belongs to them.
pub(crate) struct Part<'a, T> {
    pub(super) scalars: Scalars<T>,
    pub(super) w: &'a mut [T],
    pub(super) initial: Option<&'a [T]>,
    pub(super) moments: Option<(&'a mut [T], &'a mut [T])>,
}

impl<T: Scalar> Part<'_, T> {
    /// Moves by a gradient in the shape of the parameters.
    #[inline(always)]
    pub(crate) fn along<A: Arch>(self, grad: &[T]) {
        A::call(Along { part: self, grad: Some(grad) });
    }

    /// Moves where the gradient is zero.
    #[inline(always)]
    pub(crate) fn still<A: Arch>(self) {
        if self.w.is_empty() {
            return;
        }
        A::call(Along { part: self, grad: None });
    }

    /// Moves a weight matrix (n_in × ld) by x (e·u)ᵀ; `growth` grows by s·x² (u²)ᵀ in the same pass.
    #[inline(always)]
    pub(crate) fn outer_one<A: Arch>(self, x: &[T], u: &[T], e: T, growth: Option<(&mut [T], T)>) {
        A::call(OuterOne { part: self, x, u, e, growth });
    }

    /// As [`Part::outer_one`], for a row of C vectors in registers, with `padding` numbers of zero at its end.
    #[inline(always)]
    pub(super) fn outer_in<A: Arch, const C: usize>(
        self,
        x: &[f32],
        u: [A::V<T>; C],
        padding: usize,
        e: T,
        growth: Option<(&mut [T], T)>,
    ) {
        let short = padding >= HALF;
        with_rule!(self, A, |rule| {
            if let Some((grows, s)) = growth {
                outer_inputs::<T, A, _, C, true>(rule, x, u, short, [e, s], lanes_mut(grows));
            } else {
                outer_inputs::<T, A, _, C, false>(rule, x, u, short, [e, T::ZERO], &mut []);
            }
        });
    }

    /// Moves rows of parameters in registers, those that have a place, by e·u, and the number at `one` by e; `growth`
    /// grows by s·u², or s. With `padding` numbers of zero at the end of a row, as in [`Part::outer_in`], the first two rows,
    /// which are there both or not at all, move together.
    #[inline(always)]
    pub(super) fn vectors_in<A: Arch, const C: usize>(
        self,
        places: [Option<usize>; 4],
        rows: [[A::V<T>; C]; 4],
        padding: usize,
        one: Option<usize>,
        e: T,
        growth: Option<(&mut [T], T)>,
    ) {
        let (short, places) = (padding >= HALF, places.map(|at| at.map(|at| at / LANES)));
        let one = one.map(|at| at / LANES);
        with_rule!(self, A, |rule| {
            if let Some((grows, s)) = growth {
                vectors::<T, A, _, C, true>(rule, places, rows, short, one, [e, s], lanes_mut(grows));
            } else {
                vectors::<T, A, _, C, false>(rule, places, rows, short, one, [e, T::ZERO], &mut []);
            }
        });
    }

    /// Moves a weight matrix of `net` with that many inputs by Σ_r x_r u_rᵀ; if it is `centred`, less its means over the outputs, as
    /// `pairs.rs` leaves them to be taken off.
    #[inline(always)]
    pub(super) fn outer<A: Arch>(
        self,
        net: &Net,
        x: RowList<'_, T>,
        n_in: usize,
        u: &[T],
        sums: &mut Sums<T>,
        centred: bool,
    ) {
        A::call(Outer { part: self, net, x, n_in, u, sums, centred });
    }
}

/// Vectors that move together: two by two, whatever the register, they share divisions.
pub(super) const TOGETHER: usize = 4;

struct Along<'a, T> {
    part: Part<'a, T>,
    grad: Option<&'a [T]>,
}

impl<T: Scalar> Job for Along<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Along { part, grad } = self;
        let n = part.w.len() / LANES;
        with_rule!(part, A, |rule| along::<T, A, _>(rule, grad.map(lanes), n));
    }
}

/// Moves all `n` vectors of a rule by a gradient that lies as they do, or where it is zero.
#[inline(always)]
pub(super) fn along<T: Scalar, A: Arch, M: Rule<T, A>>(rule: &mut M, grad: Option<&[Lanes<T>]>, n: usize) {
    let whole = n / TOGETHER * TOGETHER;
    for at in (0..whole).step_by(TOGETHER) {
        let mut rule = rule.within(at..at + TOGETHER);
        for c in (0..2).step_by(A::Widest::<T>::VECTORS) {
            let own = gradient::<T, A, A::Widest<T>>(grad, at + c);
            let other = gradient::<T, A, A::Widest<T>>(grad, at + c + 2);
            rule.two([c, c + 2], [own, other]);
        }
    }
    for at in whole..n {
        rule.one(at, gradient::<T, A, Vectors<A, T, 1>>(grad, at));
    }
}

/// A register of a gradient, or zero.
#[inline(always)]
fn gradient<T: Scalar, A: Arch, W: Rows<T, A::V<T>>>(grad: Option<&[Lanes<T>]>, at: usize) -> W {
    match grad {
        Some(grad) => W::load_from(&grad[at..]),
        None => W::splat(T::ZERO),
    }
}
