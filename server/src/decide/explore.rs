//! Exploration, with the probability of every action exact.
//!
//! With n eligible actions, the policy's choice a* and bounds b_a = mean − β·width:
//!
//! | `--explore` | p0_a |
//! |---|---|
//! | `none` | 1 for a*, else 0 |
//! | `epsilon=E` | E/n + (1 − E)·[a = a*] |
//! | `softmax=T` | exp(b_a / T) / Σ exp(b_i / T) |
//!
//! and with a floor F, never above 1/n, p_a = F + (1 − n·F)·p0_a. A policy without a choice of its own (uniform) plays
//! 1/n.

use std::str::FromStr;

use neuralcb::Seed;
use rand::RngExt;

/// How the policy's choice is left.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Explore {
    /// Never.
    #[default]
    None,
    /// With this probability for any action.
    Epsilon(f64),
    /// By the bounds, with this temperature in units of the reward.
    Softmax(f64),
}

impl FromStr for Explore {
    type Err = String;

    fn from_str(text: &str) -> Result<Explore, String> {
        let (kind, value) = text.split_once('=').unwrap_or((text, ""));
        let number = value.parse::<f64>().ok().filter(|v| v.is_finite());
        match (kind, number) {
            ("none", _) if value.is_empty() => Ok(Explore::None),
            ("epsilon", Some(e)) if (0.0..=1.0).contains(&e) => Ok(Explore::Epsilon(e)),
            ("softmax", Some(t)) if t > 0.0 => Ok(Explore::Softmax(t)),
            _ => Err("must be none, epsilon=E with E in [0, 1], or softmax=T with a temperature T > 0".to_owned()),
        }
    }
}

/// Exploration with its floor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Exploration {
    /// How.
    pub explore: Explore,
    /// The least probability of every eligible action, in [0, 1]; 1/n where that is less.
    pub floor: f64,
}

impl Exploration {
    /// The probability of each of `n` eligible actions; `bound` gives that of the i-th where there is a reward model.
    pub fn probabilities(&self, n: usize, choice: Option<usize>, bound: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
        let Some(choice) = choice else { return vec![1.0 / n as f64; n] };
        let only = |p: f64, rest: f64| (0..n).map(|i| if i == choice { p } else { rest }).collect::<Vec<f64>>();
        let mut p = match self.explore {
            Explore::None => only(1.0, 0.0),
            Explore::Epsilon(e) => only(e / n as f64 + (1.0 - e), e / n as f64),
            Explore::Softmax(t) => {
                let bounds: Vec<f64> = (0..n).map(|i| bound(i).unwrap_or(f64::NEG_INFINITY)).collect();
                let best = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                match best.is_finite() {
                    true => {
                        let weights: Vec<f64> = bounds.iter().map(|b| ((b - best) / t).exp()).collect();
                        let sum: f64 = weights.iter().sum();
                        weights.iter().map(|w| w / sum).collect()
                    }
                    false => only(1.0, 0.0),
                }
            }
        };
        let floor = self.floor.min(1.0 / n as f64);
        if floor > 0.0 {
            p.iter_mut().for_each(|p| *p = floor + (1.0 - n as f64 * floor) * *p);
        }
        p
    }
}

/// Draws a place by its probability. The same seed and event give the same draw, so that a request that is repeated
/// gets the same answer.
pub fn draw(probabilities: &[f64], seed: Seed, event: &str) -> usize {
    let u: f64 = seed.child("explore").stream(event).random();
    let mut sum = 0.0;
    for (i, p) in probabilities.iter().enumerate() {
        sum += p;
        if u < sum {
            return i;
        }
    }
    // The sum of probabilities may end a rounding error below 1.
    probabilities.iter().rposition(|&p| p > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probabilities(explore: &str, floor: f64, bounds: &[f64]) -> Vec<f64> {
        let best = (0..bounds.len()).max_by(|&a, &b| bounds[a].total_cmp(&bounds[b]));
        Exploration { explore: explore.parse().unwrap(), floor }.probabilities(bounds.len(), best, |i| Some(bounds[i]))
    }

    #[test]
    fn probabilities_are_those_of_the_table() {
        assert_eq!(probabilities("none", 0.0, &[0.0, 2.0, 1.0]), [0.0, 1.0, 0.0]);
        assert_eq!(probabilities("epsilon=0.5", 0.0, &[0.0, 2.0]), [0.25, 0.75]);
        assert_eq!(probabilities("none", 0.125, &[0.0, 2.0]), [0.125, 0.875]);
        assert_eq!(probabilities("none", 1.0, &[0.0, 2.0]), [0.5, 0.5]);
        let p = probabilities("softmax=0.5", 0.0, &[0.0, 1.0]);
        assert!((p[1] / p[0] - 2f64.exp()).abs() < 1e-12 && (p[0] + p[1] - 1.0).abs() < 1e-15, "{p:?}");
        assert_eq!(probabilities("softmax=1e-9", 0.0, &[0.0, 1e9]), [0.0, 1.0]);
        assert_eq!(Exploration::default().probabilities(4, None, |_| None), [0.25; 4]);
    }

    #[test]
    fn what_is_no_exploration_is_refused() {
        for text in ["", "some", "epsilon", "epsilon=2", "epsilon=NaN", "softmax=0", "softmax=inf", "none=1"] {
            assert!(text.parse::<Explore>().is_err(), "{text}");
        }
    }

    /// χ² of a million draws with consecutive names of events: of 7 degrees of freedom less than 29 in all but one of
    /// 10,000 tests.
    #[test]
    fn draws_follow_their_probabilities() {
        for (seed, explore) in [(1, "epsilon=0.3"), (2, "softmax=0.7"), (3, "none")] {
            let p = probabilities(explore, 0.01, &[0.3, -0.2, 1.0, 0.9, 0.0, -3.0, 0.8, 0.1]);
            let n = 1_000_000;
            let mut counts = vec![0u32; p.len()];
            (0..n).for_each(|i| counts[draw(&p, Seed::new(seed), &format!("event-{i}"))] += 1);
            let chi2: f64 = counts
                .iter()
                .zip(&p)
                .map(|(&c, p)| (f64::from(c) - p * f64::from(n)).powi(2) / (p * f64::from(n)))
                .sum();
            assert!(chi2 < 29.0, "{explore}: χ² = {chi2} of {counts:?}");
        }
    }

    #[test]
    fn an_event_is_drawn_the_same_again() {
        let p = [0.5, 0.5];
        let draws: Vec<usize> = (0..64).map(|i| draw(&p, Seed::new(1), &i.to_string())).collect();
        assert_eq!(draws, (0..64).map(|i| draw(&p, Seed::new(1), &i.to_string())).collect::<Vec<_>>());
        assert_ne!(draws, (0..64).map(|i| draw(&p, Seed::new(2), &i.to_string())).collect::<Vec<_>>());
    }
}
