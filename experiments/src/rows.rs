//! The tables of an experiment: one row per run and checkpoint, as text that is the same to the byte every time.
//!
//! Floats are written in the shortest form that reads back to the same bits; a value that does not apply is an empty
//! cell. Clock times differ between two runs of the same settings, so they live in a table of their own.

use std::cmp::Ordering;
use std::str::FromStr;

use thiserror::Error;

use crate::names;

const RESULT_HEADER: &str =
    "dataset,algorithm,mode,learning_rate,sigma,beta,split,behaviour,rep,seed,n,suboptimality,accuracy";
const TIMING_HEADER: &str =
    "dataset,algorithm,mode,learning_rate,sigma,beta,split,behaviour,rep,seed,n,train_seconds,score_seconds";
const VALIDATION_HEADER: &str =
    "dataset,algorithm,mode,learning_rate,sigma,beta,split,behaviour,rep,seed,n,estimate,lower_bound";

/// What a row is about: one policy at one checkpoint of one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Key {
    /// Data set, such as `quadratic`.
    pub dataset: String,
    /// Algorithm, such as `neuralcb`.
    pub algorithm: String,
    /// How a network is trained: `S` (one step per round) or `B` (batches).
    pub mode: Option<String>,
    /// Learning rate of the network.
    pub learning_rate: Option<f64>,
    /// Bandwidth of the kernel.
    pub sigma: Option<f64>,
    /// Pessimism of the policy.
    pub beta: Option<f64>,
    /// How training and test rows of a data set were divided.
    pub split: Option<String>,
    /// Behaviour policy that wrote the log.
    pub behaviour: String,
    /// Number of the repetition, from 0.
    pub rep: usize,
    /// Seed of the whole experiment.
    pub seed: u64,
    /// Rounds of the log read so far.
    pub n: usize,
}

/// The value of one policy.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultRow {
    /// What the row is about.
    pub key: Key,
    /// Mean over test contexts of the best action's expected reward minus that of the chosen action.
    pub suboptimality: f64,
    /// Share of test contexts on which the best action was chosen.
    pub accuracy: Option<f64>,
}

/// The clock times of one run up to one checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct TimingRow {
    /// What the row is about.
    pub key: Key,
    /// Seconds spent reading the log.
    pub train_seconds: f64,
    /// Seconds spent scoring the test contexts.
    pub score_seconds: f64,
}

/// What the log alone says about the policy learned from its first n rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidationRow {
    /// What the row is about.
    pub key: Key,
    /// Self-normalised importance-weighted estimate of its value on the rounds after n.
    pub estimate: f64,
    /// Its lower 95 % bound, with what the log does not cover counted as the worst reward.
    pub lower_bound: f64,
}

/// A table of results that cannot be read.
#[derive(Debug, Error)]
pub enum RowError {
    /// The first line is not the header of this table.
    #[error("line 1: the header must be `{want}`, got `{got}`")]
    Header {
        /// The header of this table.
        want: &'static str,
        /// The line that was found.
        got: String,
    },
    /// A line that is no CSV, or has too few or too many cells.
    #[error("line {line}: {source}")]
    Line {
        /// Line of the file, from 1.
        line: u64,
        /// What the reader says.
        source: csv::Error,
    },
    /// A cell whose value is not allowed.
    #[error("line {line}, column `{column}`: must be {want}, got `{got}`")]
    Cell {
        /// Line of the file, from 1.
        line: u64,
        /// Name of the column.
        column: &'static str,
        /// What is allowed there.
        want: &'static str,
        /// What was found.
        got: String,
    },
}

impl Key {
    fn cells(&self) -> [String; 11] {
        [
            self.dataset.clone(),
            self.algorithm.clone(),
            optional(&self.mode),
            optional(&self.learning_rate),
            optional(&self.sigma),
            optional(&self.beta),
            optional(&self.split),
            self.behaviour.clone(),
            self.rep.to_string(),
            self.seed.to_string(),
            self.n.to_string(),
        ]
    }

