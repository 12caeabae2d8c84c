//! The work of a practitioner: the networks that `train` makes of a log with one context per round, few and many
//! features and actions; LinLCB and the clone of the logged actions on the same.

use std::hint::black_box;

use neuralcb::model::{LinearConfig, Mode, NeuralConfig};
use neuralcb::net::{Init, NetConfig, OutputScale, Outputs};
use neuralcb::policy::{Imitation, ImitationConfig};
use neuralcb::{Contexts, Eligible, Encoding, Error, Layout, LoggedData, ModelConfig};

use crate::counts::Trunk;
use crate::data::{Rounds, random_rounds, seed, shared_contexts};
use crate::task::{Scoring, Task, Training};
use crate::tasks::mode;

/// One problem and how much of it a run does.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Features of a context.
    pub dim: usize,
    /// Actions.
    pub n_actions: usize,
    /// Rounds that are read one by one.
    pub rounds: usize,
    /// Rounds with a step on a batch each.
    pub batches: usize,
    /// Contexts that are scored.
    pub contexts: usize,
}

/// Few features and actions.
pub const SMALL: Size = Size { dim: 20, n_actions: 10, rounds: 1000, batches: 200, contexts: 1000 };
/// Many.
pub const LARGE: Size = Size { dim: 200, n_actions: 100, rounds: 30, batches: 30, contexts: 200 };

/// Rounds of LinLCB, which takes microseconds for each.
pub const LINEAR_ROUNDS: usize = 2000;
/// Samples of a batch of a shared trunk.
pub const TRUNK_BATCH: usize = 64;
/// Rounds of the clone's log: one batch.
pub const CLONE_ROUNDS: usize = 64;
/// Steps of a fit on so short a log.
pub const CLONE_STEPS: usize = 300;

impl Size {
    fn layout(self) -> Layout {
        Layout { dim: self.dim, n_actions: self.n_actions, encoding: Encoding::Disjoint }
    }

    /// Pairs of a scoring.
    pub fn pairs(self) -> usize {
        self.contexts * self.n_actions
    }

    /// The clone's network.
    pub fn trunk(self) -> Trunk {
        Trunk { d: self.dim, outputs: self.n_actions }
    }

    /// `n` rounds of random contexts, actions and rewards.
    pub(crate) fn log(self, n: usize) -> Rounds {
        random_rounds(self.layout(), n)
    }

    /// What is scored.
    pub(crate) fn contexts(self) -> Result<Contexts, Error> {
        shared_contexts(self.layout(), self.contexts, 1.0)
    }
}

/// What the preset `practical` makes: L = 3, m = 128, layer norm, uniform initialisation, output scale 1.
pub(crate) fn config(steps: Option<usize>) -> NeuralConfig {
    let (output_scale, init) = (OutputScale::One, Init::Uniform);
    let net = NetConfig { depth: 3, width: 128, output_scale, init, ..NetConfig::default() };
    NeuralConfig { net, mode: mode(steps), ..NeuralConfig::default() }
}

/// A shared trunk with an output per action, in B-mode of one step per round.
pub(crate) fn trunk_config() -> NeuralConfig {
    let net = NetConfig {
        width: Trunk::WIDTH,
        layer_norm: false,
        biases: true,
        outputs: Outputs::PerAction,
        output_scale: OutputScale::One,
        init: Init::He,
        ..NetConfig::default()
    };
    NeuralConfig { net, mode: Mode::Batch { steps: 1, batch: TRUNK_BATCH }, ..NeuralConfig::default() }
}

/// Rounds of S-mode.
pub fn rounds(size: Size) -> Result<Task, Error> {
    Training::new(ModelConfig::Neural(config(None)), size.log(size.rounds)).map(Task::Train)
}

/// Rounds of B-mode, of one step each.
pub fn batches(size: Size) -> Result<Task, Error> {
    Training::new(ModelConfig::Neural(config(Some(1))), size.log(size.batches)).map(Task::Train)
}

/// Mean and width, after some rounds of S-mode.
pub fn score(size: Size) -> Result<Task, Error> {
    Scoring::new(&ModelConfig::Neural(config(None)), &size.log(size.rounds), size.contexts()?).map(Task::Score)
}

/// Rounds of a shared trunk in B-mode, of one step each.
pub fn trunk_batches(size: Size) -> Result<Task, Error> {
    Training::new(ModelConfig::Neural(trunk_config()), size.log(size.batches)).map(Task::Train)
}

/// A shared trunk's mean and width of all actions.
pub fn trunk_score(size: Size) -> Result<Task, Error> {
    Scoring::new(&ModelConfig::Neural(trunk_config()), &size.log(size.rounds), size.contexts()?).map(Task::Score)
}

fn clone_log(size: Size) -> Result<LoggedData, Error> {
    let Rounds { layout, x, actions, rewards } = size.log(CLONE_ROUNDS);
    LoggedData::new(Contexts::new(layout, x, Eligible::All)?, actions, rewards, None)
}

fn fit(log: &LoggedData) -> Result<Imitation, Error> {
    Imitation::fit(&ImitationConfig::default(), log, 0..log.n_rounds(), seed().child("clone"))
}

/// A fit of the clone.
pub fn clone_steps(size: Size) -> Result<Task, Error> {
    let log = clone_log(size)?;
    Ok(Task::Again(Box::new(move || fit(&log).map(|clone| _ = black_box(clone)))))
}

/// The clone's probabilities.
pub fn clone_score(size: Size) -> Result<Task, Error> {
    let (clone, contexts) = (fit(&clone_log(size)?)?, size.contexts()?);
    Ok(Task::Again(Box::new(move || clone.probabilities(black_box(&contexts)).map(|p| _ = black_box(p)))))
}

/// Rounds of LinLCB.
pub fn linear_rounds(size: Size) -> Result<Task, Error> {
    Training::new(ModelConfig::Linear(LinearConfig::default()), size.log(LINEAR_ROUNDS)).map(Task::Train)
}

/// LinLCB's mean and width, after some rounds.
pub fn linear_score(size: Size) -> Result<Task, Error> {
    let config = ModelConfig::Linear(LinearConfig::default());
    Scoring::new(&config, &size.log(size.rounds), size.contexts()?).map(Task::Score)
}
