//! The log 𝒟_n = {(x_t, a_t, r_t)} that a behaviour policy has left.

use std::ops::Range;

use super::contexts::{Contexts, Pair};
use crate::error::{Column, Error};

/// One round of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round<'a> {
    /// The context with the action that was chosen.
    pub chosen: Pair<'a>,
    /// The reward that came of it.
    pub reward: f64,
    /// The behaviour policy's probability of that choice, where it is known.
    pub propensity: Option<f64>,
}

/// A checked log of decisions.
///
/// ```
/// use neuralcb::{Contexts, Eligible, Encoding, Layout, LoggedData};
///
/// let layout = Layout { dim: 2, n_actions: 3, encoding: Encoding::Disjoint };
/// let contexts = Contexts::new(layout, vec![0.6, 0.8, 1.0, 0.0], Eligible::All)?;
/// let log = LoggedData::new(contexts.clone(), vec![2, 0], vec![1.0, 0.5], None)?;
/// assert_eq!(log.round(0).chosen.x, [0.6, 0.8]);
///
/// let refused = LoggedData::new(contexts, vec![2, 3], vec![1.0, 0.5], None);
/// assert_eq!(refused.unwrap_err().to_string(), "round 1, action: must be below the number of actions, 3, got 3");
/// # Ok::<(), neuralcb::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LoggedData {
    contexts: Contexts,
    actions: Vec<u32>,
    rewards: Vec<f64>,
    propensities: Option<Vec<f64>>,
}

impl LoggedData {
    /// Checks shapes, that each action is in range and eligible in its round, that rewards are finite and
    /// propensities lie in (0, 1]. The contexts were checked when they were made.
    pub fn new(
        contexts: Contexts,
        actions: Vec<u32>,
        rewards: Vec<f64>,
        propensities: Option<Vec<f64>>,
    ) -> Result<Self, Error> {
        let n = contexts.n_rounds();
        for (what, got) in [
            ("actions, one per round", actions.len()),
            ("rewards, one per round", rewards.len()),
            ("propensities, one per round", propensities.as_ref().map_or(n, Vec::len)),
        ] {
            if got != n {
                return Err(Error::Shape { what, expected: n, got });
            }
        }
        let n_actions = contexts.layout().n_actions;
        for round in 0..n {
            let action = actions[round] as usize;
            if action >= n_actions {
                return Err(Error::ActionRange { round, action, n_actions });
            }
            if contexts.place(round, action).is_none() {
                return Err(Error::NotEligible { round, action, offered: contexts.pairs(round).len() });
            }
            let reward = rewards[round];
            if !reward.is_finite() {
                return Err(Error::Value { round, column: Column::Reward, range: "a finite number", got: reward });
            }
            if let Some(&p) = propensities.as_ref().map(|p| &p[round])
                && !(p > 0.0 && p <= 1.0)
            {
                return Err(Error::Value { round, column: Column::Propensity, range: "in (0, 1]", got: p });
            }
        }
        Ok(LoggedData { contexts, actions, rewards, propensities })
    }

    /// The contexts.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The same log with other rewards, which must be finite.
    pub fn with_rewards(&self, f: impl Fn(f64) -> f64) -> LoggedData {
        LoggedData { rewards: self.rewards.iter().map(|&r| f(r)).collect(), ..self.clone() }
    }

    /// A copy of the given rounds.
    pub fn slice(&self, rounds: Range<usize>) -> LoggedData {
        LoggedData {
            contexts: self.contexts.slice(rounds.clone()),
            actions: self.actions[rounds.clone()].to_vec(),
            rewards: self.rewards[rounds.clone()].to_vec(),
            propensities: self.propensities.as_ref().map(|p| p[rounds].to_vec()),
        }
    }

    /// A copy of the given rounds, in that order.
    pub fn select(&self, rounds: &[usize]) -> LoggedData {
        LoggedData {
            contexts: self.contexts.select(rounds),
            actions: rounds.iter().map(|&t| self.actions[t]).collect(),
            rewards: rounds.iter().map(|&t| self.rewards[t]).collect(),
            propensities: self.propensities.as_ref().map(|p| rounds.iter().map(|&t| p[t]).collect()),
        }
    }

    /// Logs of one layout, one after another. Propensities are kept where all have them.
    pub fn concat(logs: Vec<LoggedData>) -> Result<LoggedData, Error> {
        let Some(first) = logs.first() else {
            return Err(Error::Param { name: "number of logs", range: "at least 1", got: 0.0 });
        };
        let layout = first.contexts.layout();
        if let Some(other) = logs.iter().find(|log| log.contexts.layout() != layout) {
            return Err(Error::Layout { expected: layout, got: other.contexts.layout() });
        }
        let known = logs.iter().all(|log| log.propensities.is_some());
        let (mut contexts, mut actions, mut rewards, mut propensities) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for log in logs {
            contexts.push(log.contexts);
            actions.extend(log.actions);
            rewards.extend(log.rewards);
            propensities.extend(log.propensities.into_iter().flatten().filter(|_| known));
        }
        let contexts = Contexts::concat(layout, contexts);
        Ok(LoggedData { contexts, actions, rewards, propensities: known.then_some(propensities) })
    }

