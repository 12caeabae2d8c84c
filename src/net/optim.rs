//! The optimisers: Algorithm 1's stochastic gradient descent, the experiments' Adam, and Adam with decoupled decay.
//!
//! SGD:   W ← W − η_t (∇ + mλ (W − W⁽⁰⁾)),  η_t constant or ι/√t
//! Adam:  g = ∇ + l2·(W − C);  μ ← 0.9 μ + 0.1 g;  ν ← 0.999 ν + 0.001 g²;  W ← W − lr · μ̂ / (√ν̂ + 1e-8)
//! AdamW: as Adam with l2 = 0, and W ← (1 − lr·decay) W before it (Loshchilov & Hutter, 2019)
//!
//! where C is 0 or W⁽⁰⁾, μ̂ = μ/(1 − 0.9ᵗ) and ν̂ = ν/(1 − 0.999ᵗ). Blocks of W_1 that no sample of the step touches
//! have ∇ = 0 but still move: with l2 and momentum every weight moves at every step.
//!
//! Kept are the discounted sums μ/0.1 and ν/0.001, which need one multiplication less each; what is the same for all
//! weights is worked out once a step.
//!
//! To add an optimiser: a variant of [`Optimiser`], its scalars in [`Stepper::begin`], its formula beside [`adam`].

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Net, Params};
use crate::archive::Archive;
use crate::error::{Error, not_negative, positive};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{LANES, add, div, lanes_mut, madd, map, mul, one_by_one, splat, sub};

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
    /// Adam (0.9, 0.999, 1e-8) on ½(f − r)², with weights that shrink beside it.
    AdamW {
        /// Learning rate, > 0.
        lr: f64,
        /// What a step takes from every weight is lr·decay times the weight, ≥ 0.
        decay: f64,
    },
}

impl Optimiser {
    /// Refuses step sizes and penalties out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match *self {
            Optimiser::Sgd { schedule: Schedule::Constant(eta) } => positive("step size", eta),
            Optimiser::Sgd { schedule: Schedule::InverseRoot(iota) } => positive("iota", iota),
            Optimiser::Adam { lr, l2, .. } => positive("learning rate", lr).and(not_negative("l2", l2)),
            Optimiser::AdamW { lr, decay } => positive("learning rate", lr).and(not_negative("decay", decay)),
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
            Optimiser::AdamW { .. } => (false, Some((zero(), zero()))),
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

    /// Begins a step of round `t` (from 1), whose size is `rate` times the optimiser's own. Every part of the weights
    /// must then be moved once.
    #[inline(always)]
    pub(super) fn begin<'a>(&'a mut self, t: usize, rate: f64, weights: &'a mut Params<T>) -> Step<'a, T> {
        let scalars = match self.optimiser {
            Optimiser::Sgd { schedule } => {
                let eta = match schedule {
                    Schedule::Constant(eta) => eta,
                    Schedule::InverseRoot(iota) => iota / (t as f64).sqrt(),
                };
                Scalars::Sgd { eta: T::of(eta * rate), pull: T::of(self.pull) }
            }
            Optimiser::Adam { lr, l2, .. } => {
                let [step, eps] = self.adam(lr * rate);
                Scalars::Adam { step, eps, l2: T::of(l2) }
            }
            Optimiser::AdamW { lr, decay } => {
                let [step, eps] = self.adam(lr * rate);
                Scalars::AdamW { step, eps, keep: T::of(1.0 - rate * lr * decay) }
            }
        };
        Step { scalars, weights, initial: self.initial.as_ref(), moments: self.moments.as_mut() }
    }

    /// lr·μ̂ / (√ν̂ + ε) = step·Σg / (√Σg² + eps): step and eps of the next step.
    #[inline(always)]
    fn adam(&mut self, lr: f64) -> [T; 2] {
        self.powers = (self.powers.0 * BETA1, self.powers.1 * BETA2);
        let root = ((1.0 - self.powers.1) * (1.0 / (1.0 - BETA2))).sqrt();
        let mut step = lr * (1.0 - BETA1) * root;
        if self.powers.0 > f64::EPSILON / 4.0 {
            step /= 1.0 - self.powers.0; // exactly one from round 350 on: the weights need the divider
        }
        [T::of(step), T::of(EPS * root)]
    }
}

