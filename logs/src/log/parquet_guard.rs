//! Parquet files from strangers.
//!
//! The decoder trusts what a file says of itself. So its table of contents and the heads of its pages are walked first
//! ([`super::thrift`]): every field of its type, no list longer than the bytes that are there, no schema too deep,
//! columns that lie within the file and apart from each other, and no more unpacked bytes at once, or rows, than a file
//! of that length can have. A panic on a damaged page is an error like any other.

use std::cell::Cell;
use std::fmt::Display;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReader};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::error::LogError;
use super::extent::Extent;
use super::sources::Source;
use super::thrift::{self, Flaw};

/// Rows decoded at once.
const BATCH: usize = 8192;

/// The most levels of a schema.
const DEEPEST: usize = 64;

/// What any file may claim, and beyond that for each of its bytes.
struct Bound {
    free: u64,
    per_byte: u64,
}

impl Bound {
    fn of(&self, size: u64) -> u64 {
        self.free.saturating_add(size.saturating_mul(self.per_byte))
    }
}

/// Rows.
const ROWS: Bound = Bound { free: 1 << 20, per_byte: 1 << 10 };

/// Unpacked bytes of all pages.
const UNPACKED: Bound = Bound { free: 1 << 30, per_byte: 1 << 12 };

/// Unpacked bytes of the pages that are held at the same time: of each column its dictionary and one page.
const AT_ONCE: Bound = Bound { free: 1 << 28, per_byte: 1 << 6 };

/// The encoding of a page whose values are made of the ones before them.
const DELTA_BYTE_ARRAY: i64 = 7;

/// The longest head of a page, statistics and all.
const LONGEST_HEAD: usize = 1 << 24;

/// A Parquet file whose table of contents is possible.
pub(crate) struct Guarded<'a> {
    source: &'a Source,
    bytes: Extent,
    contents: ArrowReaderMetadata,
}

impl Guarded<'_> {
    pub fn open(source: &Source) -> Result<Guarded<'_>, LogError> {
        let path = &source.path;
        let bytes = source.bytes()?;
        check_footer(&bytes).map_err(|message| refused(path, message))?;
        let read = |options| caught(path, || ArrowReaderMetadata::load(&bytes, options));
        let contents = read(ArrowReaderOptions::new())?;
        check_contents(contents.metadata(), source.size).map_err(|message| refused(path, message))?;
        // A text that stands once in a dictionary is not copied for each row that refers to it.
        let views = caught(path, || {
            let options = ArrowReaderOptions::new().with_schema(with_views(contents.schema()).into());
            ArrowReaderMetadata::try_new(contents.metadata().clone(), options)
        })?;
        Ok(Guarded { source, bytes, contents: views })
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        self.contents.schema()
    }

    pub fn n_rows(&self) -> u64 {
        self.contents.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// Decodes some of the columns; at most `limit` rows where one is given.
    pub fn decode(self, roots: Option<&[usize]>, limit: Option<usize>) -> Result<ParquetRecordBatchReader, LogError> {
        let path = &self.source.path;
        let metadata = self.contents.metadata().clone();
        let schema = metadata.file_metadata().schema_descr();
        let mask = match roots {
            Some(roots) => ProjectionMask::roots(schema, roots.iter().copied()),
            None => ProjectionMask::all(),
        };
        let rows = check_pages(&self.bytes, &metadata, &mask, limit).map_err(|message| refused(path, message))?;
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes, self.contents);
        builder = builder.with_projection(mask).with_batch_size(rows);
        if let Some(limit) = limit {
            builder = builder.with_limit(limit);
        }
        caught(path, || builder.build())
    }
}

fn refused(path: &Path, message: String) -> LogError {
    LogError::Parquet { path: path.to_path_buf(), message }
}

/// The types as they are, texts as views.
fn with_views(schema: &Schema) -> Schema {
    let view = |field: &std::sync::Arc<Field>| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => Field::clone(field).with_data_type(DataType::Utf8View).into(),
        _ => std::sync::Arc::clone(field),
    };
    Schema::new_with_metadata(schema.fields().iter().map(view).collect::<Vec<_>>(), schema.metadata().clone())
}