    /// The canonical order: the paper's order of data sets and algorithms, then settings, repetition and n.
    pub fn compare(&self, other: &Key) -> Ordering {
        names::compare_datasets(&self.dataset, &other.dataset)
            .then_with(|| names::compare_algorithms(&self.algorithm, &other.algorithm))
            .then_with(|| self.mode.cmp(&other.mode))
            .then_with(|| compare_floats(self.learning_rate, other.learning_rate))
            .then_with(|| compare_floats(self.sigma, other.sigma))
            .then_with(|| compare_floats(self.beta, other.beta))
            .then_with(|| self.split.cmp(&other.split))
            .then_with(|| self.behaviour.cmp(&other.behaviour))
            .then_with(|| (self.rep, self.n).cmp(&(other.rep, other.n)))
    }
}

/// The table `results.csv`.
pub fn to_csv(rows: &[ResultRow]) -> String {
    write_table(RESULT_HEADER, rows, |row| (row.key.cells(), [row.suboptimality.to_string(), optional(&row.accuracy)]))
}

/// The table `timings.csv`.
pub fn timings_to_csv(rows: &[TimingRow]) -> String {
    write_table(TIMING_HEADER, rows, |row| {
        (row.key.cells(), [row.train_seconds.to_string(), row.score_seconds.to_string()])
    })
}

/// The table `validation.csv`.
pub fn validations_to_csv(rows: &[ValidationRow]) -> String {
    write_table(VALIDATION_HEADER, rows, |row| {
        (row.key.cells(), [row.estimate.to_string(), row.lower_bound.to_string()])
    })
}

fn write_table<R>(header: &str, rows: &[R], cells: impl Fn(&R) -> ([String; 11], [String; 2])) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let written = "writing to memory does not fail";
    table.write_record(header.split(',')).expect(written);
    for row in rows {
        let (keys, values) = cells(row);
        table.write_record(keys.iter().chain(&values)).expect(written);
    }
    String::from_utf8(table.into_inner().expect(written)).expect("cells are UTF-8")
}

fn optional<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(String::new, T::to_string)
}

/// Reads the table `results.csv` back, to the same bits.
pub fn from_csv(text: &str) -> Result<Vec<ResultRow>, RowError> {
    let first = text.lines().next().unwrap_or_default();
    if first != RESULT_HEADER {
        return Err(RowError::Header { want: RESULT_HEADER, got: first.to_string() });
    }
    let mut rows = Vec::new();
    for record in csv::Reader::from_reader(text.as_bytes()).records() {
        let record = record.map_err(|source| {
            let line = source.position().map_or(0, csv::Position::line);
            RowError::Line { line, source }
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push(read_row(&Cells { line, record: &record })?);
    }
    Ok(rows)
}

fn read_row(cells: &Cells) -> Result<ResultRow, RowError> {
    let key = Key {
        dataset: cells.name(0)?,
        algorithm: cells.name(1)?,
        mode: match cells.text(2) {
            "" => None,
            mode @ ("S" | "B") => Some(mode.to_string()),
            _ => return Err(cells.refuse(2, "`S`, `B` or empty")),
        },
        learning_rate: cells.optional_float(3)?,
        sigma: cells.optional_float(4)?,
        beta: cells.optional_float(5)?,
        split: Some(cells.text(6)).filter(|text| !text.is_empty()).map(str::to_string),
        behaviour: cells.name(7)?,
        rep: cells.whole(8)?,
        seed: cells.whole(9)?,
        n: cells.whole(10)?,
    };
    let suboptimality = cells.float(11, "a finite number")?;
    Ok(ResultRow { key, suboptimality, accuracy: cells.optional_float(12)? })
}

/// One line of the table and its place, for errors.
struct Cells<'a> {
    line: u64,
    record: &'a csv::StringRecord,
}

impl Cells<'_> {
    fn text(&self, column: usize) -> &str {
        &self.record[column]
    }

    fn name(&self, column: usize) -> Result<String, RowError> {
        match self.text(column) {
            "" => Err(self.refuse(column, "a name")),
            name => Ok(name.to_string()),
        }
    }

    fn whole<T: FromStr>(&self, column: usize) -> Result<T, RowError> {
        self.text(column).parse().map_err(|_| self.refuse(column, "a whole number, 0 or more"))
    }

    fn float(&self, column: usize, want: &'static str) -> Result<f64, RowError> {
        match self.text(column).parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(self.refuse(column, want)),
        }
    }

    fn optional_float(&self, column: usize) -> Result<Option<f64>, RowError> {
        if self.text(column).is_empty() { Ok(None) } else { self.float(column, "a finite number or empty").map(Some) }
    }

    fn refuse(&self, column: usize, want: &'static str) -> RowError {
        let name = RESULT_HEADER.split(',').nth(column).unwrap_or_default();
        RowError::Cell { line: self.line, column: name, want, got: self.text(column).to_string() }
    }
}