/// The scalars of one step.
#[derive(Clone, Copy)]
enum Scalars<T> {
    Sgd { eta: T, pull: T },
    Adam { step: T, eps: T, l2: T },
    AdamW { step: T, eps: T, keep: T },
}

/// One step of the optimiser.
pub(super) struct Step<'a, T> {
    scalars: Scalars<T>,
    weights: &'a mut Params<T>,
    initial: Option<&'a Params<T>>,
    moments: Option<&'a mut (Params<T>, Params<T>)>,
}

impl<T: Scalar> Step<'_, T> {
    /// A stretch of W_1.
    #[inline(always)]
    pub(super) fn first(&mut self, at: Range<usize>) -> Part<'_, T> {
        Part {
            scalars: self.scalars,
            w: &mut self.weights.first[at.clone()],
            initial: self.initial.map(|c| &c.first[at.clone()]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m.first[at.clone()], &mut v.first[at])),
        }
    }

    /// A stretch of the other parameters.
    #[inline(always)]
    pub(super) fn rest(&mut self, at: Range<usize>) -> Part<'_, T> {
        Part {
            scalars: self.scalars,
            w: &mut self.weights.rest[at.clone()],
            initial: self.initial.map(|c| &c.rest[at.clone()]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m.rest[at.clone()], &mut v.rest[at])),
        }
    }
}

/// A stretch of parameters with all that belongs to them.
pub(super) struct Part<'a, T> {
    scalars: Scalars<T>,
    w: &'a mut [T],
    initial: Option<&'a [T]>,
    moments: Option<(&'a mut [T], &'a mut [T])>,
}

/// Weights that are moved together where their gradient is zero.
const ZEROS: usize = 512;

impl<T: Scalar> Part<'_, T> {
    /// Some of it.
    #[inline(always)]
    pub(super) fn part(&mut self, at: Range<usize>) -> Part<'_, T> {
        Part {
            scalars: self.scalars,
            w: &mut self.w[at.clone()],
            initial: self.initial.map(|c| &c[at.clone()]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m[at.clone()], &mut v[at])),
        }
    }

    /// Moves by a gradient of the same length, in whole vectors.
    #[inline(always)]
    pub(super) fn along(self, grad: &[T]) {
        match (self.scalars, self.initial, self.moments) {
            (Scalars::Adam { step, eps, l2 }, None, Some(moments)) => {
                adam::<T, false>(self.w, &[], moments, grad, [step, eps, l2]);
            }
            (Scalars::Adam { step, eps, l2 }, Some(initial), Some(moments)) => {
                adam::<T, true>(self.w, initial, moments, grad, [step, eps, l2]);
            }
            (Scalars::AdamW { step, eps, keep }, _, Some(moments)) => {
                lanes_mut(self.w).iter_mut().for_each(|w| *w = mul(*w, splat(keep)));
                adam::<T, false>(self.w, &[], moments, grad, [step, eps, T::ZERO]);
            }
            (Scalars::Sgd { eta, pull }, Some(initial), _) => sgd(self.w, initial, grad, eta, pull),
            _ => unreachable!("Adam keeps its moments and SGD the initial weights"),
        }
    }

    /// Moves where the gradient is zero.
    #[inline(always)]
    pub(super) fn along_zero(mut self) {
        let zeros = [T::ZERO; ZEROS];
        for start in (0..self.w.len()).step_by(ZEROS) {
            let n = ZEROS.min(self.w.len() - start);
            self.part(start..start + n).along(&zeros[..n]);
        }
    }
}

/// W ← W − η (g + pull·(W − W⁽⁰⁾)).
#[inline(always)]
fn sgd<T: Scalar>(w: &mut [T], initial: &[T], grad: &[T], eta: T, pull: T) {
    for ((w, initial), grad) in w.iter_mut().zip(initial).zip(grad) {
        let g = pull.mul_add(*w - *initial, *grad);
        *w = *w - eta * g;
    }
}

/// Adam's formula, with the penalty towards W⁽⁰⁾ (`TOWARDS`), or 0. Sixteen numbers at a time, then what is left.
#[inline(always)]
fn adam<T: Scalar, const TOWARDS: bool>(
    w: &mut [T],
    initial: &[T],
    (first, second): (&mut [T], &mut [T]),
    grad: &[T],
    scalars: [T; 3],
) {
    let at = w.len() - w.len() % (2 * LANES);
    let (initial, rest) = initial.split_at(if TOWARDS { at } else { 0 });
    let ((w, w_rest), (grad, grad_rest)) = (w.split_at_mut(at), grad.split_at(at));
    let ((first, first_rest), (second, second_rest)) = (first.split_at_mut(at), second.split_at_mut(at));
    adam_by::<T, TOWARDS, { 2 * LANES }>(w, initial, [first, second], grad, scalars);
    adam_by::<T, TOWARDS, LANES>(w_rest, rest, [first_rest, second_rest], grad_rest, scalars);
}

