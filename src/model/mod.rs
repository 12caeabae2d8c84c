//! Reward models: each reads a log once, in order, and can tell for any context and action a **mean** and a **width**.
//!
//! The paper's six algorithms are four models and the number β, which is applied afterwards ([`crate::policy`]) and is
//! no part of training:
//!
//! | paper's name | model | β |
//! |---|---|---|
//! | NeuraLCB (Algorithms 1 and 7), NeuralGreedy (6) | [`Neural`] | > 0, 0 |
//! | NeuralLinLCB (4), NeuralLinGreedy (5) | [`NeuralLinear`] | > 0, 0 |
//! | LinLCB (2) | [`Linear`] | > 0 |
//! | KernLCB (3) | [`Kernel`] | > 0 |
//! | tabular (Table 1: Rashidinejad et al., Yin & Wang) | [`Tabular`] | > 0, 0 |
//! | linear greedy (Table 1: Duan & Wang) | [`Linear`] | 0 |
//! | narrow ReLU network (Table 1: Nguyen-Tang et al.) | [`Refit`], on demand | 0 |
//! | NeuralUCB's retraining from scratch (Section 5) | [`Refit`], every round | > 0 |
//! | choice, regression, VIPeR, clones and their kin | [`TrunkModel`] | ≥ 0 |
//!
//! A [`Learner`] is a model in training; [`Learner::model`] gives what it has learned so far as a frozen
//! [`RewardModel`], which later rounds do not change.

mod draws;
mod exact;
mod kernel;
mod kernel_scorer;
mod lambda;
mod linear;
mod neural;
mod neural_linear;
mod precision;
mod rbf;
mod refit;
mod replay;
mod scorer;
mod tabular;
pub(crate) mod trunk;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use kernel::{Kernel, KernelConfig};
pub use lambda::{Covariance, ExactForm};
pub use linear::{Linear, LinearConfig};
pub use neural::{Mode, Neural, NeuralConfig, UpdateOrder};
pub use neural_linear::{NeuralLinear, NeuralLinearConfig};
pub use precision::Precision;
pub use refit::{Refit, RefitConfig, When};
pub use tabular::{Tabular, TabularConfig};
pub use trunk::{Capacity, Objective, Perturbation, TrunkConfig, TrunkLearner, TrunkModel, Width};

use crate::archive::Archive;
use crate::data::{Contexts, Layout, LoggedData, Pair};
use crate::error::Error;
use crate::net::NetConfig;
use crate::seed::Seed;
use crate::watch::Watch;

/// Mean and width of every pair of some contexts, in the order of the pairs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimates {
    /// The estimated reward.
    pub mean: Vec<f64>,
    /// Its uncertainty; the policy subtracts β times it.
    pub width: Vec<f64>,
}

/// What has been learned: mean and width for any context and action.
pub trait RewardModel: Send + Sync {
    /// The contexts it understands.
    fn layout(&self) -> Layout;

    /// Fills mean and width of all pairs of the given rounds. [`RewardModel::estimate`] is the door that checks.
    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]);

    /// Mean and width of every pair, in parallel over blocks of rounds; the same bits with any number of threads.
    fn estimate(&self, contexts: &Contexts) -> Result<Estimates, Error> {
        let mut out = Estimates::default();
        self.estimate_into(contexts, &mut out)?;
        Ok(out)
    }

    /// As [`RewardModel::estimate`], into memory that is used again: what `out` held is overwritten.
    fn estimate_into(&self, contexts: &Contexts, out: &mut Estimates) -> Result<(), Error> {
        if contexts.layout() != self.layout() {
            return Err(Error::Layout { expected: self.layout(), got: contexts.layout() });
        }
        out.mean.resize(contexts.n_pairs(), 0.0);
        out.width.resize(contexts.n_pairs(), 0.0);
        let mut blocks = Vec::new();
        let (mut mean, mut width) = (&mut out.mean[..], &mut out.width[..]);
        let step = rounds_per_block(self.layout().n_actions);
        for start in (0..contexts.n_rounds()).step_by(step) {
            let rounds = start..(start + step).min(contexts.n_rounds());
            let pairs = contexts.first_pair(rounds.end) - contexts.first_pair(rounds.start);
            let (own_mean, rest) = mean.split_at_mut(pairs);
            mean = rest;
            let (own_width, rest) = width.split_at_mut(pairs);
            width = rest;
            blocks.push((rounds, own_mean, own_width));
        }
        blocks.into_par_iter().for_each(|(rounds, mean, width)| self.estimate_rounds(contexts, rounds, mean, width));
        Ok(())
    }
}

/// Rounds that one thread estimates at a time: at most 256, and about 1,024 to 4,096 pairs. Fixed, so that results do
/// not depend on the number of threads.
fn rounds_per_block(n_actions: usize) -> usize {
    256.min(4096 / n_actions).max(1024 / n_actions).max(1)
}

