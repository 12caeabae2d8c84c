//! The decision log: every decision, reward and activation in segments of a folder, in the order in which they came.
//!
//! A segment is a file `segment-NNNNNNNN.ncb`. It begins with the eight bytes of [`MAGIC`]; records follow, each
//!
//! ```text
//! length of the text: u32 | CRC-32 of length and text: u32 | text: JSON
//! ```
//!
//! with numbers in little-endian. The first record tells the server and the segment's number, the last of a closed
//! segment how many records stand before it and the SHA-256 of all bytes before it. A server that was killed leaves a
//! segment without such an end, and perhaps a torn record: it is moved to a file `.torn` when the folder is opened
//! again, and what is left is closed.
//!
//! * [`Record`]: what is written.
//! * [`Frames`]: reading a segment, with its torn tail recognised.
//! * [`Folder`]: the segments of a folder; one server at a time writes to it.
//! * [`Journal`]: the writer, which puts what many requests append on the disk with one flush.

mod disk;
mod folder;
mod frame;
mod record;
mod writer;

pub use disk::{Disk, DiskFile, RealDisk};
pub(crate) use folder::has_end;
pub use folder::{Folder, Recovered, segments};
pub(crate) use frame::hex;
pub use frame::{End, Frames, MAGIC, MAX_TEXT, frame};
pub use record::{Activation, Closed, Decision, Offered, Opened, Record, Reward};
pub use writer::{Counters, Durability, Journal, Options, Unlogged};

use std::path::PathBuf;

use thiserror::Error;

/// Why a folder of segments cannot be read or written.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The disk refused.
    #[error("cannot {what} `{path}`: {source}")]
    Disk {
        /// What was tried.
        what: &'static str,
        /// The file or folder in question.
        path: PathBuf,
        /// What the disk said.
        source: std::io::Error,
    },
    /// Another server writes to the folder.
    #[error("another server writes to `{path}`: stop it, or give this one a folder of its own by --data")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// Not a segment, or of a later version.
    #[error("`{path}` is no segment of this format: {reason}; move it out of the folder")]
    NoSegment {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A closed segment whose bytes have changed since.
    #[error(
        "`{path}` is damaged at byte {at}: {reason}; restore it from a copy, or move it out of the folder to do without \
         it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the damage begins.
        at: u64,
        /// What is wrong.
        reason: String,
    },
}

impl JournalError {
    fn disk(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> JournalError {
        move |source| JournalError::Disk { what, path: path.to_path_buf(), source }
    }
}
