//! The first half of a log against the second, in one pass and bounded memory.
//!
//! How long a log is shows at its end. So the rounds are summed in at most 64 segments of equal length; when these are
//! full, neighbours are merged and segments become twice as long. At the end the log is parted between two segments,
//! within 1/64 of its middle.
//!
//! Tests: means by z = (m₁ − m₂)/√(s₁²/n₁ + s₂²/n₂); shares of words by Pearson's χ² on a 2×16 table of hashed words,
//! of actions on a table of the first 255 actions and the rest; cells whose expected count is under 5 are pooled. Each
//! p-value is multiplied by the number of tests (Bonferroni), so that a log without drift gives any finding at all with
//! probability at most [`LEVEL`].

use serde::{Deserialize, Serialize};
use statrs::function::{erf::erfc, gamma::checked_gamma_ur};

use super::moments::Moments;
use super::repeats::of_word;
use crate::log::{Block, Values};

const SEGMENTS: usize = 64;
const FIRST_LENGTH: u64 = 128;
/// Cells of a table of words.
const CELLS: usize = 16;
/// Cells of the table of actions.
const ACTIONS: usize = 256;
/// Corrected p-values below this are reported.
pub(super) const LEVEL: f64 = 0.01;
/// Fewer rounds than this in a half are not compared.
const ENOUGH: f64 = 30.0;

/// A difference between the halves of a log that chance does not explain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// What has changed: `reward`, `action shares`, or a feature's name.
    pub of: String,
    /// Its mean in the first half; absent for words and actions.
    pub first: Option<f64>,
    /// Its mean in the second half.
    pub second: Option<f64>,
    /// How much: the difference of means in standard deviations, or the total variation distance of shares.
    pub effect: f64,
    /// The probability of such a difference without drift, multiplied by the number of tests.
    pub p_value: f64,
}

/// What the comparison of the halves found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Halves {
    /// Rounds in the first and in the second half.
    pub rounds: [u64; 2],
    /// How many comparisons were made.
    pub tests: usize,
    /// Those that chance does not explain, the surest first.
    pub drift: Vec<Drift>,
}

#[derive(Debug, Clone)]
enum Column {
    Numbers(Moments),
    Words([u64; CELLS]),
}

#[derive(Debug, Clone, Default)]
struct Segment {
    rounds: u64,
    reward: Moments,
    actions: Vec<u64>,
    columns: Vec<Column>,
}

impl Segment {
    fn merge(&mut self, other: &Segment) {
        self.rounds += other.rounds;
        self.reward.merge(&other.reward);
        if self.actions.len() < other.actions.len() {
            self.actions.resize(other.actions.len(), 0);
        }
        self.actions.iter_mut().zip(&other.actions).for_each(|(to, n)| *to += n);
        if self.columns.is_empty() {
            self.columns.clone_from(&other.columns);
            return;
        }
        for pair in self.columns.iter_mut().zip(&other.columns) {
            match pair {
                (Column::Numbers(to), Column::Numbers(from)) => to.merge(from),
                (Column::Words(to), Column::Words(from)) => to.iter_mut().zip(from).for_each(|(to, n)| *to += n),
                _ => {} // a schema gives a column one kind
            }
        }
    }
}

/// The segments so far.
#[derive(Debug)]
pub(super) struct Segments {
    length: u64,
    list: Vec<Segment>,
}

impl Segments {
    pub fn new() -> Self {
        Segments { length: FIRST_LENGTH, list: Vec::new() }
    }

    /// Adds a block whose chosen actions have these numbers.
    pub fn add(&mut self, block: &Block, actions: &[usize], rewards: &[f64]) {
        let cells: Vec<Vec<usize>> = block.shared.iter().map(word_cells).collect();
        let mut start = 0;
        while start < rewards.len() {
            let room = self.room();
            let end = rewards.len().min(start + usize::try_from(room).unwrap_or(usize::MAX));
            let Some(segment) = self.list.last_mut() else { return };
            segment.rounds += (end - start) as u64;
            for t in start..end {
                segment.reward.push(rewards[t], 1.0);
                let cell = actions[t].min(ACTIONS - 1);
                if segment.actions.len() <= cell {
                    segment.actions.resize(cell + 1, 0);
                }
                segment.actions[cell] += 1;
            }
            if segment.columns.is_empty() {
                segment.columns = block.shared.iter().map(empty_column).collect();
            }
            for ((column, values), cells) in segment.columns.iter_mut().zip(&block.shared).zip(&cells) {
                match (column, values) {
                    (Column::Numbers(to), Values::Numbers(xs)) => {
                        xs[start..end].iter().filter(|x| !x.is_nan()).for_each(|&x| to.push(x, 1.0));
                    }
                    (Column::Words(to), Values::Categories(words)) => {
                        let known = words.codes[start..end].iter().filter_map(|&code| cells.get(code as usize));
                        known.for_each(|&cell| to[cell] += 1);
                    }
                    _ => {}
                }
            }
            start = end;
        }
    }