fn check_footer(bytes: &Extent) -> Result<(), String> {
    let damaged = |e: std::io::Error| e.to_string();
    let Some(tail) = bytes.size().checked_sub(8) else { return Err("it is too short".to_owned()) };
    let mut end = [0; 8];
    bytes.reading(tail).read_exact(&mut end).map_err(damaged)?;
    let [a, b, c, d, magic @ ..] = end;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if magic != *b"PAR1" {
        return Err("it does not end as Parquet does: it may be cut off".to_owned());
    }
    let Some(start) = tail.checked_sub(length) else {
        return Err(format!("its table of contents claims {length} bytes of {}", bytes.size()));
    };
    let mut footer = vec![0; length as usize];
    bytes.reading(start).read_exact(&mut footer).map_err(damaged)?;
    let mut depth = Depth::default();
    thrift::walk(&footer, thrift::FILE, &mut |path, found| depth.see(path, found)).map_err(|flaw| {
        let why = match flaw {
            Flaw::Short => "it claims more than there is",
            Flaw::Bad(why) => why,
        };
        format!("its table of contents is damaged: {why}")
    })?;
    match depth.deepest > DEEPEST {
        true => Err(format!("its columns are nested deeper than {DEEPEST} levels")),
        false => Ok(()),
    }
}

/// How deep the schema is, which is a list of elements, each with the number of its children behind it.
#[derive(Default)]
struct Depth {
    /// Children still to come, of each element that has not ended.
    open: Vec<i64>,
    children: i64,
    deepest: usize,
}

impl Depth {
    fn see(&mut self, path: &[i16], found: Option<i64>) {
        match (path, found) {
            ([2, 5], Some(children)) => self.children = children,
            ([2], None) => {
                if let Some(left) = self.open.last_mut() {
                    *left -= 1;
                }
                if self.children > 0 {
                    self.open.push(self.children);
                    self.deepest = self.deepest.max(self.open.len());
                }
                while self.open.last() == Some(&0) {
                    self.open.pop();
                }
                self.children = 0;
            }
            _ => {}
        }
    }
}

/// Holds the claims of the table of contents against the length of the file.
fn check_contents(contents: &ParquetMetaData, size: u64) -> Result<(), String> {
    let (mut rows, mut all) = (0u64, 0u64);
    for group in contents.row_groups() {
        rows = rows.saturating_add(group.num_rows().max(0) as u64);
        for chunk in group.columns() {
            let start = first_byte(chunk);
            let end = start.checked_add(chunk.compressed_size());
            let within = start >= 0 && end.is_some_and(|end| end >= start && end.unsigned_abs() <= size);
            if !within || chunk.num_values() < 0 || group.num_rows() < 0 {
                let (name, length) = (chunk.column_path(), chunk.compressed_size());
                let values = chunk.num_values();
                return Err(format!(
                    "column `{name}` claims {values} values in {length} bytes from byte {start} of {size}"
                ));
            }
            all = all.saturating_add(chunk.compressed_size().unsigned_abs());
        }
    }
    if all > size {
        return Err(format!("its columns claim {all} bytes together, and it has {size}"));
    }
    let most = ROWS.of(size);
    match rows > most {
        true => Err(format!("it claims {rows} rows in {size} bytes; at most {most} are believed of its length")),
        false => Ok(()),
    }
}

fn first_byte(chunk: &ColumnChunkMetaData) -> i64 {
    chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset())
}

/// What the head of a page says.
#[derive(Default)]
struct Head {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
}

