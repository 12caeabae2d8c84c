//! What can go wrong with files.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A file or folder that could not be used. The message is complete: it ends with the system's own reason.
#[derive(Debug, Error)]
pub enum FileError {
    /// A folder did not exist and could not be made.
    #[error("cannot create folder `{path}`: {source}")]
    CreateFolder {
        /// The folder asked for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A folder was asked for, and something else has that name.
    #[error("cannot use `{path}` as a folder: it exists and is not one")]
    NotAFolder {
        /// The path in question.
        path: PathBuf,
    },
    /// A folder exists, but no file can be made in it.
    #[error("cannot write to folder `{path}`: {source}")]
    Unwritable {
        /// The folder in question.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file could not be written; an older version of it, if any, is still whole.
    #[error("cannot write file `{path}`: {source}")]
    Write {
        /// The file in question.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file that is no longer needed could not be removed.
    #[error("cannot remove file `{path}`: {source}")]
    Remove {
        /// The file in question.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file to write that is also read.
    #[error("cannot write `{path}`: it is the same file as `{input}`, which is read: choose another name")]
    SameFile {
        /// The file to write.
        path: PathBuf,
        /// The file to read.
        input: PathBuf,
    },
    /// A name that would leave the output folder.
    #[error("cannot write `{name}` in folder `{folder}`: the name must be a relative path without `..`")]
    Outside {
        /// The output folder.
        folder: PathBuf,
        /// The name asked for.
        name: String,
    },
    /// A file could not be read.
    #[error("cannot read file `{path}`: {source}")]
    Read {
        /// The file in question.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A value in a file that is not allowed.
    #[error("`{path}`, line {line}: must be {want}, got `{got}`")]
    Line {
        /// The file in question.
        path: PathBuf,
        /// Line of the file, from 1.
        line: usize,
        /// What is allowed there.
        want: &'static str,
        /// What was found.
        got: String,
    },
}
