//! A round as a line of JSON tells it: what the parsers of nested formats give, before it is put into columns.

use thiserror::Error;

/// A single value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A finite number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Words: a category.
    Text(String),
}

/// One decision.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRound {
    /// Features of the round, nested names joined by dots. No name comes twice.
    pub shared: Vec<(String, Value)>,
    /// What was offered: at least one action; all have a name, no two the same, or none has.
    pub actions: Vec<JsonAction>,
    /// The chosen one, by its place in `actions`.
    pub chosen: Option<usize>,
    /// Its reward, finite.
    pub reward: Option<f64>,
    /// The behaviour policy's probability of the chosen action, in (0, 1].
    pub propensity: Option<f64>,
    /// How many rounds it stands for, at least 1: more where a logger has dropped others like it.
    pub count: f64,
}

/// One action of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonAction {
    /// Its name, where the line gives one.
    pub name: Option<String>,
    /// Its own features. No name comes twice.
    pub features: Vec<(String, Value)>,
    /// The behaviour policy's probability of it, in [0, 1], where the line tells that of every action.
    pub probability: Option<f64>,
}

/// Why a line is no round. File and line are added by the reader.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RowProblem {
    /// Not JSON at all.
    #[error("byte {byte}: not JSON: {reason}")]
    Syntax {
        /// Where in the line, from 1.
        byte: usize,
        /// What the parser says.
        reason: String,
    },
    /// A value that is not allowed.
    #[error("`{place}` must be {want}, got {got}")]
    Value {
        /// The value's path in the line.
        place: String,
        /// What is allowed there.
        want: &'static str,
        /// What was found, shortened.
        got: String,
    },
    /// A value that must be there and is not.
    #[error("`{place}` is missing: it must be {want}")]
    Missing {
        /// The value's path in the line.
        place: String,
        /// What is expected there.
        want: &'static str,
    },
    /// A name that stands for two things.
    #[error("`{name}` comes twice: a name must stand for one value")]
    Twice {
        /// The name in question.
        name: String,
    },
    /// Two values that cannot both be true.
    #[error("`{place}` is {got}, but `{other}` says {want}")]
    Disagree {
        /// The one.
        place: String,
        /// Its value.
        got: String,
        /// The other.
        other: String,
        /// What the other one implies.
        want: String,
    },
    /// More than a round can reasonably hold: refused before memory runs out.
    #[error("too large for one round: at most {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// Another kind of problem than choosing one action.
    #[error("`{place}`: {kind} is not supported; {cure}")]
    Unsupported {
        /// The key that says so.
        place: String,
        /// What it belongs to.
        kind: &'static str,
        /// What to do instead.
        cure: &'static str,
    },
}
