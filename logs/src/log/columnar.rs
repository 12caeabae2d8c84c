//! Tables as Parquet: whole columns at a time, never through text.
//!
//! Integers, floats, decimals and booleans are numbers; texts, plain or by dictionary, are words; a list column can
//! hold the eligible actions. Dates, times and nested columns are left out, with a note in the schema.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::block::Place;
use super::error::{LogError, Problem, listed};
use super::infer::{Sample, Sampled};
use super::json_lines::MAX_FEATURES;
use super::parquet_guard::{Guarded, caught};
use super::sources::Source;
use super::table::{Cells, Column, How, Table, TableReader, Words, push_text};

/// Rows of a Parquet file.
pub(crate) struct Columnar {
    path: PathBuf,
    file: u32,
    reader: ParquetRecordBatchReader,
    columns: Vec<Column>,
    /// What has been decoded and not yet taken, and the place of each column to read in it.
    batch: Option<RecordBatch>,
    places: Vec<usize>,
    row: u64,
    /// Bytes of the file, rows of it, and where progress is counted.
    size: u64,
    n_rows: u64,
    read: Arc<AtomicU64>,
}

impl Columnar {
    pub fn open(source: &Source, file: u32, columns: &[Column], read: Arc<AtomicU64>) -> Result<Columnar, LogError> {
        let path = source.path.clone();
        let guarded = Guarded::open(source)?;
        let names = field_names(guarded.schema());
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        let mut roots = Vec::with_capacity(columns.len());
        for column in columns {
            let Some(&root) = places.get(column.name.as_str()) else {
                return Err(LogError::NoFeature { path, name: column.name.clone(), found: listed(&names) });
            };
            let found = guarded.schema().field(root).data_type();
            if let Some(want) = unfit(column.how, found) {
                return Err(LogError::ColumnType { path, name: column.name.clone(), want, got: found.to_string() });
            }
            roots.push(root);
        }
        let n_rows = guarded.n_rows();
        // Batches keep the order of the file, and each column once.
        let mut read_roots = roots.clone();
        read_roots.sort_unstable();
        read_roots.dedup();
        let places = roots.iter().map(|root| read_roots.binary_search(root).unwrap_or_default()).collect();
        let reader = guarded.decode(Some(&read_roots), None)?;
        let columns = columns.to_vec();
        Ok(Columnar { path, file, reader, columns, batch: None, places, row: 0, size: source.size, n_rows, read })
    }

    /// The names and types of all columns, and which of the first rows have values.
    pub fn sample(source: &Source, rows: usize) -> Result<Sample, LogError> {
        let path = &source.path;
        let guarded = Guarded::open(source)?;
        let names = field_names(guarded.schema());
        if names.len() > MAX_FEATURES {
            return Err(LogError::TooManyFeatures { path: path.clone(), max: MAX_FEATURES });
        }
        let mut sorted = names.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LogError::DuplicateColumn { path: path.clone(), name: pair[0].clone() });
        }
        let mut sample = Sample::new(names);
        let mut reader = guarded.decode(None, Some(rows))?;
        while let Some(batch) = caught(path, || reader.next().transpose())? {
            sample.rows += batch.num_rows();
            sample.columns.iter_mut().zip(batch.columns()).for_each(|(column, array)| see(column, array));
        }
        Ok(sample)
    }

    /// What is left of the batch, or the next one; none at the end.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, LogError> {
        if let Some(batch) = self.batch.take() {
            return Ok(Some(batch));
        }
        caught(&self.path, || self.reader.next().transpose())
    }
}

