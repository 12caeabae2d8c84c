//! What a trunk is trained for. This file says which loss each objective is; no other file knows.
//!
//! Rewards are brought to r₀₁ = (r − lo)/(hi − lo). z_k is the output of action k, π = soft-max z over the eligible
//! actions, a the logged action, p its logged propensity (1 where the log has none).
//!
//! | objective | loss of a round |
//! |---|---|
//! | `choice` | −y log q_a − (1 − y) log(1 − q_a), q_k = exp z_k/(1 + Σ exp z), y = s·r₀₁, s = 1/max(1, mean(r₀₁/p)) |
//! | `closed-choice` | the same with q = π (no outside option) and s = 1 |
//! | `regression` | ½(z_a − (r − r̄)/σ_r)² |
//! | `clone` | −log π_a |
//! | `clone-rewarded` | −log π_a where r > r̄, else nothing |
//! | `reward-weighted` | −r₀₁ log π_a |
//! | `advantage-weighted` | −min(exp((r − r̄)/σ_r), 20) log π_a |
//! | `inverse-propensity` | −(r₀₁/p) log π_a: the weighted classification of OBP's IPWLearner |
//! | `doubly-robust` | −Σ_k π_k (q̂_k + 1[k = a](r₀₁ − q̂_a)/p), q̂ from `regression`: OBP's NNPolicyLearner |
//! | `log-smoothing` | −π_a·log(1 + λ r₀₁/p)/λ, λ = 1/√n: LS-LIN of Sakhi et al. (2024) |

use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::data::LoggedData;
use crate::net::loss::{soft_max, soft_max_beside_zero};
use crate::seed::Stream;

/// What a trunk is trained for: the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the names of the table
pub enum Objective {
    Choice,
    ClosedChoice,
    Regression,
    Clone,
    CloneRewarded,
    RewardWeighted,
    AdvantageWeighted,
    InversePropensity,
    DoublyRobust,
    LogSmoothing,
}

impl Objective {
    /// All of them.
    pub const ALL: &'static [Objective] = &[
        Objective::Choice,
        Objective::ClosedChoice,
        Objective::Regression,
        Objective::Clone,
        Objective::CloneRewarded,
        Objective::RewardWeighted,
        Objective::AdvantageWeighted,
        Objective::InversePropensity,
        Objective::DoublyRobust,
        Objective::LogSmoothing,
    ];

    /// Whether it models rewards. The others say how good an action is beside the others, in no unit.
    pub fn knows_rewards(self) -> bool {
        matches!(self, Objective::Choice | Objective::ClosedChoice | Objective::Regression)
    }
}

/// The largest weight of an advantage.
const MOST: f64 = 20.0;

/// No q is taken for more than 1 − LEAST.
const LEAST: f32 = 1e-4;

/// How rewards and outputs translate into each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Units {
    /// The range of rewards.
    pub(super) lo: f64,
    pub(super) hi: f64,
    /// r̄ and σ_r.
    pub(super) mean: f64,
    pub(super) deviation: f64,
    /// s.
    pub(super) s: f64,
}

impl Units {
    /// Of a log, with the range of rewards as given, or as the log has it.
    pub(super) fn of(objective: Objective, log: &LoggedData, range: Option<[f64; 2]>) -> Units {
        let (r, n) = (log.rewards(), log.n_rounds() as f64);
        let [lo, hi] = range.unwrap_or_else(|| {
            r.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], &r| [lo.min(r), hi.max(r)])
        });
        // where all rewards are the same, any span will do
        let hi = if hi > lo { hi } else { lo + 1.0 };
        let mean = r.iter().sum::<f64>() / n;
        let variance = r.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n;
        let mut units = Units { lo, hi, mean, deviation: if variance > 0.0 { variance.sqrt() } else { 1.0 }, s: 1.0 };
        if let (Objective::Choice, Some(p)) = (objective, log.propensities()) {
            let total: f64 = r.iter().zip(p).map(|(&r, p)| units.share(r) / p).sum::<f64>() / n;
            units.s = 1.0 / total.max(1.0);
        }
        units
    }

    /// r₀₁.
    pub(super) fn share(&self, reward: f64) -> f64 {
        ((reward - self.lo) / (self.hi - self.lo)).clamp(0.0, 1.0)
    }

    /// The mean reward that a number of the pass says.
    #[inline(always)]
    pub(super) fn reward(&self, objective: Objective, number: f64) -> f64 {
        match objective {
            Objective::Choice | Objective::ClosedChoice => self.lo + (self.hi - self.lo) / self.s * number,
            Objective::Regression => self.mean + self.deviation * number,
            _ => number,
        }
    }
}

/// z of a round becomes what the objective says of each action: q, π, or z itself.
#[inline(always)]
pub(super) fn numbers(objective: Objective, z: &mut [f32]) {
    match objective {
        Objective::Regression => {}
        Objective::Choice => soft_max_beside_zero(z),
        _ => soft_max(z),
    }
}

