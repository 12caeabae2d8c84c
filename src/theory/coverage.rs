//! κ of Assumption 4.2, the empirical single-policy concentration: ‖π*(·|x_t)/μ(·|𝒟_{t−1}, x_t)‖_∞ ≤ κ for all t ≤ n.
//!
//! Where the behaviour policy's probabilities are known, κ is a maximum over the rounds ([`Coverage`]). A log tells
//! only the probability of what was chosen: where the choice is the target policy's own, 1/μ is that round's ratio, so
//! that the largest of those is a **lower bound** of κ ([`LogCoverage`]); the mean weight (1/n) Σ 1[a_t = π(x_t)]/μ_t,
//! whose expectation is 1 where μ covers π everywhere, says how much of π the log never could have shown.

use crate::data::LoggedData;
use crate::error::Error;

/// κ from known probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// κ; infinite where an action of the target is never played.
    pub kappa: f64,
    /// The round in which it is attained, counted from 0.
    pub round: usize,
    /// Mean over the rounds of max_a π*(a)/μ(a).
    pub mean: f64,
}

impl Coverage {
    /// From the probabilities of target and behaviour in each round, over the actions it offers.
    ///
    /// ```
    /// use neuralcb::theory::Coverage;
    ///
    /// let rounds = [([0.0, 1.0], [0.5, 0.5]), ([1.0, 0.0], [0.1, 0.9])];
    /// let coverage = Coverage::of(rounds.iter().map(|(target, behaviour)| (&target[..], &behaviour[..])))?;
    /// assert_eq!((coverage.kappa, coverage.round, coverage.mean), (10.0, 1, 6.0));
    /// # Ok::<(), neuralcb::Error>(())
    /// ```
    pub fn of<'a>(rounds: impl IntoIterator<Item = (&'a [f64], &'a [f64])>) -> Result<Self, Error> {
        let (mut out, mut n) = (Coverage { kappa: 0.0, round: 0, mean: 0.0 }, 0);
        for (round, (target, behaviour)) in rounds.into_iter().enumerate() {
            let (expected, got) = (target.len(), behaviour.len());
            if expected != got {
                return Err(Error::Shape { what: "behaviour probabilities of a round", expected, got });
            }
            // what the target never plays needs no coverage
            let ratios = target.iter().zip(behaviour).filter(|(p, _)| **p > 0.0).map(|(p, mu)| p / mu);
            let own = ratios.fold(0.0, f64::max);
            if own > out.kappa {
                (out.kappa, out.round) = (own, round);
            }
            out.mean += own;
            n += 1;
        }
        if n == 0 {
            return Err(Error::Param { name: "rounds", range: "at least 1", got: 0.0 });
        }
        out.mean /= f64::from(n);
        Ok(out)
    }
}

/// What a log says about κ of a deterministic target policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogCoverage {
    /// The largest ratio among the rounds in which the log agrees with the target: at most κ.
    pub kappa_at_least: f64,
    /// Rounds in which the log agrees with the target.
    pub agreeing: usize,
    /// (1/n) Σ 1[a_t = π(x_t)]/μ_t: near 1 under full coverage, less by the share of π that μ never plays.
    pub mean_weight: f64,
    /// Standard error of the mean weight.
    pub standard_error: f64,
}

impl LogCoverage {
    /// From a log with propensities and the target's choice (its place among the eligible actions) in each round.
    pub fn of(log: &LoggedData, choices: &[u32]) -> Result<Self, Error> {
        let (n, got) = (log.n_rounds(), choices.len());
        if got != n || n == 0 {
            return Err(Error::Shape { what: "choices, one per round", expected: n.max(1), got });
        }
        let propensities = log.propensities().ok_or(Error::NoPropensities)?;
        let agrees = |t: usize| log.contexts().action(t, choices[t] as usize) == log.actions()[t] as usize;
        let weights: Vec<f64> = (0..n).map(|t| if agrees(t) { 1.0 / propensities[t] } else { 0.0 }).collect();
        let mean_weight = weights.iter().sum::<f64>() / n as f64;
        let spread = weights.iter().map(|w| (w - mean_weight).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
        Ok(LogCoverage {
            kappa_at_least: weights.iter().copied().fold(0.0, f64::max),
            agreeing: weights.iter().filter(|w| **w > 0.0).count(),
            mean_weight,
            standard_error: (spread / n as f64).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandit::{Bandit, Synthetic, SyntheticConfig, TestSet, collect};
    use crate::policy::{Behaviour, BehaviourConfig};
    use crate::seed::Seed;

    #[test]
    fn epsilon_greedy_has_the_kappa_of_its_formula_and_uniform_has_k() {
        let seed = Seed::new(4);
        let bandit = Synthetic::new(SyntheticConfig::default(), &mut seed.stream("bandit")).unwrap();
        for (config, kappa) in [
            (BehaviourConfig::EpsilonGreedy { epsilon: 0.4 }, 1.0 / (0.6 + 0.4 / 30.0)),
            (BehaviourConfig::Uniform, 30.0),
        ] {
            let mut behaviour = Behaviour::new(&config, bandit.layout()).unwrap();
            let log = collect(&bandit, &mut behaviour, 400, seed).unwrap().log;
            let (contexts, expected) = bandit.draw(400, &mut seed.stream("contexts")).unwrap();
            let best: Vec<u32> = TestSet::new(contexts, expected.clone())
                .expected()
                .chunks(30)
                .map(|h| h.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as u32)
                .collect();
            let known: Vec<(Vec<f64>, Vec<f64>)> = (0..400)
                .map(|t| {
                    let mut target = vec![0.0; 30];
                    target[best[t] as usize] = 1.0;
                    let means = &expected[t * 30..(t + 1) * 30];
                    (target, behaviour.probabilities(log.contexts(), t, means).to_vec())
                })
                .collect();
            let exact = Coverage::of(known.iter().map(|(a, b)| (&a[..], &b[..]))).unwrap();
            assert!((exact.kappa / kappa - 1.0).abs() < 1e-12 && (exact.mean / kappa - 1.0).abs() < 1e-12);
            let from_log = LogCoverage::of(&log, &best).unwrap();
            assert!((from_log.kappa_at_least / kappa - 1.0).abs() < 1e-12);
            assert!((from_log.mean_weight - 1.0).abs() < 4.0 * from_log.standard_error, "{from_log:?}");
        }
    }

    #[test]
    fn an_action_that_is_never_played_makes_kappa_infinite() {
        let coverage = Coverage::of([(&[0.5, 0.5][..], &[1.0, 0.0][..])]).unwrap();
        assert_eq!(coverage.kappa, f64::INFINITY);
        assert!(Coverage::of([(&[1.0][..], &[0.5, 0.5][..])]).is_err());
    }
}
