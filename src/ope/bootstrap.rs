//! The Poisson bootstrap: in each replicate every round counts Poisson(1) times.
//!
//! The counts come from a hash of (seed, round's number in the whole log, replicate), sixteen bits each, so that a part
//! of a log needs its first round's number and nothing else. Sums are integers: a number is rounded to 33 to 40 bits in
//! the unit of its size class (256 times wider each), and each class has its own sum. Integers add up to the same bits
//! in any order; a block of rounds is added in doubles, whose 53 bits hold it exactly. O(replicates) per round and
//! non-zero term.

use std::collections::BTreeMap;

use super::moments::{TERMS, Terms};
use super::sums::scaled;
use super::tape::Tape;
use crate::error::Error;
use crate::linalg::vectors::{Job, dispatch};

/// 65,536·P(X > k) for k = 0, 1, … of a Poisson(1) variable X, rounded; they sum to 65,536, so the mean is exactly 1.
const EXCEEDS: [u32; 8] = [41427, 17317, 5263, 1244, 240, 39, 5, 1];

/// Rounds added in doubles: 1024 counts of at most 8 times numbers below 2⁴⁰ are below 2⁵³.
const BLOCK: usize = 1024;

/// The place of Σ ρ among the sums.
const COUNT: usize = TERMS;

/// Sums of every replicate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bootstrap {
    seed: u64,
    replicates: usize,
    /// Which terms are summed.
    wanted: [bool; TERMS],
    /// By term and size class.
    sums: BTreeMap<(usize, i16), Vec<i128>>,
}

/// One sum of a block.
struct BlockSum {
    key: (usize, i16),
    sums: Vec<f64>,
}

impl Bootstrap {
    pub fn new(seed: u64, replicates: usize, wanted: [bool; TERMS]) -> Self {
        Bootstrap { seed, replicates, wanted, sums: BTreeMap::new() }
    }

    /// Adds consecutive rounds, the first of which has the given number.
    pub fn add(&mut self, first: u64, rows: &[(Terms, f64)]) {
        dispatch(Add { bootstrap: self, first, rows });
    }

    #[inline(always)]
    fn add_rows(&mut self, first: u64, rows: &[(Terms, f64)]) {
        let lanes = self.replicates.next_multiple_of(4);
        let (mut draws, mut counts) = (vec![0u16; lanes], vec![0.0; lanes]);
        for (number, block) in rows.chunks(BLOCK).enumerate() {
            let first = first + (number * BLOCK) as u64;
            let mut sums: Vec<BlockSum> = Vec::new();
            for (round, (terms, count)) in (first..).zip(block) {
                poisson(self.seed, round, &mut draws, &mut counts);
                let wanted = (0..TERMS).filter(|&i| self.wanted[i]).map(|i| (i, terms[i]));
                for (term, value) in wanted.chain([(COUNT, *count)]) {
                    if value != 0.0 {
                        let (class, integer) = classed(value);
                        add_scaled(block_sum(&mut sums, (term, class), lanes), &counts, integer);
                    }
                }
            }
            for BlockSum { key, sums } in sums {
                let total = self.sums.entry(key).or_insert_with(|| vec![0; self.replicates]);
                total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum as i128);
            }
        }
    }

    /// Adds the rounds of another part.
    pub fn merge(&mut self, other: &Bootstrap) {
        for (key, sums) in &other.sums {
            let total = self.sums.entry(*key).or_insert_with(|| vec![0; self.replicates]);
            total.iter_mut().zip(sums).for_each(|(a, b)| *a += b);
        }
    }

    /// Keeps the sums of so many rounds.
    pub fn keep(&mut self, tape: &mut Tape<'_>, rounds: u64) -> Result<(), Error> {
        let sums = std::mem::take(&mut self.sums);
        let mut list: Vec<((usize, i16), Vec<i128>)> = sums.into_iter().collect();
        // a count of at most 8 times a number of at most 2⁴⁰, each round
        let largest = u128::from(rounds) << 43;
        tape.list(&mut list, |tape, ((term, class), sums)| {
            let (mut number, mut size) = (*term as u64, i128::from(*class));
            tape.number(&mut number, COUNT as u64)?;
            tape.signed(&mut size, 128)?;
            (*term, *class) = (number as usize, size as i16);
            tape.check(*term == COUNT || self.wanted[*term], "a term that the settings ask for")?;
            tape.list(sums, |tape, sum| tape.signed(sum, largest))?;
            tape.check(sums.len() == self.replicates, "a sum for each replicate")
        })?;
        tape.check(list.is_sorted_by(|a, b| a.0 < b.0), "terms in order")?;
        self.sums = list.into_iter().collect();
        Ok(())
    }

    /// The means of all terms in every replicate that drew any round.
    pub fn means(&self) -> Vec<Terms> {
        let mut sums = vec![[0.0; TERMS + 1]; self.replicates];
        for (&(term, class), integers) in &self.sums {
            for (sums, &integer) in sums.iter_mut().zip(integers) {
                sums[term] += scaled(integer as f64, unit(class));
            }
        }
        let drawn = sums.into_iter().filter(|s| s[COUNT] > 0.0);
        drawn.map(|s| std::array::from_fn(|i| s[i] / s[COUNT])).collect()
    }
}

