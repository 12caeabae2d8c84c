//! Tables as text: CSV and TSV, with a header.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ByteRecord, Reader, ReaderBuilder, Terminator};

use super::block::Place;
use super::dialect::Dialect;
use super::error::{LogError, Problem, listed, shown};
use super::infer::{Sample, Sampled};
use super::json_lines::MAX_FEATURES;
use super::options::{Format, LogOptions};
use super::sources::Source;
use super::table::{Column, How, Table, TableReader, is_absent, number, push_text, truth};
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
    dialect: Dialect,
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
        options: &LogOptions,
        read: Arc<AtomicU64>,
    ) -> Result<Separated, LogError> {
        let since = Arc::new(AtomicU64::new(0));
        let text = Bounded { inner: source.text(read)?, since: Arc::clone(&since) };
        let dialect = Dialect::of(&source.beginning()?, format, options);
        // A carriage return before it belongs to the last field, which is trimmed; the reader would count its lines wrongly.
        let end = if dialect.returns { Terminator::Any(b'\r') } else { Terminator::Any(b'\n') };
        let mut builder = ReaderBuilder::new();
        builder.delimiter(dialect.delimiter).terminator(end).has_headers(false).flexible(true);
        let mut reader = builder.from_reader(text);
        let mut record = ByteRecord::new();
        let path = source.path.clone();
        if !reader.read_byte_record(&mut record).map_err(|e| csv_error(&path, 1, e))? {
            return Err(LogError::Empty { path });
        }
        let names = header(&path, &record)?;
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        let fields: Result<Vec<usize>, LogError> = columns
            .iter()
            .map(|column| {
                places.get(column.name.as_str()).copied().ok_or_else(|| LogError::NoFeature {
                    path: path.clone(),
                    name: column.name.clone(),
                    found: listed(&names),
                })
            })
            .collect();
        since.store(0, Ordering::Relaxed);
        let n_fields = record.len();
        Ok(Separated {
            fields: fields?,
            dialect,
            path,
            file,
            reader,
            since,
            record,
            n_fields,
            columns: columns.to_vec(),
        })
    }

    /// The names of all fields, and what the first rows hold.
    pub fn sample(source: &Source, format: Format, options: &LogOptions, rows: usize) -> Result<Sample, LogError> {
        let mut file = Separated::open(source, 0, format, &[], options, Arc::default())?;
        let dialect = file.dialect;
        let mut sample = Sample::new(header(&file.path, &file.record)?);
        while sample.rows < rows && file.next()? {
            // A row of another length is left to the pass that counts bad rows.
            if file.record.len() == file.n_fields {
                sample.rows += 1;
                sample
                    .columns
                    .iter_mut()
                    .zip(&file.record)
                    .for_each(|(column, text)| see(column, text.trim_ascii(), dialect));
            }
        }
        Ok(sample)
    }

    /// Reads the next row; false at the end.
    fn next(&mut self) -> Result<bool, LogError> {
        loop {
            self.since.store(0, Ordering::Relaxed);
            let line = self.reader.position().line();
            if !self.reader.read_byte_record(&mut self.record).map_err(|e| csv_error(&self.path, line, e))? {
                return Ok(false);
            }
            // A line with nothing but a carriage return is as empty as one without.
            if !(self.record.len() == 1 && self.n_fields > 1 && self.record[0].trim_ascii().is_empty()) {
                return Ok(true);
            }
        }
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
                let text = &self.record[field];
                let found = match column.how {
                    How::Number | How::Outcome => push_text(cells, column, &self.dialect.number(text)),
                    _ => push_text(cells, column, text),
                };
                problem = problem.or(found);
            }
            table.bad.extend(problem.map(|problem| (row, problem)));
        }
        Ok(true)
    }
}

/// The names in a header: text, none twice.
fn header(path: &std::path::Path, record: &ByteRecord) -> Result<Vec<String>, LogError> {
    if record.len() > MAX_FEATURES {
        return Err(LogError::TooManyFeatures { path: path.to_path_buf(), max: MAX_FEATURES });
    }
    let mut names: Vec<String> = Vec::with_capacity(record.len());
    let mut known = HashSet::with_capacity(record.len());
    for (i, name) in record.iter().enumerate() {
        let name = if i == 0 { name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name) } else { name };
        let Ok(text) = std::str::from_utf8(name.trim_ascii()) else {
            let problem = Problem::Value { column: None, want: "a header in UTF-8", got: shown(name), cure: "" };
            let problem = Box::new(problem);
            return Err(LogError::Row { path: path.to_path_buf(), unit: "line", line: 1, problem });
        };
        if !text.is_empty() && !known.insert(text.to_string()) {
            return Err(LogError::DuplicateColumn { path: path.to_path_buf(), name: text.to_string() });
        }
        names.push(text.to_string());
    }
    Ok(names)
}

pub(crate) fn see(column: &mut Sampled, text: &[u8], dialect: Dialect) {
    if is_absent(text) {
        column.absent += 1;
    } else if number(&dialect.number(text)).is_some() {
        column.numbers += 1;
        column.different(text);
    } else if truth(text).is_some() {
        column.booleans += 1;
    } else {
        column.texts += 1;
        column.different(text);
    }
}

/// `line`: where the row begins that could not be read.
fn csv_error(path: &std::path::Path, line: u64, error: csv::Error) -> LogError {
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
