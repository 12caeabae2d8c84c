//! A policy as it lives in a file: how it decides, how it prepares raw records, and where it comes from.
//!
//! * [`Method`]: what is learned, with every setting; [`Recipe`] makes one from a name and a preset.
//! * [`Policy`]: the decision rule with the preparation that was fitted on its log, so that it takes raw records.
//! * The file itself is described in `docs/FORMATS.md`; [`Policy::save`] and [`Policy::load`].

mod error;
pub(crate) mod file;
mod method;
mod names;
mod recipe;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use neuralcb::archive::{Archive, Array, Keep};
use neuralcb::policy::{Choices, Imitation, Rounding, pessimistic};
use neuralcb::{Contexts, Error, Estimates, RewardModel};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use error::PolicyError;
pub use file::VERSION;
pub use method::{Method, RewardScale};
pub use names::{Algorithm, Mode, Preset, SetUp};
pub use recipe::Recipe;

use crate::auto::Choice;
use crate::hex::hex;
use crate::log::{LogError, LogSummary, Preparation, ReadLog};
use crate::tune::Certified;

/// All that a policy file says beside its arrays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// How it decides and how that was learned.
    pub method: Method,
    /// How raw records become contexts.
    pub preparation: Preparation,
    /// The seed of the training.
    pub seed: u64,
    /// The version of the program that wrote it.
    pub program: String,
    /// The log it was learned from.
    pub log: Origin,
    /// What those rounds of it held that it learned from.
    pub training: LogSummary,
    /// How `auto` chose its learner, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Choice>,
    /// What is certain of it, where that was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certified: Option<Certified>,
}

/// A log that a policy was learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The names of its files.
    pub files: Vec<String>,
    /// SHA-256 of their bytes, one after another.
    pub sha256: String,
}

impl Origin {
    /// The origin of what is learned from a log.
    pub fn of(log: &dyn ReadLog) -> Result<Origin, LogError> {
        Ok(Origin { files: log.parts(), sha256: log.digest()? })
    }

    /// Another log that was learned from afterwards; the sum is then that of both sums.
    pub(crate) fn extend(&mut self, other: Origin) {
        self.files.extend(other.files);
        let sums = Sha256::digest(format!("{}{}", self.sha256, other.sha256));
        self.sha256 = hex(sums);
    }
}

/// A policy that can decide.
#[derive(Clone)]
pub struct Policy {
    description: Description,
    arrays: BTreeMap<String, Array>,
    decider: Decider,
}

/// What decides.
#[derive(Clone)]
enum Decider {
    Model { model: Arc<dyn RewardModel>, beta: f64, scale: RewardScale, rewards: bool },
    Clone(Box<Imitation>),
    Constant(u32),
    Uniform,
}

/// What a policy does with some contexts.
pub struct Decisions {
    /// The place of the action in each round; `None` where every eligible action is as likely as another.
    pub choices: Option<Choices>,
    /// Mean and width of every pair in units of the reward, where there is a reward model.
    pub estimates: Option<Estimates>,
}

impl Policy {
    /// Makes the policy that the arrays hold; every size is checked before memory is taken.
    pub fn new(description: Description, arrays: BTreeMap<String, Array>) -> Result<Policy, Error> {
        let layout = description.preparation.layout();
        let numbers = arrays.values().map(|a| a.numbers.len() as u128).sum();
        let mut archive = Archive::reader(arrays.clone(), Keep::Policy);
        let decider = match &description.method {
            Method::Model { config, beta, scale, .. } => {
                fits(config.n_numbers(layout), numbers)?;
                let (model, rewards) = (config.restore(layout, &mut archive)?, config.knows_rewards());
                Decider::Model { model, beta: *beta, scale: scale.check()?, rewards }
            }
            Method::Clone { config, .. } => {
                fits((config.width as u128).saturating_mul(layout.dim as u128), numbers)?;
                let mut clone = Imitation::blank(config, layout);
                clone.archive(&mut archive)?;
                Decider::Clone(Box::new(clone))
            }
            Method::Constant { action } => {
                if *action as usize >= layout.n_actions {
                    let (range, got) = ("below the number of actions", f64::from(*action));
                    return Err(Error::Param { name: "action", range, got });
                }
                Decider::Constant(*action)
            }
            Method::Uniform => Decider::Uniform,
        };
        archive.finish()?;
        let policy = Policy { description, arrays, decider };
        policy.beta().map_or(Ok(()), check_beta)?;
        Ok(policy)
    }

