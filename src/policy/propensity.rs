//! Propensities of a log that does not tell them: an estimate of the behaviour policy's probability of each choice.
//!
//! * `empirical`: μ̂(a) = (c_a + prior) / Σ_{eligible b} (c_b + prior), c_a how often a was played. Right where the
//!   choice did not depend on the context.
//! * `logistic`: μ̂(a | x), a multinomial logistic model of the context (or a network, with hidden units) by maximum
//!   likelihood ([`Imitation`]).
//!
//! Weights made of them carry the error of the estimate, and what the log's policy knew but the context does not tell
//! is a bias that no data repairs. Whoever evaluates with them says so.

use serde::{Deserialize, Serialize};

use super::imitation::{Imitation, ImitationConfig};
use crate::data::LoggedData;
use crate::error::{Error, at_least, not_negative};
use crate::seed::Seed;

/// No estimate is smaller: one round would otherwise outweigh every log.
const LEAST: f64 = 1e-6;

/// How to estimate propensities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum PropensityConfig {
    /// The share of each action in the log.
    Empirical {
        /// Rounds that each action is given before counting, ≥ 0.
        #[serde(default)]
        prior: f64,
    },
    /// A classifier of the logged actions; with `width` 0 the multinomial logistic model.
    Logistic(ImitationConfig),
}

impl Default for PropensityConfig {
    /// The multinomial logistic model.
    fn default() -> Self {
        PropensityConfig::Logistic(ImitationConfig { width: 0, ..ImitationConfig::default() })
    }
}

/// μ̂(a_t | x_t) of every round, at least 1e-6. The seed decides the order of batches.
pub fn estimate_propensities(config: &PropensityConfig, log: &LoggedData, seed: Seed) -> Result<Vec<f64>, Error> {
    at_least("rounds in the log", 1, "at least 1", log.n_rounds())?;
    let contexts = log.contexts();
    let action = |t: usize| log.actions()[t] as usize;
    let propensities: Vec<f64> = match config {
        PropensityConfig::Empirical { prior } => {
            not_negative("prior", *prior)?;
            let mut counts = vec![*prior; contexts.layout().n_actions];
            (0..log.n_rounds()).for_each(|t| counts[action(t)] += 1.0);
            let eligible = |t: usize| (0..contexts.pairs(t).len()).map(move |i| contexts.action(t, i));
            (0..log.n_rounds()).map(|t| counts[action(t)] / eligible(t).map(|a| counts[a]).sum::<f64>()).collect()
        }
        PropensityConfig::Logistic(config) => {
            let clone = Imitation::fit(config, log, 0..log.n_rounds(), seed)?;
            let p = clone.probabilities(contexts)?;
            let chosen = |t: usize| contexts.place(t, action(t)).expect("checked at the door");
            (0..log.n_rounds()).map(|t| p[contexts.first_pair(t) + chosen(t)]).collect()
        }
    };
    Ok(propensities.into_iter().map(|p| p.clamp(LEAST, 1.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Contexts, Eligible, Encoding, Layout};
    use rand::RngExt;

    /// Two actions; the second is played with probability 1 / (1 + e^(−2x)).
    fn logistic_log(n: usize) -> (LoggedData, Vec<f64>) {
        let mut rng = Seed::new(3).stream("log");
        let x: Vec<f32> = (0..n).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect();
        let (mut actions, mut p) = (Vec::new(), Vec::new());
        for &x in &x {
            let second = 1.0 / (1.0 + f64::exp(-2.0 * f64::from(x)));
            let action = u32::from(rng.random::<f64>() < second);
            actions.push(action);
            p.push(if action == 1 { second } else { 1.0 - second });
        }
        let layout = Layout { dim: 1, n_actions: 2, encoding: Encoding::Disjoint };
        let contexts = Contexts::new(layout, x, Eligible::All).unwrap();
        (LoggedData::new(contexts, actions, vec![0.0; n], None).unwrap(), p)
    }

    fn error(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len() as f64
    }

    #[test]
    fn the_logistic_model_finds_propensities_that_follow_the_context() {
        let (log, truth) = logistic_log(5000);
        let fitted = estimate_propensities(&PropensityConfig::default(), &log, Seed::new(1)).unwrap();
        let empirical = estimate_propensities(&PropensityConfig::Empirical { prior: 0.0 }, &log, Seed::new(1)).unwrap();
        assert!(error(&fitted, &truth) < 0.02, "{}", error(&fitted, &truth));
        assert!(error(&empirical, &truth) > 0.1);
    }

    #[test]
    fn shares_are_taken_among_the_eligible_actions() {
        let layout = Layout { dim: 1, n_actions: 3, encoding: Encoding::Disjoint };
        let eligible = Eligible::Some { offsets: vec![0, 3, 6, 8], actions: vec![0, 1, 2, 0, 1, 2, 0, 2] };
        let contexts = Contexts::new(layout, vec![1.0; 3], eligible).unwrap();
        let log = LoggedData::new(contexts, vec![0, 1, 0], vec![0.0; 3], None).unwrap();
        let p = estimate_propensities(&PropensityConfig::Empirical { prior: 0.0 }, &log, Seed::new(1)).unwrap();
        assert_eq!(p, [2.0 / 3.0, 1.0 / 3.0, 1.0]);
        let refused = estimate_propensities(&PropensityConfig::Empirical { prior: -1.0 }, &log, Seed::new(1));
        assert!(refused.unwrap_err().to_string().starts_with("`prior` must be"));
    }

    #[test]
    fn settings_are_read_by_name() {
        let read = |text: &str| serde_json::from_str::<PropensityConfig>(text).unwrap();
        assert_eq!(read(r#"{"method": "empirical"}"#), PropensityConfig::Empirical { prior: 0.0 });
        let logistic = PropensityConfig::Logistic(ImitationConfig { width: 0, lr: 0.01, ..Default::default() });
        assert_eq!(read(r#"{"method": "logistic", "width": 0, "lr": 0.01}"#), logistic);
    }
}
