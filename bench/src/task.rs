//! Work that can be prepared, run and timed.

use std::hint::black_box;
use std::sync::Arc;

use neuralcb::{Contexts, Error, Estimates, Learner, ModelConfig, RewardModel};

use crate::data::{Rounds, seed};

/// A learner that reads rounds.
pub struct Training {
    config: ModelConfig,
    rounds: Rounds,
    learner: Box<dyn Learner>,
}

impl Training {
    /// A learner at its start, and what it will read.
    pub fn new(config: ModelConfig, rounds: Rounds) -> Result<Self, Error> {
        let learner = learner(&config, &rounds)?;
        Ok(Training { config, rounds, learner })
    }

    /// Begins anew. The first round is read once here, so that the first touch of the learner's memory is not timed.
    pub fn fresh(&mut self) -> Result<(), Error> {
        self.learner = learner(&self.config, &self.rounds)?;
        self.read(1);
        Ok(())
    }

    /// Reads all rounds.
    pub fn run(&mut self) {
        self.read(self.rounds.n());
    }

    fn read(&mut self, n: usize) {
        for t in 0..n {
            let (chosen, reward) = self.rounds.round(t);
            self.learner.observe(chosen, reward);
        }
    }
}

/// A learner at its start, with the seed all jobs share.
pub(crate) fn learner(config: &ModelConfig, rounds: &Rounds) -> Result<Box<dyn Learner>, Error> {
    config.learner(rounds.layout, seed().child("model"))
}

/// A model that estimates contexts.
pub struct Scoring {
    model: Arc<dyn RewardModel>,
    contexts: Contexts,
    /// Used again in each run, as an experiment does from evaluation to evaluation.
    estimates: Estimates,
}

impl Scoring {
    /// Learns from the rounds; what has been learned will estimate the contexts.
    pub fn new(config: &ModelConfig, rounds: &Rounds, contexts: Contexts) -> Result<Self, Error> {
        let mut training = Training::new(config.clone(), rounds.clone())?;
        training.run();
        Ok(Scoring { model: training.learner.model()?, contexts, estimates: Estimates::default() })
    }

    /// Estimates all contexts.
    pub fn run(&mut self) -> Result<(), Error> {
        self.model.estimate_into(black_box(&self.contexts), &mut self.estimates)?;
        black_box(&self.estimates);
        Ok(())
    }
}

/// What a job does.
pub enum Task {
    /// Reads a log.
    Train(Training),
    /// Estimates contexts.
    Score(Scoring),
    /// Reads a log, then estimates contexts.
    Both(Training, Contexts),
    /// Anything else that can be done again as it is.
    Again(Again),
}

/// Work that can be done again as it is.
pub type Again = Box<dyn FnMut() -> Result<(), Error> + Send>;

impl Task {
    /// What must not be timed, before each run.
    pub fn fresh(&mut self) -> Result<(), Error> {
        match self {
            Task::Train(training) | Task::Both(training, _) => training.fresh(),
            Task::Score(_) | Task::Again(_) => Ok(()),
        }
    }

    /// The part that is timed.
    pub fn run(&mut self) -> Result<(), Error> {
        match self {
            Task::Train(training) => training.run(),
            Task::Score(scoring) => scoring.run()?,
            Task::Again(work) => work()?,
            Task::Both(training, contexts) => {
                training.run();
                black_box(training.learner.model()?.estimate(contexts)?);
            }
        }
        Ok(())
    }
}
