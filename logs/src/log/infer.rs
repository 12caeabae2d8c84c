//! The schema of a table, inferred from its first rows.
//!
//! A column with an accepted name has that role. Every other column is a feature: a number if most of its values are
//! numbers, so that a slip of the pen is found as such and does not turn a column of numbers into a thousand words;
//! a boolean if most are true or false; else a category. Left out are columns without a name (an index, as pandas
//! writes it), columns without a value, a second reward or propensity, and texts that hardly ever repeat, such as
//! identifiers and times of day.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::error::{LogError, listed};
use super::json_rounds::Names;
use super::json_rows::{RoundSample, json_names};
use super::obd::{self, ObdColumn};
use super::options::{Format, LogOptions, Need, Roles, Want};
use super::schema::{Feature, Ignored, Kind, Schema};

/// Rows from which a schema is inferred.
pub(crate) const SAMPLE: usize = 10_000;

/// Texts of which fewer than this many came are believed to be categories, however rarely they repeat.
const FEW: u64 = 100;

/// What the first rows of a table hold.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub rows: usize,
    pub columns: Vec<Sampled>,
}

impl Sample {
    pub fn new(names: Vec<String>) -> Sample {
        Sample { rows: 0, columns: names.into_iter().map(Sampled::new).collect() }
    }

    /// Adds the first rows of a further file.
    pub fn merge(&mut self, other: Sample) {
        self.rows += other.rows;
        let places: HashMap<String, usize> =
            self.columns.iter().enumerate().map(|(i, column)| (column.name.clone(), i)).collect();
        for column in other.columns {
            match places.get(&column.name) {
                Some(&i) => self.columns[i].merge(column),
                None => self.columns.push(column),
            }
        }
    }

    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).filter(|name| !name.is_empty()).collect()
    }
}

/// What the first rows of a column hold.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    pub name: String,
    pub numbers: u64,
    pub booleans: u64,
    pub texts: u64,
    pub lists: u64,
    pub absent: u64,
    /// Hashes of the different values.
    different: HashSet<u64>,
    /// Why the column cannot be a feature, by its type.
    pub unusable: Option<&'static str>,
}

impl Sampled {
    pub fn new(name: String) -> Sampled {
        Sampled { name, ..Sampled::default() }
    }

    pub fn different(&mut self, value: &[u8]) {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        self.different.insert(hasher.finish());
    }

    fn merge(&mut self, other: Sampled) {
        self.numbers += other.numbers;
        self.booleans += other.booleans;
        self.texts += other.texts;
        self.lists += other.lists;
        self.absent += other.absent;
        self.different.extend(other.different);
        self.unusable = self.unusable.or(other.unusable);
    }

    fn seen(&self) -> u64 {
        self.numbers + self.booleans + self.texts + self.lists
    }

    /// The kind of most values.
    fn kind(&self) -> Kind {
        let most = self.seen() / 2;
        if self.numbers > most {
            Kind::Number
        } else if self.booleans > most {
            Kind::Boolean
        } else {
            Kind::Category
        }
    }

    /// Why the column is no feature, unless it is asked for.
    fn unfit(&self) -> Option<&'static str> {
        if self.name.is_empty() || self.name == "Unnamed: 0" {
            Some("an index: a column without a name")
        } else if self.unusable.is_some() {
            self.unusable
        } else if self.seen() == 0 {
            Some("no values in the first rows")
        } else if self.lists > 0 {
            Some("lists")
        } else if self.kind() == Kind::Category && self.texts >= FEW && self.different.len() as u64 > self.texts / 2 {
            Some("texts that hardly ever repeat: an identifier or a time")
        } else {
            None
        }
    }
}

/// Names by which each role is known, in any case.
const ACTION: &[&str] = &["action", "decision", "decisions"];
const REWARD: &[&str] = &["reward", "rewards"];
const PROPENSITY: &[&str] = &["propensity", "probability", "action_prob", "propensity_score", "pscore"];
const ELIGIBLE: &[&str] = &["eligible", "eligible_actions"];
const ROUND: &[&str] = &["round"];
const CHOSEN: &[&str] = &["chosen"];

/// Whether a column or key of that name is found without being named.
pub(crate) fn is_accepted(name: &str) -> bool {
    [ACTION, REWARD, PROPENSITY].into_iter().flatten().any(|known| known.eq_ignore_ascii_case(name))
}

/// Looks for the columns of a table.
struct Lookup<'a> {
    path: &'a Path,
    sample: &'a Sample,
    names: HashSet<&'a str>,
}

