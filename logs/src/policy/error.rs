//! What can go wrong with a policy.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::FileError;
use crate::log::LogError;

/// A policy that could not be made, read or used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The library refused settings or arrays.
    #[error(transparent)]
    Library(#[from] neuralcb::Error),
    /// Not a policy file or checkpoint, or not a whole one.
    #[error("`{path}` is not a whole {kind} file: {reason}")]
    Damaged {
        /// The file in question.
        path: PathBuf,
        /// What it should be.
        kind: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of a later program.
    #[error("`{path}` has policy format {found}, and this program reads up to {known}: use a newer neuralcb")]
    Future {
        /// The file in question.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version known here.
        known: u64,
    },
    /// β was asked of a policy that has none.
    #[error("a policy of kind `{method}` has no beta: only reward models are pessimistic")]
    NoBeta {
        /// The kind of policy.
        method: String,
    },
    /// The rewards of a policy that knows none.
    #[error("a policy of kind `{method}` has no reward model: give one that learned from rewards")]
    NoRewardModel {
        /// The kind of policy.
        method: String,
    },
    /// A reward model of other features than the policy's.
    #[error("the reward model and the policy know different features: train both on the same columns")]
    OtherFeatures,
    /// Segments of a column that is not there.
    #[error("the log has no column `{name}` among the features of its rounds: use one of {known}")]
    Segment {
        /// The column that was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A recipe that only a whole log can decide.
    #[error("`auto` chooses when it sees a whole log: name an algorithm here, or use `train`")]
    Undecided,
    /// A recipe that cannot be made.
    #[error("`{name}` does not apply to {algorithm}: {cure}")]
    Recipe {
        /// The setting.
        name: &'static str,
        /// The algorithm.
        algorithm: String,
        /// What to do.
        cure: &'static str,
    },
    /// A checkpoint of other work.
    #[error("checkpoint `{path}` belongs to another training ({differs} differs): remove it or name another")]
    OtherCheckpoint {
        /// The file in question.
        path: PathBuf,
        /// What differs.
        differs: &'static str,
    },
    /// A settings file that cannot be read.
    #[error("`{path}`: {reason}")]
    Settings {
        /// The file in question.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A value of a column that was asked for by name.
    #[error("`{path}`, line {line}, column `{column}`: must be {want}, got {got}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The line of a text, or the row of a table, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// What is allowed.
        want: &'static str,
        /// What was found.
        got: f64,
    },
    /// More memory than there is.
    #[error("{what} needs {need} of memory, and {free} are free: {cure}")]
    Memory {
        /// What needs it.
        what: &'static str,
        /// How much.
        need: String,
        /// What is free.
        free: String,
        /// What to do.
        cure: &'static str,
    },
    /// A policy with numbers that no file holds.
    #[error("the policy's description cannot be written so that it is read again: {reason}")]
    Unwritable {
        /// The reader's reason.
        reason: String,
    },
    /// A policy whose file could not be read again.
    #[error("the policy's description would take {got} bytes of its file, and at most {most} can be read: {cure}")]
    TooLarge {
        /// Its length.
        got: usize,
        /// The longest.
        most: usize,
        /// What to do.
        cure: &'static str,
    },
    /// Too little to learn from.
    #[error("the log has {rounds} rounds, and {what} needs at least {least}")]
    TooShort {
        /// Rounds in the log.
        rounds: u64,
        /// What they are needed for.
        what: &'static str,
        /// How many it needs.
        least: u64,
    },
}
