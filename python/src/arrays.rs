//! Rounds in numpy's memory, read as a log: nothing is copied but the block that is being worked on.

use neuralcb::{Column as At, Error};
use neuralcb_logs::log::{
    BLOCK, Block, Categories, LogError, Missing, Offered, Place, ReadBlocks, ReadLog, Schema, Values, sha256_of_values,
};
use numpy::ndarray::{ArrayView1, s};
use rayon::prelude::*;
use std::ops::Range;

/// A feature.
pub enum Column<'a> {
    F32(ArrayView1<'a, f32>),
    F64(ArrayView1<'a, f64>),
    Words { codes: ArrayView1<'a, u32>, names: Vec<String> },
}

impl Column<'_> {
    pub fn len(&self) -> usize {
        match self {
            Column::F32(v) => v.len(),
            Column::F64(v) => v.len(),
            Column::Words { codes, .. } => codes.len(),
        }
    }

    /// Appends some rows.
    fn append(&self, rows: Range<usize>, values: &mut Values) {
        let rows = s![rows];
        match (self, values) {
            (Column::F32(v), Values::Numbers(to)) => to.extend(v.slice(rows).iter().map(|&v| f64::from(v))),
            (Column::F64(v), Values::Numbers(to)) => to.extend(v.slice(rows).iter()),
            (Column::Words { codes, .. }, Values::Categories(to)) => to.codes.extend(codes.slice(rows).iter()),
            _ => {}
        }
    }

    /// The values of no row.
    fn empty(&self, n_rows: usize) -> Values {
        match self {
            Column::F32(_) | Column::F64(_) => Values::Numbers(Vec::with_capacity(n_rows)),
            Column::Words { names, .. } => {
                Values::Categories(Categories { codes: Vec::with_capacity(n_rows), names: names.clone() })
            }
        }
    }
}

/// A number that no model may see: its row, its feature, its value.
struct Bad {
    row: usize,
    index: usize,
    got: f64,
}

/// Rows that are read at a time: a matrix has its columns side by side, and so much of it stays in the cache for all of
/// them.
const TILE: usize = 512;

/// Below so many numbers threads cost more than they bring.
const FEW: usize = 1 << 14;

/// Some rows of all columns, on all threads.
fn values(columns: &[Column<'_>], rows: Range<usize>, missing: Missing) -> Result<Vec<Values>, Bad> {
    let threads = if columns.len() * rows.len() < FEW { 1 } else { rayon::current_num_threads() };
    let share = columns.len().div_ceil(threads).max(1);
    let parts = columns.par_chunks(share).enumerate().map(|(part, columns)| {
        tiled(columns, rows.clone(), missing).map_err(|bad| Bad { index: bad.index + part * share, ..bad })
    });
    if threads == 1 {
        return tiled(columns, rows, missing);
    }
    Ok(parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn tiled(columns: &[Column<'_>], rows: Range<usize>, missing: Missing) -> Result<Vec<Values>, Bad> {
    let good = |v: f64| v.is_finite() || v.is_nan() && missing == Missing::Mean;
    let mut values: Vec<Values> = columns.iter().map(|column| column.empty(rows.len())).collect();
    for first in rows.clone().step_by(TILE) {
        let tile = first..(first + TILE).min(rows.end);
        for (index, (column, values)) in columns.iter().zip(&mut values).enumerate() {
            column.append(tile.clone(), values);
            let Values::Numbers(numbers) = values else { continue };
            let added = &numbers[first - rows.start..];
            if !added.iter().fold(true, |all, &v| all & good(v))
                && let Some(at) = added.iter().position(|&v| !good(v))
            {
                return Err(Bad { row: first + at, index, got: added[at] });
            }
        }
    }
    Ok(values)
}

/// What rounds offer: pairs of round t are `offsets[t]..offsets[t + 1]`, with their actions and features.
pub struct Listing<'a> {
    pub offsets: ArrayView1<'a, u64>,
    pub actions: ArrayView1<'a, u32>,
    pub features: Vec<Column<'a>>,
}

/// What came of the rounds.
pub struct Outcome<'a> {
    pub chosen: ArrayView1<'a, u32>,
    pub rewards: ArrayView1<'a, f64>,
    pub propensities: Option<ArrayView1<'a, f64>>,
}

/// A log in memory.
pub struct ArrayLog<'a> {
    pub schema: Schema,
    pub n_rounds: usize,
    pub shared: Vec<Column<'a>>,
    pub listing: Option<Listing<'a>>,
    /// The names of all actions; codes are places in this list.
    pub actions: Vec<String>,
    pub outcome: Option<Outcome<'a>>,
}

impl ArrayLog<'_> {
    /// Refuses sizes that do not agree and outcomes that no model may see, with the number of the round. Features are
    /// checked when they are read.
    pub fn check(&self) -> Result<(), Error> {
        let n = self.n_rounds;
        let size = |what, expected: usize, got: usize| {
            if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
        };
        self.shared.iter().try_for_each(|column| size("contexts", n, column.len()))?;
        if let Some(listing) = &self.listing {
            self.check_listing(listing)?;
        }
        let Some(outcome) = &self.outcome else { return Ok(()) };
        size("actions", n, outcome.chosen.len())?;
        size("rewards", n, outcome.rewards.len())?;
        for (round, &got) in outcome.rewards.iter().enumerate() {
            if !got.is_finite() {
                return Err(Error::Value { round, column: At::Reward, range: "a finite number", got });
            }
        }
        if let Some(propensities) = &outcome.propensities {
            size("propensities", n, propensities.len())?;
            if let Some((round, &got)) = propensities.iter().enumerate().find(|(_, p)| !(**p > 0.0 && **p <= 1.0)) {
                return Err(Error::Value { round, column: At::Propensity, range: "in (0, 1]", got });
            }
        }
        for (round, &code) in outcome.chosen.iter().enumerate() {
            let (action, n_actions) = (code as usize, self.actions.len());
            if action >= n_actions {
                return Err(Error::ActionRange { round, action, n_actions });
            }
            if let Some(listing) = &self.listing
                && !listing.pairs(round..round + 1).any(|pair| listing.actions[pair] == code)
            {
                let offered = listing.pairs(round..round + 1).len();
                return Err(Error::NotEligible { round, action, offered });
            }
        }
        Ok(())
    }

    fn check_listing(&self, listing: &Listing<'_>) -> Result<(), Error> {
        let (n, pairs) = (self.n_rounds, listing.actions.len());
        if listing.offsets.len() != n + 1 {
            return Err(Error::Shape {
                what: "rounds of the eligible actions",
                expected: n,
                got: listing.offsets.len(),
            });
        }
        for round in 0..n {
            if listing.offsets[round] >= listing.offsets[round + 1] {
                let range = "at least one action";
                return Err(Error::Value { round, column: At::Eligible, range, got: 0.0 });
            }
        }
        if listing.offsets[n] as usize != pairs {
            let expected = listing.offsets[n] as usize;
            return Err(Error::Shape { what: "eligible actions", expected, got: pairs });
        }
        for column in &listing.features {
            if column.len() != pairs {
                return Err(Error::Shape { what: "contexts of the actions", expected: pairs, got: column.len() });
            }
        }
        Ok(())
    }

    /// Some of the rounds. Refuses features that no model may see.
    pub fn block(&self, rounds: Range<usize>) -> Result<Block, LogError> {
        let refuse = |round, action, Bad { index, got, .. }: Bad| {
            let column = At::Feature { action, index };
            LogError::Values(Error::Value { round, column, range: "a finite number", got })
        };
        let missing = self.schema.missing;
        let shared = values(&self.shared, rounds.clone(), missing).map_err(|bad| refuse(bad.row, None, bad))?;
        let offered = match &self.listing {
            None => Offered::All,
            Some(listing) => {
                let pairs = listing.pairs(rounds.clone());
                let offset = |t: usize| listing.offsets[t] as usize - pairs.start;
                let features = values(&listing.features, pairs.clone(), missing).map_err(|bad| {
                    let round = rounds.clone().find(|&t| listing.offsets[t + 1] as usize > bad.row);
                    refuse(round.unwrap_or(rounds.end), Some(listing.actions[bad.row] as usize), bad)
                })?;
                Offered::Listed {
                    offsets: (rounds.start..=rounds.end).map(offset).collect(),
                    actions: self.names(listing.actions.slice(s![pairs]).to_vec()),
                    features,
                }
            }
        };
        let outcome = self.outcome.as_ref();
        let of = |v: &ArrayView1<'_, f64>| rounds.clone().map(|t| v[t]).collect::<Vec<_>>();
        Ok(Block {
            places: rounds.clone().map(|t| Place { file: 0, line: t as u64 + 1 }).collect(),
            shared,
            offered,
            chosen: outcome.map(|o| self.names(rounds.clone().map(|t| o.chosen[t]).collect())),
            rewards: outcome.map(|o| of(&o.rewards)),
            propensities: outcome.and_then(|o| o.propensities.as_ref().map(of)),
            counts: None,
            extra: Vec::new(),
        })
    }

    /// The ranges of rounds that make a block each.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let n = self.n_rounds;
        (0..n).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(n))
    }

    fn names(&self, codes: Vec<u32>) -> Categories {
        Categories { codes, names: self.actions.clone() }
    }
}

impl Listing<'_> {
    fn pairs(&self, rounds: Range<usize>) -> Range<usize> {
        self.offsets[rounds.start] as usize..self.offsets[rounds.end] as usize
    }
}

impl ReadLog for ArrayLog<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self) -> ReadBlocks<'_> {
        Box::new(self.ranges().map(|rounds| self.block(rounds)))
    }

    fn actions(&self) -> Vec<String> {
        self.actions.clone()
    }

    fn bad_rows(&self) -> u64 {
        0
    }

    fn parts(&self) -> Vec<String> {
        Vec::new()
    }

    fn digest(&self) -> Result<String, LogError> {
        sha256_of_values(self.read())
    }
}