/// What the loss of every round needs.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    /// The place of the logged action among the eligible ones.
    places: Vec<u32>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// y, and whether there is an outside option.
    Share(Vec<f32>, bool),
    /// What z_a is to be.
    Squared(Vec<f32>),
    /// Weights of −log π_a; none where all are 1.
    Likelihood(Option<Vec<f32>>),
    /// −Σ_k π_k g_k: what the logged action adds to g, and g of every pair where that is not zero.
    Gains(Vec<f32>, Option<Vec<f32>>),
}

impl Targets {
    /// The targets of a log. `q` is r̂₀₁ of every pair, for `doubly-robust`.
    pub(super) fn new(objective: Objective, log: &LoggedData, units: &Units, q: Option<Vec<f32>>) -> Targets {
        let rewards = log.rewards();
        let each = |f: &dyn Fn(usize) -> f64| (0..log.n_rounds()).map(|t| f(t) as f32).collect::<Vec<f32>>();
        let inverse = |t: usize| 1.0 / log.propensities().map_or(1.0, |p| p[t]);
        let share = |t: usize| units.share(rewards[t]);
        let z = |t: usize| (rewards[t] - units.mean) / units.deviation;
        let places = Self::places(log);
        let kind = match objective {
            Objective::Choice => Kind::Share(each(&|t| units.s * share(t)), true),
            Objective::ClosedChoice => Kind::Share(each(&share), false),
            Objective::Regression => Kind::Squared(each(&z)),
            Objective::Clone => Kind::Likelihood(None),
            Objective::CloneRewarded => {
                // where no reward is above the mean, all rounds are as good
                let all = rewards.iter().all(|&r| r <= units.mean);
                Kind::Likelihood(Some(each(&|t| f64::from(u8::from(all || rewards[t] > units.mean)))))
            }
            Objective::RewardWeighted => Kind::Likelihood(Some(each(&share))),
            Objective::AdvantageWeighted => Kind::Likelihood(Some(each(&|t| z(t).exp().min(MOST)))),
            Objective::InversePropensity => Kind::Likelihood(Some(each(&|t| share(t) * inverse(t)))),
            Objective::LogSmoothing => {
                let lambda = 1.0 / (log.n_rounds() as f64).sqrt();
                Kind::Gains(each(&|t| (lambda * share(t) * inverse(t)).ln_1p() / lambda), None)
            }
            Objective::DoublyRobust => {
                let q = q.expect("the direct estimate was made");
                let own = |t: usize| f64::from(q[log.contexts().first_pair(t) + places[t] as usize]);
                Kind::Gains(each(&|t| (share(t) - own(t)) * inverse(t)), Some(q))
            }
        };
        Targets { places, kind }
    }

    /// The targets of a clone: nothing but the logged actions.
    pub(crate) fn clone_of(log: &LoggedData) -> Targets {
        Targets { places: Self::places(log), kind: Kind::Likelihood(None) }
    }

    fn places(log: &LoggedData) -> Vec<u32> {
        let place = |t: usize| log.contexts().place(t, log.actions()[t] as usize).expect("checked at the door") as u32;
        (0..log.n_rounds()).map(place).collect()
    }

    /// Adds N(0, σ²) to what z_a is to be, or to y, in units of the rewards' deviation.
    pub(super) fn perturb(&mut self, sigma: f64, units: &Units, stream: &mut Stream) {
        let noise = |v: &mut f32, unit: f64| {
            let draw: f64 = StandardNormal.sample(stream);
            *v += (sigma * unit * draw) as f32;
        };
        match &mut self.kind {
            Kind::Squared(y) => y.iter_mut().for_each({
                let mut noise = noise;
                move |y| noise(y, 1.0)
            }),
            Kind::Share(y, _) => {
                let mut noise = noise;
                let unit = units.s * units.deviation / (units.hi - units.lo);
                for y in y {
                    noise(y, unit);
                    *y = y.clamp(0.0, 1.0);
                }
            }
            Kind::Likelihood(_) | Kind::Gains(..) => {}
        }
    }

    /// The rounds that count.
    pub(super) fn rounds(&self) -> Vec<u32> {
        let n = self.places.len() as u32;
        match &self.kind {
            Kind::Likelihood(Some(weights)) => (0..n).filter(|&t| weights[t as usize] > 0.0).collect(),
            _ => (0..n).collect(),
        }
    }

