//! Flat tables as JSON lines: an object for each round, its members the columns.
//!
//! Nested objects give dotted names, arrays numbered ones (`v[0]`); the list of eligible actions is an array. A member
//! that is absent or null has no value.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::ahead::{Ahead, Parse};
use super::block::Place;
use super::error::{LogError, Problem, shown};
use super::infer::{Sample, Sampled};
use super::json::{Elements, Json, flatten, parse_object};
use super::json_round::{RowProblem, Value};
use super::pieces::{Ends, Piece, Pieces};
use super::sources::Source;
use super::table::{Cells, Column, How, Part, Table, push_text};

/// The most different features of a log of JSON.
pub(crate) const MAX_FEATURES: usize = 1 << 16;

/// What makes of the objects of a text a table.
pub(crate) struct JsonLines {
    file: u32,
    columns: Vec<Column>,
    index: HashMap<String, usize>,
}

impl JsonLines {
    pub fn open(
        source: &Source,
        file: u32,
        columns: &[Column],
        read: Arc<AtomicU64>,
    ) -> Result<Ahead<JsonLines>, LogError> {
        let index = columns.iter().enumerate().map(|(i, column)| (column.name.clone(), i)).collect();
        let pieces = Pieces::open(source, Ends::Lines, columns.len(), read)?;
        Ok(Ahead::new(pieces, JsonLines { file, columns: columns.to_vec(), index }))
    }

    /// The names of all members, and what the first lines hold.
    pub fn sample(source: &Source, rows: usize) -> Result<Sample, LogError> {
        let mut pieces = Pieces::open(source, Ends::Lines, 0, Arc::default())?;
        let (mut seen, mut first) = (Seen::default(), None);
        while seen.sample.rows < rows
            && let Some(piece) = pieces.next()?
        {
            for (line, text) in piece.lines() {
                // What cannot be read is left to the pass that counts bad rows.
                let members = match parse_object(text) {
                    Ok(members) => members,
                    Err(problem) => {
                        first = first.or(Some((line, problem)));
                        continue;
                    }
                };
                seen.sample.rows += 1;
                for (name, json) in members {
                    if let Json::Array(_) = json {
                        seen.column(&name).lists += 1;
                    }
                    let mut features = Vec::new();
                    if flatten(&name, json, Elements::Numbered, &mut features).is_ok() {
                        features.iter().for_each(|(name, value)| see(seen.column(name), value));
                    }
                }
                seen.check(source)?;
                if seen.sample.rows == rows {
                    break;
                }
            }
        }
        match first {
            // Nothing but lines that cannot be read: the first of them says why.
            Some((line, problem)) if seen.sample.rows == 0 => Err(problem_of(source, line, problem)),
            _ => Ok(seen.sample),
        }
    }

    /// Adds the members of a line to the table's last row.
    fn push(&self, members: Vec<(String, Json)>, filled: &mut [bool], table: &mut Table) -> Result<(), Problem> {
        let mut features = Vec::new();
        for (name, json) in members {
            let place = self.index.get(&name).copied().filter(|&i| !filled[i]);
            match (place, json) {
                (Some(i), Json::Array(items)) if self.columns[i].how == How::List => {
                    filled[i] = true;
                    push_items(&mut table.columns[i], &self.columns[i], items)?;
                }
                // A large integer may be a name, and would lose digits as a number.
                (Some(i), Json::Integer(v)) if self.columns[i].how == How::Text => {
                    filled[i] = true;
                    push_word(&mut table.columns[i], &v.to_string());
                }
                (_, json) => flatten(&name, json, Elements::Numbered, &mut features)?,
            }
        }
        for (name, value) in features {
            let Some(&i) = self.index.get(&name) else { continue };
            if std::mem::replace(&mut filled[i], true) {
                return Err(RowProblem::Twice { name }.into());
            }
            push_value(&mut table.columns[i], &self.columns[i], &value)?;
        }
        Ok(())
    }
}