    /// How many rounds the last segment can still take; makes one where there is none.
    fn room(&mut self) -> u64 {
        if self.list.last().is_some_and(|last| last.rounds < self.length) {
            return self.length - self.list.last().map_or(0, |last| last.rounds);
        }
        if self.list.len() == SEGMENTS {
            for i in 0..SEGMENTS / 2 {
                let mut merged = std::mem::take(&mut self.list[2 * i]);
                merged.merge(&self.list[2 * i + 1]);
                self.list[i] = merged;
            }
            self.list.truncate(SEGMENTS / 2);
            self.length *= 2;
        }
        self.list.push(Segment::default());
        self.length
    }

    /// The comparison; `names` of the shared features.
    pub fn compare(&self, names: &[String]) -> Halves {
        let total: u64 = self.list.iter().map(|segment| segment.rounds).sum();
        let (mut first, mut second) = (Segment::default(), Segment::default());
        for segment in &self.list {
            // The segment goes where its middle lies, and all after it to the second half.
            let early = second.rounds == 0 && 2 * first.rounds + segment.rounds <= total;
            if early { first.merge(segment) } else { second.merge(segment) }
        }
        let mut found: Vec<Drift> = Vec::new();
        found.extend(means("reward", &first.reward, &second.reward));
        found.extend(shares("action shares", &first.actions, &second.actions));
        for ((name, a), b) in names.iter().zip(&first.columns).zip(&second.columns) {
            match (a, b) {
                (Column::Numbers(a), Column::Numbers(b)) => found.extend(means(name, a, b)),
                (Column::Words(a), Column::Words(b)) => found.extend(shares(name, a, b)),
                _ => {}
            }
        }
        let tests = found.len();
        found.iter_mut().for_each(|drift| drift.p_value = (drift.p_value * tests as f64).min(1.0));
        found.retain(|drift| drift.p_value < LEVEL);
        found.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.effect.total_cmp(&a.effect)));
        Halves { rounds: [first.rounds, second.rounds], tests, drift: found }
    }
}

fn empty_column(values: &Values) -> Column {
    match values {
        Values::Numbers(_) => Column::Numbers(Moments::default()),
        Values::Categories(_) => Column::Words([0; CELLS]),
    }
}

/// The cell of each name.
fn word_cells(values: &Values) -> Vec<usize> {
    match values {
        Values::Numbers(_) => Vec::new(),
        Values::Categories(words) => words.names.iter().map(|name| (of_word(name) % CELLS as u64) as usize).collect(),
    }
}

/// The test of two means; none where there are too few numbers, or only one.
fn means(of: &str, a: &Moments, b: &Moments) -> Option<Drift> {
    if a.n < ENOUGH || b.n < ENOUGH {
        return None;
    }
    let error = (a.variance() / (a.n - 1.0) + b.variance() / (b.n - 1.0)).sqrt();
    let mut both = *a;
    both.merge(b);
    if both.is_constant() {
        return None;
    }
    let z = (a.mean - b.mean).abs() / error; // infinite where each half is constant
    Some(Drift {
        of: of.to_owned(),
        first: Some(a.mean),
        second: Some(b.mean),
        effect: (a.mean - b.mean).abs() / both.deviation(),
        p_value: erfc(z / std::f64::consts::SQRT_2),
    })
}

/// The test of two tables of counts.
fn shares(of: &str, a: &[u64], b: &[u64]) -> Option<Drift> {
    let at = |counts: &[u64], i: usize| counts.get(i).copied().unwrap_or(0) as f64;
    let (na, nb) = (a.iter().sum::<u64>() as f64, b.iter().sum::<u64>() as f64);
    if na < ENOUGH || nb < ENOUGH {
        return None;
    }
    let (mut statistic, mut cells, mut distance) = (0.0, 0usize, 0.0);
    let mut cell = |x: f64, y: f64| {
        for (got, n) in [(x, na), (y, nb)] {
            let expected = (x + y) * n / (na + nb);
            statistic += (got - expected) * (got - expected) / expected;
        }
        cells += 1;
    };
    let mut rare = (0.0, 0.0);
    for i in 0..a.len().max(b.len()) {
        let (x, y) = (at(a, i), at(b, i));
        distance += (x / na - y / nb).abs() / 2.0;
        if (x + y) * na.min(nb) / (na + nb) < 5.0 {
            rare = (rare.0 + x, rare.1 + y);
        } else {
            cell(x, y);
        }
    }
    if rare.0 + rare.1 > 0.0 {
        cell(rare.0, rare.1);
    }
    if cells < 2 {
        return None;
    }
    let p_value = checked_gamma_ur((cells - 1) as f64 / 2.0, statistic / 2.0).ok()?;
    Some(Drift { of: of.to_owned(), first: None, second: None, effect: distance, p_value })
}