/// Looks at the heads of all pages that will be decoded; returns how many rows to decode at once.
fn check_pages(
    bytes: &Extent,
    contents: &ParquetMetaData,
    mask: &ProjectionMask,
    limit: Option<usize>,
) -> Result<usize, String> {
    let (mut all, mut rows, mut copies) = (0u64, 0u64, false);
    for group in contents.row_groups() {
        let mut at_once = 0u64;
        for (_, chunk) in group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf)) {
            let pages = Pages::of(bytes, chunk).map_err(|why| format!("column `{}`: {why}", chunk.column_path()))?;
            at_once = at_once.saturating_add(pages.dictionary + pages.largest);
            all = all.saturating_add(pages.all);
            copies |= pages.copies;
        }
        let most = AT_ONCE.of(bytes.size());
        if at_once > most {
            return Err(format!(
                "its pages unpack to {at_once} bytes at once; at most {most} are believed of its length"
            ));
        }
        rows = rows.saturating_add(group.num_rows().max(0) as u64);
        if limit.is_some_and(|limit| rows >= limit as u64) {
            break;
        }
    }
    let most = UNPACKED.of(bytes.size());
    match all > most {
        true => Err(format!("its pages unpack to {all} bytes; at most {most} are believed of its length")),
        // Each value may be as long as a page where it is made of the one before.
        false => Ok(if copies { BATCH / 128 } else { BATCH }),
    }
}

/// What the pages of a column unpack to.
#[derive(Default)]
struct Pages {
    dictionary: u64,
    largest: u64,
    all: u64,
    /// Whether values are made of the ones before them.
    copies: bool,
}

impl Pages {
    fn of(bytes: &Extent, chunk: &ColumnChunkMetaData) -> Result<Pages, &'static str> {
        let (mut at, mut left) = (first_byte(chunk) as u64, chunk.compressed_size() as u64);
        let (mut pages, mut values) = (Pages::default(), 0i64);
        // As the decoder: what lies behind the last value is not read.
        while left > 0 && values < chunk.num_values() {
            let (head, length) = head(bytes, at, left)?;
            let body = u64::try_from(head.packed).unwrap_or(u64::MAX);
            let unpacked = u64::try_from(head.unpacked).map_err(|_| "a page of a negative length")?;
            if head.values < 0 || body > left - length {
                return Err("a page claims more than there is");
            }
            (at, left) = (at + length + body, left - length - body);
            match head.kind {
                2 => pages.dictionary += unpacked,
                _ => {
                    values = values.saturating_add(head.values);
                    pages.largest = pages.largest.max(unpacked);
                    pages.copies |= head.encoding == DELTA_BYTE_ARRAY;
                }
            }
            pages.all += unpacked;
        }
        Ok(pages)
    }
}

/// The head of the page at a place, and its length.
fn head(bytes: &Extent, at: u64, left: u64) -> Result<(Head, u64), &'static str> {
    let mut room = 1 << 8;
    loop {
        let most = (room as u64).min(left);
        let mut start = vec![0; most as usize];
        bytes.reading(at).read_exact(&mut start).map_err(|_| "a page ends early")?;
        let mut head = Head::default();
        let walked = thrift::walk(&start, thrift::PAGE, &mut |path, found| match (path, found) {
            ([1], Some(v)) => head.kind = v,
            ([2], Some(v)) => head.unpacked = v,
            ([3], Some(v)) => head.packed = v,
            ([5 | 8, 1], Some(v)) => head.values = v,
            ([5, 2] | [8, 4], Some(v)) => head.encoding = v,
            _ => {}
        });
        match walked {
            Ok(length) => return Ok((head, length as u64)),
            Err(Flaw::Short) if most < left && room < LONGEST_HEAD => room *= 16,
            Err(Flaw::Short) => return Err("the head of a page claims more than there is"),
            Err(Flaw::Bad(why)) => return Err(why),
        }
    }
}

thread_local! {
    /// Whether a panic on this thread is about to be caught.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Decodes; what goes wrong is an error, whichever way it does, and nothing is printed.
pub(crate) fn caught<T, E: Display>(path: &Path, decode: impl FnOnce() -> Result<T, E>) -> Result<T, LogError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                loud(panic);
            }
        }));
    });
    CAUGHT.set(true);
    let done = catch_unwind(AssertUnwindSafe(decode));
    CAUGHT.set(false);
    match done {
        Ok(Ok(decoded)) => Ok(decoded),
        Ok(Err(error)) => Err(refused(path, error.to_string())),
        Err(_) => Err(refused(path, "its pages are damaged".to_owned())),
    }
}
