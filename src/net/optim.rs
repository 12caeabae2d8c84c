//! The two optimisers: Algorithm 1's stochastic gradient descent, and the experiments' Adam.
//!
//! SGD:  W ← W − η_t (∇ + mλ (W − W⁽⁰⁾)),  η_t constant or ι/√t
//! Adam: g = ∇ + l2·(W − C);  μ ← 0.9 μ + 0.1 g;  ν ← 0.999 ν + 0.001 g²;  W ← W − lr · μ̂ / (√ν̂ + 1e-8)
//!
//! where C is 0 or W⁽⁰⁾. Blocks of W_1 that no sample of the step touches have ∇ = 0 but still move: with l2 and
//! momentum every weight moves at every step.

use serde::{Deserialize, Serialize};

use super::{Net, Params};
use crate::error::{Error, not_negative, positive};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::Arith;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
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
    /// Adam's μ and ν.
    moments: Option<(Params<T>, Params<T>)>,
    /// Steps of Adam so far.
    steps: i32,
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
            steps: 0,
        })
    }

    /// One step of round `t` (from 1) with gradient `grad`; blocks of W_1 not marked in `touched` have no gradient,
    /// and what `grad` holds there is not read.
    #[inline(always)]
    pub(crate) fn step<A: Arith>(
        &mut self,
        net: &Net,
        t: usize,
        weights: &mut Params<T>,
        grad: &Params<T>,
        touched: &[bool],
    ) {
        let mut rule = self.rule(t);
        let initial = self.initial.as_ref();
        for (block, &touched) in touched.iter().enumerate() {
            let own = net.first_len() * block..net.first_len() * (block + 1);
            let part = Part {
                w: &mut weights.first[own.clone()],
                grad: touched.then(|| &grad.first[own.clone()]),
                initial: initial.map(|c| &c.first[own.clone()]),
                moments: self.moments.as_mut().map(|(m, v)| (&mut m.first[own.clone()], &mut v.first[own])),
            };
            rule.apply::<A>(part);
        }
        rule.apply::<A>(Part {
            w: &mut weights.rest,
            grad: Some(&grad.rest),
            initial: initial.map(|c| &c.rest[..]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m.rest[..], &mut v.rest[..])),
        });
    }

    /// The numbers of this step.
    #[inline(always)]
    fn rule(&mut self, t: usize) -> Rule<T> {
        match self.optimiser {
            Optimiser::Sgd { schedule } => {
                let eta = match schedule {
                    Schedule::Constant(eta) => eta,
                    Schedule::InverseRoot(iota) => iota / (t as f64).sqrt(),
                };
                Rule::Sgd { eta: T::of(eta), pull: T::of(self.pull) }
            }
            Optimiser::Adam { lr, l2, .. } => {
                self.steps = self.steps.saturating_add(1);
                Rule::Adam {
                    step: T::of(lr / (1.0 - BETA1.powi(self.steps))),
                    inv_second: T::of(1.0 / (1.0 - BETA2.powi(self.steps))),
                    l2: T::of(l2),
                }
            }
        }
    }
}

/// A stretch of parameters with all that belongs to them.
struct Part<'a, T> {
    w: &'a mut [T],
    grad: Option<&'a [T]>,
    initial: Option<&'a [T]>,
    moments: Option<(&'a mut [T], &'a mut [T])>,
}

/// One step's update rule with its scalars.
#[derive(Clone, Copy)]
enum Rule<T> {
    Sgd { eta: T, pull: T },
    Adam { step: T, inv_second: T, l2: T },
}

impl<T: Scalar> Rule<T> {
    #[inline(always)]
    fn apply<A: Arith>(&mut self, part: Part<'_, T>) {
        match *self {
            Rule::Sgd { eta, pull } => {
                let initial = part.initial.expect("SGD keeps the initial weights");
                for i in 0..part.w.len() {
                    let g = part.grad.map_or(T::ZERO, |g| g[i]);
                    let w = part.w[i];
                    part.w[i] = w - eta * A::madd(pull, w - initial[i], g);
                }
            }
            Rule::Adam { step, inv_second, l2 } => {
                let (first, second) = part.moments.expect("Adam keeps its moments");
                let adam = Adam { step, inv_second };
                // four loops without branches inside, so that each is vectorised
                match (part.grad, part.initial) {
                    (Some(g), None) => adam.run::<A>(part.w, first, second, |w, i| A::madd(l2, w, g[i])),
                    (None, None) => adam.run::<A>(part.w, first, second, |w, _| l2 * w),
                    (Some(g), Some(c)) => adam.run::<A>(part.w, first, second, |w, i| A::madd(l2, w - c[i], g[i])),
                    (None, Some(c)) => adam.run::<A>(part.w, first, second, |w, i| l2 * (w - c[i])),
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Adam<T> {
    step: T,
    inv_second: T,
}

impl<T: Scalar> Adam<T> {
    #[inline(always)]
    fn run<A: Arith>(&self, w: &mut [T], first: &mut [T], second: &mut [T], gradient: impl Fn(T, usize) -> T) {
        let (b1, b2) = (T::of(BETA1), T::of(BETA2));
        let (c1, c2) = (T::of(1.0 - BETA1), T::of(1.0 - BETA2));
        let eps = T::of(EPS);
        let n = w.len();
        let (first, second) = (&mut first[..n], &mut second[..n]);
        for i in 0..n {
            let g = gradient(w[i], i);
            let mu = A::madd(c1, g, b1 * first[i]);
            let nu = A::madd(c2, g * g, b2 * second[i]);
            first[i] = mu;
            second[i] = nu;
            w[i] = w[i] - self.step * mu / ((nu * self.inv_second).root() + eps);
        }
    }
}
