//! What the features of a log look like: range, missing values, and whether they can teach anything.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::moments::Moments;
use super::repeats::of_word;
use crate::log::Values;

/// Different values that are counted; more are only called more.
pub(super) const COUNTED: usize = 1000;

/// One feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureReport {
    /// Its name.
    pub name: String,
    /// Whether it is one of an action rather than of a round.
    pub per_action: bool,
    /// Whether it is words rather than numbers.
    pub category: bool,
    /// Values that are not there.
    pub missing: u64,
    /// How many different values, up to 1,000.
    pub different: usize,
    /// The smallest number.
    pub min: Option<f64>,
    /// The mean of the numbers.
    pub mean: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// The correlation of a round's number with its reward.
    pub correlation: Option<f64>,
}

impl FeatureReport {
    /// Whether there is only one value.
    pub fn is_constant(&self) -> bool {
        self.missing == 0 && self.different <= 1
    }
}

/// What is summed for a feature.
#[derive(Debug, Clone, Default)]
pub(super) struct FeatureSums {
    category: bool,
    missing: u64,
    values: HashSet<u64>,
    numbers: Moments,
    /// Rewards of the rounds where the number is there, and Σ(x − x̄)(r − r̄).
    rewards: Moments,
    together: f64,
    last: Option<f64>,
    not_increasing: bool,
}

impl FeatureSums {
    /// Adds some values, with the rewards of their rounds where each is a round's.
    pub fn add(&mut self, values: &Values, rewards: Option<&[f64]>) {
        match values {
            Values::Numbers(numbers) => {
                for (t, &x) in numbers.iter().enumerate() {
                    if x.is_nan() {
                        self.missing += 1;
                        continue;
                    }
                    self.not_increasing |= self.last.replace(x).is_some_and(|last| x <= last);
                    if self.values.len() < COUNTED {
                        self.values.insert((x + 0.0).to_bits()); // −0 is 0
                    }
                    if let Some(rewards) = rewards {
                        let off = x - self.numbers.mean;
                        self.rewards.push(rewards[t], 1.0);
                        self.numbers.push(x, 1.0);
                        self.together += off * (rewards[t] - self.rewards.mean);
                    } else {
                        self.numbers.push(x, 1.0);
                    }
                }
            }
            Values::Categories(words) => {
                self.category = true;
                let hashes: Vec<u64> = words.names.iter().map(|name| of_word(name)).collect();
                let mut used = vec![false; hashes.len()];
                for &code in &words.codes {
                    match used.get_mut(code as usize) {
                        Some(used) => *used = true,
                        None => self.missing += 1,
                    }
                }
                let hashes = hashes.iter().zip(used).filter(|(_, used)| *used).map(|(hash, _)| *hash);
                hashes.for_each(|hash| {
                    if self.values.len() < COUNTED {
                        self.values.insert(hash);
                    }
                });
            }
        }
    }

    /// Whether it is a number that rises from each round to the next, as an index or a time does.
    pub fn is_index(&self) -> bool {
        !self.category && !self.not_increasing && self.numbers.n > 10.0
    }

    /// Whether it is a number with so many values that whole rounds hardly repeat by chance.
    pub fn is_fine(&self) -> bool {
        !self.category && self.values.len() >= COUNTED
    }

    pub fn report(&self, name: &str, per_action: bool) -> FeatureReport {
        let there = !self.category && self.numbers.n > 0.0;
        let spread = self.numbers.deviation() * self.rewards.deviation() * self.numbers.n;
        FeatureReport {
            name: name.to_owned(),
            per_action,
            category: self.category,
            missing: self.missing,
            different: self.values.len(),
            min: there.then_some(self.numbers.min),
            mean: there.then_some(self.numbers.mean),
            max: there.then_some(self.numbers.max),
            correlation: (there && spread > 0.0).then(|| self.together / spread).filter(|c| c.is_finite()),
        }
    }
}