/// [`adam`], N numbers at a time.
#[inline(always)]
fn adam_by<T: Scalar, const TOWARDS: bool, const N: usize>(
    w: &mut [T],
    initial: &[T],
    [first, second]: [&mut [T]; 2],
    grad: &[T],
    [step, eps, l2]: [T; 3],
) {
    let (beta1, beta2) = (splat::<T, N>(T::of(BETA1)), splat(T::of(BETA2)));
    let (step, eps, l2) = (splat(step), splat(eps), splat(l2));
    let (w, grad, initial) = (w.as_chunks_mut::<N>().0, grad.as_chunks().0, initial.as_chunks().0);
    let n = w.len();
    let (first, second) = (&mut first.as_chunks_mut().0[..n], &mut second.as_chunks_mut().0[..n]);
    let (grad, initial) = (&grad[..n], &initial[..if TOWARDS { n } else { 0 }]);
    one_by_one!(i in 0..n => {
        let away = if TOWARDS { sub(w[i], initial[i]) } else { w[i] };
        let g = madd(l2, away, grad[i]);
        let mu = madd(beta1, first[i], g);
        let nu = madd(g, g, mul(beta2, second[i]));
        first[i] = mu;
        second[i] = nu;
        w[i] = sub(w[i], div(mul(step, mu), add(map(nu, T::root), eps)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::net::NetConfig;
    use crate::seed::Seed;

    /// Three steps on every weight by the formulas as printed, in f64.
    #[test]
    fn adam_and_adamw_are_their_formulas_whatever_the_stretch() {
        let layout = Layout { dim: 5, n_actions: 3, encoding: Encoding::Disjoint };
        let net = Net::new(NetConfig { width: 6, biases: true, ..NetConfig::default() }, layout).unwrap();
        let mut rng = Seed::new(3).stream("weights");
        let (lr, l2, decay) = (0.01, 0.1, 0.2);
        let adam = |towards| Optimiser::Adam { lr, l2, towards };
        for optimiser in [adam(Towards::Zero), adam(Towards::Initial), Optimiser::AdamW { lr, decay }] {
            let start: Params<f64> = net.init(&mut rng);
            let grad: Params<f64> = net.init(&mut rng);
            let mut stepper = Stepper::new(optimiser, &net, &start, 0.1).unwrap();
            let mut weights = start.clone();
            for t in 1..=3 {
                let mut step = stepper.begin(t, 1.0, &mut weights);
                let n = step.weights.first.len();
                step.first(0..16).along(&grad.first[..16]);
                step.first(16..n).along(&grad.first[16..]);
                step.rest(0..net.rest_len()).along_zero();
            }
            let zero = grad.filled(0.0);
            for (start, grad, got) in
                [(&start.first, &grad.first, &weights.first), (&start.rest, &zero.rest, &weights.rest)]
            {
                for ((&start, &grad), &got) in start.iter().zip(grad).zip(got) {
                    let (mut w, mut m, mut v) = (start, 0.0, 0.0);
                    for t in 1..=3 {
                        let g: f64 = match optimiser {
                            Optimiser::Adam { towards: Towards::Initial, .. } => grad + l2 * (w - start),
                            Optimiser::Adam { .. } => grad + l2 * w,
                            _ => grad,
                        };
                        m = BETA1 * m + (1.0 - BETA1) * g;
                        v = BETA2 * v + (1.0 - BETA2) * g * g;
                        let (m_hat, v_hat) = (m / (1.0 - BETA1.powi(t)), v / (1.0 - BETA2.powi(t)));
                        if matches!(optimiser, Optimiser::AdamW { .. }) {
                            w -= lr * decay * w;
                        }
                        w -= lr * m_hat / (v_hat.sqrt() + EPS);
                    }
                    assert!((w - got).abs() < 1e-13, "{optimiser:?}: {w} {got}");
                }
            }
        }
    }
}
