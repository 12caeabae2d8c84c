//! What a card was made of.

use serde::{Deserialize, Serialize};

use crate::policy::{Origin, Policy};

/// What was read and what was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The version of the program.
    pub program: String,
    /// The log that judged.
    pub log: Origin,
    /// The policies that were judged.
    pub policies: Vec<PolicyAbout>,
    /// The settings.
    #[serde(default)]
    pub settings: serde_json::Value,
}

/// A policy, by what its file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyAbout {
    /// Its part: `policy`, `new policy`, `old policy`.
    pub role: String,
    /// How it decides.
    pub method: String,
    /// β, where it has one.
    pub beta: Option<f64>,
    /// The log that it learned from.
    pub log: Origin,
    /// The rounds that it learned from.
    pub rounds: u64,
    /// The seed of its training.
    pub seed: u64,
    /// The version that wrote it.
    pub program: String,
}

impl About {
    /// What was judged on a log, with these settings.
    pub fn new(log: Origin, policies: &[(&str, &Policy)], settings: &impl Serialize) -> About {
        About {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            log,
            policies: policies.iter().map(|(role, policy)| PolicyAbout::of(role, policy)).collect(),
            settings: serde_json::to_value(settings).unwrap_or_default(),
        }
    }
}

impl PolicyAbout {
    fn of(role: &str, policy: &Policy) -> PolicyAbout {
        let about = policy.description();
        PolicyAbout {
            role: role.to_owned(),
            method: about.method.name().to_owned(),
            beta: policy.beta(),
            log: about.log.clone(),
            rounds: about.training.rounds,
            seed: about.seed,
            program: about.program.clone(),
        }
    }
}
