//! Rows of a file as columns of values, before they are checked and put into rounds.

use std::collections::HashMap;
use std::ops::Range;

use super::block::{Categories, Place, Values};
use super::error::{Problem, shown};

/// What a column of a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Round,
    Action,
    Chosen,
    Reward,
    Propensity,
    Eligible,
    Position,
    /// How many rounds one stands for.
    Count,
    Shared,
    PerAction,
    Extra,
}

/// How the values of a column are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Number,
    /// Numbers, where true and false may stand for 1 and 0.
    Outcome,
    Truth,
    Text,
    List,
}

/// A column to read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub name: String,
    pub part: Part,
    pub how: How,
}

/// Words, each held once.
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub codes: Vec<u32>,
    names: Vec<String>,
    index: HashMap<String, u32>,
    last: u32,
}

impl Words {
    pub fn push(&mut self, word: &str) {
        // The same word often comes again and again.
        if self.names.get(self.last as usize).is_none_or(|last| last != word) {
            self.last = match self.index.get(word) {
                Some(&code) => code,
                None => {
                    let code = self.names.len() as u32;
                    self.names.push(word.to_string());
                    self.index.insert(word.to_string(), code);
                    code
                }
            };
        }
        self.codes.push(self.last);
    }

    pub fn push_absent(&mut self) {
        self.codes.push(Categories::ABSENT);
    }

    /// Adds the i-th word of another list.
    fn push_from(&mut self, other: &Words, i: usize) {
        match other.get(i) {
            Some(word) => self.push(word),
            None => self.push_absent(),
        }
    }

    /// Adds some of another list; a word is looked up once.
    fn push_range(&mut self, other: &Words, range: Range<usize>) {
        let mut codes = vec![Categories::ABSENT; other.names.len()];
        for i in range {
            match codes.get(other.codes[i] as usize) {
                None => self.push_absent(),
                Some(&Categories::ABSENT) => {
                    self.push_from(other, i);
                    codes[other.codes[i] as usize] = self.last;
                }
                Some(&code) => self.codes.push(code),
            }
        }
    }

    pub fn get(&self, i: usize) -> Option<&str> {
        self.names.get(self.codes[i] as usize).map(String::as_str)
    }

    pub fn into_categories(self) -> Categories {
        Categories { codes: self.codes, names: self.names }
    }
}

/// The values of one column; of each row one.
#[derive(Debug)]
pub(crate) enum Cells {
    /// NaN where there is no value.
    Numbers(Vec<f64>),
    Words(Words),
    /// Row i has the words `offsets[i]..offsets[i + 1]`.
    Lists {
        offsets: Vec<usize>,
        words: Words,
    },
}

impl Cells {
    fn new(how: How) -> Cells {
        match how {
            How::Number | How::Outcome | How::Truth => Cells::Numbers(Vec::new()),
            How::Text => Cells::Words(Words::default()),
            How::List => Cells::Lists { offsets: vec![0], words: Words::default() },
        }
    }

    /// Adds a value that is not there.
    pub fn push_absent(&mut self) {
        match self {
            Cells::Numbers(numbers) => numbers.push(f64::NAN),
            Cells::Words(words) => words.push_absent(),
            Cells::Lists { offsets, words } => offsets.push(words.codes.len()),
        }
    }

    pub fn numbers(&self) -> &[f64] {
        match self {
            Cells::Numbers(numbers) => numbers,
            _ => &[],
        }
    }

    pub fn push_from(&mut self, other: &Cells, row: usize) {
        match (self, other) {
            (Cells::Numbers(to), Cells::Numbers(from)) => to.push(from[row]),
            (Cells::Words(to), Cells::Words(from)) => to.push_from(from, row),
            (Cells::Lists { offsets, words }, Cells::Lists { offsets: o, words: w }) => {
                (o[row]..o[row + 1]).for_each(|i| words.push_from(w, i));
                offsets.push(words.codes.len());
            }
            _ => unreachable!("columns of one plan"),
        }
    }

    fn push_range(&mut self, other: &Cells, rows: Range<usize>) {
        match (self, other) {
            (Cells::Numbers(to), Cells::Numbers(from)) => to.extend_from_slice(&from[rows]),
            (Cells::Words(to), Cells::Words(from)) => to.push_range(from, rows),
            (to, from) => rows.for_each(|row| to.push_from(from, row)),
        }
    }

    pub fn into_values(self) -> Values {
        match self {
            Cells::Numbers(numbers) => Values::Numbers(numbers),
            Cells::Words(words) | Cells::Lists { words, .. } => Values::Categories(words.into_categories()),
        }
    }
}

/// Some rows of a file: what each column to read holds.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub places: Vec<Place>,
    pub columns: Vec<Cells>,
    /// Rows that could not be read, in rising order.
    pub bad: Vec<(usize, Problem)>,
    /// Lines that are no decisions.
    pub not_decisions: u64,
    /// Values of features that the schema does not know.
    pub unknown: u64,
}

