//! The files that decisions are written to.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value};

use super::ScoreOptions;
use super::rows::Rows;
use crate::error::FileError;
use crate::policy::{Policy, PolicyError};

/// What rows are written to.
type Out<'a> = &'a mut (dyn Write + Send);

/// A file of decisions.
pub(super) struct Sink<'a> {
    kind: Kind<'a>,
    columns: Columns,
    path: &'a Path,
}

enum Kind<'a> {
    Csv(Box<csv::Writer<Out<'a>>>),
    JsonLines(Out<'a>),
    Parquet(Box<ArrowWriter<Out<'a>>>, Arc<Schema>),
}

/// What every row has.
struct Columns {
    /// The names of the files, where there is more than one.
    files: Option<Vec<String>>,
    actions: Vec<String>,
    explain: bool,
}

/// The explained columns of an action.
const EXPLAINED: [&str; 3] = ["mean", "width", "bound"];

impl Columns {
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.files.iter().map(|_| "file".to_owned()).collect();
        names.extend(["line".to_owned(), "action".to_owned()]);
        if self.explain {
            names.extend(self.actions.iter().flat_map(|a| EXPLAINED.map(|what| format!("{what}:{a}"))));
        }
        names
    }
}

impl<'a> Sink<'a> {
    pub fn new(
        path: &'a Path,
        to: Out<'a>,
        policy: &Policy,
        files: Vec<String>,
        options: ScoreOptions,
    ) -> Result<Self, PolicyError> {
        let explain = options.explain && policy.beta().is_some();
        let files = (files.len() > 1).then_some(files);
        let columns = Columns { files, actions: policy.preparation().actions().to_vec(), explain };
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        let kind = match ending.as_str() {
            "parquet" => Kind::parquet(to, &columns),
            "jsonl" | "ndjson" | "json" => Ok(Kind::JsonLines(to)),
            _ => Kind::csv(to, &columns),
        };
        Ok(Sink { kind: kind.map_err(|e| failed(path, e))?, columns, path })
    }

    pub fn write(&mut self, rows: &Rows<'_>) -> Result<(), PolicyError> {
        let columns = &self.columns;
        let done = match &mut self.kind {
            Kind::Csv(to) => write_csv(to, columns, rows),
            Kind::JsonLines(to) => write_json(to, columns, rows),
            Kind::Parquet(to, schema) => RecordBatch::try_new(Arc::clone(schema), arrays(columns, rows))
                .map_err(io::Error::other)
                .and_then(|batch| to.write(&batch).map_err(io::Error::other)),
        };
        done.map_err(|e| failed(self.path, e))
    }

    pub fn finish(self) -> Result<(), PolicyError> {
        let done = match self.kind {
            Kind::Csv(mut to) => to.flush(),
            Kind::JsonLines(to) => to.flush(),
            Kind::Parquet(to, _) => to.close().map(|_| ()).map_err(io::Error::other),
        };
        done.map_err(|e| failed(self.path, e))
    }
}

fn failed(path: &Path, source: io::Error) -> PolicyError {
    // The system's own error, so that a closed pipe is known as one.
    let source = source.downcast::<csv::Error>().map_or_else(
        |source| source,
        |wrapped| match wrapped.into_kind() {
            csv::ErrorKind::Io(source) => source,
            other => io::Error::other(format!("{other:?}")),
        },
    );
    FileError::Write { path: path.to_path_buf(), source }.into()
}

impl<'a> Kind<'a> {
    fn csv(to: Out<'a>, columns: &Columns) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(columns.names())?;
        Ok(Kind::Csv(Box::new(writer)))
    }

    fn parquet(to: Out<'a>, columns: &Columns) -> io::Result<Self> {
        let field = |name: String| match name.as_str() {
            "line" => Field::new(name, DataType::UInt64, false),
            "file" => Field::new(name, DataType::Utf8, false),
            "action" => Field::new(name, DataType::Utf8, true),
            _ => Field::new(name, DataType::Float64, true),
        };
        let schema = Arc::new(Schema::new(columns.names().into_iter().map(field).collect::<Vec<_>>()));
        let level = ZstdLevel::try_new(1).map_err(io::Error::other)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let writer = ArrowWriter::try_new(to, Arc::clone(&schema), Some(properties)).map_err(io::Error::other)?;
        Ok(Kind::Parquet(Box::new(writer), schema))
    }
}

fn write_csv(to: &mut csv::Writer<Out<'_>>, columns: &Columns, rows: &Rows<'_>) -> io::Result<()> {
    let mut number = String::new();
    for t in 0..rows.len() {
        let place = rows.place(t);
        if let Some(files) = &columns.files {
            to.write_field(&files[place.file as usize])?;
        }
        let mut write = |to: &mut csv::Writer<_>, v: &dyn std::fmt::Display| {
            use std::fmt::Write as _;
            number.clear();
            write!(number, "{v}").expect("a string takes all");
            to.write_field(&number)
        };
        write(to, &place.line)?;
        to.write_field(rows.name(t).unwrap_or_default())?;
        if columns.explain {
            for a in 0..columns.actions.len() {
                match rows.explained(t, a) {
                    Some(e) => [e.mean, e.width, e.bound].iter().try_for_each(|v| write(to, v))?,
                    None => EXPLAINED.iter().try_for_each(|_| to.write_field(""))?,
                }
            }
        }
        to.write_record(None::<&[u8]>)?;
    }
    Ok(())
}

fn write_json(to: &mut Out<'_>, columns: &Columns, rows: &Rows<'_>) -> io::Result<()> {
    for t in 0..rows.len() {
        let (place, mut row) = (rows.place(t), Map::new());
        if let Some(files) = &columns.files {
            row.insert("file".into(), Value::from(files[place.file as usize].as_str()));
        }
        row.insert("line".into(), Value::from(place.line));
        row.insert("action".into(), rows.name(t).map_or(Value::Null, Value::from));
        if columns.explain {
            let explained = |a: usize| {
                let e = rows.explained(t, a)?;
                let numbers = [e.mean, e.width, e.bound];
                let object: Map<_, _> = EXPLAINED.iter().zip(numbers).map(|(&k, v)| (k.into(), v.into())).collect();
                Some((columns.actions[a].clone(), Value::from(object)))
            };
            let actions: Map<_, _> = (0..columns.actions.len()).filter_map(explained).collect();
            row.insert("actions".into(), Value::from(actions));
        }
        serde_json::to_writer(&mut **to, &row)?;
        to.write_all(b"\n")?;
    }
    Ok(())
}

fn arrays(columns: &Columns, rows: &Rows<'_>) -> Vec<ArrayRef> {
    let (n, mut arrays): (usize, Vec<ArrayRef>) = (rows.len(), Vec::new());
    let places = || (0..n).map(|t| rows.place(t));
    if let Some(files) = &columns.files {
        arrays.push(Arc::new(StringArray::from_iter_values(places().map(|p| &files[p.file as usize]))));
    }
    arrays.push(Arc::new(UInt64Array::from_iter_values(places().map(|p| p.line))));
    arrays.push(Arc::new((0..n).map(|t| rows.name(t)).collect::<StringArray>()));
    if columns.explain {
        for a in 0..columns.actions.len() {
            let explained: Vec<_> = (0..n).map(|t| rows.explained(t, a)).collect();
            let column = |pick: fn(&super::rows::Explained) -> f64| -> ArrayRef {
                Arc::new(explained.iter().map(|e| e.as_ref().map(pick)).collect::<Float64Array>())
            };
            arrays.extend([column(|e| e.mean), column(|e| e.width), column(|e| e.bound)]);
        }
    }
    arrays
}
