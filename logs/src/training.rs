//! A reward model in training that more rounds may follow, for as long as anyone has some.
//!
//! The first log decides how features and rewards are brought to one scale, and which actions there are; later rounds
//! are prepared alike. [`Training::policy`] gives what has been learned so far.

use std::path::Path;

use neuralcb::archive::{Archive, Keep};
use neuralcb::{Learner, Seed};

use crate::log::{Preparation, ReadLog};
use crate::policy::{Description, Method, Origin, Policy, PolicyError, Recipe, RewardScale, file};
use crate::train::{Prepared, Progress, arrays, prepare, read_into};

/// A training under way.
pub struct Training {
    prepared: Prepared,
    learner: Box<dyn Learner>,
    scale: RewardScale,
}

impl Training {
    /// Prepares for a log and reads it.
    pub fn start(log: &dyn ReadLog, recipe: &Recipe, progress: Progress<'_>) -> Result<Training, PolicyError> {
        let mut training = Training::blank(prepare(log, recipe, progress)?)?;
        training.read(log, progress)?;
        training.prepared.rounds = None;
        Ok(training)
    }

    /// Reads the rounds that follow. On an error they count as not read, and the training must be given up.
    pub fn go_on(&mut self, log: &dyn ReadLog, progress: Progress<'_>) -> Result<(), PolicyError> {
        let (_, summary) = Preparation::fit(log, self.prepared.description.preparation.config())?;
        self.read(log, progress)?;
        let description = &mut self.prepared.description;
        description.training.add(&summary);
        description.log.extend(Origin::of(log)?);
        Ok(())
    }

    /// What the rounds so far teach: the policy that training on all of them at once would have given.
    pub fn policy(&mut self) -> Result<Policy, PolicyError> {
        let arrays = arrays(self.learner.as_mut(), Keep::Policy)?;
        Ok(Policy::new(self.prepared.description.clone(), arrays)?)
    }

    /// Everything that going on needs, as a file of the format `training`.
    pub fn to_bytes(&mut self) -> Result<Vec<u8>, PolicyError> {
        let arrays = arrays(self.learner.as_mut(), Keep::Training)?;
        Ok(file::write(&self.prepared.description, &arrays, "training"))
    }

    /// A training from its bytes; `path` is for messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Training, PolicyError> {
        let (description, arrays) = file::read::<Description>(bytes, path, "training")?;
        let mut training = Training::blank(Prepared { description, rounds: None })?;
        let mut archive = Archive::reader(arrays, Keep::Training);
        let restored = training.learner.archive(&mut archive).and_then(|()| archive.finish());
        restored.map_err(|e| PolicyError::Damaged {
            path: path.to_path_buf(),
            kind: "training",
            reason: e.to_string(),
        })?;
        Ok(training)
    }

    fn blank(prepared: Prepared) -> Result<Training, PolicyError> {
        let description = &prepared.description;
        let Method::Model { config, scale, .. } = &description.method else {
            let (name, cure) = ("going on with the training", "train it anew on all rounds");
            return Err(PolicyError::Recipe { name, algorithm: description.method.name().to_owned(), cure });
        };
        let learner = config.learner(description.preparation.layout(), Seed::new(description.seed))?;
        Ok(Training { scale: scale.check()?, learner, prepared })
    }

    fn read(&mut self, log: &dyn ReadLog, progress: Progress<'_>) -> Result<(), PolicyError> {
        let Training { prepared, learner, scale } = self;
        read_into(learner.as_mut(), log, prepared, *scale, 0, progress, &mut |_, _| Ok(()))
    }
}