    /// Number n of rounds.
    pub fn n_rounds(&self) -> usize {
        self.actions.len()
    }

    /// The chosen actions.
    pub fn actions(&self) -> &[u32] {
        &self.actions
    }

    /// The observed rewards.
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// The propensities, where they are known.
    pub fn propensities(&self) -> Option<&[f64]> {
        self.propensities.as_deref()
    }

    /// Round t, counted from 0.
    pub fn round(&self, t: usize) -> Round<'_> {
        let action = self.actions[t] as usize;
        let place = self.contexts.place(t, action).expect("checked at the door");
        Round {
            chosen: self.contexts.pair(t, place),
            reward: self.rewards[t],
            propensity: self.propensities.as_ref().map(|p| p[t]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Eligible, Encoding, Layout};

    const PER_ACTION: Layout = Layout { dim: 2, n_actions: 3, encoding: Encoding::PerAction };

    fn some(offsets: &[usize], actions: &[u32]) -> Eligible {
        Eligible::Some { offsets: offsets.to_vec(), actions: actions.to_vec() }
    }

    fn refusal(x: Vec<f32>, eligible: Eligible, actions: &[u32], rewards: &[f64], p: Option<&[f64]>) -> String {
        Contexts::new(PER_ACTION, x, eligible)
            .and_then(|c| LoggedData::new(c, actions.to_vec(), rewards.to_vec(), p.map(<[f64]>::to_vec)))
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn eligible_sets_vary_by_round() {
        let contexts = Contexts::new(PER_ACTION, (0..6).map(|v| v as f32).collect(), some(&[0, 1, 3], &[2, 0, 1]));
        let log = LoggedData::new(contexts.unwrap(), vec![2, 1], vec![0.0, 1.0], Some(vec![1.0, 0.25])).unwrap();
        assert_eq!(log.contexts().pairs(1), 1..3);
        assert_eq!(log.round(0).chosen, Pair { x: &[0.0, 1.0], action: 2 });
        assert_eq!(
            log.round(1),
            Round { chosen: Pair { x: &[4.0, 5.0], action: 1 }, reward: 1.0, propensity: Some(0.25) }
        );
        assert_eq!(log.contexts().place(0, 1), None);
    }

    #[test]
    fn each_refusal_names_round_column_and_value() {
        let x = || vec![0.5; 12];
        let cases = [
            (
                refusal(x(), Eligible::All, &[0, 3], &[0.0, 0.0], None),
                "round 1, action: must be below the number of actions, 3, got 3",
            ),
            (
                refusal(x(), Eligible::All, &[0, 1], &[0.0, f64::NAN], None),
                "round 1, reward: must be a finite number, got NaN",
            ),
            (
                refusal(x(), Eligible::All, &[0, 1], &[0.0, 0.0], Some(&[0.0, 1.0])),
                "round 0, propensity: must be in (0, 1], got 0",
            ),
            (
                refusal(x(), Eligible::All, &[0, 1], &[0.0, 0.0], Some(&[0.5, 1.5])),
                "round 1, propensity: must be in (0, 1], got 1.5",
            ),
            (refusal(x(), Eligible::All, &[0], &[0.0, 0.0], None), "actions, one per round: expected 2, got 1"),
            (
                refusal(vec![0.5; 4], some(&[0, 1, 2], &[0, 1]), &[0, 2], &[0.0, 0.0], None),
                "round 1, action: 2 is not among the 1 eligible actions of the round",
            ),
            (
                refusal(vec![0.5; 4], some(&[0, 1, 2], &[0, 7]), &[0, 2], &[0.0, 0.0], None),
                "round 1, eligible actions: must be below the number of actions, got 7",
            ),
            (
                refusal(vec![0.5; 4], some(&[0, 2, 2], &[0, 1]), &[0, 1], &[0.0, 0.0], None),
                "round 1, eligible actions: must be at least one action, got 0",
            ),
            (refusal(vec![0.5; 10], Eligible::All, &[0], &[0.0], None), "context vectors: expected 3, got 5"),
            (
                refusal(vec![0.5; 5], Eligible::All, &[0], &[0.0], None),
                "numbers in the contexts, a multiple of dim: expected 6, got 5",
            ),
        ];
        for (got, expected) in cases {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_bad_feature_is_named_in_both_shapes() {
        let mut x = vec![0.5; 12];
        x[9] = f32::INFINITY;
        let per_action = Contexts::new(PER_ACTION, x.clone(), Eligible::All).unwrap_err().to_string();
        assert_eq!(per_action, "round 1, feature 1 of action 1: must be a finite number, got inf");
        let shared = Contexts::new(Layout { encoding: Encoding::Disjoint, ..PER_ACTION }, x, Eligible::All);
        assert_eq!(shared.unwrap_err().to_string(), "round 4, feature 1: must be a finite number, got inf");
    }
}
