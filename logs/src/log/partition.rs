//! Folders that say what all rows below them have in common, as `day=1/part-0.parquet`: each `key=value` is a column.

use std::path::Path;

use super::error::LogError;
use super::infer::Sample;
use super::table::{Column, Table, TableReader, push_text};

/// The columns that the folders of a file name, from the outermost.
pub(crate) type Partition = Vec<(String, String)>;

/// What stands for no value in the name of a folder.
const ABSENT: &str = "__HIVE_DEFAULT_PARTITION__";

/// The key and the value that a folder's name holds.
pub(crate) fn of_folder(path: &Path) -> Option<(String, String)> {
    let (key, value) = path.file_name()?.to_str()?.split_once('=')?;
    let value = if value == ABSENT { String::new() } else { unescaped(value) };
    (!key.is_empty()).then(|| (key.to_owned(), value))
}

/// A name without its `%20`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match code.filter(|_| byte == b'%') {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Adds the columns of the folders to what the first rows of a file hold.
pub(crate) fn sampled(
    mut sample: Sample,
    partition: &Partition,
    see: impl Fn(&mut super::infer::Sampled, &[u8]),
) -> Sample {
    for (key, value) in partition {
        let mut column = super::infer::Sampled::new(key.clone());
        (0..sample.rows).for_each(|_| see(&mut column, value.as_bytes()));
        sample.columns.retain(|known| known.name != *key);
        sample.columns.push(column);
    }
    sample
}

/// Reads a file's own columns, and puts those of its folders beside them.
pub(crate) struct Parted {
    inner: Box<dyn TableReader>,
    /// Those that the file has.
    own: Vec<Column>,
    columns: Vec<Column>,
    partition: Partition,
}

impl Parted {
    /// `open` opens the file for the columns that are its own.
    pub fn open(
        columns: &[Column],
        partition: &Partition,
        open: impl FnOnce(&[Column]) -> Result<Box<dyn TableReader>, LogError>,
    ) -> Result<Box<dyn TableReader>, LogError> {
        if partition.is_empty() {
            return open(columns);
        }
        let named = |column: &&Column| !partition.iter().any(|(key, _)| *key == column.name);
        let own: Vec<Column> = columns.iter().filter(named).cloned().collect();
        let inner = open(&own)?;
        Ok(Box::new(Parted { inner, own, columns: columns.to_vec(), partition: partition.clone() }))
    }
}

impl TableReader for Parted {
    fn fill(&mut self, table: &mut Table, rows: usize) -> Result<bool, LogError> {
        let mut read = Table::new(&self.own);
        let more = self.inner.fill(&mut read, rows - table.n_rows())?;
        let first = table.n_rows();
        table.places.append(&mut read.places);
        table.bad.extend(read.bad.into_iter().map(|(row, problem)| (first + row, problem)));
        let n = table.places.len() - first;
        let mut own = read.columns.iter();
        for (column, cells) in self.columns.iter().zip(&mut table.columns) {
            match self.partition.iter().find(|(key, _)| *key == column.name) {
                Some((_, value)) => {
                    for row in 0..n {
                        let problem = push_text(cells, column, value.as_bytes());
                        table.bad.extend(problem.map(|problem| (first + row, problem)));
                    }
                }
                None => {
                    let Some(from) = own.next() else { continue };
                    (0..n).for_each(|row| cells.push_from(from, row));
                }
            }
        }
        table.bad.sort_by_key(|(row, _)| *row);
        Ok(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_names_a_column_and_its_value() {
        let of = |name: &str| of_folder(Path::new(name));
        let pair = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
        assert_eq!(of("logs/day=2026-01-02"), pair("day", "2026-01-02"));
        assert_eq!(of("city=New%20York"), pair("city", "New York"));
        assert_eq!(of("rate=100%"), pair("rate", "100%"));
        assert_eq!(of("city=__HIVE_DEFAULT_PARTITION__"), pair("city", ""));
        assert_eq!(of("plain"), None);
        assert_eq!(of("=x"), None);
    }
}
