//! How a log is to be read: what a user may say about it, and what a command needs of it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::LogError;
use super::schema::Kind;
use crate::error::FileError;

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Fields separated by commas, with a header.
    Csv,
    /// Fields separated by tabs, with a header.
    Tsv,
    /// An object per line and round.
    JsonLines,
    /// An object per line and round, with an array of actions.
    JsonRounds,
    /// Columns in Apache Parquet.
    Parquet,
    /// Vowpal Wabbit's decision service JSON.
    Dsjson,
    /// A folder of the Open Bandit Dataset.
    OpenBandit,
}

impl Format {
    /// Every format, as the options name them.
    pub const ALL: [Format; 7] = [
        Format::Csv,
        Format::Tsv,
        Format::JsonLines,
        Format::JsonRounds,
        Format::Parquet,
        Format::Dsjson,
        Format::OpenBandit,
    ];

    /// The name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::JsonLines => "json-lines",
            Format::JsonRounds => "json-rounds",
            Format::Parquet => "parquet",
            Format::Dsjson => "dsjson",
            Format::OpenBandit => "open-bandit",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The columns that are no features, by name. `None`: the accepted names are looked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Roles {
    /// What was done: `action`, `decision` or `decisions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What came of it: `reward` or `rewards`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<String>,
    /// The behaviour policy's probability of it: `propensity`, `probability`, `action_prob`, `propensity_score` or
    /// `pscore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propensity: Option<String>,
    /// The list of actions that the round offered: `eligible` or `eligible_actions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eligible: Option<String>,
    /// The round of a row in a long table: `round`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// Whether the row's action was taken, in a long table: `chosen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
}

/// What happens to a number that is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The row is bad.
    #[default]
    Refuse,
    /// It becomes the mean of its column.
    Mean,
}

/// What a user says about a log; the default says nothing and lets everything be inferred.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogOptions {
    /// The format; by default the file's ending tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// CSV: what separates fields; by default what the header has most of: comma, semicolon, tab or bar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// CSV: what separates a number's fraction, `.` or `,`; by default seen from the first rows where commas do not
    /// separate fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<char>,
    /// The columns to use as features, in this order; by default all that have no other role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// Columns that are no features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Further columns of numbers to read, which are no features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<String>,
    /// Bad rows to skip before reading stops.
    pub max_bad_rows: u64,
    /// Open Bandit Dataset: the only position to read; by default all, with the position as a feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// What happens to a number that is not there.
    pub missing: Missing,
    /// The columns that are no features.
    pub roles: Roles,
    /// Kinds of features that are not to be inferred.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, Kind>,
}

impl LogOptions {
    /// Reads options from a TOML file.
    pub fn from_toml(path: &Path) -> Result<LogOptions, LogError> {
        let text = fs::read_to_string(path)
            .map_err(|source| LogError::File(FileError::Read { path: path.to_path_buf(), source }))?;
        toml::from_str(&text).map_err(|error| LogError::Options {
            path: path.to_path_buf(),
            message: error.to_string().trim_end().to_string(),
        })
    }

    /// The options as such a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("options are tables of texts and numbers")
    }
}

/// Whether a column is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Need {
    /// It is not read.
    None,
    /// It is read if the log has it.
    #[default]
    IfThere,
    /// A log without it is refused.
    Required,
}

/// What a command needs of a log besides features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    /// Actions and rewards.
    pub outcome: bool,
    /// Propensities.
    pub propensity: Need,
}

impl Want {
    /// Features only: what scoring needs.
    pub const CONTEXTS: Want = Want { outcome: false, propensity: Need::None };
    /// Actions and rewards, and propensities where the log has them: what training needs.
    pub const OUTCOMES: Want = Want { outcome: true, propensity: Need::IfThere };
}
