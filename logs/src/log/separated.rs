//! Tables as text: CSV and TSV, with a header.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::ahead::{Ahead, Parse};
use super::block::Place;
use super::dialect::Dialect;
use super::error::{LogError, Problem, listed, shown};
use super::fields::Rows;
use super::infer::{Sample, Sampled};
use super::json_lines::MAX_FEATURES;
use super::options::{Format, LogOptions};
use super::pieces::{Ends, Piece, Pieces};
use super::sources::Source;
use super::table::{Column, How, Table, is_absent, number, push_text, truth};

/// What makes of the rows of a text a table.
pub(crate) struct Separated {
    file: u32,
    /// Fields of the header.
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
    ) -> Result<Ahead<Separated>, LogError> {
        let (names, dialect, pieces) = Separated::begin(source, format, options, columns.len(), read)?;
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        let fields: Result<Vec<usize>, LogError> = columns
            .iter()
            .map(|column| {
                places.get(column.name.as_str()).copied().ok_or_else(|| LogError::NoFeature {
                    path: source.path.clone(),
                    name: column.name.clone(),
                    found: listed(&names),
                })
            })
            .collect();
        let (fields, columns) = (fields?, columns.to_vec());
        Ok(Ahead::new(pieces, Separated { file, n_fields: names.len(), dialect, columns, fields }))
    }

    /// The header, how the file is written, and what follows.
    fn begin(
        source: &Source,
        format: Format,
        options: &LogOptions,
        columns: usize,
        read: Arc<AtomicU64>,
    ) -> Result<(Vec<String>, Dialect, Pieces), LogError> {
        let dialect = Dialect::of(&source.beginning()?, format, options);
        let ends = Ends::Rows { delimiter: dialect.delimiter, end: dialect.end() };
        let mut pieces = Pieces::open(source, ends, columns, read)?;
        while let Some(piece) = pieces.next()? {
            let mut rows = dialect.rows(&piece);
            if rows.next() {
                let (names, to) = (header(&source.path, &rows)?, rows.next_at());
                pieces.skip(piece, to);
                return Ok((names, dialect, pieces));
            }
        }
        Err(LogError::Empty { path: source.path.clone() })
    }

    /// The names of all fields, and what the first rows hold.
    pub fn sample(source: &Source, format: Format, options: &LogOptions, rows: usize) -> Result<Sample, LogError> {
        let (names, dialect, mut pieces) = Separated::begin(source, format, options, 0, Arc::default())?;
        let mut sample = Sample::new(names);
        while sample.rows < rows
            && let Some(piece) = pieces.next()?
        {
            let mut found = dialect.rows(&piece);
            while sample.rows < rows && found.next() {
                // A row of another length is left to the pass that counts bad rows.
                if found.len() == sample.columns.len() {
                    sample.rows += 1;
                    let columns = sample.columns.iter_mut().zip(found.fields());
                    columns.for_each(|(column, text)| see(column, text.trim_ascii(), dialect));
                }
            }
        }
        Ok(sample)
    }
}

impl Parse for Separated {
    fn parse(&self, piece: &Piece) -> Table {
        let mut table = Table::new(&self.columns);
        let mut rows = self.dialect.rows(piece);
        while rows.next() {
            let place = Place { file: self.file, line: rows.line() };
            if rows.len() != self.n_fields {
                let got = format!("{} instead of {}", rows.len(), self.n_fields);
                let want = "as many fields as the header has";
                table.push_bad(place, Problem::Value { column: None, want, got, cure: "" });
                continue;
            }
            let row = table.n_rows();
            table.places.push(place);
            let mut problem = None;
            for ((column, &field), cells) in self.columns.iter().zip(&self.fields).zip(&mut table.columns) {
                let text = rows.field(field);
                let found = match column.how {
                    How::Number | How::Outcome => push_text(cells, column, &self.dialect.number(text)),
                    _ => push_text(cells, column, text),
                };
                problem = problem.or(found);
            }
            table.bad.extend(problem.map(|problem| (row, problem)));
        }
        table
    }
}

/// The names in a header: text, none twice.
fn header(path: &Path, row: &Rows) -> Result<Vec<String>, LogError> {
    if row.len() > MAX_FEATURES {
        return Err(LogError::TooManyFeatures { path: path.to_path_buf(), max: MAX_FEATURES });
    }
    let mut names: Vec<String> = Vec::with_capacity(row.len());
    let mut known = HashSet::with_capacity(row.len());
    for name in row.fields() {
        let Ok(text) = std::str::from_utf8(name.trim_ascii()) else {
            let problem = Problem::Value { column: None, want: "a header in UTF-8", got: shown(name), cure: "" };
            let problem = Box::new(problem);
            return Err(LogError::Row { path: path.to_path_buf(), unit: "line", line: row.line(), problem });
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
