//! The lines of a text, none longer than memory allows.

use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::error::LogError;
use super::json::MAX_LINE;
use super::sources::Source;
use crate::error::FileError;

/// Reads a text line by line.
pub(crate) struct Lines {
    pub path: PathBuf,
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    pub fn open(source: &Source, read: Arc<AtomicU64>) -> Result<Lines, LogError> {
        Ok(Lines { path: source.path.clone(), reader: source.lines(read)?, line: Vec::new(), number: 0 })
    }

    /// The next line that is not blank, with its number from 1. Of one that is too long only the beginning is there,
    /// and it is longer than [`MAX_LINE`].
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, LogError> {
        loop {
            match self.read() {
                Ok(false) => return Ok(None),
                Ok(true) => {}
                Err(source) => return Err(LogError::File(FileError::Read { path: self.path.clone(), source })),
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = if self.number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        Ok(Some((self.number, line)))
    }

    fn read(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.number += 1;
        let most = MAX_LINE as u64 + 2;
        (&mut self.reader).take(most).read_until(b'\n', &mut self.line)?;
        let mut whole = (self.line.len() as u64) < most || self.line.ends_with(b"\n");
        while !whole {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|&b| b == b'\n');
            whole = end.is_some() || buffer.is_empty();
            let n = end.map_or(buffer.len(), |end| end + 1);
            self.reader.consume(n);
        }
        Ok(!self.line.is_empty())
    }
}
