//! How importance weights are spread: how many are 0, and how many lie in each half octave.
//!
//! Bins do not depend on the log, so that parts of it merge: bin j holds the weights in [2^(j/2), 2^((j+1)/2)).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tape::Tape;
use crate::error::Error;

/// The bins of the least normal double, which takes what is below it as well, and of 1e100 times 2^53.
const LOWEST: i32 = -2044;
const HIGHEST: i32 = 772;

/// Some weights of a similar size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightBin {
    /// The least weight that it would hold.
    pub low: f64,
    /// It holds weights below this one.
    pub high: f64,
    /// Rounds with such a weight.
    pub rounds: u64,
}

/// Counts of weights by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Histogram {
    zero: u64,
    bins: BTreeMap<i32, u64>,
}

/// j with 2^(j/2) ≤ w < 2^((j+1)/2), for w > 0: from the bits, so that it is the same everywhere.
fn bin(w: f64) -> i32 {
    if w < f64::MIN_POSITIVE {
        return LOWEST;
    }
    let exponent = (w.to_bits() >> 52) as i32 - 1023;
    let fraction = f64::from_bits(w.to_bits() & ((1 << 52) - 1) | 1023 << 52);
    2 * exponent + i32::from(fraction >= std::f64::consts::SQRT_2)
}

/// 2^(j/2).
fn edge(j: i32) -> f64 {
    let half = 2f64.powi(j.div_euclid(2));
    if j.rem_euclid(2) == 0 { half } else { half * std::f64::consts::SQRT_2 }
}

impl Histogram {
    pub fn add(&mut self, w: f64) {
        if w > 0.0 {
            *self.bins.entry(bin(w)).or_default() += 1;
        } else {
            self.zero += 1;
        }
    }

    pub fn merge(&mut self, other: &Histogram) {
        self.zero += other.zero;
        other.bins.iter().for_each(|(&j, n)| *self.bins.entry(j).or_default() += n);
    }

    /// Rounds whose weight is 0.
    pub fn zero(&self) -> u64 {
        self.zero
    }

    /// All bins from the lowest to the highest that holds a weight.
    pub fn bins(&self) -> Vec<WeightBin> {
        let (Some((&first, _)), Some((&last, _))) = (self.bins.first_key_value(), self.bins.last_key_value()) else {
            return Vec::new();
        };
        let of = |j| WeightBin { low: edge(j), high: edge(j + 1), rounds: self.bins.get(&j).copied().unwrap_or(0) };
        (first..=last).map(of).collect()
    }

    /// Keeps the counts of so many rounds.
    pub fn keep(&mut self, tape: &mut Tape<'_>, rounds: u64) -> Result<(), Error> {
        tape.number(&mut self.zero, rounds)?;
        let mut pairs: Vec<(u64, u64)> = self.bins.iter().map(|(&j, &n)| ((j - LOWEST) as u64, n)).collect();
        tape.list(&mut pairs, |tape, (j, n)| {
            tape.number(j, (HIGHEST - LOWEST) as u64)?;
            tape.number(n, rounds)
        })?;
        let sorted = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        self.bins = pairs.into_iter().map(|(j, n)| (j as i32 + LOWEST, n)).collect();
        let counted = self.bins.values().try_fold(self.zero, |sum, &n| sum.checked_add(n));
        tape.check(sorted && counted == Some(rounds), "a weight of each round")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_lies_in_its_bin() {
        let weights = [f64::MIN_POSITIVE, 1e-300, 1e-9, 0.5, 0.7, 0.71, 0.999, 1.0, 1.41, 1.42, 2.0, 3.0, 1e100];
        for w in weights {
            let j = bin(w);
            assert!(edge(j) <= w && w < edge(j + 1), "{w} in {j}: [{}, {})", edge(j), edge(j + 1));
            assert!((LOWEST..=HIGHEST).contains(&j));
        }
        assert_eq!(bin(5e-324), LOWEST);
        assert_eq!([0.5, 0.8, 1.0, 1.5, 2.0].map(bin), [-2, -1, 0, 1, 2]);
    }

    #[test]
    fn counts_are_those_by_hand() {
        let mut histogram = Histogram::default();
        [0.0, 0.5, 1.0, 1.2, 1.5, 0.0, 3.9].into_iter().for_each(|w| histogram.add(w));
        assert_eq!(histogram.zero(), 2);
        let counts: Vec<u64> = histogram.bins().iter().map(|bin| bin.rounds).collect();
        assert_eq!(counts, [1, 0, 2, 1, 0, 1]); // from 0.5, 0.71, 1, 1.41, 2, 2.83
        let (mut left, mut right) = (Histogram::default(), Histogram::default());
        [0.0, 0.5, 1.0, 1.2].into_iter().for_each(|w| left.add(w));
        [1.5, 0.0, 3.9].into_iter().for_each(|w| right.add(w));
        right.merge(&left);
        assert_eq!(right, histogram);
    }
}
