//! Learning a recipe from some parts of a log.

use std::collections::BTreeMap;
use std::sync::Arc;

use neuralcb::archive::Keep;
use neuralcb::{Learner, RewardModel, Seed};
use rayon::prelude::*;

use super::candidates::holds_its_rounds;
use super::parts::summarise;
use super::rounds::{Parts, Rounds};
use crate::log::{LogSummary, Preparation, ReadLog};
use crate::memory;
use crate::policy::{Algorithm, Method, Origin, Policy, PolicyError, Recipe};
use crate::train::{Progress, Step, arrays, describe, observe, watched};

/// Bytes of rounds that a learner is given at most which keeps them: it holds them up to three times.
pub(super) const MOST_BYTES: usize = 96 << 20;

/// The log as learners see it.
pub(super) struct Source<'a> {
    pub log: &'a dyn ReadLog,
    pub preparation: &'a Preparation,
    pub origin: &'a Origin,
    pub skipped: u64,
    pub rounds: &'a Rounds,
}

/// What a recipe became.
pub(super) struct Taught {
    pub method: Method,
    /// None of what learns nothing.
    learner: Option<Box<dyn Learner>>,
}

impl Source<'_> {
    /// Learns recipes from some parts. Those that read every round once share one pass; those that keep what they
    /// learn from are given a sample of at most `most` rounds, which all of them share.
    pub fn learn(
        &self,
        recipes: &[Recipe],
        from: Parts,
        most: usize,
        progress: Progress<'_>,
    ) -> Result<(Vec<Taught>, LogSummary), PolicyError> {
        let (summary, best) = summarise(self.rounds, from, self.preparation, self.skipped)?;
        let mut taught = Vec::new();
        for recipe in recipes {
            let mut recipe = recipe.clone();
            if recipe.algorithm == Algorithm::Constant && recipe.action.is_none() {
                recipe.action = Some(self.preparation.actions()[best].clone());
            }
            let method = recipe.method(&summary, self.preparation.actions(), None)?;
            let learner = match &method {
                Method::Model { config, .. } => {
                    Some(memory::learner(config, self.preparation.layout(), Seed::new(recipe.seed))?)
                }
                Method::Clone { .. } | Method::Constant { .. } | Method::Uniform => None,
            };
            taught.push(Taught { method, learner });
        }
        let keeps = |t: &Taught| matches!(&t.method, Method::Model { config, .. } if holds_its_rounds(config));
        let (mut keeping, mut reading): (Vec<&mut Taught>, Vec<&mut Taught>) =
            taught.iter_mut().filter(|t| t.learner.is_some()).partition(|t| keeps(t));
        if !keeping.is_empty() {
            let most = most.min(MOST_BYTES / self.rounds.bytes_per_round());
            let seed = Seed::new(recipes[0].seed);
            let sample = self.rounds.sample(from, most, seed)?;
            keeping.iter_mut().try_for_each(|t| t.observe(&sample, self.log))?;
        }
        if !reading.is_empty() {
            let mut done = 0;
            for block in self.rounds.of(from) {
                let block = block?;
                progress(Step::Doing("learning", done, summary.rounds));
                reading.par_iter_mut().try_for_each(|t| t.observe(&block, self.log))?;
                done += block.n_rounds() as u64;
            }
        }
        Ok((taught, summary))
    }

    /// The policy of a method that learns nothing.
    pub fn fixed(&self, method: &Method, seed: u64) -> Result<Policy, PolicyError> {
        let (log, origin) = (summarise(self.rounds, 1, self.preparation, self.skipped)?.0, self.origin.clone());
        let description = describe(method.clone(), self.preparation.clone(), log, origin, seed);
        Ok(Policy::new(description, BTreeMap::new())?)
    }

    /// The policy that a recipe learns from some parts.
    pub fn policy(
        &self,
        recipe: &Recipe,
        from: Parts,
        most: usize,
        progress: Progress<'_>,
    ) -> Result<Policy, PolicyError> {
        let (taught, summary) = self.learn(std::slice::from_ref(recipe), from, most, progress)?;
        let Taught { method, learner } = taught.into_iter().next().expect("one for each recipe");
        let learned = match learner {
            Some(mut learner) => watched(self.log, progress, |watch| {
                learner.watch(watch);
                arrays(learner.as_mut(), Keep::Policy)
            })?,
            None => BTreeMap::new(),
        };
        let description = describe(method, self.preparation.clone(), summary, self.origin.clone(), recipe.seed);
        Ok(Policy::new(description, learned)?)
    }
}

impl Taught {
    fn observe(&mut self, rounds: &neuralcb::LoggedData, log: &dyn ReadLog) -> Result<(), PolicyError> {
        let (Method::Model { scale, .. }, Some(learner)) = (&self.method, &mut self.learner) else { return Ok(()) };
        Ok(observe(learner.as_mut(), rounds, *scale, &mut |_| log.go_on())?)
    }

    /// Its reward model, fitted; none of what learns nothing.
    pub fn model(
        &mut self,
        log: &dyn ReadLog,
        progress: Progress<'_>,
    ) -> Result<Option<Arc<dyn RewardModel>>, PolicyError> {
        let Some(learner) = &mut self.learner else { return Ok(None) };
        let fit = |watch: &Arc<neuralcb::Watch>| {
            learner.watch(watch);
            Ok(learner.model()?)
        };
        watched(log, progress, fit).map(Some)
    }
}
