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
use crate::linalg::simd::{Arch, lanes, lanes_mut};

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

    /// One step of round `t` (from 1) with gradient `grad`; blocks of W_1 not marked in `touched` have no gradient,
    /// and what `grad` holds there is not read.
    #[inline(always)]
    pub(crate) fn step<A: Arch>(
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
                self.powers = (self.powers.0 * BETA1, self.powers.1 * BETA2);
                Rule::Adam {
                    step: T::of(lr / (1.0 - self.powers.0)),
                    inv_second: T::of(1.0 / (1.0 - self.powers.1)),
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

/// One step of Adam over a stretch of parameters, given g for the vector of weights at a place. A macro, because the
/// body of a closure would not be compiled for the instruction set of its caller.
macro_rules! adam {
    ($arch:ident, $w:expr, $moments:expr, $step:expr, $inv_second:expr, |$at:pat_param, $v:pat_param| $gradient:expr) => {{
        let (w, (first, second)) = (lanes_mut($w), $moments);
        let n = w.len();
        let (first, second) = (&mut lanes_mut(first)[..n], &mut lanes_mut(second)[..n]);
        let (b1, b2) = ($arch::splat(T::of(BETA1)), $arch::splat(T::of(BETA2)));
        let (c1, c2) = ($arch::splat(T::of(1.0 - BETA1)), $arch::splat(T::of(1.0 - BETA2)));
        let (eps, step, inv_second) = ($arch::splat(T::of(EPS)), $arch::splat($step), $arch::splat($inv_second));
        for i in 0..n {
            let weight = $arch::load(&w[i]);
            let ($at, $v) = (i, weight);
            let g = $gradient;
            let mu = $arch::madd(c1, g, $arch::mul(b1, $arch::load(&first[i])));
            let nu = $arch::madd(c2, $arch::mul(g, g), $arch::mul(b2, $arch::load(&second[i])));
            $arch::store(mu, &mut first[i]);
            $arch::store(nu, &mut second[i]);
            let root = $arch::add($arch::sqrt($arch::mul(nu, inv_second)), eps);
            $arch::store($arch::sub(weight, $arch::div($arch::mul(step, mu), root)), &mut w[i]);
        }
    }};
}

impl<T: Scalar> Rule<T> {
    #[inline(always)]
    fn apply<A: Arch>(&mut self, part: Part<'_, T>) {
        match *self {
            Rule::Sgd { eta, pull } => {
                let (w, initial) = (lanes_mut(part.w), lanes(part.initial.expect("SGD keeps the initial weights")));
                let (eta, pull) = (A::splat(eta), A::splat(pull));
                for i in 0..w.len() {
                    let weight = A::load(&w[i]);
                    let g = if let Some(g) = part.grad { A::load(&lanes(g)[i]) } else { A::zero() };
                    let g = A::madd(pull, A::sub(weight, A::load(&initial[i])), g);
                    A::store(A::sub(weight, A::mul(eta, g)), &mut w[i]);
                }
            }
            Rule::Adam { step, inv_second, l2 } => {
                let moments = part.moments.expect("Adam keeps its moments");
                let l2 = A::splat(l2);
                // four loops without branches inside
                match (part.grad.map(lanes), part.initial.map(lanes)) {
                    (Some(g), None) => {
                        adam!(A, part.w, moments, step, inv_second, |i, w| A::madd(l2, w, A::load(&g[i])));
                    }
                    (None, None) => adam!(A, part.w, moments, step, inv_second, |_, w| A::mul(l2, w)),
                    (Some(g), Some(c)) => adam!(A, part.w, moments, step, inv_second, |i, w| {
                        A::madd(l2, A::sub(w, A::load(&c[i])), A::load(&g[i]))
                    }),
                    (None, Some(c)) => {
                        adam!(A, part.w, moments, step, inv_second, |i, w| { A::mul(l2, A::sub(w, A::load(&c[i]))) })
                    }
                }
            }
        }
    }
}