    /// What the file says of it.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its arrays by name.
    pub fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// How raw records become contexts.
    pub fn preparation(&self) -> &Preparation {
        &self.description.preparation
    }

    /// β, where it has one.
    pub fn beta(&self) -> Option<f64> {
        if let Decider::Model { beta, rewards: true, .. } = self.decider { Some(beta) } else { None }
    }

    /// The same policy with another β: no training is needed.
    pub fn with_beta(mut self, new: f64) -> Result<Policy, PolicyError> {
        check_beta(new)?;
        match (&mut self.decider, &mut self.description.method) {
            (Decider::Model { beta, rewards: true, .. }, Method::Model { beta: described, .. }) => {
                // of another policy nothing is certain
                if *beta != new {
                    self.description.certified = None;
                }
                *beta = new;
                *described = new;
                Ok(self)
            }
            (_, method) => Err(PolicyError::NoBeta { method: method.name().to_owned() }),
        }
    }

    /// The same policy with its certificate.
    pub(crate) fn certified(mut self, certified: Certified) -> Policy {
        self.description.certified = Some(certified);
        self
    }

    /// Decides every round. Estimates are made only where the decision needs them or they are asked for.
    pub fn decide(&self, contexts: &Contexts) -> Result<Decisions, Error> {
        self.decide_at(contexts, None)
    }

    /// As [`Policy::decide`], with another β where there is a reward model.
    pub fn decide_at(&self, contexts: &Contexts, other: Option<f64>) -> Result<Decisions, Error> {
        other.map_or(Ok(()), check_beta)?;
        let choices = match &self.decider {
            Decider::Model { model, beta, scale, rewards } => {
                let mut estimates = model.estimate(contexts)?;
                let choices = pessimistic(contexts, &estimates, other.unwrap_or(*beta), Rounding::None)?;
                scale.undo(&mut estimates);
                return Ok(Decisions { choices: Some(choices), estimates: rewards.then_some(estimates) });
            }
            Decider::Clone(clone) => Some(clone.choose(contexts)?),
            // where the action is not eligible, the first that is
            Decider::Constant(action) => {
                let place = |t| contexts.place(t, *action as usize).unwrap_or(0) as u32;
                Some((0..contexts.n_rounds()).map(place).collect())
            }
            Decider::Uniform => None,
        };
        Ok(Decisions { choices, estimates: None })
    }
}

/// Rounds with at most so many pairs are estimated at a time, unless one round has more.
const PAIRS: usize = 1 << 22;

/// The rounds of some contexts, in pieces whose estimates have room.
pub(crate) fn pieces(contexts: &Contexts) -> impl Iterator<Item = Range<usize>> {
    let n = contexts.n_rounds();
    let per_round = contexts.n_pairs().div_ceil(n.max(1)).max(1);
    let step = (PAIRS / per_round).max(1);
    (0..n).step_by(step).map(move |first| first..(first + step).min(n))
}

pub(crate) fn check_beta(beta: f64) -> Result<(), Error> {
    // Beyond it the widths alone would decide.
    if (0.0..=1e30).contains(&beta) {
        return Ok(());
    }
    Err(Error::Param { name: "beta", range: "a number from 0 to 1e30", got: beta })
}

/// Refuses settings that claim more numbers than a file holds.
fn fits(claimed: u128, held: u128) -> Result<(), Error> {
    if claimed <= held {
        return Ok(());
    }
    let (want, got) = (format!("{claimed} numbers, as the settings claim"), format!("{held}"));
    Err(Error::Array { name: "all together".into(), want, got })
}
