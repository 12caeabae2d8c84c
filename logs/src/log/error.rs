//! What can go wrong with a log.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::block::Place;
use super::json_round::RowProblem;
use super::obd::ObdError;
use crate::error::FileError;

/// Why a log cannot be read or prepared. The message is complete: culprit, place, what is allowed, cure.
#[derive(Debug, Error)]
pub enum LogError {
    /// The file itself could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A row that cannot be used.
    #[error("`{path}`, {unit} {line}: {problem}")]
    Row {
        /// The file in question.
        path: PathBuf,
        /// What is counted: lines of a text, rows of a table.
        unit: &'static str,
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// More bad rows than were allowed.
    #[error("more than {allowed} bad rows: raise `max_bad_rows` (--max-bad-rows) to skip more; the last was {last}")]
    TooManyBadRows {
        /// How many were allowed.
        allowed: u64,
        /// The row that was one too many.
        last: Box<LogError>,
    },
    /// No ending that names a format.
    #[error(
        "cannot tell the format of `{path}` by its ending: name it .csv, .tsv, .jsonl, .ndjson, .json, .dsjson or \
         .parquet (text also with .gz or .zst), or say it by `format` (--format)"
    )]
    UnknownFormat {
        /// The file in question.
        path: PathBuf,
    },
    /// Files of more than one format.
    #[error("`{path}` is {got} and the files before it are {want}: a log has one format")]
    MixedFormats {
        /// The file that differs.
        path: PathBuf,
        /// Format of the first file.
        want: super::Format,
        /// Format of this one.
        got: super::Format,
    },
    /// A folder without a log in it, or no path at all.
    #[error("no log in `{path}`: it must hold files of one format, such as .csv or .parquet")]
    NoFiles {
        /// The folder in question.
        path: PathBuf,
    },
    /// A file without rows.
    #[error("`{path}` has no rows")]
    Empty {
        /// The file in question.
        path: PathBuf,
    },
    /// A file that is not what it was when the log was opened.
    #[error("`{path}` has changed while it was being read: copy it first, or read it when nothing writes to it")]
    Changed {
        /// The file in question.
        path: PathBuf,
    },
    /// A pipe or device that gives no log.
    #[error("`{path}` gives bytes that are neither text nor Parquet")]
    NoText {
        /// The pipe in question.
        path: PathBuf,
    },
    /// A column that is needed is not there.
    #[error(
        "`{path}` has no column for the {role} (looked for {wanted}); it has {found}: name the column by `{option}` (--{option})"
    )]
    NoColumn {
        /// The file in question.
        path: PathBuf,
        /// What the column is for.
        role: &'static str,
        /// Names that would do.
        wanted: String,
        /// Names that are there.
        found: String,
        /// The option that names the column.
        option: &'static str,
    },
    /// Two columns could play one role.
    #[error(
        "`{path}` has two columns for the {role}, `{first}` and `{second}`: say which by `{option}` (--{option}), \
         and ignore or rename the other"
    )]
    TwoColumns {
        /// The file in question.
        path: PathBuf,
        /// What the columns are for.
        role: &'static str,
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// The option that decides.
        option: &'static str,
    },
    /// A feature that was asked for, or that the policy knows, is not there.
    #[error("`{path}` has no column `{name}`; it has {found}")]
    NoFeature {
        /// The file in question.
        path: PathBuf,
        /// The column asked for.
        name: String,
        /// Names that are there.
        found: String,
    },
    /// Two columns of one name.
    #[error("`{path}` has two columns `{name}`: rename one")]
    DuplicateColumn {
        /// The file in question.
        path: PathBuf,
        /// Their name.
        name: String,
    },
    /// A column of a type that cannot be what it is asked to be.
    #[error("`{path}`, column `{name}`: must be {want}, got {got}")]
    ColumnType {
        /// The file in question.
        path: PathBuf,
        /// The column.
        name: String,
        /// What would do.
        want: &'static str,
        /// The type found.
        got: String,
    },
    /// A folder of the Open Bandit Dataset that is no log.
    #[error(transparent)]
    OpenBandit(#[from] ObdError),
    /// More features than the program is made for.
    #[error("`{path}` has more than {max} columns: at most so many are read")]
    TooManyFeatures {
        /// The file in question.
        path: PathBuf,
        /// How many are allowed.
        max: usize,
    },
    /// A Parquet file that cannot be decoded.
    #[error("cannot read `{path}` as Parquet: {message}")]
    Parquet {
        /// The file in question.
        path: PathBuf,
        /// The decoder's reason.
        message: String,
    },
    /// Options that cannot be read.
    #[error("`{path}`: {message}")]
    Options {
        /// The file in question.
        path: PathBuf,
        /// The reader's reason.
        message: String,
    },
    /// A category with more values than allowed.
    #[error("column `{name}` has more than {max} different values, an identifier perhaps: ignore it (--ignore {name})")]
    TooManyCategories {
        /// The column.
        name: String,
        /// How many are allowed.
        max: usize,
    },
    /// More actions than the program is made for.
    #[error("more than {max} different actions: is `{column}` the column of the action?")]
    TooManyActions {
        /// The column.
        column: String,
        /// How many are allowed.
        max: usize,
    },
    /// Numbers whose squares have no place in double precision.
    #[error("the values of `{column}` are too large: their spread must be finite; divide them, or ignore the column")]
    TooLarge {
        /// The column.
        column: String,
    },
    /// Nothing for a model to see.
    #[error("the log has no features: let the preparation add its intercept")]
    NoFeatures,
    /// Nothing to learn from.
    #[error("the log has no rounds{after}", after = if *.skipped > 0 { " that can be used: all its rows are bad" } else { "" })]
    NoRounds {
        /// Bad rows that were skipped.
        skipped: u64,
    },
    /// A round's chosen action is none that the policy knows.
    #[error("{place}: action `{name}` was not in the log that the policy learned from")]
    UnknownAction {
        /// Where the round stands.
        place: Place,
        /// The action's name.
        name: String,
    },
    /// A round offers nothing that the policy knows.
    #[error("{place}: none of the offered actions was in the log that the policy learned from")]
    NothingKnown {
        /// Where the round stands.
        place: Place,
    },
    /// A round offers more actions than any policy of the log can tell apart.
    #[error("{place}: {got} actions are offered, and the policy knows {max}")]
    TooManyOffered {
        /// Where the round stands.
        place: Place,
        /// Actions offered.
        got: usize,
        /// Actions known.
        max: usize,
    },
    /// A value so far from those of the training log that it has no place in single precision.
    #[error("{place}: feature `{name}` is too far from its values in the log that the policy learned from, got {got}")]
    TooFar {
        /// Where the round stands.
        place: Place,
        /// The feature.
        name: String,
        /// The prepared value.
        got: f64,
    },
    /// A block without what was asked of it.
    #[error("the block has no {what}: open the log with `Want {{ outcome: true, .. }}`")]
    NotRead {
        /// The missing part.
        what: &'static str,
    },
    /// Someone asked for the work to end.
    #[error("interrupted")]
    Interrupted,
    /// The values of a block are refused by the library.
    #[error(transparent)]
    Values(#[from] neuralcb::Error),
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Problem {
    /// A value of a table, or the row itself.
    #[error("{}must be {want}, got {}{}", named(.column), found(.got), after(.cure))]
    Value {
        /// The column, if it is one column's fault.
        column: Option<String>,
        /// What must stand there.
        want: &'static str,
        /// What was found.
        got: String,
        /// What to do about it; may be empty.
        cure: &'static str,
    },
    /// A line of JSON.
    #[error(transparent)]
    Json(#[from] RowProblem),
}

fn named(column: &Option<String>) -> String {
    column.as_ref().map_or_else(String::new, |column| format!("column `{column}` "))
}

fn found(got: &str) -> String {
    if got.is_empty() { "nothing (an empty field, NaN or NA)".to_owned() } else { format!("`{got}`") }
}

fn after(cure: &str) -> String {
    if cure.is_empty() { String::new() } else { format!(": {cure}") }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file {
            0 => write!(f, "line {}", self.line),
            file => write!(f, "file {}, line {}", file + 1, self.line),
        }
    }
}

/// A value as it may stand in a message: short, and without what would break the line.
pub(crate) fn shown(value: &[u8]) -> String {
    const LONGEST: usize = 60;
    let text = String::from_utf8_lossy(&value[..value.len().min(4 * LONGEST)]);
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().count() > LONGEST || value.len() > 4 * LONGEST {
        short.push('…');
    }
    short
}

/// Names as a list in a message.
pub(crate) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const MOST: usize = 12;
    let mut text: Vec<String> =
        names.iter().take(MOST).map(|name| format!("`{}`", shown(name.as_ref().as_bytes()))).collect();
    if names.len() > MOST {
        text.push(format!("{} more", names.len() - MOST));
    }
    if text.is_empty() { "none".to_string() } else { text.join(", ") }
}
