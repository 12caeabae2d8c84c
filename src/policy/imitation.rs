//! Imitation: a classifier of the logged actions, the clone of the policy that made the log.
//!
//! μ̂(a | x) = softmax over the eligible actions of z_a(x), where z is a network on a shared trunk with one hidden
//! layer ([`Trunk`]); with `width` 0 there is none, and μ̂ is the multinomial logistic model. Where every action has
//! its own vector one z is taken of each (a conditional logit).
//!
//! It is fitted by maximum likelihood: −log μ̂(a_t | x_t) over some passes in batches of 64 rounds.
//!
//! A log of a good policy is a strong teacher even without rewards: whoever learns from rewards should beat its clone.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::pessimism::Choices;
use crate::archive::Archive;
use crate::data::{Contexts, Layout, LoggedData};
use crate::error::{Error, at_least};
use crate::linalg::vectors::dispatch;
use crate::model::trunk::{Capacity, Targets, Training, Trunk};
use crate::net::{NetConfig, Towards, loss};
use crate::seed::Seed;
use crate::watch::Watch;

/// Settings of the clone.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `width` | 100 | hidden units; 0 is the multinomial logistic model | ≥ 0 |
/// | `lr` | 0.003 | Adam's learning rate, which falls linearly to zero | > 0 |
/// | `l2` | 0.001 | weight of ½‖W‖² | ≥ 0 |
/// | `epochs` | 10 | passes over the log (more on a log of a few batches) | ≥ 1 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, from = "Stored")]
pub struct ImitationConfig {
    /// Hidden units; 0 for none.
    pub width: usize,
    /// Adam's learning rate at the start.
    pub lr: f64,
    /// Weight of ½‖W‖².
    pub l2: f64,
    /// Passes over the log.
    pub epochs: usize,
}

impl Default for ImitationConfig {
    fn default() -> Self {
        ImitationConfig { width: 100, lr: 3e-3, l2: 1e-3, epochs: 10 }
    }
}

/// The settings as files have them; those of version 0.1 had a `patience`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Stored {
    width: usize,
    lr: f64,
    l2: f64,
    epochs: usize,
    #[serde(rename = "patience")]
    _patience: usize,
}

impl Default for Stored {
    fn default() -> Self {
        let ImitationConfig { width, lr, l2, epochs } = ImitationConfig::default();
        Stored { width, lr, l2, epochs, _patience: 0 }
    }
}

impl From<Stored> for ImitationConfig {
    fn from(Stored { width, lr, l2, epochs, .. }: Stored) -> Self {
        ImitationConfig { width, lr, l2, epochs }
    }
}

/// Rounds per step of Adam.
const BATCH: usize = 64;

/// Steps that a short log is given at least.
const LEAST_STEPS: usize = 300;

/// A fitted clone.
#[derive(Debug, Clone)]
pub struct Imitation {
    trunk: Trunk,
}

impl Imitation {
    /// Fits the clone to the given rounds of a log. The seed decides initial weights and batches.
    pub fn fit(config: &ImitationConfig, log: &LoggedData, rounds: Range<usize>, seed: Seed) -> Result<Self, Error> {
        at_least("rounds in the log", 1, "at least 1", rounds.len())?;
        at_least("epochs", 1, "at least 1", config.epochs)?;
        let contexts = log.contexts();
        let mut trunk = Trunk::new(Self::network(config, contexts.layout()), contexts, seed)?;
        let rounds: Vec<u32> = rounds.map(|t| t as u32).collect();
        let passes = config.epochs.max(LEAST_STEPS / rounds.len().div_ceil(BATCH));
        let training = Training { passes, batch: BATCH, lr: config.lr, l2: config.l2, towards: Towards::Zero };
        let order = &mut seed.stream("batches");
        trunk.train(contexts, &rounds, training, order, &Targets::clone_of(log), &Watch::default())?;
        Ok(Imitation { trunk })
    }

    fn network(config: &ImitationConfig, layout: Layout) -> NetConfig {
        let layers = usize::from(config.width > 0);
        Capacity { layers, width: config.width.max(1), ..Capacity::default() }.network(layout)
    }

    /// A clone that has learned nothing, for [`Imitation::archive`] to fill.
    pub fn blank(config: &ImitationConfig, layout: Layout) -> Imitation {
        let trunk = Trunk::blank(Self::network(config, layout), layout);
        Imitation { trunk: trunk.expect("these networks exist for every layout") }
    }

