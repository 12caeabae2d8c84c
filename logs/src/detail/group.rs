//! Some rounds together: what two policies earn on them, and how sure that is.
//!
//! With e = r − q̂ (q̂ and v̂ are 0 without a reward model) the value of the policy is ⟨v̂⟩ + ⟨w e⟩/⟨w⟩: `sndr`, or
//! `snips`. The policy that it is compared with earns ⟨r⟩. Standard errors are those of the linear form that moves with
//! the estimate, so that the noise which the two share cancels in their difference.

use serde::{Deserialize, Serialize};

use neuralcb::ope::Sample;

/// w e, w, v̂ and what the other policy earns.
const TERMS: usize = 4;

/// A round as the sums take it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// The importance weight.
    pub weight: f64,
    /// w e, its base (w, or 1 for a plain mean), v̂, and what the policy that it is compared with earns.
    pub terms: [f64; TERMS],
    /// The reward.
    pub reward: f64,
    /// What the reward model says of the logged action.
    pub predicted: Option<f64>,
    /// The rounds that it stands for.
    pub times: f64,
}

impl From<&Sample> for Round {
    fn from(sample: &Sample) -> Round {
        let &Sample { weight, reward, q, v, drop } = sample;
        let (predicted, q, v) = match (q, v) {
            (Some(q), Some(v)) => (Some(q), q, v),
            _ => (q, 0.0, 0.0),
        };
        let terms = [weight * (reward - q), weight, v, reward];
        Round { weight, terms, reward, predicted, times: 1.0 / (1.0 - drop) }
    }
}

/// A mean with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Its two-sided normal interval.
    pub interval: [f64; 2],
}

/// What some rounds say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Rounds.
    pub rounds: u64,
    /// Their effective sample size.
    pub ess: Option<f64>,
    /// What the policy earns on them; none where it never does what was done.
    pub value: Option<Mean>,
    /// What the policy earns that it is compared with.
    pub reference: Option<Mean>,
    /// The difference of the two.
    pub difference: Option<Mean>,
}

/// Means and products of the terms of some rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub rounds: u64,
    n: f64,
    mean: [f64; TERMS],
    /// Σ (x_i − x̄_i)(x_j − x̄_j), the lower triangle row by row.
    products: [f64; TERMS * (TERMS + 1) / 2],
}

impl Group {
    pub fn add(&mut self, terms: [f64; TERMS], times: f64) {
        self.merge(&Group { rounds: 1, n: times, mean: terms, products: Default::default() });
    }

    /// Both together (Chan, Golub & LeVeque 1979).
    pub fn merge(&mut self, other: &Group) {
        self.rounds += other.rounds;
        let n = self.n + other.n;
        if other.n <= 0.0 {
            return;
        }
        let off: [f64; TERMS] = std::array::from_fn(|i| other.mean[i] - self.mean[i]);
        let mut place = 0;
        for i in 0..TERMS {
            for j in 0..=i {
                self.products[place] += other.products[place] + off[i] * off[j] * self.n * (other.n / n);
                place += 1;
            }
        }
        (0..TERMS).for_each(|i| self.mean[i] += off[i] * (other.n / n));
        self.n = n;
    }

    /// Σ a_i x̄_i-like estimates with the interval of their linear form.
    fn mean(&self, value: f64, form: [f64; TERMS], z: f64) -> Option<Mean> {
        let (mut spread, mut place) = (0.0, 0);
        for i in 0..TERMS {
            for j in 0..=i {
                spread += if i == j { 1.0 } else { 2.0 } * form[i] * form[j] * self.products[place];
                place += 1;
            }
        }
        let error = (spread.max(0.0) / (self.n - 1.0) / self.n).sqrt();
        let mean = Mean { value, interval: [value - z * error, value + z * error] };
        (self.rounds > 1 && mean.interval.iter().all(|end| end.is_finite())).then_some(mean)
    }

    /// What the rounds say; an interval reaches z standard errors to each side.
    pub fn report(&self, z: f64) -> GroupReport {
        let [top, base, plus, other] = self.mean;
        let (value, form) = (plus + top / base, [1.0 / base, -top / base / base, 1.0, 0.0]);
        let known = base > 0.0;
        let squares = self.products[2] + self.n * base * base;
        GroupReport {
            rounds: self.rounds,
            ess: (squares > 0.0).then(|| (self.n * base) * (self.n * base / squares)),
            value: known.then(|| self.mean(value, form, z)).flatten(),
            reference: self.mean(other, [0.0, 0.0, 0.0, 1.0], z),
            difference: known.then(|| self.mean(value - other, [form[0], form[1], 1.0, -1.0], z)).flatten(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use neuralcb::ope::{Estimator, Interval, OpeConfig, evaluate};

    fn samples(n: u32, model: bool) -> Vec<Sample> {
        let sample = |t: u32| {
            let plain = Sample::new(f64::from(t % 3), f64::from(t * t % 7) / 7.0);
            if model { plain.with_model(f64::from(t % 5) / 5.0, 0.4 + f64::from(t % 2) / 9.0) } else { plain }
        };
        (0..n).map(sample).collect()
    }

    #[test]
    fn a_group_says_what_the_evaluation_says() {
        for (model, estimator) in [(false, Estimator::Snips), (true, Estimator::Sndr)] {
            let samples = samples(500, model);
            let report = evaluate(&OpeConfig::default(), samples.iter().copied()).unwrap();
            let mut parts = [Group::default(), Group::default()];
            for (t, round) in samples.iter().map(Round::from).enumerate() {
                parts[usize::from(t % 3 == 0)].add(round.terms, round.times);
            }
            let [mut group, other] = parts;
            group.merge(&other);
            let found = group.report(1.9599639845400545);
            let estimate = report.estimate(estimator).unwrap();
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} against {b}");
            close(found.value.unwrap().value, estimate.bounded.value.unwrap());
            let [low, high] = estimate.bounded.intervals[&Interval::Normal];
            close(found.value.unwrap().interval[0], low);
            close(found.value.unwrap().interval[1], high);
            let difference = estimate.difference.unwrap();
            close(found.difference.unwrap().value, difference.value);
            close(found.difference.unwrap().interval[1], difference.interval[1]);
            close(found.reference.unwrap().value, report.behaviour.value.unwrap());
            close(found.ess.unwrap(), report.ess.unwrap());
        }
    }

    #[test]
    fn rounds_without_weight_have_no_value() {
        let mut group = Group::default();
        (0..9).for_each(|t| group.add([0.0, 0.0, 0.0, f64::from(t)], 1.0));
        let report = group.report(2.0);
        assert_eq!((report.value, report.difference, report.ess), (None, None, None));
        assert_eq!(report.reference.unwrap().value, 4.0);
    }
}