impl TableReader for Columnar {
    fn fill(&mut self, table: &mut Table, rows: usize) -> Result<bool, LogError> {
        while table.n_rows() < rows {
            let Some(batch) = self.next_batch()? else { return Ok(false) };
            let n = batch.num_rows().min(rows - table.n_rows());
            let (now, first) = (batch.slice(0, n), table.n_rows());
            let mut bad = Vec::new();
            for ((column, &place), cells) in self.columns.iter().zip(&self.places).zip(&mut table.columns) {
                append(cells, column, now.column(place), first, &mut bad);
            }
            bad.sort_by_key(|(row, _)| *row);
            table.bad.extend(bad);
            let line = |i: usize| self.row + 1 + i as u64;
            table.places.extend((0..n).map(|i| Place { file: self.file, line: line(i) }));
            let before = self.size * self.row / self.n_rows.max(1);
            self.row += n as u64;
            self.read.fetch_add(self.size * self.row / self.n_rows.max(1) - before, Ordering::Relaxed);
            if n < batch.num_rows() {
                self.batch = Some(batch.slice(n, batch.num_rows() - n));
            }
        }
        Ok(true)
    }
}

fn field_names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn is_number(kind: &DataType) -> bool {
    kind.is_integer() || kind.is_floating() || matches!(kind, DataType::Decimal128(..))
}

/// The type of a list's items.
fn items(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

/// What a column must be to be read in this way, where it is not.
fn unfit(how: How, found: &DataType) -> Option<&'static str> {
    let simple = is_number(found) || is_text(found) || *found == DataType::Boolean;
    match how {
        How::List if items(found).is_some_and(|item| is_text(item) || item.is_integer()) || is_text(found) => None,
        How::List => Some("a list of texts or integers"),
        How::Text if simple => None,
        How::Text => Some("text, a number or a boolean"),
        How::Number if simple && *found != DataType::Boolean => None,
        How::Number => Some("a number"),
        How::Outcome | How::Truth if simple => None,
        How::Outcome => Some("a number or a boolean"),
        How::Truth => Some("a boolean"),
    }
}

fn see(column: &mut Sampled, array: &ArrayRef) {
    let there = (array.len() - array.logical_null_count()) as u64;
    column.absent += array.len() as u64 - there;
    match array.data_type() {
        kind if is_number(kind) => column.numbers += there,
        DataType::Boolean => column.booleans += there,
        kind if is_text(kind) => each_text(array, &mut |_, text| {
            if let Some(text) = text {
                column.texts += 1;
                column.different(text.as_bytes());
            }
        }),
        kind if items(kind).is_some() => column.lists += there,
        DataType::Null => {}
        kind if kind.is_temporal() => column.unusable = Some("a date or time"),
        _ => column.unusable = Some("a nested or binary type"),
    }
}

/// Calls `f` with each row and its text.
fn each_text(array: &dyn Array, f: &mut dyn FnMut(usize, Option<&str>)) {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().enumerate().for_each(|(i, text)| f(i, text)),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().enumerate().for_each(|(i, text)| f(i, text)),
        DataType::Utf8View => array.as_string_view().iter().enumerate().for_each(|(i, text)| f(i, text)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let mut words: Vec<Option<String>> = vec![None; dictionary.values().len()];
            each_text(dictionary.values().as_ref(), &mut |i, text| words[i] = text.map(str::to_string));
            let keys = if words.is_empty() { vec![0; array.len()] } else { dictionary.normalized_keys() };
            for (i, key) in keys.into_iter().enumerate() {
                f(i, words.get(key).and_then(Option::as_deref).filter(|_| !array.is_null(i)));
            }
        }
        _ => (0..array.len()).for_each(|i| f(i, None)),
    }
}

