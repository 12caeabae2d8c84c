//! Tabular regression: greedy (Yin & Wang 2020) at β = 0, pessimistic (Rashidinejad et al. 2021) at β > 0.
//!
//! mean(s, a) = (1/N(s, a)) Σ r,  width(s, a) = 1/√N(s, a);  of what was never seen the mean is 0 and the width
//! `unseen_width`
//!
//! A state is a context as it stands, or the cell of a grid in which it lies. Where every action has its own vector,
//! that vector decides the reward and is the state; with disjoint encoding a state is a context together with its
//! action. Rashidinejad's penalty √(L/N) is β = √L; for rewards in [0, 1] their penalty of the unseen is
//! 1 = β·`unseen_width`. Observe and estimate O(d) per pair.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Learner, RewardModel};
use crate::archive::Archive;
use crate::data::{Contexts, Layout, Pair};
use crate::error::{Error, not_negative};

/// Settings of the table.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `cell` | 0 | side of a grid cell; 0: two contexts are one state if they are equal | ≥ 0 |
/// | `unseen_width` | 1 | width of what was never seen | ≥ 0 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TabularConfig {
    /// Side of a grid cell; 0 for none.
    pub cell: f64,
    /// Width of what was never seen.
    pub unseen_width: f64,
}

impl Default for TabularConfig {
    fn default() -> Self {
        TabularConfig { cell: 0.0, unseen_width: 1.0 }
    }
}

/// The table in training.
#[derive(Debug, Clone)]
pub struct Tabular {
    table: Table,
}

/// The block of the action and the cell of every feature.
type State = (usize, Vec<i64>);

#[derive(Debug, Clone)]
struct Table {
    config: TabularConfig,
    layout: Layout,
    /// N and Σ r of every state seen.
    cells: HashMap<State, (f64, f64)>,
}

impl Tabular {
    /// Checks the settings.
    pub fn new(config: TabularConfig, layout: Layout) -> Result<Self, Error> {
        not_negative("cell", config.cell)?;
        not_negative("unseen_width", config.unseen_width)?;
        Ok(Tabular { table: Table { config, layout, cells: HashMap::new() } })
    }
}

impl Table {
    fn state(&self, pair: Pair<'_>) -> State {
        let cell = self.config.cell;
        // + 0.0: the two zeros of floating point are one state
        let exact = |x: f32| i64::from((x + 0.0).to_bits());
        let of = |&x: &f32| if cell > 0.0 { (f64::from(x) / cell).floor() as i64 } else { exact(x) };
        (self.layout.block(pair.action), pair.x.iter().map(of).collect())
    }
}

impl Learner for Tabular {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        let state = self.table.state(chosen);
        let (count, sum) = self.table.cells.entry(state).or_insert((0.0, 0.0));
        *count += 1.0;
        *sum += reward;
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        let d = self.table.layout.dim;
        let mut cells: Vec<(&State, &(f64, f64))> = self.table.cells.iter().collect();
        cells.sort_unstable_by_key(|(state, _)| *state);
        // a cell's number is an i64, and arrays hold its bits
        let mut places: Vec<u64> = cells.iter().flat_map(|((_, x), _)| x).map(|&x| x.cast_unsigned()).collect();
        let mut blocks: Vec<u64> = cells.iter().map(|((block, _), _)| *block as u64).collect();
        let mut sums: Vec<f64> = cells.iter().flat_map(|(_, (count, sum))| [*count, *sum]).collect();
        archive.list("table.block", 1, &mut blocks)?;
        archive.list("table.cell", d, &mut places)?;
        archive.list("table.count_sum", 2, &mut sums)?;
        for got in [places.len() / d, sums.len() / 2] {
            if got != blocks.len() {
                return Err(Error::Shape { what: "states of the table", expected: blocks.len(), got });
            }
        }
        if let Some(bad) = sums.iter().step_by(2).find(|&&count| count < 1.0) {
            let (name, want) = ("table.count_sum".to_owned(), "counts of at least 1".to_owned());
            return Err(Error::Array { name, want, got: bad.to_string() });
        }
        if archive.is_reading() {
            let state = |(&block, x): (&u64, &[u64])| (block as usize, x.iter().map(|x| x.cast_signed()).collect());
            let states = blocks.iter().zip(places.chunks_exact(d)).map(state);
            self.table.cells = states.zip(sums.chunks_exact(2).map(|sum| (sum[0], sum[1]))).collect();
        }
        Ok(())
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        Ok(Arc::new(self.table.clone()))
    }
}

impl RewardModel for Table {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let first = contexts.first_pair(rounds.start);
        for round in rounds {
            for (place, pair) in contexts.pairs(round).enumerate() {
                let seen = self.cells.get(&self.state(contexts.pair(round, place)));
                (mean[pair - first], width[pair - first]) = match seen {
                    Some((count, sum)) => (sum / count, 1.0 / count.sqrt()),
                    None => (0.0, self.config.unseen_width),
                };
            }
        }
    }
}
