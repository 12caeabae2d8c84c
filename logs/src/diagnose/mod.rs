//! Is this log fit to learn from? One pass over its blocks, in bounded memory.
//!
//! Counts, rewards, propensities, effective sample sizes, an estimate of κ, repeated rounds, features that teach
//! nothing, and drift; and from these the [`Warning`]s, each with its cure. Memory does not grow with the log: at most
//! 65,536 actions, 2²⁰ hashes of rounds, 1,000 values of a feature and 64 segments of time are kept.

mod actions;
mod features;
mod halves;
mod kappa;
mod moments;
mod repeats;
mod table;
mod warnings;

use std::collections::HashSet;

use neuralcb::ope::{WeightShape, WeightSums};
use serde::{Deserialize, Serialize};

pub use actions::ActionReport;
pub use features::FeatureReport;
pub use halves::{Drift, Halves};
pub use kappa::Kappa;
pub use warnings::{Severity, Warning};

use crate::detail::{Detail, DetailSums, Round};
use crate::log::{Block, Offered};
use actions::Actions;
use features::{COUNTED, FeatureSums};
use halves::Segments;
use moments::Moments;
use repeats::Repeats;

/// Of the intervals of means over time and by segment.
const CONFIDENCE: f64 = 0.95;

/// What a log's rewards look like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rewards {
    /// The smallest.
    pub min: f64,
    /// Their mean: the value of the behaviour policy.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// How many different ones there are, up to 1,000.
    pub different: usize,
    /// Where there are two different rewards: how many rounds had the higher one.
    pub successes: Option<u64>,
}

/// What a log's propensities look like. (w: importance weights towards the uniform policy.)
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Propensities {
    /// The smallest.
    pub smallest: f64,
    /// The largest.
    pub largest: f64,
    /// The mean of w: about 1 where every offered action has a chance, less where some have none.
    pub mean_weight: f64,
    /// The standard error of that mean.
    pub mean_weight_error: f64,
    /// The largest w.
    pub max_weight: f64,
    /// Where each action has one propensity throughout the log: their sum, which must be 1.
    pub sum: Option<f64>,
}

/// Rounds that come more than once, feature for feature, with the same action, reward and propensity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Duplicates {
    /// How many rounds repeat an earlier one.
    pub count: u64,
    /// Whether every round was compared with all before it; otherwise `count` is a lower bound.
    pub complete: bool,
}

/// What a log is like, and what to beware of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Rounds that were read.
    pub rows: u64,
    /// The actions, in their order.
    pub actions: Vec<ActionReport>,
    /// The rewards; none for an empty log.
    pub rewards: Option<Rewards>,
    /// The propensities, where the log has them.
    pub propensities: Option<Propensities>,
    /// Effective sample size towards the uniform policy, where there are propensities.
    pub ess: Option<f64>,
    /// The estimate of the paper's κ.
    pub kappa: Option<Kappa>,
    /// Repeated rounds.
    pub duplicates: Duplicates,
    /// The features.
    pub features: Vec<FeatureReport>,
    /// Names of the features that have one value only.
    pub constant_features: Vec<String>,
    /// The first half of the log against the second.
    pub halves: Halves,
    /// What to beware of, the worst first.
    pub warnings: Vec<Warning>,
    /// One over the propensity of each round: the weight by a policy that surely does the same; none without
    /// propensities.
    #[serde(default)]
    pub weights: Option<WeightShape>,
    /// Rewards by action, over time and by segment.
    #[serde(default)]
    pub detail: Detail,
}

impl Diagnosis {
    /// Whether training on the log would be unwise.
    pub fn unwise(&self) -> bool {
        self.warnings.iter().any(|warning| warning.severity == Severity::Unwise)
    }
}

/// Reads all blocks of a log whose features have these names; `segments` are those by whose values rewards are told
/// apart. Blocks without actions and rewards are not counted: open the log so that it gives them.
pub fn diagnose<E>(
    blocks: impl IntoIterator<Item = Result<Block, E>>,
    shared: &[String],
    per_action: &[String],
    segments: &[String],
) -> Result<Diagnosis, E> {
    let mut sums = Sums::new(shared, per_action.len(), segments);
    for block in blocks {
        sums.add(&block?);
    }
    Ok(sums.diagnosis(shared, per_action))
}

/// Everything that is summed.
struct Sums {
    rows: u64,
    actions: Actions,
    rewards: Moments,
    different: HashSet<u64>,
    at_max: u64,
    max_weight: f64,
    shared: Vec<FeatureSums>,
    per_action: Vec<FeatureSums>,
    repeats: Repeats,
    segments: Segments,
    weights: WeightSums,
    detail: DetailSums,
}

impl Sums {
    fn new(shared: &[String], per_action: usize, segments: &[String]) -> Self {
        Sums {
            rows: 0,
            actions: Actions::default(),
            rewards: Moments::default(),
            different: HashSet::new(),
            at_max: 0,
            max_weight: 0.0,
            shared: vec![FeatureSums::default(); shared.len()],
            per_action: vec![FeatureSums::default(); per_action],
            repeats: Repeats::new(),
            segments: Segments::new(),
            weights: WeightSums::default(),
            detail: DetailSums::new(shared.iter().map(String::as_str), segments),
        }
    }