impl Table {
    pub fn new(columns: &[Column]) -> Table {
        Table {
            places: Vec::new(),
            columns: columns.iter().map(|column| Cells::new(column.how)).collect(),
            ..Table::default()
        }
    }

    pub fn n_rows(&self) -> usize {
        self.places.len()
    }

    /// The rows for which `keep` holds.
    pub fn select(&self, columns: &[Column], keep: impl Fn(usize) -> bool) -> Table {
        let mut selected = Table::new(columns);
        let mut bad = self.bad.iter().peekable();
        for row in 0..self.n_rows() {
            let kept = keep(row);
            while let Some((_, problem)) = bad.next_if(|(at, _)| *at == row) {
                if kept {
                    selected.bad.push((selected.n_rows(), problem.clone()));
                }
            }
            if kept {
                selected.places.push(self.places[row]);
                selected.columns.iter_mut().zip(&self.columns).for_each(|(to, from)| to.push_from(from, row));
            }
        }
        selected
    }

    /// Adds some rows of another table of the same columns.
    pub fn push_rows(&mut self, from: &Table, rows: Range<usize>) {
        let first = self.n_rows();
        self.places.extend_from_slice(&from.places[rows.clone()]);
        let bad = from.bad.iter().filter(|(row, _)| rows.contains(row));
        self.bad.extend(bad.map(|(row, problem)| (first + row - rows.start, problem.clone())));
        let columns = self.columns.iter_mut().zip(&from.columns);
        columns.for_each(|(to, from)| to.push_range(from, rows.clone()));
    }

    /// A row of which nothing could be read.
    pub fn push_bad(&mut self, place: Place, problem: Problem) {
        self.bad.push((self.n_rows(), problem));
        self.places.push(place);
        self.columns.iter_mut().for_each(Cells::push_absent);
    }
}

/// Reads the rows of one file.
pub(crate) trait TableReader {
    /// Adds rows until the table has `rows`, or a few more; false at the end of the file.
    fn fill(&mut self, table: &mut Table, rows: usize) -> Result<bool, super::LogError>;
}

/// Adds the value that `text` stands for; a value that is none is absent and a problem.
pub(crate) fn push_text(cells: &mut Cells, column: &Column, text: &[u8]) -> Option<Problem> {
    let text = text.trim_ascii();
    let refuse = |want, cure| Some(Problem::Value { column: Some(column.name.clone()), want, got: shown(text), cure });
    match cells {
        Cells::Numbers(numbers) => {
            let value = match column.how {
                How::Truth => truth(text),
                How::Outcome => number(text).or_else(|| truth(text)),
                _ => number(text),
            };
            numbers.push(value.unwrap_or(f64::NAN));
            match (value, column.part) {
                (Some(_), _) => None,
                (None, _) if column.how == How::Truth => refuse("true or false", ""),
                (None, Part::Shared | Part::PerAction) => {
                    refuse("a number", "or make it a category by `kinds` (--categories)")
                }
                (None, _) => refuse("a number", ""),
            }
        }
        Cells::Words(words) => match std::str::from_utf8(text) {
            Ok("") => {
                words.push_absent();
                None
            }
            Ok(word) => {
                words.push(word);
                None
            }
            Err(_) => {
                words.push_absent();
                refuse("text in UTF-8", "")
            }
        },
        Cells::Lists { offsets, words } => {
            let problem = push_list(words, text).then(|| refuse("a list such as a|b or [\"a\", \"b\"]", "")).flatten();
            offsets.push(words.codes.len());
            problem
        }
    }
}

/// Adds the words of a list; true if it is none.
fn push_list(words: &mut Words, text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return true };
    if text.is_empty() {
        return false;
    }
    if !text.starts_with('[') {
        text.split('|').map(str::trim).filter(|word| !word.is_empty()).for_each(|word| words.push(word));
        return false;
    }
    let Ok(items) = serde_json::from_str::<Vec<serde_json::Value>>(text) else { return true };
    for item in items {
        match item {
            serde_json::Value::String(word) => words.push(word.trim()),
            serde_json::Value::Number(number) => words.push(&number.to_string()),
            serde_json::Value::Bool(truth) => words.push(if truth { "true" } else { "false" }),
            _ => return true,
        }
    }
    false
}

/// What stands for no value in a column of numbers.
pub(crate) fn is_absent(text: &[u8]) -> bool {
    matches!(text, b"" | b"NA" | b"N/A" | b"NaN" | b"nan" | b"null" | b"NULL" | b"None")
}

/// The number that a text stands for; NaN where it stands for no value.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    match std::str::from_utf8(text).ok()?.parse() {
        Ok(value) => Some(value),
        Err(_) => is_absent(text).then_some(f64::NAN),
    }
}

/// 1 or 0 for true and false; NaN where there is no value.
pub(crate) fn truth(text: &[u8]) -> Option<f64> {
    if text.eq_ignore_ascii_case(b"true") || text == b"1" {
        Some(1.0)
    } else if text.eq_ignore_ascii_case(b"false") || text == b"0" {
        Some(0.0)
    } else {
        is_absent(text).then_some(f64::NAN)
    }
}
