//! What a segment holds: JSON texts, each an object with one member that tells what it is.

use std::collections::BTreeMap;

use neuralcb_logs::log::Json;
use serde::{Deserialize, Serialize};

/// One record of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Record {
    /// The first of a segment.
    Opened(Opened),
    /// An action was chosen.
    Decision(Box<Decision>),
    /// A decision earned something.
    Reward(Reward),
    /// A deferred decision was shown to its user.
    Activation(Activation),
    /// The last of a closed segment.
    Closed(Closed),
}

/// The first record of a segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The version of the format.
    pub version: u32,
    /// The server's name: different for every start.
    pub server: String,
    /// The segment's number in its folder.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The features of the round, an object.
    pub context: Json,
    /// What was eligible: objects with `id` and perhaps `features`.
    pub actions: Vec<Offered>,
    /// The event's name, which its rewards bear too.
    pub event: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The place of the chosen action in `actions`.
    pub chosen: usize,
    /// The probability of each of `actions`.
    pub probabilities: Vec<f64>,
    /// The name of the model that decided.
    pub model: String,
    /// The first 16 digits of the SHA-256 of its policy file.
    pub policy: String,
    /// β, where it was not the policy's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    /// Counts only once it is activated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deferred: bool,
    /// The place in `actions` that each other model would have chosen; in apprentice and logging mode also the model
    /// itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shadow: BTreeMap<String, usize>,
}

/// An eligible action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// Its name.
    pub id: String,
    /// Its features, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Json>,
}

/// A reward.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// The event that earned it.
    pub event: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// How much.
    pub value: f64,
    /// The caller's name of this reward: rewards of the same name count once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// An activation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Activation {
    /// The event that is activated.
    pub event: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// The last record of a closed segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// Records before this one.
    pub records: u64,
    /// SHA-256 of all bytes before this record, in hexadecimal.
    pub sha256: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

fn is_false(value: &bool) -> bool {
    !value
}
