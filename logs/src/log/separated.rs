//! Tables as text: CSV and TSV, with a header.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::block::Place;
use super::error::{LogError, Problem, listed, shown};
use super::infer::{Sample, Sampled};
use super::options::Format;
use super::sources::Source;
use super::table::{Column, Table, TableReader, is_absent, number, push_text, truth};
use crate::error::FileError;

/// The longest row that is believed; an open quotation mark would else take in the rest of the file.
const LONGEST_ROW: u64 = 1 << 26;

/// Rows of a text, each with as many fields as the header.
pub(crate) struct Separated {
    path: PathBuf,
    file: u32,
    reader: Reader<Bounded<Box<dyn Read + Send>>>,
    /// Bytes read since the last row.
    since: Arc<AtomicU64>,
    record: ByteRecord,
    n_fields: usize,
    columns: Vec<Column>,
    /// The field of each column to read.
    fields: Vec<usize>,
}

impl Separated {
    /// Opens a file and reads its header. `columns` are looked up by name.
    pub fn open(
        source: &Source,
        file: u32,
        format: Format,
        columns: &[Column],
        read: Arc<AtomicU64>,
    ) -> Result<Separated, LogError> {
        let since = Arc::new(AtomicU64::new(0));
        let text = Bounded { inner: source.text(read)?, since: Arc::clone(&since) };
        let delimiter = if format == Format::Tsv { b'\t' } else { b',' };
        let mut reader = ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text);
        let mut record = ByteRecord::new();
        let path = source.path.clone();
        if !reader.read_byte_record(&mut record).map_err(|e| csv_error(&path, e))? {
            return Err(LogError::Empty { path });
        }
        let names = header(&path, &record)?;
        let fields: Result<Vec<usize>, LogError> = columns
            .iter()
            .map(|column| {
                names.iter().position(|name| *name == column.name).ok_or_else(|| LogError::NoFeature {
                    path: path.clone(),
                    name: column.name.clone(),
                    found: listed(&names),
                })
            })
            .collect();
        since.store(0, Ordering::Relaxed);
        let n_fields = record.len();
        Ok(Separated { fields: fields?, path, file, reader, since, record, n_fields, columns: columns.to_vec() })
    }

    /// The names of all fields, and what the first rows hold.
    pub fn sample(source: &Source, format: Format, rows: usize) -> Result<Sample, LogError> {
        let mut file = Separated::open(source, 0, format, &[], Arc::default())?;
        let mut sample = Sample::new(header(&file.path, &file.record)?);
        while sample.rows < rows && file.next()? {
            // A row of another length is left to the pass that counts bad rows.
            if file.record.len() == file.n_fields {
                sample.rows += 1;
                sample.columns.iter_mut().zip(&file.record).for_each(|(column, text)| see(column, text.trim_ascii()));
            }
        }
        Ok(sample)
    }

    /// Reads the next row; false at the end.
    fn next(&mut self) -> Result<bool, LogError> {
        self.since.store(0, Ordering::Relaxed);
        self.reader.read_byte_record(&mut self.record).map_err(|e| csv_error(&self.path, e))
    }
}

impl TableReader for Separated {
    fn fill(&mut self, table: &mut Table, rows: usize) -> Result<bool, LogError> {
        while table.n_rows() < rows {
            if !self.next()? {
                return Ok(false);
            }
            let line = self.record.position().map_or(0, |position| position.line());
            let place = Place { file: self.file, line };
            if self.record.len() != self.n_fields {
                let got = format!("{} instead of {}", self.record.len(), self.n_fields);
                table.push_bad(
                    place,
                    Problem::Value { column: None, want: "as many fields as the header has", got, cure: "" },
                );
                continue;
            }
            let row = table.n_rows();
            table.places.push(place);
            let mut problem = None;
            for ((column, &field), cells) in self.columns.iter().zip(&self.fields).zip(&mut table.columns) {
                let found = push_text(cells, column, &self.record[field]);
                problem = problem.or(found);
            }
            table.bad.extend(problem.map(|problem| (row, problem)));
        }
        Ok(true)
    }
}

/// The names in a header: text, none twice.
fn header(path: &std::path::Path, record: &ByteRecord) -> Result<Vec<String>, LogError> {
    let mut names: Vec<String> = Vec::with_capacity(record.len());
    for (i, name) in record.iter().enumerate() {
        let name = if i == 0 { name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name) } else { name };
        let Ok(text) = std::str::from_utf8(name.trim_ascii()) else {
            let problem = Problem::Value { column: None, want: "a header in UTF-8", got: shown(name), cure: "" };
            let problem = Box::new(problem);
            return Err(LogError::Row { path: path.to_path_buf(), unit: "line", line: 1, problem });
        };
        if !text.is_empty() && names.iter().any(|other| other == text) {
            return Err(LogError::DuplicateColumn { path: path.to_path_buf(), name: text.to_string() });
        }
        names.push(text.to_string());
    }
    Ok(names)
}

fn see(column: &mut Sampled, text: &[u8]) {
    if is_absent(text) {
        column.absent += 1;
    } else if number(text).is_some() {
        column.numbers += 1;
        column.different(text);
    } else if truth(text).is_some() {
        column.booleans += 1;
    } else {
        column.texts += 1;
        column.different(text);
    }
}

fn csv_error(path: &std::path::Path, error: csv::Error) -> LogError {
    let line = error.position().map_or(0, |position| position.line());
    match error.into_kind() {
        csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::FileTooLarge => LogError::Row {
            path: path.to_path_buf(),
            unit: "line",
            line,
            problem: Box::new(Problem::Value {
                column: None,
                want: "a row of at most 64 MiB",
                got: "more".to_string(),
                cure: "a quotation mark may be open",
            }),
        },
        csv::ErrorKind::Io(source) => LogError::File(FileError::Read { path: path.to_path_buf(), source }),
        kind => LogError::File(FileError::Read {
            path: path.to_path_buf(),
            source: io::Error::new(io::ErrorKind::InvalidData, format!("{kind:?}")),
        }),
    }
}

/// Refuses to read on when a row has no end.
struct Bounded<R> {
    inner: R,
    since: Arc<AtomicU64>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if self.since.fetch_add(n as u64, Ordering::Relaxed) > LONGEST_ROW {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(n)
    }
}