/// The numbers of a column, NaN where there are none.
fn numbers_of(array: &dyn Array, to: &mut Vec<f64>) {
    let first = to.len();
    macro_rules! extend {
        ($($kind:pat => $arrow:ty, $convert:expr;)*) => {
            match array.data_type() {
                $($kind => to.extend(array.as_primitive::<$arrow>().values().iter().map($convert)),)*
                DataType::Boolean => to.extend(array.as_boolean().values().iter().map(|v| f64::from(u8::from(v)))),
                DataType::Decimal128(_, scale) => {
                    let unit = 10f64.powi(i32::from(*scale));
                    to.extend(array.as_primitive::<Decimal128Type>().values().iter().map(|v| *v as f64 / unit));
                }
                _ => to.extend(std::iter::repeat_n(f64::NAN, array.len())),
            }
        };
    }
    extend! {
        DataType::Float64 => Float64Type, |v| *v;
        DataType::Float32 => Float32Type, |v| f64::from(*v);
        DataType::Float16 => Float16Type, |v| v.to_f64();
        DataType::Int64 => Int64Type, |v| *v as f64;
        DataType::Int32 => Int32Type, |v| f64::from(*v);
        DataType::Int16 => Int16Type, |v| f64::from(*v);
        DataType::Int8 => Int8Type, |v| f64::from(*v);
        DataType::UInt64 => UInt64Type, |v| *v as f64;
        DataType::UInt32 => UInt32Type, |v| f64::from(*v);
        DataType::UInt16 => UInt16Type, |v| f64::from(*v);
        DataType::UInt8 => UInt8Type, |v| f64::from(*v);
    }
    if array.null_count() > 0 {
        (0..array.len()).filter(|&i| array.is_null(i)).for_each(|i| to[first + i] = f64::NAN);
    }
}

/// The words of a column: texts as they are, numbers as they are written.
fn words_of(array: &dyn Array, to: &mut Words) {
    let mut text = String::new();
    let mut push = |there: bool, value: &dyn std::fmt::Display| {
        text.clear();
        // Writing to a text cannot fail.
        let _ = write!(text, "{value}");
        if there { to.push(&text) } else { to.push_absent() }
    };
    macro_rules! integers {
        ($($kind:pat => $arrow:ty;)*) => {
            match array.data_type() {
                $($kind => {
                    let values = array.as_primitive::<$arrow>().values();
                    values.iter().enumerate().for_each(|(i, v)| push(!array.is_null(i), v));
                })*
                DataType::Boolean => {
                    let values = array.as_boolean().values();
                    values.iter().enumerate().for_each(|(i, v)| push(!array.is_null(i), &v));
                }
                kind if is_text(kind) => each_text(array, &mut |_, text| match text.map(str::trim) {
                    None | Some("") => to.push_absent(),
                    Some(text) => to.push(text),
                }),
                _ => {
                    let mut numbers = Vec::new();
                    numbers_of(array, &mut numbers);
                    numbers.iter().for_each(|v| push(!v.is_nan(), v));
                }
            }
        };
    }
    integers! {
        DataType::Int64 => Int64Type;
        DataType::Int32 => Int32Type;
        DataType::Int16 => Int16Type;
        DataType::Int8 => Int8Type;
        DataType::UInt64 => UInt64Type;
        DataType::UInt32 => UInt32Type;
        DataType::UInt16 => UInt16Type;
        DataType::UInt8 => UInt8Type;
    }
}

/// Adds the rows of an array to a column; `first` is the table's number of the first.
fn append(cells: &mut Cells, column: &Column, array: &ArrayRef, first: usize, bad: &mut Vec<(usize, Problem)>) {
    match cells {
        Cells::Words(words) => words_of(array, words),
        Cells::Numbers(numbers) if !is_text(array.data_type()) => {
            numbers_of(array, numbers);
            if column.how == How::Truth && *array.data_type() != DataType::Boolean {
                let odd = |v: f64| !(v.is_nan() || v == 0.0 || v == 1.0);
                for (row, v) in numbers.iter_mut().enumerate().skip(first).filter(|(_, v)| odd(**v)) {
                    let (name, got) = (Some(column.name.clone()), v.to_string());
                    bad.push((row, Problem::Value { column: name, want: "true or false", got, cure: "" }));
                    *v = f64::NAN;
                }
            }
        }
        Cells::Lists { offsets, words } if items(array.data_type()).is_some() => {
            for row in 0..array.len() {
                if let Some(items) = list_at(array, row) {
                    words_of(&items, words);
                }
                offsets.push(words.codes.len());
            }
        }
        // Numbers and lists as text.
        _ => each_text(array, &mut |row, text| {
            let problem = push_text(cells, column, text.unwrap_or_default().as_bytes());
            bad.extend(problem.map(|problem| (first + row, problem)));
        }),
    }
}

fn list_at(array: &ArrayRef, row: usize) -> Option<ArrayRef> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().value(row)),
        _ => None,
    }
}
