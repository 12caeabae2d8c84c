//! Rounds that come again, in bounded memory.
//!
//! Each round is hashed to 64 bits; the hashes of the first [`KEPT`] different rounds are kept. Later rounds are still
//! looked up, so the count is exact for logs of up to that many different rounds, and a lower bound for longer ones.
//! Two different rounds have one hash with a probability of about 2⁻⁴⁴ per round: no log is long enough to notice.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::log::{Block, Offered, Values};

/// How many different rounds are remembered (some 19 MB).
pub(super) const KEPT: usize = 1 << 20;

/// The number of repeated rounds.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    seen: HashSet<u64, BuildHasherDefault<AsIs>>,
    pub count: u64,
    /// Whether every round could be compared with all before it.
    pub complete: bool,
}

impl Repeats {
    pub fn new() -> Self {
        Repeats { complete: true, ..Repeats::default() }
    }

    pub fn add(&mut self, block: &Block) {
        for hash in hashes(block) {
            if self.seen.contains(&hash) {
                self.count += 1;
            } else if self.seen.len() < KEPT {
                self.seen.insert(hash);
            } else {
                self.complete = false;
            }
        }
    }
}

/// A value that is a hash already.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.0 = mix(self.0, u64::from(b)));
    }

    fn write_u64(&mut self, v: u64) {
        self.0 = v;
    }
}

/// One step of a hash: the finalizer of splitmix64 (Steele, Lea and Flood 2014) on state and value.
fn mix(state: u64, value: u64) -> u64 {
    let mut z = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The hash of a word.
pub(super) fn of_word(word: &str) -> u64 {
    let mut hash = AsIs::default();
    word.hash(&mut hash);
    hash.finish()
}

/// A value for each row: the same words have the same value, whatever their code in the block.
fn of_values(values: &Values) -> Vec<u64> {
    match values {
        Values::Numbers(numbers) => numbers.iter().map(|x| x.to_bits()).collect(),
        Values::Categories(words) => {
            let names: Vec<u64> = words.names.iter().map(|name| of_word(name)).collect();
            words.codes.iter().map(|&code| names.get(code as usize).copied().unwrap_or(0)).collect()
        }
    }
}

fn hashes(block: &Block) -> Vec<u64> {
    let mut hashes = vec![0; block.n_rounds()];
    let mut add = |values: &[u64]| hashes.iter_mut().zip(values).for_each(|(hash, &v)| *hash = mix(*hash, v));
    block.shared.iter().for_each(|values| add(&of_values(values)));
    if let Some(chosen) = &block.chosen {
        add(&of_values(&Values::Categories(chosen.clone())));
    }
    for numbers in [&block.rewards, &block.propensities].into_iter().flatten() {
        add(&numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    }
    if let Offered::Listed { offsets, actions, features } = &block.offered {
        let mut columns = vec![of_values(&Values::Categories(actions.clone()))];
        columns.extend(features.iter().map(of_values));
        for (t, hash) in hashes.iter_mut().enumerate() {
            for pair in offsets[t]..offsets[t + 1] {
                *hash = columns.iter().fold(*hash, |hash, column| mix(hash, column[pair]));
            }
        }
    }
    hashes
}