/// A model in training.
pub trait Learner: Send {
    /// Reads one round: what was chosen and what came of it.
    fn observe(&mut self, chosen: Pair<'_>, reward: f64);

    /// Reads some rounds of a log, in order. A learner that looks at more of a round than what was chosen takes it
    /// here.
    fn read(&mut self, log: &LoggedData, rounds: Range<usize>) {
        for t in rounds {
            let round = log.round(t);
            self.observe(round.chosen, round.reward);
        }
    }

    /// Goes through all that has been learned, by name: into a file, or back from one into a learner that was made with
    /// the same settings.
    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error>;

    /// Whose fit takes long tells the watch how far it is, and ends when it says so.
    fn watch(&mut self, _: &Arc<Watch>) {}

    /// What has been learned so far. A learner that has stopped learning returns the same model again.
    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error>;
}

/// Settings of any reward model: what a runner or a file needs to make one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum ModelConfig {
    /// NeuraLCB, NeuralGreedy.
    Neural(NeuralConfig),
    /// NeuralLinLCB, NeuralLinGreedy.
    NeuralLinear(NeuralLinearConfig),
    /// LinLCB.
    Linear(LinearConfig),
    /// KernLCB.
    Kernel(KernelConfig),
    /// Tabular pessimism and tabular greedy.
    Tabular(TabularConfig),
    /// A network fitted from scratch: narrow ReLU on demand, NeuralUCB's retraining at every round.
    Refit(RefitConfig),
    /// Choice, regression, clones: a shared trunk, fitted to a whole log ([`TrunkModel::fit`]).
    Trunk(TrunkConfig),
}

impl ModelConfig {
    /// How many numbers such a model keeps at least: a claim that can be held against a file before memory is taken.
    pub fn n_numbers(&self, layout: Layout) -> u128 {
        let product = |sizes: &[usize]| sizes.iter().fold(1u128, |n, &size| n.saturating_mul(size as u128));
        let params = |net: &NetConfig| {
            let (m, hidden) = (net.width, net.depth.saturating_sub(2));
            product(&[layout.n_blocks(), layout.dim, m]).saturating_add(product(&[hidden, m, m]))
        };
        // primal Λ: p × p; each Λ and each weight counts
        let network = |net: &NetConfig, covariance| match covariance {
            Covariance::Exact(ExactForm::Primal) => params(net).saturating_mul(params(net)),
            Covariance::PerAction => {
                params(net).saturating_mul(2).max(product(&[layout.n_actions, layout.dim, net.width]))
            }
            _ => params(net),
        };
        match self {
            ModelConfig::Neural(config) => network(&config.net, config.covariance),
            ModelConfig::NeuralLinear(config) => network(&config.net, config.covariance),
            ModelConfig::Linear(_) => product(&[layout.n_blocks(), layout.dim, layout.dim]),
            ModelConfig::Refit(config) => network(&config.net, config.covariance),
            // a trunk holds its size against the file itself
            ModelConfig::Trunk(_) | ModelConfig::Kernel(_) | ModelConfig::Tabular(_) => 0,
        }
    }

    /// Whether it tells rewards. A clone only tells which action is the most likely, in no unit and without a β.
    pub fn knows_rewards(&self) -> bool {
        !matches!(self, ModelConfig::Trunk(config) if !config.objective.knows_rewards())
    }

    /// The frozen model that a policy's arrays hold, without what only training needs.
    pub fn restore(&self, layout: Layout, archive: &mut Archive) -> Result<Arc<dyn RewardModel>, Error> {
        Ok(match self {
            ModelConfig::Neural(config) => Arc::new(config.restore::<f32>(layout, archive)?),
            ModelConfig::NeuralLinear(config) => Arc::new(config.restore::<f32>(layout, archive)?),
            ModelConfig::Refit(config) => Arc::new(config.restore::<f32>(layout, archive)?),
            // their learners are what they have learned
            ModelConfig::Linear(_) | ModelConfig::Kernel(_) | ModelConfig::Tabular(_) | ModelConfig::Trunk(_) => {
                let mut learner = self.learner(layout, Seed::new(0))?;
                learner.archive(archive)?;
                learner.model()?
            }
        })
    }

    /// A learner at its start. The seed decides the initial weights and the batches.
    pub fn learner(&self, layout: Layout, seed: Seed) -> Result<Box<dyn Learner>, Error> {
        Ok(match self {
            ModelConfig::Neural(config) => Box::new(Neural::<f32>::new(config.clone(), layout, seed)?),
            ModelConfig::NeuralLinear(config) => Box::new(NeuralLinear::<f32>::new(config.clone(), layout, seed)?),
            ModelConfig::Linear(config) => Box::new(Linear::new(config.clone(), layout)?),
            ModelConfig::Kernel(config) => Box::new(Kernel::new(config.clone(), layout)?),
            ModelConfig::Tabular(config) => Box::new(Tabular::new(config.clone(), layout)?),
            ModelConfig::Refit(config) => Box::new(Refit::<f32>::new(config.clone(), layout, seed)?),
            ModelConfig::Trunk(config) => Box::new(TrunkLearner::new(config.clone(), layout, seed)?),
        })
    }
}
