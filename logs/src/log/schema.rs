//! What the columns of a log are.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::infer;
use super::options::{Format, LogOptions, Missing, Roles};

/// What values a feature has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Numbers.
    Number,
    /// True or false; 1 or 0 to a model.
    Boolean,
    /// Words; one place for each known word, 1 where it stands and 0 elsewhere.
    Category,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Category => "category",
        })
    }
}

/// A column that a model sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// What values it has.
    pub kind: Kind,
}

/// A column that a model does not see, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// Its name.
    pub name: String,
    /// Why it is left out.
    pub why: String,
}

/// The columns of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// How the log is written.
    pub format: Format,
    /// Features of a round.
    pub shared: Vec<Feature>,
    /// Features of an action in a round; where there are any, every action has its own vector.
    pub per_action: Vec<Feature>,
    /// The columns that are no features, by the names they have. `round` is there in a long table only.
    pub roles: Roles,
    /// What happens to a number that is not there.
    #[serde(default)]
    pub missing: Missing,
    /// The columns that are left out.
    #[serde(default)]
    pub ignored: Vec<Ignored>,
}

impl Schema {
    /// Options that read a log of these columns without inferring anything.
    pub fn to_options(&self) -> LogOptions {
        let features: Vec<&Feature> = self.shared.iter().chain(&self.per_action).collect();
        LogOptions {
            format: Some(self.format),
            features: Some(features.iter().map(|feature| feature.name.clone()).collect()),
            kinds: features.iter().map(|feature| (feature.name.clone(), feature.kind)).collect(),
            missing: self.missing,
            roles: if self.is_nested() { Schema::unusual(&self.roles) } else { self.roles.clone() },
            ..LogOptions::default()
        }
    }

    /// Whether a line of the log is a round with its own actions.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(self.format, Format::JsonRounds | Format::Dsjson)
    }

    /// Keys of rounds in JSON that are not found without being named.
    pub(crate) fn unusual(roles: &Roles) -> Roles {
        let known = ["chosen", "_labelIndex", "_label_cost", "_label_probability"];
        let unusual = |name: &Option<String>| {
            name.clone().filter(|name| !known.contains(&name.as_str()) && !infer::is_accepted(name))
        };
        Roles {
            action: unusual(&roles.action),
            reward: unusual(&roles.reward),
            propensity: unusual(&roles.propensity),
            ..Roles::default()
        }
    }

    /// Whether the log is a long table: a row for each action of a round.
    pub fn is_long(&self) -> bool {
        self.roles.round.is_some()
    }
}

/// A table: column, role, kind.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles = [
            (&self.roles.round, "round"),
            (&self.roles.action, "action"),
            (&self.roles.chosen, "chosen"),
            (&self.roles.reward, "reward"),
            (&self.roles.propensity, "propensity"),
            (&self.roles.eligible, "eligible actions"),
        ];
        let mut rows: Vec<[String; 3]> = Vec::new();
        for (name, role) in roles {
            rows.extend(name.iter().map(|name| [name.clone(), role.to_string(), String::new()]));
        }
        for (features, role) in [(&self.shared, "feature"), (&self.per_action, "feature of the action")] {
            rows.extend(features.iter().map(|x| [x.name.clone(), role.to_string(), x.kind.to_string()]));
        }
        rows.extend(self.ignored.iter().map(|x| [x.name.clone(), "ignored".to_string(), x.why.clone()]));
        let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let (first, second) = (width(0).max("column".len()), width(1).max("role".len()));
        write!(f, "{:first$}  {:second$}  kind", "column", "role")?;
        for [name, role, kind] in &rows {
            write!(f, "\n{}", format!("{name:first$}  {role:second$}  {kind}").trim_end())?;
        }
        Ok(())
    }
}