impl Parse for JsonLines {
    fn parse(&self, piece: &Piece) -> Table {
        let mut table = Table::new(&self.columns);
        for (line, text) in piece.lines() {
            let place = Place { file: self.file, line };
            match parse_object(text) {
                Err(problem) => table.push_bad(place, problem.into()),
                Ok(members) => {
                    let row = table.n_rows();
                    let mut filled = vec![false; self.columns.len()];
                    let problem = self.push(members, &mut filled, &mut table).err();
                    table.places.push(place);
                    table.bad.extend(problem.map(|problem| (row, problem)));
                    for (cells, _) in table.columns.iter_mut().zip(filled).filter(|(_, filled)| !*filled) {
                        cells.push_absent();
                    }
                }
            }
        }
        table
    }
}

/// A line that cannot be read.
pub(crate) fn problem_of(source: &Source, line: u64, problem: RowProblem) -> LogError {
    LogError::Row { path: source.path.clone(), unit: "line", line, problem: Box::new(problem.into()) }
}

/// Columns in the order in which they come.
#[derive(Default)]
pub(crate) struct Seen {
    pub sample: Sample,
    index: HashMap<String, usize>,
}

impl Seen {
    pub fn column(&mut self, name: &str) -> &mut Sampled {
        let i = match self.index.get(name) {
            Some(&i) => i,
            None => {
                self.index.insert(name.to_string(), self.sample.columns.len());
                self.sample.columns.push(Sampled::new(name.to_string()));
                self.sample.columns.len() - 1
            }
        };
        &mut self.sample.columns[i]
    }

    pub fn check(&self, source: &Source) -> Result<(), LogError> {
        match self.sample.columns.len() > MAX_FEATURES {
            true => Err(LogError::TooManyFeatures { path: source.path.clone(), max: MAX_FEATURES }),
            false => Ok(()),
        }
    }
}

pub(crate) fn see(column: &mut Sampled, value: &Value) {
    match value {
        Value::Number(_) => column.numbers += 1,
        Value::Boolean(_) => column.booleans += 1,
        Value::Text(text) if text.is_empty() => column.absent += 1,
        Value::Text(text) => {
            column.texts += 1;
            column.different(text.as_bytes());
        }
    }
}

fn push_word(cells: &mut Cells, word: &str) {
    if let Cells::Words(words) = cells {
        words.push(word);
    }
}

/// Adds a value; one of another kind is absent and a problem.
pub(crate) fn push_value(cells: &mut Cells, column: &Column, value: &Value) -> Result<(), Problem> {
    match (&mut *cells, value) {
        (_, Value::Text(text)) => push_text(cells, column, text.as_bytes()).map_or(Ok(()), Err),
        (Cells::Words(words), Value::Number(v)) => {
            words.push(&v.to_string());
            Ok(())
        }
        (Cells::Words(words), Value::Boolean(v)) => {
            words.push(if *v { "true" } else { "false" });
            Ok(())
        }
        (Cells::Numbers(numbers), Value::Number(v)) if column.how != How::Truth || *v == 0.0 || *v == 1.0 => {
            numbers.push(*v);
            Ok(())
        }
        (Cells::Numbers(numbers), Value::Boolean(v)) if column.how != How::Number => {
            numbers.push(f64::from(u8::from(*v)));
            Ok(())
        }
        (_, value) => {
            let want = match column.how {
                How::Truth => "true or false",
                How::List => "an array of actions",
                _ => "a number",
            };
            let got = match value {
                Value::Number(v) => v.to_string(),
                Value::Boolean(v) => v.to_string(),
                Value::Text(text) => shown(text.as_bytes()),
            };
            cells.push_absent();
            let feature = matches!(column.part, Part::Shared | Part::PerAction);
            let cure = if feature { "or make it a category by `kinds` (--categories)" } else { "" };
            Err(Problem::Value { column: Some(column.name.clone()), want, got, cure })
        }
    }
}

fn push_items(cells: &mut Cells, column: &Column, items: Vec<Json>) -> Result<(), Problem> {
    let Cells::Lists { offsets, words } = cells else { return Ok(()) };
    let mut problem = None;
    for item in items {
        match item.name(&column.name) {
            Ok(name) => words.push(&name),
            Err(found) => problem = problem.or(Some(found)),
        }
    }
    offsets.push(words.codes.len());
    problem.map_or(Ok(()), |problem| Err(problem.into()))
}
