//! Parquet files from strangers.
//!
//! The decoder trusts the file's own table of contents: it panics where a column claims to begin before the file does.
//! So the claims are held against the file before anything is decoded, and a panic on a damaged page is an error like
//! any other.

use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::error::LogError;
use super::sources::Source;

/// What decodes a file whose table of contents is possible.
pub(crate) fn builder(source: &Source) -> Result<ParquetRecordBatchReaderBuilder<File>, LogError> {
    let path = &source.path;
    let file = source.file()?;
    let builder = caught(path, || ParquetRecordBatchReaderBuilder::try_new(file))?;
    for group in builder.metadata().row_groups() {
        for chunk in group.columns() {
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let end = start.checked_add(chunk.compressed_size());
            let within = start >= 0 && end.is_some_and(|end| end >= start && end.unsigned_abs() <= source.size);
            if !within || chunk.num_values() < 0 || group.num_rows() < 0 {
                let (name, length) = (chunk.column_path(), chunk.compressed_size());
                let message = format!(
                    "column `{name}` claims {} values in {length} bytes from byte {start} of {}",
                    chunk.num_values(),
                    source.size
                );
                return Err(LogError::Parquet { path: path.clone(), message });
            }
        }
    }
    Ok(builder)
}

/// Decodes; what goes wrong is an error, whichever way it does.
pub(crate) fn caught<T, E: Display>(path: &Path, decode: impl FnOnce() -> Result<T, E>) -> Result<T, LogError> {
    let message = match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(decoded)) => return Ok(decoded),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its pages are damaged".to_owned(),
    };
    Err(LogError::Parquet { path: path.to_path_buf(), message })
}