    fn add(&mut self, block: &Block) {
        let (Some(chosen), Some(rewards)) = (&block.chosen, &block.rewards) else { return };
        self.rows += rewards.len() as u64;
        let numbers = self.actions.add(block, chosen, rewards);
        for (t, &reward) in rewards.iter().enumerate() {
            if reward > self.rewards.max {
                self.at_max = 0;
            }
            self.rewards.push(reward, block.counts.as_ref().map_or(1.0, |counts| counts[t]));
            self.at_max += u64::from(reward == self.rewards.max);
            if self.different.len() < COUNTED {
                self.different.insert((reward + 0.0).to_bits());
            }
        }
        if let Some(propensities) = &block.propensities {
            let offers = |t: usize| match &block.offered {
                Offered::All => 1.0,
                Offered::Listed { offsets, .. } => (offsets[t + 1] - offsets[t]) as f64,
            };
            let weights = propensities.iter().enumerate().map(|(t, p)| 1.0 / (p * offers(t)));
            self.max_weight = weights.fold(self.max_weight, f64::max);
        }
        for (sums, values) in self.shared.iter_mut().zip(&block.shared) {
            sums.add(values, Some(rewards));
        }
        if let Offered::Listed { features, .. } = &block.offered {
            for (sums, values) in self.per_action.iter_mut().zip(features) {
                sums.add(values, None);
            }
        }
        self.repeats.add(block);
        self.segments.add(block, &numbers, rewards);
        self.add_detail(block, rewards);
    }

    fn add_detail(&mut self, block: &Block, rewards: &[f64]) {
        let times = |t: usize| block.counts.as_ref().map_or(1.0, |counts| counts[t]);
        let weight = |t: usize| block.propensities.as_ref().map_or(0.0, |propensities| 1.0 / propensities[t]);
        let round = |(t, &reward): (usize, &f64)| Round {
            weight: weight(t),
            terms: [0.0, 0.0, 0.0, reward],
            reward,
            predicted: None,
            times: times(t),
        };
        let rounds: Vec<Round> = rewards.iter().enumerate().map(round).collect();
        rounds.iter().for_each(|round| self.weights.add(round.weight * round.times));
        self.detail.add(block, &rounds);
    }

    fn diagnosis(&self, shared: &[String], per_action: &[String]) -> Diagnosis {
        let features: Vec<FeatureReport> = (self.shared.iter().zip(shared).map(|(sums, name)| (sums, name, false)))
            .chain(self.per_action.iter().zip(per_action).map(|(sums, name)| (sums, name, true)))
            .map(|(sums, name, per_action)| sums.report(name, per_action))
            .collect();
        let constant = features.iter().filter(|f| self.rows > 0 && f.is_constant()).map(|f| f.name.clone()).collect();
        let mut diagnosis = Diagnosis {
            rows: self.rows,
            actions: self.actions.reports(),
            rewards: (self.rows > 0).then(|| self.rewards()),
            propensities: (self.actions.propensities.n > 0.0).then(|| self.propensities()),
            ess: (self.actions.propensities.n > 0.0).then(|| self.actions.uniform.ess()),
            kappa: kappa::estimate(&self.actions, self.rewards.deviation()),
            duplicates: Duplicates { count: self.repeats.count, complete: self.repeats.complete },
            features,
            constant_features: constant,
            halves: self.segments.compare(shared),
            warnings: Vec::new(),
            weights: (self.actions.propensities.n > 0.0).then(|| self.weights.shape()),
            detail: self.detail.detail(CONFIDENCE),
        };
        let by_time = self.shared.iter().zip(shared).filter(|(sums, _)| sums.is_index()).map(|(_, name)| name.clone());
        let seen = warnings::Seen {
            indices: by_time.collect(),
            fine: self.shared.iter().chain(&self.per_action).any(FeatureSums::is_fine),
            overflow: self.actions.overflow,
        };
        diagnosis.warnings = warnings::warnings(&diagnosis, &seen);
        diagnosis
    }

    fn rewards(&self) -> Rewards {
        Rewards {
            min: self.rewards.min,
            mean: self.rewards.mean,
            max: self.rewards.max,
            deviation: self.rewards.deviation(),
            different: self.different.len(),
            successes: (self.different.len() == 2).then_some(self.at_max),
        }
    }

    fn propensities(&self) -> Propensities {
        let (actions, n) = (&self.actions, self.actions.rounds);
        let scale = actions.uniform_scale();
        let mean = actions.uniform.sum * scale / n;
        let variance = (actions.uniform.squares * scale * scale / n - mean * mean).max(0.0);
        // Only where nothing but the action decides: all offered, and one propensity for each.
        let one_each = !actions.listed && actions.list.iter().all(|a| a.smallest == a.largest);
        Propensities {
            smallest: actions.propensities.min,
            largest: actions.propensities.max,
            mean_weight: mean,
            mean_weight_error: (variance / n).sqrt(),
            max_weight: self.max_weight * scale,
            sum: one_each.then(|| actions.list.iter().map(|a| a.smallest).sum()),
        }
    }
}

#[cfg(test)]
mod tests;
