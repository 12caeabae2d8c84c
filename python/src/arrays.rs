//! Rounds in numpy's memory, read as a log: nothing is copied but the block that is being worked on.

use neuralcb::{Column as At, Error};
use neuralcb_logs::log::{
    BLOCK, Block, Categories, LogError, Missing, Offered, Place, ReadBlocks, ReadLog, Schema, Values, sha256_of_values,
};
use numpy::ndarray::ArrayView1;
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

    fn values(&self, rows: Range<usize>) -> Values {
        match self {
            Column::F32(v) => Values::Numbers(rows.map(|i| f64::from(v[i])).collect()),
            Column::F64(v) => Values::Numbers(rows.map(|i| v[i]).collect()),
            Column::Words { codes, names } => {
                Values::Categories(Categories { codes: rows.map(|i| codes[i]).collect(), names: names.clone() })
            }
        }
    }

    /// The first number that is not finite, with its row; one that is not there may be allowed.
    fn bad(&self, missing: Missing) -> Option<(usize, f64)> {
        let bad = |v: f64| !(v.is_finite() || v.is_nan() && missing == Missing::Mean);
        match self {
            Column::F32(v) => v.iter().map(|&v| f64::from(v)).enumerate().find(|&(_, v)| bad(v)),
            Column::F64(v) => v.iter().copied().enumerate().find(|&(_, v)| bad(v)),
            Column::Words { .. } => None,
        }
    }
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
    /// Refuses sizes that do not agree and values that no model may see, with the number of the round.
    pub fn check(&self) -> Result<(), Error> {
        let n = self.n_rounds;
        let size = |what, expected: usize, got: usize| {
            if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
        };
        self.shared.iter().try_for_each(|column| size("contexts", n, column.len()))?;
        let missing = self.schema.missing;
        for (index, column) in self.shared.iter().enumerate() {
            if let Some((round, got)) = column.bad(missing) {
                let column = At::Feature { action: None, index };
                return Err(Error::Value { round, column, range: "a finite number", got });
            }
        }
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
        for (index, column) in listing.features.iter().enumerate() {
            if column.len() != pairs {
                return Err(Error::Shape { what: "contexts of the actions", expected: pairs, got: column.len() });
            }
            if let Some((pair, got)) = column.bad(self.schema.missing) {
                let round = (0..n).find(|&t| (listing.offsets[t + 1] as usize) > pair).unwrap_or(n);
                let column = At::Feature { action: Some(listing.actions[pair] as usize), index };
                return Err(Error::Value { round, column, range: "a finite number", got });
            }
        }
        Ok(())
    }

    /// Some of the rounds.
    pub fn block(&self, rounds: Range<usize>) -> Block {
        let columns = |columns: &[Column<'_>], rows: Range<usize>| -> Vec<Values> {
            columns.iter().map(|column| column.values(rows.clone())).collect()
        };
        let offered = self.listing.as_ref().map_or(Offered::All, |listing| {
            let pairs = listing.pairs(rounds.clone());
            let offset = |t: usize| listing.offsets[t] as usize - pairs.start;
            Offered::Listed {
                offsets: (rounds.start..=rounds.end).map(offset).collect(),
                actions: self.names(pairs.clone().map(|pair| listing.actions[pair]).collect()),
                features: columns(&listing.features, pairs.clone()),
            }
        });
        let outcome = self.outcome.as_ref();
        let of = |v: &ArrayView1<'_, f64>| rounds.clone().map(|t| v[t]).collect::<Vec<_>>();
        Block {
            places: rounds.clone().map(|t| Place { file: 0, line: t as u64 + 1 }).collect(),
            shared: columns(&self.shared, rounds.clone()),
            offered,
            chosen: outcome.map(|o| self.names(rounds.clone().map(|t| o.chosen[t]).collect())),
            rewards: outcome.map(|o| of(&o.rewards)),
            propensities: outcome.and_then(|o| o.propensities.as_ref().map(of)),
            counts: None,
            extra: Vec::new(),
        }
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
        Box::new(self.ranges().map(|rounds| Ok(self.block(rounds))))
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
