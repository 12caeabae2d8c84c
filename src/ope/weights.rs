//! Weights of a policy that always plays one action, and the two estimates that choose among many candidates fast.
//!
//! With w_t = 1[π(x_t) = a_t] / μ(a_t | x_t),
//!
//! * IPS: V̂ = (1/n) Σ w_t r_t, without bias where μ plays everything that π plays;
//! * SNIPS, the self-normalised form: V̂ = Σ w_t r_t / Σ w_t, far steadier, with a bias of order 1/n.
//!
//! Both know nothing of actions that the log never plays. [`WeightedMean::worst_case`] counts what the weights show to
//! be missing as the worst reward: the expectation of w is 1 if μ covers π, so a mean weight below 1 beyond chance is
//! mass that was never logged.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::data::LoggedData;
use crate::error::Error;

/// The value of a policy as a log tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedMean {
    /// V̂.
    pub value: f64,
    /// Standard error of V̂; infinite where no logged round agrees with the policy.
    pub standard_error: f64,
    /// Mean weight: the share of the policy that the log covers, 1 up to chance if it covers all.
    pub coverage: f64,
    /// Standard error of the mean weight.
    pub coverage_error: f64,
}

/// The importance weight of every round for a policy that plays the given places.
pub fn importance_weights(log: &LoggedData, choices: &[u32]) -> Result<Vec<f64>, Error> {
    let Some(propensities) = log.propensities() else { return Err(Error::NoPropensities) };
    if choices.len() != log.n_rounds() {
        return Err(Error::Shape { what: "choices, one per round", expected: log.n_rounds(), got: choices.len() });
    }
    let contexts = log.contexts();
    let weight = |t: usize| {
        let agrees = contexts.action(t, choices[t] as usize) == log.actions()[t] as usize;
        if agrees { 1.0 / propensities[t] } else { 0.0 }
    };
    Ok((0..log.n_rounds()).map(weight).collect())
}

/// IPS: the mean of w·r.
pub fn ips(weights: &[f64], rewards: &[f64]) -> WeightedMean {
    let products: Vec<f64> = weights.iter().zip(rewards).map(|(w, r)| w * r).collect();
    let (value, standard_error) = mean_and_error(&products);
    let (coverage, coverage_error) = mean_and_error(weights);
    WeightedMean { value, standard_error, coverage, coverage_error }
}

/// SNIPS: Σ w·r / Σ w, its standard error by the delta method, √(Σ w²(r − V̂)²) / Σ w.
pub fn snips(weights: &[f64], rewards: &[f64]) -> WeightedMean {
    let total: f64 = weights.iter().sum();
    let (coverage, coverage_error) = mean_and_error(weights);
    if total <= 0.0 {
        return WeightedMean { value: f64::NAN, standard_error: f64::INFINITY, coverage, coverage_error };
    }
    let pairs = || weights.iter().zip(rewards);
    let value = pairs().map(|(w, r)| w * r).sum::<f64>() / total;
    let spread = pairs().map(|(w, r)| (w * (r - value)).powi(2)).sum::<f64>();
    WeightedMean { value, standard_error: spread.sqrt() / total, coverage, coverage_error }
}

impl WeightedMean {
    /// V̂ − z·(standard error): with the given confidence the value is above it, by the normal approximation.
    pub fn lower(&self, confidence: f64) -> f64 {
        if self.standard_error.is_finite() {
            self.value - normal_quantile(confidence) * self.standard_error
        } else {
            f64::NEG_INFINITY
        }
    }

    /// The lower bound of a self-normalised estimate when what the log certainly does not cover earns `worst`:
    /// s·lower + (1 − s)·worst, where s = min(1, mean weight + z·its standard error) is the coverage at its best.
    pub fn worst_case(&self, confidence: f64, worst: f64) -> f64 {
        let s = (self.coverage + normal_quantile(confidence) * self.coverage_error).min(1.0);
        if self.standard_error.is_finite() { s * self.lower(confidence) + (1.0 - s) * worst } else { worst }
    }
}

/// z of a confidence.
pub(crate) fn normal_quantile(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(confidence)
}

