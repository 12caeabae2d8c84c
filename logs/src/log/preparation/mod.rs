//! What a model sees of a log: the features brought to one scale.
//!
//! A number v becomes (v − μ)/s with the mean μ and the population standard deviation s of its column in the log that
//! the policy learned from; a boolean 0 or 1; a category one place for each known word, 1 where it stands and 0
//! elsewhere, so that a word unseen in training is all zeros. Then comes the intercept, a constant 1, and the row is
//! scaled to Euclidean length 1, the scale of the paper's analysis. All of it is kept in the policy, so that scoring
//! takes raw records.
//!
//! Features of actions make x_a = (features of the round, features of the action, 1) for each action; without them a
//! round has one x, placed in the action's block.

mod apply;
mod doubts;
mod fit;
mod moments;

use std::cmp::Ordering;

use neuralcb::{Encoding, Layout};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::schema::{Feature, Kind, Schema};
pub use apply::Unseen;
pub use fit::{ActionSummary, Grouped, LogSummary, PropensitySummary};

/// How features are prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PreparationConfig {
    /// Whether numbers are brought to mean 0 and deviation 1. Default true.
    pub standardise: bool,
    /// Whether a constant feature 1 is added. Default true.
    pub intercept: bool,
    /// Whether each row is scaled to length 1. By default it is, as the paper assumes, except for learners on a shared
    /// trunk, which do better without.
    pub unit_norm: Option<bool>,
    /// The most words of a category that have places of their own, those seen most often; the others are all zeros, as
    /// a word unseen in training. Default 1000.
    pub max_categories: usize,
}

impl Default for PreparationConfig {
    fn default() -> Self {
        PreparationConfig { standardise: true, intercept: true, unit_norm: None, max_categories: 1000 }
    }
}

impl PreparationConfig {
    /// Features as they are: nothing is scaled, nothing added.
    pub fn raw() -> Self {
        PreparationConfig { standardise: false, intercept: false, unit_norm: Some(false), ..Self::default() }
    }
}

/// How one feature becomes numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Encoder {
    /// Mean, and deviation: 0 where the column is constant in the log. Without standardising the mean is kept for
    /// values that are not there.
    Number { mean: f64, scale: f64 },
    /// The share of true, for values that are not there.
    Boolean { mean: f64 },
    /// The known words, in rising order.
    Category { words: Vec<String> },
}

impl Encoder {
    /// Places in a row.
    fn width(&self) -> usize {
        match self {
            Encoder::Number { .. } | Encoder::Boolean { .. } => 1,
            Encoder::Category { words } => words.len(),
        }
    }

    fn fits(&self, feature: &Feature) -> bool {
        match (self, feature.kind) {
            (Encoder::Number { mean, scale }, Kind::Number) => mean.is_finite() && scale.is_finite() && *scale >= 0.0,
            (Encoder::Boolean { mean }, Kind::Boolean) => (0.0..=1.0).contains(mean),
            (Encoder::Category { words }, Kind::Category) => words.windows(2).all(|pair| pair[0] < pair[1]),
            _ => false,
        }
    }
}

/// The preparation of features, fitted on the log that a policy learns from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Preparation {
    config: PreparationConfig,
    schema: Schema,
    shared: Vec<Encoder>,
    per_action: Vec<Encoder>,
    actions: Vec<String>,
}

/// A preparation as it stands in a file, not yet checked.
#[derive(Deserialize)]
struct Stored {
    config: PreparationConfig,
    schema: Schema,
    shared: Vec<Encoder>,
    per_action: Vec<Encoder>,
    actions: Vec<String>,
}

/// Why a stored preparation is refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StoredError {
    /// Encoders that are not those of the schema's features.
    #[error("the preparation of feature `{0}` does not fit its kind, or holds numbers or words out of order")]
    Feature(String),
    /// A feature without a preparation, or the other way round.
    #[error("{got} prepared features for {expected} of the schema")]
    Count {
        /// Features of the schema.
        expected: usize,
        /// Features prepared.
        got: usize,
    },
    /// Actions that are missing, repeated or out of order.
    #[error("actions must be named once each, in order, got `{0}`")]
    Actions(String),
    /// Rows without a place.
    #[error("the prepared rows are empty")]
    Empty,
}