impl<'a> Lookup<'a> {
    fn new(path: &'a Path, sample: &'a Sample) -> Lookup<'a> {
        Lookup { path, sample, names: sample.columns.iter().map(|column| column.name.as_str()).collect() }
    }
}

impl Lookup<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn need(&self, name: &str) -> Result<(), LogError> {
        match self.has(name) {
            true => Ok(()),
            false => Err(LogError::NoFeature {
                path: self.path.to_path_buf(),
                name: name.to_string(),
                found: listed(&self.sample.names()),
            }),
        }
    }

    /// The column with a role: the one that was named, else one with an accepted name.
    fn role(
        &self,
        named: &Option<String>,
        accepted: &[&str],
        role: &'static str,
        option: &'static str,
        needed: bool,
    ) -> Result<Option<String>, LogError> {
        if let Some(name) = named
            && (needed || self.has(name))
        {
            return self.need(name).map(|()| Some(name.clone()));
        }
        let mut found = self
            .sample
            .columns
            .iter()
            .map(|column| &column.name)
            .filter(|name| named.is_none() && accepted.iter().any(|known| known.eq_ignore_ascii_case(name)));
        match (found.next(), found.next()) {
            (Some(first), Some(second)) => Err(LogError::TwoColumns {
                path: self.path.to_path_buf(),
                role,
                first: first.clone(),
                second: second.clone(),
                option,
            }),
            (None, _) if needed => Err(LogError::NoColumn {
                path: self.path.to_path_buf(),
                role,
                wanted: listed(accepted),
                found: listed(&self.sample.names()),
                option,
            }),
            (found, _) => Ok(found.cloned()),
        }
    }
}

/// The roles of a table's columns. `long`: whether it must be a long table, where that is known.
pub(crate) fn roles(
    path: &Path,
    sample: &Sample,
    named: &Roles,
    want: Want,
    long: Option<bool>,
) -> Result<Roles, LogError> {
    let table = Lookup::new(path, sample);
    let round = table.role(&named.round, ROUND, "round", "round", long == Some(true))?;
    let chosen = table.role(&named.chosen, CHOSEN, "choice of a long table", "chosen", false)?;
    let long = long.unwrap_or(round.is_some() && (chosen.is_some() || named.round.is_some()));
    let outcome = want.outcome;
    let mut roles = Roles {
        action: table.role(&named.action, ACTION, "action", "action", outcome || long)?,
        reward: table.role(&named.reward, REWARD, "reward", "reward", outcome)?,
        propensity: table.role(
            &named.propensity,
            PROPENSITY,
            "propensity",
            "propensity",
            want.propensity == Need::Required,
        )?,
        eligible: table.role(&named.eligible, ELIGIBLE, "eligible actions", "eligible", false)?,
        round,
        chosen,
    };
    if !long {
        (roles.round, roles.chosen) = (None, None);
    } else if outcome {
        roles.chosen = table.role(&named.chosen, CHOSEN, "choice of a long table", "chosen", true)?;
    }
    // A log whose propensities are not known may have the column all the same, without a value.
    let empty = |name: &String| sample.rows > 0 && sample.columns.iter().any(|x| x.name == *name && x.seen() == 0);
    if want.propensity != Need::Required && roles.propensity.as_ref().is_some_and(empty) {
        roles.propensity = None;
    }
    Ok(roles)
}

/// The schema of a table.
pub(crate) fn schema(
    path: &Path,
    format: Format,
    sample: &Sample,
    options: &LogOptions,
    want: Want,
) -> Result<Schema, LogError> {
    let table = Lookup::new(path, sample);
    let Roles { action, reward, propensity, eligible, round, chosen } = &options.roles;
    let named = [action, reward, propensity, eligible, round, chosen].into_iter().flatten();
    for name in named.chain(options.features.iter().flatten()).chain(&options.extra).chain(options.kinds.keys()) {
        table.need(name)?;
    }
    let roles = roles(path, sample, &options.roles, want, None)?;
    let mut taken: Vec<&String> =
        [&roles.action, &roles.reward, &roles.propensity, &roles.eligible, &roles.round, &roles.chosen]
            .into_iter()
            .flatten()
            .collect();
    taken.extend(&options.extra);
    let (features, ignored) = features(sample, options, &taken);
    let (shared, per_action) = if roles.round.is_some() { (Vec::new(), features) } else { (features, Vec::new()) };
    Ok(Schema { format, shared, per_action, roles, missing: options.missing, ignored })
}

