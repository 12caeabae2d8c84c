//! A text in pieces of whole rows, so that several threads can read it, and none longer than memory allows.

use std::io::Read;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::error::{LogError, Problem};
use super::fields::{Rows, count};
use super::json::MAX_LINE;
use super::sources::Source;
use crate::error::FileError;

/// Bytes of a piece, about.
const PIECE: usize = 1 << 19;

/// Numbers and words that the rows of a piece may become, about.
const CELLS: usize = 1 << 22;

/// The fewest bytes that can be a row: an object without members and its line end.
const SHORTEST_ROW: usize = 3;

/// The longest row that is believed; an open quotation mark would else take in the rest of the file.
const LONGEST_ROW: usize = 1 << 26;

/// What ends a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ends {
    /// Every newline.
    Lines,
    /// This byte, outside of quotation marks.
    Rows { delimiter: u8, end: u8 },
}

impl Ends {
    fn byte(self) -> u8 {
        match self {
            Ends::Lines => b'\n',
            Ends::Rows { end, .. } => end,
        }
    }

    /// Where the whole rows end with which a text begins.
    fn last(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Ends::Rows { delimiter, end } if bytes.contains(&b'"') => Rows::new(bytes, 1, delimiter, end).last_end(),
            _ => bytes.iter().rposition(|b| *b == self.byte()).map(|at| at + 1),
        }
    }
}

/// Some whole rows.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The number of its first line.
    pub line: u64,
    pub bytes: Vec<u8>,
}

impl Piece {
    /// The lines that are not blank, with their numbers. One that is too long is longer than [`MAX_LINE`], and only its
    /// beginning is there.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let lines = (self.line..).zip(self.bytes.split(|b| *b == b'\n'));
        lines.filter(|(_, line)| !line.trim_ascii().is_empty())
    }
}

/// Cuts a text.
pub(crate) struct Pieces {
    path: PathBuf,
    text: Box<dyn Read + Send>,
    ends: Ends,
    /// Bytes of a piece.
    size: usize,
    /// What was read after the last piece, and its line.
    rest: Vec<u8>,
    line: u64,
    begun: bool,
    ended: bool,
}

impl Pieces {
    /// Opens a text whose rows will have so many columns: the more there are, the smaller the pieces.
    pub fn open(source: &Source, ends: Ends, columns: usize, read: Arc<AtomicU64>) -> Result<Pieces, LogError> {
        let (path, text) = (source.path.clone(), source.text(read)?);
        let size = (SHORTEST_ROW * CELLS / columns.max(1)).clamp(1, PIECE);
        Ok(Pieces { path, text, ends, size, rest: Vec::new(), line: 1, begun: false, ended: false })
    }

    /// The next piece; none at the end.
    pub fn next(&mut self) -> Result<Option<Piece>, LogError> {
        let mut bytes = mem::take(&mut self.rest);
        let mut want = self.size;
        let end = loop {
            self.read_to(&mut bytes, want)?;
            if self.ended {
                break bytes.len();
            }
            if let Some(end) = self.ends.last(&bytes) {
                break end;
            }
            match self.ends {
                Ends::Lines if bytes.len() > MAX_LINE => return self.beginning_of_line(bytes).map(Some),
                Ends::Rows { .. } if bytes.len() >= LONGEST_ROW => return Err(self.too_long()),
                _ => want = 2 * want.max(bytes.len()),
            }
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        self.rest = bytes.split_off(end);
        let line = self.line;
        self.line += count(&bytes, self.ends.byte());
        Ok(Some(Piece { line, bytes }))
    }

    /// Whether nothing is left.
    pub fn at_end(&self) -> bool {
        self.ended && self.rest.is_empty()
    }

    /// Takes back what is no row, as a header is none: the text goes on from there, on this line.
    pub fn skip(&mut self, piece: Piece, to: (usize, u64)) {
        let (at, line) = to;
        let rest = mem::replace(&mut self.rest, piece.bytes);
        self.rest.drain(..at);
        self.rest.extend_from_slice(&rest);
        self.line = line;
    }

    fn read_to(&mut self, bytes: &mut Vec<u8>, want: usize) -> Result<(), LogError> {
        let more = want.saturating_sub(bytes.len()) as u64;
        if self.ended || more == 0 {
            return Ok(());
        }
        let failed = |source| LogError::File(FileError::Read { path: self.path.clone(), source });
        let n = (&mut self.text).take(more).read_to_end(bytes).map_err(failed)?;
        self.ended = (n as u64) < more;
        if !mem::replace(&mut self.begun, true) && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        Ok(())
    }

    /// The beginning of a line that is too long; the rest of it is passed over.
    fn beginning_of_line(&mut self, mut bytes: Vec<u8>) -> Result<Piece, LogError> {
        bytes.truncate(MAX_LINE + 1);
        let line = self.line;
        self.line += 1;
        while !self.ended {
            let mut more = Vec::new();
            self.read_to(&mut more, PIECE)?;
            if let Some(end) = more.iter().position(|b| *b == b'\n') {
                self.rest = more.split_off(end + 1);
                break;
            }
        }
        Ok(Piece { line, bytes })
    }

    fn too_long(&self) -> LogError {
        let problem = Problem::Value {
            column: None,
            want: "a row of at most 64 MiB",
            got: "more".to_string(),
            cure: "a quotation mark may be open",
        };
        LogError::Row { path: self.path.clone(), unit: "line", line: self.line, problem: Box::new(problem) }
    }
}