impl TryFrom<Stored> for Preparation {
    type Error = StoredError;

    fn try_from(stored: Stored) -> Result<Self, StoredError> {
        let Stored { config, schema, shared, per_action, actions } = stored;
        for (features, encoders) in [(&schema.shared, &shared), (&schema.per_action, &per_action)] {
            if features.len() != encoders.len() {
                return Err(StoredError::Count { expected: features.len(), got: encoders.len() });
            }
            if let Some((feature, _)) = features.iter().zip(encoders).find(|(feature, encoder)| !encoder.fits(feature))
            {
                return Err(StoredError::Feature(feature.name.clone()));
            }
        }
        if actions.is_empty() {
            return Err(StoredError::Actions(String::new()));
        }
        let numeric = all_integers(&actions);
        if let Some(pair) = actions.windows(2).find(|pair| action_order(numeric, &pair[0], &pair[1]).is_ge()) {
            return Err(StoredError::Actions(pair[1].clone()));
        }
        let preparation = Preparation { config, schema, shared, per_action, actions };
        if preparation.dim() == 0 {
            return Err(StoredError::Empty);
        }
        Ok(preparation)
    }
}

impl Preparation {
    /// The sizes of every prepared context.
    pub fn layout(&self) -> Layout {
        let encoding = match self.schema.per_action.is_empty() {
            true => Encoding::Disjoint,
            false => Encoding::PerAction,
        };
        Layout { dim: self.dim(), n_actions: self.actions.len(), encoding }
    }

    fn dim(&self) -> usize {
        let places: usize = self.shared.iter().chain(&self.per_action).map(Encoder::width).sum();
        places + usize::from(self.config.intercept)
    }

    /// Names of the actions: of action a the a-th. In the order of numbers if all are integers, else by name.
    pub fn actions(&self) -> &[String] {
        &self.actions
    }

    /// The columns of the log that it was fitted on.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How features are prepared.
    pub fn config(&self) -> &PreparationConfig {
        &self.config
    }

    /// What stands at each place of a row: a feature, `feature=word`, or `1` for the intercept.
    pub fn places(&self) -> Vec<String> {
        let features = self.schema.shared.iter().chain(&self.schema.per_action);
        let mut names = Vec::with_capacity(self.dim());
        for (feature, encoder) in features.zip(self.shared.iter().chain(&self.per_action)) {
            match encoder {
                Encoder::Category { words } => {
                    names.extend(words.iter().map(|word| format!("{}={word}", feature.name)))
                }
                _ => names.push(feature.name.clone()),
            }
        }
        names.extend(self.config.intercept.then(|| "1".to_string()));
        names
    }

    /// Mean and scale of each feature of numbers, in the schema's order.
    pub fn standardiser(&self) -> Vec<(f64, f64)> {
        let encoders = self.shared.iter().chain(&self.per_action);
        encoders
            .filter_map(|encoder| match encoder {
                Encoder::Number { mean, scale } => Some((*mean, *scale)),
                _ => None,
            })
            .collect()
    }

    /// The number of the action of that name.
    pub fn action(&self, name: &str) -> Option<usize> {
        let numeric = all_integers(&self.actions);
        find_action(&self.actions, numeric, name)
    }
}

fn find_action(actions: &[String], numeric: bool, name: &str) -> Option<usize> {
    if numeric && integer(name).is_none() {
        return None;
    }
    actions.binary_search_by(|known| action_order(numeric, known, name)).ok()
}

fn integer(name: &str) -> Option<i64> {
    name.parse().ok()
}

fn all_integers(names: &[String]) -> bool {
    names.iter().all(|name| integer(name).is_some())
}

fn action_order(numeric: bool, a: &str, b: &str) -> Ordering {
    match numeric {
        true => integer(a).cmp(&integer(b)).then_with(|| a.cmp(b)),
        false => a.cmp(b),
    }
}