/// The columns that are features, and those that are not.
fn features(sample: &Sample, options: &LogOptions, taken: &[&String]) -> (Vec<Feature>, Vec<Ignored>) {
    let (mut features, mut ignored) = (Vec::new(), Vec::new());
    let order: Option<HashMap<&String, usize>> =
        options.features.as_ref().map(|asked| asked.iter().enumerate().map(|(i, name)| (name, i)).collect());
    let unwanted: HashSet<&String> = options.ignore.iter().collect();
    for column in &sample.columns {
        let name = &column.name;
        let kind = options.kinds.get(name).copied();
        let asked = order.as_ref().is_some_and(|order| order.contains_key(name));
        if taken.contains(&name) && !asked {
            continue;
        }
        let why = if options.features.is_some() && !asked {
            Some("not among the features asked for")
        } else if unwanted.contains(name) {
            Some("as asked")
        } else if asked || kind.is_some() {
            column.unusable
        } else if name.starts_with('_') {
            Some("its name begins with `_`")
        } else if [REWARD, PROPENSITY].into_iter().flatten().any(|known| known.eq_ignore_ascii_case(name)) {
            // It would tell a model what it is to foresee.
            Some(if column.seen() == 0 { "no values in the first rows" } else { "the name of a reward or propensity" })
        } else {
            column.unfit()
        };
        match why {
            Some(why) => ignored.push(Ignored { name: name.clone(), why: why.to_string() }),
            None => features.push(Feature { name: name.clone(), kind: kind.unwrap_or_else(|| column.kind()) }),
        }
    }
    if let Some(order) = order {
        features.sort_by_key(|feature| order.get(&feature.name).copied());
    }
    (features, ignored)
}

/// The roles of rounds in JSON, by the keys that tell them.
pub(crate) fn round_roles(
    path: &Path,
    format: Format,
    sample: &RoundSample,
    names: &Names,
    want: Want,
) -> Result<Roles, LogError> {
    let (action, reward, propensity) = match format {
        Format::Dsjson => ("_labelIndex", "_label_cost", "_label_probability"),
        _ => ("chosen", "reward", "propensity"),
    };
    let name = |named: &Option<String>, key: &str| Some(named.clone().unwrap_or_else(|| key.to_string()));
    if want.propensity == Need::Required && !sample.propensity {
        return Err(LogError::NoColumn {
            path: path.to_path_buf(),
            role: "propensity",
            wanted: listed(PROPENSITY),
            found: "none in the first rounds".to_string(),
            option: "propensity",
        });
    }
    Ok(Roles {
        action: name(&names.chosen, action),
        reward: name(&names.reward, reward),
        propensity: name(&names.propensity, propensity).filter(|_| sample.propensity),
        ..Roles::default()
    })
}

/// The schema of rounds in JSON.
pub(crate) fn round_schema(
    path: &Path,
    format: Format,
    sample: &RoundSample,
    options: &LogOptions,
    want: Want,
) -> Result<Schema, LogError> {
    let roles = round_roles(path, format, sample, &json_names(&options.roles, None), want)?;
    let names: Vec<&str> = sample.shared.names().into_iter().chain(sample.per_action.names()).collect();
    if let Some(name) = options.features.iter().flatten().find(|name| !names.contains(&name.as_str())) {
        let (path, name) = (path.to_path_buf(), name.clone());
        return Err(LogError::NoFeature { path, name, found: listed(&names) });
    }
    let (shared, mut ignored) = features(&sample.shared, options, &[]);
    let (per_action, more) = features(&sample.per_action, options, &[]);
    ignored.extend(more);
    Ok(Schema { format, shared, per_action, roles, missing: options.missing, ignored })
}

/// Options for a log of the Open Bandit Dataset, where the user has said nothing else.
pub(crate) fn open_bandit(sample: &Sample, options: &LogOptions) -> LogOptions {
    let mut options = options.clone();
    for column in &sample.columns {
        let name = column.name.clone();
        match obd::column(&name) {
            Some(ObdColumn::Action) => options.roles.action = options.roles.action.or(Some(name)),
            Some(ObdColumn::Reward) => options.roles.reward = options.roles.reward.or(Some(name)),
            Some(ObdColumn::Time) => options.ignore.push(name),
            Some(ObdColumn::Position) if options.position.is_some() => options.ignore.push(name),
            Some(ObdColumn::Position | ObdColumn::User) => {
                options.kinds.entry(name).or_insert(Kind::Category);
            }
            Some(ObdColumn::Affinity) => {
                options.kinds.entry(name).or_insert(Kind::Number);
            }
            Some(ObdColumn::Index | ObdColumn::Propensity) | None => {}
        }
    }
    options
}