    /// z of round t, whose first pair is `first`, becomes the slopes of its loss.
    #[inline(always)]
    pub(super) fn slopes(&self, t: usize, first: usize, z: &mut [f32]) {
        let a = self.places[t] as usize;
        match &self.kind {
            Kind::Share(y, outside) => {
                if *outside {
                    soft_max_beside_zero(z)
                } else {
                    soft_max(z)
                }
                let e = z[a] - y[t];
                let others = -e / (1.0 - z[a]).max(LEAST);
                z.iter_mut().for_each(|z| *z *= others);
                z[a] = e;
            }
            Kind::Squared(y) => {
                let e = z[a] - y[t];
                z.fill(0.0);
                z[a] = e;
            }
            Kind::Likelihood(weights) => {
                soft_max(z);
                z[a] -= 1.0;
                if let Some(weights) = weights {
                    z.iter_mut().for_each(|z| *z *= weights[t]);
                }
            }
            Kind::Gains(own, all) => {
                soft_max(z);
                let mut mean = z[a] * own[t];
                if let Some(all) = all {
                    mean += z.iter().zip(&all[first..]).map(|(p, g)| p * g).sum::<f32>();
                }
                for (k, p) in z.iter_mut().enumerate() {
                    let gain = all.as_ref().map_or(0.0, |all| all[first + k]) + if k == a { own[t] } else { 0.0 };
                    *p *= mean - gain;
                }
            }
        }
    }

    /// The loss of round t at z.
    pub(super) fn value(&self, t: usize, first: usize, z: &mut [f32]) -> f64 {
        let a = self.places[t] as usize;
        let tiny = f64::from(f32::MIN_POSITIVE);
        match &self.kind {
            Kind::Share(y, outside) => {
                if *outside {
                    soft_max_beside_zero(z)
                } else {
                    soft_max(z)
                }
                let (q, y) = (f64::from(z[a]), f64::from(y[t]));
                -y * q.max(tiny).ln() - (1.0 - y) * (1.0 - q).max(1e-7).ln()
            }
            Kind::Squared(y) => 0.5 * f64::from(z[a] - y[t]).powi(2),
            Kind::Likelihood(weights) => {
                soft_max(z);
                -f64::from(weights.as_ref().map_or(1.0, |w| w[t])) * f64::from(z[a]).max(tiny).ln()
            }
            Kind::Gains(own, all) => {
                soft_max(z);
                let gains = z.iter().enumerate().map(|(k, p)| {
                    let gain = all.as_ref().map_or(0.0, |all| all[first + k]) + if k == a { own[t] } else { 0.0 };
                    f64::from(p * gain)
                });
                -gains.sum::<f64>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Contexts, Eligible, Encoding, Layout};
    use crate::seed::Seed;
    use rand::RngExt;

    fn log() -> LoggedData {
        let layout = Layout { dim: 1, n_actions: 4, encoding: Encoding::Disjoint };
        let offsets = vec![0, 4, 7, 9, 13];
        let eligible = Eligible::Some { offsets, actions: vec![0, 1, 2, 3, 0, 2, 3, 1, 3, 0, 1, 2, 3] };
        let contexts = Contexts::new(layout, vec![1.0, 2.0, 3.0, 4.0], eligible).unwrap();
        let propensities = Some(vec![0.5, 0.1, 0.3, 0.9]);
        LoggedData::new(contexts, vec![2, 3, 1, 0], vec![0.0, 3.0, 1.0, -1.0], propensities).unwrap()
    }

    /// The slopes of every objective against central differences of its loss.
    #[test]
    fn slopes_are_those_of_central_differences() {
        let (log, mut rng) = (log(), Seed::new(5).stream("z"));
        for &objective in Objective::ALL {
            let units = Units::of(objective, &log, None);
            let q = (0..13).map(|_| rng.random::<f32>()).collect();
            let targets = Targets::new(objective, &log, &units, Some(q));
            for t in 0..4 {
                let pairs = log.contexts().pairs(t);
                let z: Vec<f32> = pairs.clone().map(|_| 3.0 * rng.random::<f32>() - 1.5).collect();
                let mut slopes = z.clone();
                targets.slopes(t, pairs.start, &mut slopes);
                for k in 0..z.len() {
                    let step = 1e-2;
                    let at = |step: f32| {
                        let mut z = z.clone();
                        z[k] += step;
                        targets.value(t, pairs.start, &mut z)
                    };
                    let want = (at(step) - at(-step)) / (2.0 * f64::from(step));
                    let scale = want.abs().max(1.0);
                    // rounding 1e-7·loss/step = 1e-4 and truncation step²·loss‴/6 = 1e-4
                    let far = (f64::from(slopes[k]) - want).abs();
                    assert!(far < 1e-3 * scale, "{objective:?}, round {t}: {} {want}", slopes[k]);
                }
            }
        }
    }

    #[test]
    fn the_shares_of_a_choice_sum_to_at_most_one_in_expectation() {
        let log = log();
        let units = Units::of(Objective::Choice, &log, None);
        // r₀₁ = .25, 1, .5, 0 and 1/p = 2, 10, 3.33, 1.11: the mean of r₀₁/p is 3.04
        assert!((units.s - 1.0 / ((0.5 + 10.0 + 0.5 / 0.3) / 4.0)).abs() < 1e-12);
        assert_eq!(units.reward(Objective::Choice, units.s), 3.0);
        assert_eq!(Units::of(Objective::ClosedChoice, &log, None).s, 1.0);
        assert_eq!(Units::of(Objective::Choice, &log, Some([-2.0, 3.0])).share(-1.0), 0.2);
    }
}
