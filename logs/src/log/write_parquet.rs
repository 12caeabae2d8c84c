//! Logs as Parquet, written block by block.
//!
//! The columns are those of the CSV form: one context per round `action,reward,propensity,x0,x1,…`; one context per
//! action the long table `round,action,chosen,reward,propensity,x0,x1,…`, where reward and propensity are null in the
//! rows of actions that were not chosen. Contexts are single precision, so that they read back to the same bits.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use neuralcb::{Encoding, Layout, LoggedData};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

/// Rows that are kept in memory before they are written.
const ROW_GROUP: usize = 1 << 17;

/// Writes a log as Parquet, some rounds at a time.
pub struct ParquetLog<'a> {
    to: &'a mut dyn Write,
    /// Holds what is encoded and not yet passed on.
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    layout: Layout,
    n_rounds: u64,
}

impl<'a> ParquetLog<'a> {
    /// Begins a log of such contexts.
    pub fn new(layout: Layout, to: &'a mut dyn Write) -> io::Result<ParquetLog<'a>> {
        let mut fields = Vec::new();
        if layout.encoding == Encoding::PerAction {
            fields.push(Field::new("round", DataType::Int64, false));
        }
        fields.push(Field::new("action", DataType::Int64, false));
        if layout.encoding == Encoding::PerAction {
            fields.push(Field::new("chosen", DataType::Boolean, false));
        }
        fields.push(Field::new("reward", DataType::Float64, layout.encoding == Encoding::PerAction));
        fields.push(Field::new("propensity", DataType::Float64, true));
        fields.extend((0..layout.dim).map(|j| Field::new(format!("x{j}"), DataType::Float32, false)));
        let schema = Arc::new(Schema::new(fields));
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(ROW_GROUP));
        // Features hardly ever repeat: a dictionary of them would only be thrown away.
        for j in 0..layout.dim {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(format!("x{j}")), false);
        }
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties.build()))?;
        Ok(ParquetLog { to, writer, schema, layout, n_rounds: 0 })
    }

    /// Adds rounds.
    pub fn write(&mut self, log: &LoggedData) -> io::Result<()> {
        let columns = match self.layout.encoding {
            Encoding::Disjoint => shared_columns(log),
            Encoding::PerAction => long_columns(log, self.n_rounds),
        };
        self.n_rounds += log.n_rounds() as u64;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(io::Error::other)?;
        self.writer.write(&batch)?;
        pass_on(self.writer.inner_mut(), self.to)
    }

    /// Writes what is left, and the table of contents. Without it the file is no Parquet.
    pub fn finish(self) -> io::Result<()> {
        pass_on(&mut self.writer.into_inner()?, self.to)
    }
}

/// Writes a whole log as Parquet.
pub fn write_parquet(log: &LoggedData, to: &mut dyn Write) -> io::Result<()> {
    let mut file = ParquetLog::new(log.contexts().layout(), to)?;
    for first in (0..log.n_rounds()).step_by(super::BLOCK) {
        file.write(&log.slice(first..(first + super::BLOCK).min(log.n_rounds())))?;
    }
    file.finish()
}

fn pass_on(encoded: &mut Vec<u8>, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(encoded)?;
    encoded.clear();
    Ok(())
}

/// The columns of rows of `dim` numbers.
fn features(rows: &[f32], dim: usize) -> impl Iterator<Item = ArrayRef> {
    let column = move |j| -> Vec<f32> { rows.iter().skip(j).step_by(dim).copied().collect() };
    (0..dim).map(move |j| Arc::new(Float32Array::from(column(j))) as ArrayRef)
}

fn shared_columns(log: &LoggedData) -> Vec<ArrayRef> {
    let contexts = log.contexts();
    let actions: Vec<i64> = log.actions().iter().map(|&action| i64::from(action)).collect();
    let propensities: Vec<Option<f64>> = (0..log.n_rounds()).map(|t| log.propensities().map(|p| p[t])).collect();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(actions)),
        Arc::new(Float64Array::from(log.rewards().to_vec())),
        Arc::new(Float64Array::from(propensities)),
    ];
    columns.extend(features(contexts.rows(0..contexts.n_rounds()), contexts.layout().dim));
    columns
}

fn long_columns(log: &LoggedData, first_round: u64) -> Vec<ArrayRef> {
    let contexts = log.contexts();
    let (mut rounds, mut actions, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rewards, mut propensities) = (Vec::new(), Vec::new());
    for t in 0..log.n_rounds() {
        let taken = log.actions()[t] as usize;
        for i in 0..contexts.pairs(t).len() {
            let action = contexts.action(t, i);
            rounds.push((first_round + t as u64) as i64);
            actions.push(action as i64);
            chosen.push(action == taken);
            rewards.push((action == taken).then(|| log.rewards()[t]));
            propensities.push(log.propensities().filter(|_| action == taken).map(|p| p[t]));
        }
    }
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(rounds)),
        Arc::new(Int64Array::from(actions)),
        Arc::new(BooleanArray::from(chosen)),
        Arc::new(Float64Array::from(rewards)),
        Arc::new(Float64Array::from(propensities)),
    ];
    columns.extend(features(contexts.rows(0..contexts.n_rounds()), contexts.layout().dim));
    columns
}