/// The mean and its standard error; of a single value the error is 0.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandit::{Bandit, Classification, Labelled, RewardRule, TestSet, collect};
    use crate::policy::{Behaviour, BehaviourConfig, LinUcbConfig};
    use crate::seed::Seed;
    use std::sync::Arc;

    /// Ten classes told by one number; a policy that is right on classes 0..7 alone has value 0.7.
    fn bandit() -> Classification {
        let labels: Vec<u32> = (0..1000).map(|i| i % 10).collect();
        let x = labels.iter().map(|&l| l as f32).collect();
        let data = Labelled { dim: 1, n_classes: 10, x, labels };
        Classification::new(Arc::new(data), (0..1000).collect(), RewardRule::Classes).unwrap()
    }

    fn seven_right(log: &LoggedData) -> Vec<u32> {
        (0..log.n_rounds()).map(|t| log.round(t).chosen.x[0] as u32).map(|c| if c < 7 { c } else { 0 }).collect()
    }

    fn logged(behaviour: &BehaviourConfig, seed: u64) -> LoggedData {
        let bandit = bandit();
        let mut behaviour = Behaviour::new(behaviour, bandit.layout()).unwrap();
        collect(&bandit, &mut behaviour, 1000, Seed::new(seed)).unwrap().log
    }

    #[test]
    fn the_truth_lies_above_the_lower_bound_at_the_nominal_rate() {
        let config = BehaviourConfig::EpsilonGreedy { epsilon: 0.3 };
        let (mut ips_below, mut snips_below, reps) = (0, 0, 400);
        for seed in 0..reps {
            let log = logged(&config, seed);
            let weights = importance_weights(&log, &seven_right(&log)).unwrap();
            ips_below += u64::from(ips(&weights, log.rewards()).lower(0.95) > 0.7);
            snips_below += u64::from(snips(&weights, log.rewards()).lower(0.95) > 0.7);
        }
        // 5 % of 400 is 20, standard deviation 4.4; the contexts are the same rows in every log, which only helps IPS
        assert!(ips_below <= 34, "{ips_below}");
        assert!((5..=38).contains(&snips_below), "{snips_below}");
    }

    #[test]
    fn what_the_log_never_plays_counts_as_the_worst_reward() {
        // (1 − ε)·π* + ε·LinUCB never plays most wrong actions: SNIPS sees only the rounds in which the policy is right
        let config = BehaviourConfig::LinUcbMixture { epsilon: 0.5, linucb: LinUcbConfig::default() };
        let log = logged(&config, 5);
        let weights = importance_weights(&log, &seven_right(&log)).unwrap();
        let estimate = snips(&weights, log.rewards());
        assert!(estimate.value > 0.9, "{estimate:?}");
        let bound = estimate.worst_case(0.95, 0.0);
        assert!(bound < 0.78 && bound > 0.5, "{bound}");
        let full = snips(&[1.0; 10], &[0.5; 10]);
        assert_eq!(full.worst_case(0.95, 0.0), full.lower(0.95));
    }

    #[test]
    fn a_policy_that_never_agrees_has_no_value_and_the_worst_bound() {
        let estimate = snips(&[0.0; 5], &[1.0; 5]);
        assert!(estimate.value.is_nan() && estimate.lower(0.95) == f64::NEG_INFINITY);
        assert_eq!(estimate.worst_case(0.95, -35.0), -35.0);
    }

    #[test]
    fn a_log_without_propensities_or_with_other_choices_is_refused() {
        let log = logged(&BehaviourConfig::Uniform, 1);
        assert!(importance_weights(&log, &[0; 3]).is_err());
        let contexts = log.contexts().clone();
        let blind = LoggedData::new(contexts, log.actions().to_vec(), log.rewards().to_vec(), None).unwrap();
        assert_eq!(
            importance_weights(&blind, &[0; 1000]).unwrap_err().to_string(),
            "the log has no propensities: off-policy evaluation needs the behaviour policy's probability of each choice"
        );
    }

    #[test]
    fn the_estimates_of_the_test_policy_agree_with_its_truth() {
        let log = logged(&BehaviourConfig::Uniform, 9);
        let test = TestSet::draw(&bandit(), 1000, &mut Seed::new(1).stream("test")).unwrap();
        let right: Vec<u32> = (0..1000).map(|t| test.contexts().pair(t, 0).x[0] as u32).map(|c| c % 7).collect();
        assert!((test.judge(&right).suboptimality - 0.3).abs() < 1e-12);
        let weights = importance_weights(&log, &seven_right(&log)).unwrap();
        for estimate in [ips(&weights, log.rewards()), snips(&weights, log.rewards())] {
            assert!((estimate.value - 0.7).abs() < 4.0 * estimate.standard_error, "{estimate:?}");
        }
    }
}
