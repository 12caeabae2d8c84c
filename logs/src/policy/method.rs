//! How a policy decides, with every setting that its learning depended on.

use neuralcb::policy::ImitationConfig;
use neuralcb::{Error, Estimates, ModelConfig};
use serde::{Deserialize, Serialize};

use crate::log::LogSummary;

/// How a policy decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Method {
    /// argmax mean − β·width of a reward model.
    Model {
        /// The name under which it was asked for.
        algorithm: String,
        /// The model's settings.
        config: ModelConfig,
        /// β.
        beta: f64,
        /// The rewards as the model sees them.
        scale: RewardScale,
    },
    /// The most likely action of a classifier of the logged ones: files of version 0.1 have it. A clone is a model now.
    Clone {
        /// The classifier's settings.
        config: ImitationConfig,
        /// Whether it learns only from rounds with a reward above the log's mean.
        rewarded: bool,
    },
    /// Always the same action.
    Constant {
        /// Its number among the preparation's actions.
        action: u32,
    },
    /// Every eligible action with the same probability.
    Uniform,
}

impl Method {
    /// The name in messages and tables.
    pub fn name(&self) -> &str {
        match self {
            Method::Model { algorithm, .. } => algorithm,
            Method::Clone { rewarded: false, .. } => "clone",
            Method::Clone { rewarded: true, .. } => "clone-rewarded",
            Method::Constant { .. } => "constant",
            Method::Uniform => "uniform",
        }
    }
}

/// Rewards as a model sees them: (r − shift) / scale. With the log's mean and standard deviation, β and the learning
/// rate mean the same whatever the unit of the rewards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RewardScale {
    /// What is subtracted.
    pub shift: f64,
    /// What is divided by, > 0.
    pub scale: f64,
}

impl RewardScale {
    /// Rewards as they are.
    pub const NONE: RewardScale = RewardScale { shift: 0.0, scale: 1.0 };

    /// Brings the rewards of a log to mean 0 and deviation 1.
    pub fn standardising(log: &LogSummary) -> Result<RewardScale, Error> {
        let scale = if log.reward_deviation > 0.0 { log.reward_deviation } else { 1.0 };
        RewardScale { shift: log.mean_reward, scale }.check()
    }

    /// Refuses numbers that are not finite and scales that are not positive.
    pub fn check(self) -> Result<Self, Error> {
        if !self.shift.is_finite() {
            return Err(Error::Param { name: "shift of the rewards", range: "a finite number", got: self.shift });
        }
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(Error::Param { name: "scale of the rewards", range: "a finite number > 0", got: self.scale });
        }
        Ok(self)
    }

    /// A reward for the model.
    pub fn apply(self, reward: f64) -> f64 {
        (reward - self.shift) / self.scale
    }

    /// Estimates in units of the reward again.
    pub fn undo(self, estimates: &mut Estimates) {
        if self != RewardScale::NONE {
            estimates.mean.iter_mut().for_each(|m| *m = self.shift + self.scale * *m);
            estimates.width.iter_mut().for_each(|w| *w *= self.scale);
        }
    }
}
