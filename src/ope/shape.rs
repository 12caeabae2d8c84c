//! What importance weights look like: how they are spread, and how heavy their tail is.

use serde::{Deserialize, Serialize};

use super::histogram::{Histogram, WeightBin};
use super::tail::{Largest, Tail};
use super::tape::Tape;
use crate::error::Error;

/// The shape of some importance weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WeightShape {
    /// Rounds whose weight is 0: the target would not have done what was done.
    pub zero: u64,
    /// The other rounds by size, half an octave each, from the smallest weight to the largest.
    pub bins: Vec<WeightBin>,
    /// The tail and its k̂; none where all weights are 0.
    pub tail: Option<Tail>,
}

/// Weights as they come: mergeable, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct WeightSums {
    histogram: Histogram,
    largest: Largest,
}

impl WeightSums {
    /// Adds a weight: a finite number ≥ 0.
    pub fn add(&mut self, weight: f64) {
        self.histogram.add(weight);
        self.largest.add(weight);
    }

    /// Adds the weights of another part.
    pub fn merge(&mut self, other: &WeightSums) {
        self.histogram.merge(&other.histogram);
        self.largest.merge(&other.largest);
    }

    /// What they look like.
    pub fn shape(&self) -> WeightShape {
        WeightShape { zero: self.histogram.zero(), bins: self.histogram.bins(), tail: self.largest.tail() }
    }

    /// Keeps the weights of so many rounds.
    pub(crate) fn keep(&mut self, tape: &mut Tape<'_>, rounds: u64) -> Result<(), Error> {
        self.histogram.keep(tape, rounds)?;
        self.largest.keep(tape, rounds)
    }
}