fn compare_floats(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.is_some().cmp(&b.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> ResultRow {
        let key = Key {
            dataset: "quadratic".into(),
            algorithm: "neuralcb".into(),
            mode: Some("B".into()),
            learning_rate: Some(0.001),
            sigma: None,
            beta: Some(0.05),
            split: None,
            behaviour: "eps-greedy:0.1".into(),
            rep: 3,
            seed: u64::MAX,
            n: 100,
        };
        ResultRow { key, suboptimality: 0.1 + 0.2, accuracy: None }
    }

    #[test]
    fn the_text_of_a_row_is_as_promised() {
        let text = to_csv(&[row()]);
        assert_eq!(
            text,
            "dataset,algorithm,mode,learning_rate,sigma,beta,split,behaviour,rep,seed,n,suboptimality,accuracy\n\
             quadratic,neuralcb,B,0.001,,0.05,,eps-greedy:0.1,3,18446744073709551615,100,0.30000000000000004,\n"
        );
        assert_eq!(from_csv(&text).unwrap(), [row()]);
        assert!(from_csv(&to_csv(&[])).unwrap().is_empty());
    }

    fn timing(dataset: &str, rep: usize) -> TimingRow {
        let key = Key {
            dataset: dataset.into(),
            algorithm: "lin-lcb".into(),
            mode: None,
            learning_rate: None,
            sigma: None,
            beta: Some(1.0),
            split: Some("disjoint".into()),
            behaviour: "uniform".into(),
            rep,
            seed: 1,
            n: 10,
        };
        TimingRow { key, train_seconds: 1.5, score_seconds: 0.25 }
    }

    #[test]
    fn the_text_of_a_timing_is_as_promised() {
        assert_eq!(
            timings_to_csv(&[timing("adult", 0)]),
            "dataset,algorithm,mode,learning_rate,sigma,beta,split,behaviour,rep,seed,n,train_seconds,score_seconds\n\
             adult,lin-lcb,,,,1,disjoint,uniform,0,1,10,1.5,0.25\n"
        );
    }

    /// SplitMix64, so that the property below sees every kind of float without a library.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn float(state: &mut u64) -> f64 {
        Some(f64::from_bits(next(state))).filter(|value| value.is_finite()).unwrap_or(-0.0)
    }

    fn maybe<T>(state: &mut u64, value: impl Fn(&mut u64) -> T) -> Option<T> {
        next(state).is_multiple_of(2).then(|| value(state))
    }

    fn name(state: &mut u64) -> String {
        let names = ["cosine", "a,b", "say \"so\"", "two\nlines", "β=1", " spaced ", "\r"];
        names[(next(state) % names.len() as u64) as usize].to_string()
    }

    #[test]
    fn any_rows_come_back_from_text_to_the_bit() {
        let mut state = 7;
        let rows: Vec<ResultRow> = (0..2000)
            .map(|_| Key {
                dataset: name(&mut state),
                algorithm: name(&mut state),
                mode: maybe(&mut state, |s| if next(s).is_multiple_of(2) { "S".into() } else { "B".into() }),
                learning_rate: maybe(&mut state, float),
                sigma: maybe(&mut state, float),
                beta: maybe(&mut state, float),
                split: maybe(&mut state, name),
                behaviour: name(&mut state),
                rep: next(&mut state) as usize,
                seed: next(&mut state),
                n: next(&mut state) as usize,
            })
            .collect::<Vec<_>>()
            .into_iter()
            .map(|key| ResultRow { key, suboptimality: float(&mut state), accuracy: maybe(&mut state, float) })
            .collect();
        let text = to_csv(&rows);
        let back = from_csv(&text).unwrap();
        assert_eq!(back, rows);
        assert_eq!(to_csv(&back), text, "the text tells 0 from -0, which == does not");
    }

    fn message(line: &str) -> String {
        from_csv(&format!("{}{line}\n", to_csv(&[row()]))).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_cell_is_named_with_line_column_and_value() {
        assert_eq!(
            message("cosine,uniform,,,,,,u,0,1,10,NaN,"),
            "line 3, column `suboptimality`: must be a finite number, got `NaN`"
        );
        assert_eq!(
            message("cosine,uniform,,,,,,u,0,1,10,inf,"),
            "line 3, column `suboptimality`: must be a finite number, got `inf`"
        );
        assert_eq!(
            message("cosine,uniform,Q,,,,,u,0,1,10,1,"),
            "line 3, column `mode`: must be `S`, `B` or empty, got `Q`"
        );
        assert_eq!(
            message("cosine,uniform,,x,,,,u,0,1,10,1,"),
            "line 3, column `learning_rate`: must be a finite number or empty, got `x`"
        );
        assert_eq!(
            message("cosine,uniform,,,,,,u,-1,1,10,1,"),
            "line 3, column `rep`: must be a whole number, 0 or more, got `-1`"
        );
        assert_eq!(message(",uniform,,,,,,u,0,1,10,1,"), "line 3, column `dataset`: must be a name, got ``");
        assert!(message("cosine,uniform").starts_with("line 3: "), "{}", message("cosine,uniform"));
    }

    #[test]
    fn a_table_of_another_kind_is_refused() {
        let error = from_csv(&timings_to_csv(&[])).unwrap_err();
        assert!(matches!(error, RowError::Header { .. }));
        assert!(matches!(from_csv("").unwrap_err(), RowError::Header { .. }));
    }

    #[test]
    fn the_canonical_order_is_the_papers_and_does_not_depend_on_the_order_of_work() {
        let key = |dataset: &str, algorithm: &str, mode: Option<&str>, beta: Option<f64>, rep, n| Key {
            dataset: dataset.into(),
            algorithm: algorithm.into(),
            mode: mode.map(str::to_string),
            beta,
            rep,
            n,
            ..row().key
        };
        let sorted = vec![
            key("quadratic", "neuralcb", None, None, 0, 10),
            key("quadratic", "neuralcb", None, Some(0.05), 0, 10),
            key("quadratic", "neuralcb", None, Some(0.1), 0, 10),
            key("quadratic", "neuralcb", Some("B"), None, 0, 9),
            key("quadratic", "neuralcb", Some("B"), None, 0, 10),
            key("quadratic", "neuralcb", Some("B"), None, 1, 9),
            key("quadratic", "neural-greedy", None, None, 0, 10),
            key("quadratic", "kern-lcb", None, None, 0, 10),
            key("quadratic", "behaviour", None, None, 0, 10),
            key("quadratic", "another", None, None, 0, 10),
            key("quadratic2", "neuralcb", None, None, 0, 10),
            key("mnist", "neuralcb", None, None, 0, 10),
            key("bank", "neuralcb", None, None, 0, 10),
            key("wine", "neuralcb", None, None, 0, 10),
        ];
        let mut shuffled: Vec<Key> = (0..sorted.len()).map(|i| sorted[i * 5 % sorted.len()].clone()).collect();
        assert_ne!(shuffled, sorted);
        shuffled.sort_by(Key::compare);
        assert_eq!(shuffled, sorted);
    }
}
