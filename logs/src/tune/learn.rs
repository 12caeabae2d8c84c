//! One candidate: learned from some rounds, read off at every β.

use std::collections::BTreeMap;

use neuralcb::ope::{BoundConfig, Paired, Statement, bound, importance_weights};
use neuralcb::policy::{Choices, Rounding, pessimistic};
use neuralcb::theory::Rule;
use neuralcb::{LoggedData, Seed};

use super::candidates::{Candidate, Tried};
use super::parts::summarise;
use crate::log::{LogSummary, Preparation, ReadLog};
use crate::memory;
use crate::policy::{Algorithm, Method, Origin, Policy, PolicyError, Recipe};
use crate::train::{arrays, describe, observe};
use neuralcb::archive::Keep;

/// The log as candidates see it.
pub(super) struct Source<'a> {
    pub log: &'a dyn ReadLog,
    pub preparation: &'a Preparation,
    pub origin: &'a Origin,
    pub skipped: u64,
}

impl Source<'_> {
    /// The method of a recipe for these rounds: rewards are scaled by them alone, and `constant` is their best action.
    fn method(&self, recipe: &Recipe, rounds: &LoggedData) -> Result<(Method, LogSummary), PolicyError> {
        let summary = summarise(rounds, self.preparation, self.skipped);
        let mut recipe = recipe.clone();
        if recipe.algorithm == Algorithm::Constant && recipe.action.is_none() {
            recipe.action = Some(self.preparation.actions()[best_constant(rounds)].clone());
        }
        Ok((recipe.method(&summary, self.preparation.actions(), None)?, summary))
    }

    /// The policy that a recipe learns from these rounds.
    pub fn policy(&self, recipe: &Recipe, rounds: &LoggedData) -> Result<Policy, PolicyError> {
        let (method, summary) = self.method(recipe, rounds)?;
        let seed = Seed::new(recipe.seed);
        let arrays = match &method {
            Method::Model { config, scale, .. } => {
                let mut learner = memory::learner(config, self.preparation.layout(), seed)?;
                observe(learner.as_mut(), rounds, *scale, &mut |_| self.log.go_on())?;
                arrays(learner.as_mut(), Keep::Policy)?
            }
            Method::Clone { .. } | Method::Constant { .. } | Method::Uniform => BTreeMap::new(),
        };
        let description = describe(method, self.preparation.clone(), summary, self.origin.clone(), recipe.seed);
        Ok(Policy::new(description, arrays)?)
    }

    /// Learns a candidate once and judges it at every β.
    pub fn try_candidate(
        &self,
        candidate: &Candidate,
        learn: &LoggedData,
        judge: &Judge<'_>,
    ) -> Result<Vec<(Recipe, Tried)>, PolicyError> {
        let (recipe, contexts) = (&candidate.recipe, judge.rounds.contexts());
        if let (Method::Model { config, scale, beta, .. }, _) = self.method(recipe, learn)? {
            let mut learner = memory::learner(&config, self.preparation.layout(), Seed::new(recipe.seed))?;
            memory::check(contexts.n_pairs() as u128 * 16, "judging candidates", "hold out fewer rounds (--choose)")?;
            observe(learner.as_mut(), learn, scale, &mut |_| self.log.go_on())?;
            let estimates = learner.model()?.estimate(contexts)?;
            let of = |recipe: Recipe, asked: Option<f64>, beta: f64| {
                let choices = pessimistic(contexts, &estimates, beta, Rounding::None)?;
                let tried = judge.of(&recipe, asked, &choices)?;
                Ok((recipe, tried))
            };
            if candidate.betas.is_empty() {
                return Ok(vec![of(recipe.clone(), None, beta)?]);
            }
            let at = |&beta: &f64| of(Recipe { beta: Some(Rule::Fixed(beta)), ..recipe.clone() }, Some(beta), beta);
            // Whose numbers have left their range is no candidate.
            let lost = |tried: &Result<_, PolicyError>| {
                matches!(tried, Err(PolicyError::Library(neuralcb::Error::Estimate { .. })))
            };
            return candidate.betas.iter().map(at).filter(|tried| !lost(tried)).collect();
        }
        let decisions = self.policy(recipe, learn)?.decide(contexts)?;
        let of = |choices: Choices| Ok((recipe.clone(), judge.of(recipe, None, &choices)?));
        decisions.choices.into_iter().map(of).collect()
    }
}

/// The rounds to choose by and how they are read.
pub(super) struct Judge<'a> {
    pub rounds: &'a LoggedData,
    pub bound: BoundConfig,
}

impl Judge<'_> {
    fn of(&self, recipe: &Recipe, beta: Option<f64>, choices: &Choices) -> Result<Tried, PolicyError> {
        let weights = importance_weights(self.rounds, choices)?;
        let rounds: Vec<Paired> =
            weights.iter().zip(self.rounds.rewards()).map(|(&w, &r)| Paired::single(w, r)).collect();
        let value = bound(&self.bound, Statement::Value, &rounds)?;
        Ok(Tried {
            algorithm: recipe.algorithm,
            mode: recipe.mode,
            lr: recipe.lr,
            sigma: recipe.sigma,
            beta,
            value: value.estimate,
            lower: value.lower,
            coverage: weights.iter().sum::<f64>() / weights.len() as f64,
            agreeing: weights.iter().filter(|&&w| w > 0.0).count() as u64,
        })
    }
}

/// The action with the largest self-normalised value on the rounds learned from.
fn best_constant(learn: &LoggedData) -> usize {
    let mut sums = vec![(0.0, 0.0); learn.contexts().layout().n_actions];
    let propensities = learn.propensities().expect("known or estimated");
    for t in 0..learn.n_rounds() {
        let (weight, reward) = &mut sums[learn.actions()[t] as usize];
        *weight += 1.0 / propensities[t];
        *reward += learn.rewards()[t] / propensities[t];
    }
    let value = |a: usize| if sums[a].0 > 0.0 { sums[a].1 / sums[a].0 } else { f64::NEG_INFINITY };
    (0..sums.len()).fold(0, |best, a| if value(a) > value(best) { a } else { best })
}
