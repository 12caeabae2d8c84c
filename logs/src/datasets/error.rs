//! What can be wrong with a data set's files.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::RealData;
use crate::FileError;

/// A data set that could not be read or fetched. Each message is one line and names file and place.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file of the data set is not in the cache.
    #[error(
        "data set `{data}` is not here: file `{file}` is missing in `{cache}`; run `neuralcb data fetch {data}` \
         (or with `--from DIR`)"
    )]
    Missing {
        /// The data set asked for.
        data: RealData,
        /// The file, relative to the cache.
        file: &'static str,
        /// The cache folder.
        cache: PathBuf,
    },
    /// A file could not be read.
    #[error("cannot read file `{path}`: {source}")]
    Read {
        /// The file in question.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file without a single row.
    #[error("`{path}` holds no rows")]
    Empty {
        /// The file in question.
        path: PathBuf,
    },
    /// A line with too few or too many fields.
    #[error("`{path}`, line {line}: must have {want} fields, got {got}")]
    Fields {
        /// The file in question.
        path: PathBuf,
        /// Line of the file, from 1.
        line: usize,
        /// Fields of a right line.
        want: usize,
        /// Fields of this one.
        got: usize,
    },
    /// A value that is not allowed in its place.
    #[error("`{path}`, line {line}, field {field}: must be {want}, got `{got}`")]
    Value {
        /// The file in question.
        path: PathBuf,
        /// Line of the file, from 1.
        line: usize,
        /// Field of the line, from 1.
        field: usize,
        /// What is allowed there.
        want: &'static str,
        /// What was found.
        got: String,
    },
    /// A compressed file that does not decompress: cut short, or damaged.
    #[error("cannot decompress `{path}`: {source}")]
    Unpack {
        /// The file in question.
        path: PathBuf,
        /// What the decoder says.
        source: io::Error,
    },
    /// A number in the header of a binary file that is not the right one.
    #[error("`{path}`, header: {field} must be {want}, got {got}")]
    Header {
        /// The file in question.
        path: PathBuf,
        /// Which number.
        field: &'static str,
        /// What it must be.
        want: u32,
        /// What it is.
        got: u32,
    },
    /// A binary file that ends before its header says.
    #[error("`{path}`: its header promises {want} bytes of content, got {got}")]
    Short {
        /// The file in question.
        path: PathBuf,
        /// Bytes after the header that it must have.
        want: usize,
        /// Bytes that it has.
        got: usize,
    },
    /// A binary file that goes on where its header says it ends.
    #[error("`{path}`: must end after {want} bytes of content, but goes on")]
    Long {
        /// The file in question.
        path: PathBuf,
        /// Bytes after the header that it must have.
        want: usize,
    },
    /// A label that names no class.
    #[error("`{path}`, item {item}: label must be below {n_classes}, got {got}")]
    Label {
        /// The file in question.
        path: PathBuf,
        /// Number of the item, from 0.
        item: usize,
        /// Number of classes.
        n_classes: usize,
        /// The label found.
        got: u8,
    },
    /// Files that parse, but are not the published ones.
    #[error(
        "data set `{data}` must have {want} {what}, got {got}: the files in `{cache}` are not the published ones; run \
         `neuralcb data fetch {data}`"
    )]
    Counts {
        /// The data set asked for.
        data: RealData,
        /// Rows or columns.
        what: &'static str,
        /// The published number.
        want: usize,
        /// The number found.
        got: usize,
        /// The cache folder.
        cache: PathBuf,
    },
    /// Numbers the library refuses.
    #[error(transparent)]
    Numbers(#[from] neuralcb::Error),
    /// The folder with local copies lacks a file.
    #[error("file `{file}` of data set `{data}` is not in `{folder}`")]
    NotInFolder {
        /// The data set asked for.
        data: RealData,
        /// The file, relative to the folder.
        file: &'static str,
        /// The folder with local copies.
        folder: PathBuf,
    },
    /// Content that is not the published file. Nothing was installed.
    #[error("`{from}` is not the published file and was not installed: its SHA-256 must be {want}, got {got}")]
    Hash {
        /// Where the content came from: an address or a file.
        from: String,
        /// The published hash.
        want: &'static str,
        /// The hash of the content.
        got: String,
    },
    /// Content that is longer than the published file can be. Nothing was installed.
    #[error("`{from}` is not the published file and was not installed: it has more than {limit} bytes")]
    TooLong {
        /// Where the content came from: an address or a file.
        from: String,
        /// Bytes after which reading stopped.
        limit: u64,
    },
    /// A download that the network did not allow.
    #[error("cannot download `{url}`: {source}; is there a network? `--from DIR` takes local copies")]
    Network {
        /// The address.
        url: String,
        /// The network's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A download that the server refused.
    #[error("cannot download `{url}`: the server answers with status {status}; `--from DIR` takes local copies")]
    Status {
        /// The address.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// A download that ended too early, again and again. What came is kept and will be continued.
    #[error("cannot download `{url}`: the connection ended after {got} of {want} bytes; run it again to continue")]
    Cut {
        /// The address.
        url: String,
        /// Bytes of the file.
        want: u64,
        /// Bytes received.
        got: u64,
    },
    /// Another process is downloading the same file.
    #[error("another process is downloading `{path}`; wait for it to end")]
    Busy {
        /// The unfinished file.
        path: PathBuf,
    },
    /// A file or folder that could not be written.
    #[error(transparent)]
    File(#[from] FileError),
}