    /// Goes through what was learned under `clone.`.
    pub fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        self.trunk.archive("clone", archive)
    }

    /// The contexts it understands.
    pub fn layout(&self) -> Layout {
        self.trunk.layout()
    }

    /// μ̂(a | x) of every pair.
    pub fn probabilities(&self, contexts: &Contexts) -> Result<Vec<f64>, Error> {
        if contexts.layout() != self.layout() {
            return Err(Error::Layout { expected: self.layout(), got: contexts.layout() });
        }
        let rounds: Vec<usize> = (0..contexts.n_rounds()).collect();
        let block = |rounds: &[usize]| {
            let mut z = Vec::new();
            self.trunk.outputs(contexts, rounds.iter().copied(), &mut z);
            dispatch(loss::SoftMax { z: &mut z, sizes: rounds.iter().map(|&t| contexts.pairs(t).len()) });
            z.into_iter().map(f64::from).collect::<Vec<f64>>()
        };
        Ok(rounds.par_chunks(256).flat_map_iter(block).collect())
    }

    /// The place of the most likely action of every round; of equal ones, the first.
    pub fn choose(&self, contexts: &Contexts) -> Result<Choices, Error> {
        let p = self.probabilities(contexts)?;
        Ok((0..contexts.n_rounds()).map(|t| super::behaviour::best(&p[contexts.pairs(t)]) as u32).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandit::{Bandit, Classification, Labelled, RewardRule, Synthetic, SyntheticConfig, TestSet, collect};
    use crate::data::{Eligible, Encoding};
    use crate::policy::{Behaviour, BehaviourConfig};
    use std::sync::Arc;

    fn log(bandit: &dyn Bandit, n: usize) -> LoggedData {
        let config = BehaviourConfig::EpsilonGreedy { epsilon: 0.1 };
        let mut behaviour = Behaviour::new(&config, bandit.layout()).unwrap();
        collect(bandit, &mut behaviour, n, Seed::new(4)).unwrap().log
    }

    /// Four classes in the plane, told apart by no straight line: the quadrant's sign pattern.
    fn quadrants() -> Classification {
        let x: Vec<f32> =
            (0..2000).flat_map(|i| [(i * 37 % 101) as f32 - 50.5, (i * 53 % 103) as f32 - 51.5]).collect();
        let labels = x.chunks(2).map(|x| u32::from(x[0] > 0.0) * 2 + u32::from((x[0] > 0.0) == (x[1] > 0.0))).collect();
        let data = Labelled { dim: 2, n_classes: 4, x, labels };
        Classification::new(Arc::new(data), (0..2000).collect(), RewardRule::Classes).unwrap()
    }

    #[test]
    fn the_clone_beats_the_policy_it_imitates_where_that_explores_at_random() {
        let bandit = quadrants();
        let log = log(&bandit, 2000);
        let clone = Imitation::fit(&ImitationConfig::default(), &log, 0..2000, Seed::new(1)).unwrap();
        let test = TestSet::draw(&bandit, 1000, &mut Seed::new(2).stream("test")).unwrap();
        let verdict = test.judge(&clone.choose(test.contexts()).unwrap());
        assert!(verdict.suboptimality < 0.04, "the behaviour policy has 0.075, the clone {}", verdict.suboptimality);
    }

    #[test]
    fn a_vector_per_action_makes_a_conditional_logit_that_finds_the_favourite() {
        let bandit = Synthetic::new(
            SyntheticConfig { n_actions: 4, dim: 3, ..SyntheticConfig::default() },
            &mut Seed::new(1).stream("bandit"),
        )
        .unwrap();
        let log = log(&bandit, 3000);
        let clone = Imitation::fit(&ImitationConfig::default(), &log, 0..3000, Seed::new(1)).unwrap();
        let p = clone.probabilities(log.contexts()).unwrap();
        let sums: Vec<f64> = p.chunks(4).map(|p| p.iter().sum()).collect();
        assert!(sums.iter().all(|s| (s - 1.0).abs() < 1e-5));
        let favourites = clone.choose(log.contexts()).unwrap();
        let played = favourites.iter().zip(log.actions()).filter(|(place, action)| place == action).count();
        assert!(played > 2580, "ε-greedy plays its favourite in 92.5 % of 3,000 rounds, the clone's in {played}");
    }

    #[test]
    fn only_eligible_actions_have_a_probability() {
        let layout = Layout { dim: 1, n_actions: 3, encoding: Encoding::Disjoint };
        let eligible = Eligible::Some { offsets: vec![0, 2, 3], actions: vec![0, 2, 1] };
        let contexts = Contexts::new(layout, vec![1.0, -1.0], eligible).unwrap();
        let log = LoggedData::new(contexts, vec![2, 1], vec![0.0, 0.0], None).unwrap();
        let clone = Imitation::fit(&ImitationConfig::default(), &log, 0..2, Seed::new(1)).unwrap();
        let p = clone.probabilities(log.contexts()).unwrap();
        assert_eq!((p.len(), p[2]), (3, 1.0));
        assert!(p[1] > 0.9, "{p:?}");
        assert_eq!(clone.choose(log.contexts()).unwrap(), [1, 0]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let log = log(&quadrants(), 10);
        let refuse = |c: ImitationConfig| Imitation::fit(&c, &log, 0..10, Seed::new(1)).unwrap_err().to_string();
        assert_eq!(refuse(ImitationConfig { epochs: 0, ..Default::default() }), "`epochs` must be at least 1, got 0");
        assert!(refuse(ImitationConfig { lr: -1.0, ..Default::default() }).starts_with("`lr` must be"));
    }
}