/// Adding rounds, with the widest vectors that the processor has: sums of integers are the same in all of them.
struct Add<'a> {
    bootstrap: &'a mut Bootstrap,
    first: u64,
    rows: &'a [(Terms, f64)],
}

impl Job for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.bootstrap.add_rows(self.first, self.rows);
    }
}

#[inline(always)]
fn block_sum(sums: &mut Vec<BlockSum>, key: (usize, i16), lanes: usize) -> &mut [f64] {
    let place = sums.iter().position(|s| s.key == key).unwrap_or_else(|| {
        sums.push(BlockSum { key, sums: vec![0.0; lanes] });
        sums.len() - 1
    });
    &mut sums[place].sums
}

#[inline(always)]
fn add_scaled(sums: &mut [f64], counts: &[f64], factor: f64) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count * factor);
}

/// The exponent of a class's unit.
fn unit(class: i16) -> i32 {
    8 * i32::from(class) - 32
}

/// The size class ⌊log₂|x| / 8⌋ of a number and the number in units of its class, an integer below 2⁴⁰.
fn classed(x: f64) -> (i16, f64) {
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let class = exponent.div_euclid(8) as i16;
    (class, scaled(x, -unit(class)).round_ties_even())
}

/// Poisson(1) draws of all replicates for a round.
#[inline(always)]
fn poisson(seed: u64, round: u64, draws: &mut [u16], counts: &mut [f64]) {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = mix(seed ^ mix(round.wrapping_add(GOLDEN)));
    for draws in draws.chunks_exact_mut(4) {
        state = state.wrapping_add(GOLDEN);
        let word = mix(state);
        draws.iter_mut().enumerate().for_each(|(i, draw)| *draw = (word >> (16 * i)) as u16);
    }
    // two loops: a vector holds more numbers of sixteen bits than doubles
    for draw in &mut *draws {
        *draw = EXCEEDS.iter().fold(0, |sum, exceeds| sum + u16::from(*draw >= (65_536 - exceeds) as u16));
    }
    counts.iter_mut().zip(draws).for_each(|(count, draw)| *count = f64::from(*draw));
}

/// The finaliser of SplitMix64.
#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The p-quantile of sorted numbers, between the order statistics around (n + 1) p.
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = ((sorted.len() + 1) as f64 * p - 1.0).clamp(0.0, (sorted.len() - 1) as f64);
    let below = place as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_counts_are_pinned() {
        let (mut draws, mut counts) = ([0; 8], [0.0; 8]);
        poisson(7, 3, &mut draws, &mut counts);
        assert_eq!(counts, [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 2.0, 2.0]);
    }

    #[test]
    fn counts_are_poisson_and_do_not_depend_on_neighbours() {
        assert_eq!(EXCEEDS.iter().sum::<u32>(), 65_536);
        let (n, lanes) = (20_000, 8);
        let (mut draws, mut counts) = (vec![0; lanes], vec![0.0; lanes]);
        let (mut sum, mut square, mut lag, mut across) = (0.0, 0.0, 0.0, 0.0);
        let mut last = vec![1.0; lanes];
        for round in 0..n {
            poisson(1, round, &mut draws, &mut counts);
            for i in 0..lanes {
                sum += counts[i];
                square += (counts[i] - 1.0) * (counts[i] - 1.0);
                lag += (counts[i] - 1.0) * (last[i] - 1.0);
                across += (counts[i] - 1.0) * (counts[(i + 1) % lanes] - 1.0);
            }
            last.copy_from_slice(&counts);
        }
        let all = (n as usize * lanes) as f64;
        // variances of one draw: 1 of X, 3 of (X − 1)², 1 of a product; five standard deviations
        assert!((sum / all - 1.0).abs() < 5.0 / all.sqrt());
        assert!((square / all - 1.0).abs() < 5.0 * (3.0 / all).sqrt());
        assert!((lag / all).abs() < 5.0 / all.sqrt() && (across / all).abs() < 5.0 / all.sqrt());
    }

    #[test]
    fn a_number_of_any_size_keeps_33_bits() {
        for x in [1.0, -0.3, 1e-30, 255.999, 256.0, -7.7e60, 1e-310] {
            let (class, integer) = classed(x);
            assert!(integer.abs() <= 2f64.powi(40) && integer.fract() == 0.0);
            assert!((scaled(integer, unit(class)) / x - 1.0).abs() < 2f64.powi(-33) || x.abs() < 1e-300, "{x}");
        }
    }

    #[test]
    fn quantiles_lie_between_order_statistics() {
        let sorted: Vec<f64> = (1..=199).map(f64::from).collect();
        assert_eq!(quantile(&sorted, 0.025), 5.0);
        assert_eq!(quantile(&sorted, 0.975), 195.0);
        assert_eq!(quantile(&sorted, 1e-9), 1.0);
    }
}
