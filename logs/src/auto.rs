//! `auto`: the learner is chosen from the log alone ([`neuralcb::select`]), and then learns from all of it.

use neuralcb::select::{AutoConfig, Candidate, Tried, choose};
use neuralcb::{LoggedData, Seed};
use serde::{Deserialize, Serialize};

use crate::log::{LogSummary, Preparation, ReadLog};
use crate::policy::{Method, Origin, PolicyError, Recipe, RewardScale, file};
use crate::train::{Prepared, Progress, describe, read_all, watched};

/// How `auto` came to its learner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// All candidates on the rounds held out, the best first.
    pub tried: Vec<Tried>,
    /// Whether propensities had to be estimated.
    pub estimated_propensities: bool,
}

/// Reads the log and chooses its learner.
pub(crate) fn prepare(
    log: &dyn ReadLog,
    recipe: &Recipe,
    preparation: Preparation,
    summary: LogSummary,
    progress: Progress<'_>,
) -> Result<Prepared, PolicyError> {
    let rounds = LoggedData::concat(read_all(log, &preparation)?)?;
    let seed = Seed::new(recipe.seed);
    let found = watched(log, progress, |watch| Ok(choose(&AutoConfig::default(), &rounds, seed, watch)?))?;
    let method = method(&found.winner, &summary)?;
    let mut description = describe(method, preparation, summary, Origin::of(log)?, recipe.seed);
    let estimated_propensities = found.estimated_propensities;
    description.chosen = Some(Choice { tried: found.tried, estimated_propensities });
    file::check(&description)?;
    Ok(Prepared { description, rounds: Some(rounds) })
}

/// A candidate as a policy file describes it.
fn method(winner: &Candidate, log: &LogSummary) -> Result<Method, PolicyError> {
    let scale = if winner.standardise { RewardScale::standardising(log)? } else { RewardScale::NONE };
    Ok(Method::Model { algorithm: winner.name.clone(), config: winner.config.clone(), beta: winner.betas[0], scale })
}
