//! Behaviour (logging) policies μ(a | 𝒟_{t−1}, x_t) with their true probabilities.
//!
//! * uniform over the eligible actions;
//! * ε-greedy on the true mean reward: μ = (1 − ε)·1[a = a*] + ε/K;
//! * Appendix F's adaptive mixture: μ = (1 − ε)·π* + ε·π_LinUCB, where LinUCB learns from the log it helps to make;
//! * a fixed policy given as a table of one probability per action.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::linucb::{LinUcb, LinUcbConfig};
use crate::data::{Contexts, Layout, Pair};
use crate::error::Error;
use crate::seed::Stream;

/// Settings of a behaviour policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BehaviourConfig {
    /// Uniform over the eligible actions.
    Uniform,
    /// With probability 1 − ε the action of the largest true mean, else uniform over the eligible ones.
    EpsilonGreedy {
        /// ε, in [0, 1].
        epsilon: f64,
    },
    /// With probability 1 − ε the action of the largest true mean, else LinUCB's.
    LinUcbMixture {
        /// ε, in [0, 1].
        epsilon: f64,
        /// LinUCB's settings.
        linucb: LinUcbConfig,
    },
    /// One probability per action; where a round offers only some actions, rescaled over those.
    Table(Vec<f64>),
}

/// A behaviour policy at work.
#[derive(Debug, Clone)]
pub struct Behaviour {
    kind: Kind,
    probabilities: Vec<f64>,
}

#[derive(Debug, Clone)]
enum Kind {
    Uniform,
    EpsilonGreedy(f64),
    LinUcbMixture(f64, LinUcb),
    Table(Vec<f64>),
}

/// How far the probabilities of a table may sum from 1.
const SUM_TOLERANCE: f64 = 1e-6;

impl Behaviour {
    /// Checks the settings.
    pub fn new(config: &BehaviourConfig, layout: Layout) -> Result<Self, Error> {
        let kind = match config {
            BehaviourConfig::Uniform => Kind::Uniform,
            BehaviourConfig::EpsilonGreedy { epsilon } => Kind::EpsilonGreedy(check_epsilon(*epsilon)?),
            BehaviourConfig::LinUcbMixture { epsilon, linucb } => {
                Kind::LinUcbMixture(check_epsilon(*epsilon)?, LinUcb::new(*linucb, layout)?)
            }
            BehaviourConfig::Table(table) => {
                if table.len() != layout.n_actions {
                    let what = "probabilities in the policy table, one per action";
                    return Err(Error::Shape { what, expected: layout.n_actions, got: table.len() });
                }
                if let Some(&got) = table.iter().find(|p| !(**p >= 0.0 && **p <= 1.0)) {
                    return Err(Error::Param { name: "probability in the policy table", range: "in [0, 1]", got });
                }
                let sum: f64 = table.iter().sum();
                if (sum - 1.0).abs() > SUM_TOLERANCE {
                    let name = "sum of the policy table";
                    return Err(Error::Param { name, range: "1 within 1e-6", got: sum });
                }
                Kind::Table(table.clone())
            }
        };
        Ok(Behaviour { kind, probabilities: Vec::with_capacity(layout.n_actions) })
    }

    /// The probability of each eligible action of `round`, given the true mean reward of each.
    pub fn probabilities(&mut self, contexts: &Contexts, round: usize, means: &[f64]) -> &[f64] {
        let k = means.len();
        let p = &mut self.probabilities;
        p.clear();
        match &mut self.kind {
            Kind::Uniform => p.resize(k, 1.0 / k as f64),
            Kind::EpsilonGreedy(epsilon) => {
                p.resize(k, *epsilon / k as f64);
                p[best(means)] += 1.0 - *epsilon;
            }
            Kind::LinUcbMixture(epsilon, linucb) => {
                p.resize(k, 0.0);
                p[best(means)] += 1.0 - *epsilon;
                p[linucb.play(contexts, round)] += *epsilon;
            }
            Kind::Table(table) => {
                p.extend((0..k).map(|i| table[contexts.action(round, i)]));
                let sum: f64 = p.iter().sum();
                if sum > 0.0 {
                    p.iter_mut().for_each(|p| *p /= sum);
                } else {
                    p.fill(1.0 / k as f64); // none of the table's actions is offered
                }
            }
        }
        p
    }

    /// Draws an action for `round`: its place among the eligible ones and its probability.
    pub fn play(&mut self, contexts: &Contexts, round: usize, means: &[f64], rng: &mut Stream) -> (usize, f64) {
        let p = self.probabilities(contexts, round, means);
        let u: f64 = rng.random();
        let mut sum = 0.0;
        for (place, &own) in p.iter().enumerate() {
            sum += own;
            if u < sum {
                return (place, own);
            }
        }
        // rounding left the sum just below 1: the last action that is ever played
        let place = p.iter().rposition(|&p| p > 0.0).expect("probabilities sum to one");
        (place, p[place])
    }

    /// The probabilities of the round that was asked for last.
    pub(crate) fn last_probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// Tells an adaptive policy what came of a round.
    pub fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        if let Kind::LinUcbMixture(_, linucb) = &mut self.kind {
            linucb.observe(chosen, reward);
        }
    }
}

/// The first index of the largest value.
pub(crate) fn best(values: &[f64]) -> usize {
    let mut best = 0;
    for (i, v) in values.iter().enumerate() {
        if *v > values[best] {
            best = i;
        }
    }
    best
}

fn check_epsilon(epsilon: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&epsilon) {
        Ok(epsilon)
    } else {
        Err(Error::Param { name: "epsilon", range: "in [0, 1]", got: epsilon })
    }
}
