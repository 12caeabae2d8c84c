//! What can go wrong with a measurement.

use std::path::PathBuf;

/// Everything this crate refuses or fails at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library refused its input.
    #[error(transparent)]
    Library(#[from] neuralcb::Error),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] Box<dyn std::error::Error + Send + Sync>),
    /// No threads.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The folder to export to holds something that is not ours.
    #[error("cannot export to `{folder}`: it holds `{found}`, which is no exported array")]
    Occupied {
        /// The folder asked for.
        folder: PathBuf,
        /// What was found in it.
        found: PathBuf,
    },
    /// A job without arrays.
    #[error("job `{name}` has no arrays to export")]
    NoArrays {
        /// The job.
        name: &'static str,
    },
}
