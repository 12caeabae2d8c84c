//! What can go wrong with an experiment.

use std::path::PathBuf;

use neuralcb_logs::FileError;
use neuralcb_logs::datasets::DataError;
use thiserror::Error;

/// An experiment that could not be run or kept.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// A setting or a computation.
    #[error(transparent)]
    Library(#[from] neuralcb::Error),
    /// A real data set.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A result file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A chart.
    #[error(transparent)]
    Png(#[from] crate::png::PngError),
    /// A finished run in the journal that cannot be read.
    #[error("`{path}`, line {line}: {reason}; remove that line, and its run will be made again")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Line of the file, from 1.
        line: usize,
        /// What the reader says.
        reason: serde_json::Error,
    },
    /// Another process is at work in the folder.
    #[error("another run is at work in `{path}`: wait for it, or choose another folder with --out")]
    Busy {
        /// The folder in question.
        path: PathBuf,
    },
    /// A folder without finished runs.
    #[error("no finished runs in `{path}`: `neuralcb reproduce` makes them")]
    Empty {
        /// The folder in question.
        path: PathBuf,
    },
    /// A field of the network's settings that does not exist or has a wrong value.
    #[error("setting of the network: {reason}")]
    Net {
        /// What the reader says.
        reason: serde_json::Error,
    },
    /// A file of settings that is not one.
    #[error("`{path}` does not hold the settings of an experiment: {reason}")]
    Settings {
        /// The file in question.
        path: PathBuf,
        /// What the reader says.
        reason: serde_json::Error,
    },
}
