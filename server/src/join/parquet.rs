//! Joined rounds as Parquet, in the columns that a log has: a row per round with the eligible actions as a list, or,
//! where actions have features of their own, a row per action of a round.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use neuralcb_logs::log::{JsonRound, Value};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

/// Rows that are held before they are written.
const ROWS: usize = 8192;

/// What values a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Boolean,
    Text,
}

/// The features of all rounds, by name.
#[derive(Default)]
pub(super) struct Columns {
    shared: BTreeMap<String, Kind>,
    per_action: BTreeMap<String, Kind>,
}

impl Columns {
    /// Takes note of a round's features.
    pub fn see(&mut self, round: &JsonRound) {
        round.shared.iter().for_each(|(name, value)| note(&mut self.shared, name, value));
        let own = round.actions.iter().flat_map(|action| &action.features);
        own.for_each(|(name, value)| note(&mut self.per_action, name, value));
    }
}

fn note(columns: &mut BTreeMap<String, Kind>, name: &str, value: &Value) {
    let found = match value {
        Value::Number(_) => Kind::Number,
        Value::Boolean(_) => Kind::Boolean,
        Value::Text(_) => Kind::Text,
    };
    match columns.get_mut(name) {
        Some(kind) if *kind != found => *kind = Kind::Text,
        Some(_) => {}
        None => drop(columns.insert(name.to_owned(), found)),
    }
}

/// The values of a column.
enum Cells {
    Numbers(Vec<Option<f64>>),
    Booleans(Vec<Option<bool>>),
    Texts(Vec<Option<String>>),
}

impl Cells {
    fn new(kind: Kind) -> Cells {
        match kind {
            Kind::Number => Cells::Numbers(Vec::new()),
            Kind::Boolean => Cells::Booleans(Vec::new()),
            Kind::Text => Cells::Texts(Vec::new()),
        }
    }

    fn push(&mut self, value: Option<&Value>) {
        match (self, value) {
            (Cells::Numbers(to), Some(Value::Number(v))) => to.push(Some(*v)),
            (Cells::Numbers(to), _) => to.push(None),
            (Cells::Booleans(to), Some(Value::Boolean(v))) => to.push(Some(*v)),
            (Cells::Booleans(to), _) => to.push(None),
            (Cells::Texts(to), value) => to.push(value.map(|value| match value {
                Value::Number(v) => v.to_string(),
                Value::Boolean(v) => v.to_string(),
                Value::Text(v) => v.clone(),
            })),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Cells::Numbers(v) => Arc::new(Float64Array::from(std::mem::take(v))),
            Cells::Booleans(v) => Arc::new(BooleanArray::from(std::mem::take(v))),
            Cells::Texts(v) => Arc::new(StringArray::from(std::mem::take(v))),
        }
    }
}

/// A file that is being written.
pub(super) struct Table<'a> {
    writer: ArrowWriter<&'a mut (dyn Write + Send)>,
    schema: Arc<Schema>,
    /// A row per action of a round.
    long: bool,
    names: Vec<(String, bool)>,
    cells: Vec<Cells>,
    rounds: Vec<i64>,
    next_round: i64,
    actions: Vec<String>,
    chosen: Vec<bool>,
    eligible: Vec<String>,
    rewards: Vec<Option<f64>>,
    propensities: Vec<Option<f64>>,
}

impl<'a> Table<'a> {
    /// Begins a file of those columns.
    pub fn new(to: &'a mut (dyn Write + Send), columns: &Columns) -> io::Result<Table<'a>> {
        let long = !columns.per_action.is_empty();
        let mut fields = match long {
            true => vec![
                Field::new("round", DataType::Int64, false),
                Field::new("action", DataType::Utf8, false),
                Field::new("chosen", DataType::Boolean, false),
            ],
            false => vec![Field::new("action", DataType::Utf8, false), Field::new("eligible", DataType::Utf8, false)],
        };
        fields.push(Field::new("reward", DataType::Float64, long));
        fields.push(Field::new("propensity", DataType::Float64, long));
        let (mut names, mut cells) = (Vec::new(), Vec::new());
        let shared = columns.shared.iter().map(|column| (column, false));
        for ((name, &kind), own) in shared.chain(columns.per_action.iter().map(|column| (column, true))) {
            // One name of both, of the round and of its actions, is the action's here.
            if !own && columns.per_action.contains_key(name) {
                continue;
            }
            if fields.iter().any(|field| field.name() == name) {
                let message = format!("a feature is called `{name}`, as a column of the log: write .jsonl instead");
                return Err(io::Error::other(message));
            }
            let of = match kind {
                Kind::Number => DataType::Float64,
                Kind::Boolean => DataType::Boolean,
                Kind::Text => DataType::Utf8,
            };
            fields.push(Field::new(name, of, true));
            names.push((name.clone(), own));
            cells.push(Cells::new(kind));
        }
        let schema = Arc::new(Schema::new(fields));
        let level = ZstdLevel::try_new(1).map_err(io::Error::other)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let writer = ArrowWriter::try_new(to, schema.clone(), Some(properties)).map_err(io::Error::other)?;
        Ok(Table {
            writer,
            schema,
            long,
            names,
            cells,
            rounds: Vec::new(),
            next_round: 0,
            actions: Vec::new(),
            chosen: Vec::new(),
            eligible: Vec::new(),
            rewards: Vec::new(),
            propensities: Vec::new(),
        })
    }

    /// Adds a round.
    pub fn write(&mut self, round: &JsonRound) -> io::Result<()> {
        let shared: HashMap<&str, &Value> = round.shared.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let places = if self.long { 0..round.actions.len() } else { 0..1 };
        let name = |place: usize| round.actions[place].name.clone().unwrap_or_default();
        for place in places {
            let action = &round.actions[place];
            let own: HashMap<&str, &Value> =
                action.features.iter().map(|(name, value)| (name.as_str(), value)).collect();
            for ((name, is_own), cells) in self.names.iter().zip(&mut self.cells) {
                cells.push(if *is_own { &own } else { &shared }.get(name.as_str()).copied());
            }
            let chosen = !self.long || round.chosen == Some(place);
            self.rounds.push(self.next_round);
            self.actions.push(if self.long { name(place) } else { name(round.chosen.unwrap_or_default()) });
            self.chosen.push(chosen);
            self.rewards.push(round.reward.filter(|_| chosen));
            self.propensities.push(round.propensity.filter(|_| chosen));
        }
        if !self.long {
            let names: Vec<String> = (0..round.actions.len()).map(name).collect();
            self.eligible.push(serde_json::to_string(&names)?);
        }
        self.next_round += 1;
        if self.actions.len() >= ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let take = std::mem::take::<Vec<Option<f64>>>;
        let actions: ArrayRef = Arc::new(StringArray::from(std::mem::take(&mut self.actions)));
        let (rounds, chosen) = (std::mem::take(&mut self.rounds), std::mem::take(&mut self.chosen));
        let mut columns: Vec<ArrayRef> = match self.long {
            true => vec![Arc::new(Int64Array::from(rounds)), actions, Arc::new(BooleanArray::from(chosen))],
            false => vec![actions, Arc::new(StringArray::from(std::mem::take(&mut self.eligible)))],
        };
        columns.push(Arc::new(Float64Array::from(take(&mut self.rewards))));
        columns.push(Arc::new(Float64Array::from(take(&mut self.propensities))));
        columns.extend(self.cells.iter_mut().map(Cells::take));
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(io::Error::other)
    }

    /// Writes what is left, and the table of contents.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.writer.close().map(drop).map_err(io::Error::other)
    }
}
