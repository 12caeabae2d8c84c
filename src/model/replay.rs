//! What B-mode draws its batches from: the chosen pairs of all rounds so far.
//!
//! A long log lies in no cache, and a batch reads rounds from all over it: the time of a step is then the number of cache
//! lines. Context, block and reward of a round therefore lie together, on a border of 32 bytes.

use crate::archive::Archive;
use crate::data::Layout;
use crate::error::Error;
use crate::linalg::simd::memory::{Ahead, Lines};
use crate::linalg::simd::{LANES, RowList};

/// The rounds, one record each.
#[derive(Debug, Clone)]
pub(super) struct Replay {
    /// Context, then the bits of block and reward in three numbers, then nothing up to a whole line.
    records: Lines,
    layout: Layout,
    n: usize,
}

/// Numbers of a record that are not the context's.
const EXTRA: usize = 3;

impl Replay {
    /// No rounds yet.
    pub(super) fn new(layout: Layout) -> Self {
        Replay { records: Lines::default(), layout, n: 0 }
    }

    /// Rounds.
    pub(super) fn len(&self) -> usize {
        self.n
    }

    /// Whether half of a second cache of 512 kB holds all rounds.
    fn is_cached(&self) -> bool {
        self.records.len() * LANES * size_of::<f32>() < 1 << 18
    }

    /// Lines of a record.
    fn lines(&self) -> usize {
        (self.layout.dim + EXTRA).div_ceil(LANES)
    }

    /// All numbers of a round, in whole lines.
    #[inline(always)]
    fn record(&self, round: usize) -> &[f32] {
        let lines = self.lines();
        self.records.get(round * lines..(round + 1) * lines)
    }

    /// Adds a round.
    pub(super) fn push(&mut self, x: &[f32], block: usize, reward: f64) {
        let (bits, lines) = (reward.to_bits(), self.lines());
        let record = self.records.add(lines);
        record[..x.len()].copy_from_slice(x);
        for (number, bits) in record[x.len()..].iter_mut().zip([block as u32, bits as u32, (bits >> 32) as u32]) {
            *number = f32::from_bits(bits);
        }
        self.n += 1;
    }

    /// Some rounds as they lie: records that begin with the context and fill whole vectors. `starts` is where they begin.
    #[inline(always)]
    pub(super) fn records<'a>(&'a self, rounds: &[u32], starts: &'a mut [usize]) -> RowList<'a, f32> {
        let len = self.lines() * LANES;
        for (start, &round) in starts.iter_mut().zip(rounds) {
            *start = round as usize * len;
        }
        RowList::new(self.records.get(0..self.records.len()), len, starts)
    }

    /// The context of a round.
    #[inline(always)]
    fn context(&self, round: usize) -> &[f32] {
        &self.record(round)[..self.layout.dim]
    }

    /// The reward of a record.
    #[inline(always)]
    pub(super) fn reward(&self, record: &[f32]) -> f64 {
        let extra = &record[self.layout.dim..self.layout.dim + EXTRA];
        f64::from_bits(u64::from(extra[1].to_bits()) | u64::from(extra[2].to_bits()) << 32)
    }

    /// The block of a round.
    #[inline(always)]
    pub(super) fn block(&self, round: usize) -> usize {
        self.record(round)[self.layout.dim].to_bits() as usize
    }

    /// Rounds to be asked for ahead of their use in so many portions, unless the cache holds all.
    #[inline(always)]
    pub(super) fn ahead<'a>(&'a self, rounds: &'a [u32], portions: usize) -> Ahead<'a> {
        if self.is_cached() {
            return Ahead::nothing();
        }
        Ahead::new(self.records.get(0..self.records.len()), self.lines() * LANES, rounds, portions)
    }

    /// Into an archive as columns, or back.
    pub(super) fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        let (dim, n_blocks) = (self.layout.dim, self.layout.n_blocks());
        let (mut x, mut blocks, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
        for t in 0..self.n {
            x.extend_from_slice(self.context(t));
            blocks.push(self.block(t) as u32);
            rewards.push(self.reward(self.record(t)));
        }
        archive.list("replay.context", dim, &mut x)?;
        archive.list("replay.block", 1, &mut blocks)?;
        archive.list("replay.reward", 1, &mut rewards)?;
        if let Some(bad) = blocks.iter().find(|&&b| b as usize >= n_blocks) {
            let (name, want) = ("replay.block".to_owned(), format!("below {n_blocks}"));
            return Err(Error::Array { name, want, got: bad.to_string() });
        }
        for got in [x.len() / dim, blocks.len()] {
            if got != rewards.len() {
                let what = "rounds that batches are drawn from";
                return Err(Error::Shape { what, expected: rewards.len(), got });
            }
        }
        if archive.is_reading() {
            *self = Replay::new(self.layout);
            for ((x, block), reward) in x.chunks_exact(dim).zip(blocks).zip(rewards) {
                self.push(x, block as usize, reward);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Keep;
    use crate::data::Encoding;

    #[test]
    fn rounds_come_back_to_the_bit_also_through_an_archive() {
        for dim in [1, 5, 8, 20] {
            let layout = Layout { dim, n_actions: 7, encoding: Encoding::Disjoint };
            let mut replay = Replay::new(layout);
            let rounds: Vec<(Vec<f32>, usize, f64)> = (0..9)
                .map(|t| ((0..dim).map(|j| (t * dim + j) as f32 - 3.5).collect(), t % 7, (t as f64 - 4.0) / 3.0))
                .collect();
            rounds.iter().for_each(|(x, block, reward)| replay.push(x, *block, *reward));
            let mut archive = Archive::writer(Keep::Training);
            replay.archive(&mut archive).unwrap();
            let mut read = Replay::new(layout);
            read.archive(&mut Archive::reader(archive.into_arrays(), Keep::Training)).unwrap();
            for replay in [replay, read] {
                assert_eq!(replay.len(), 9);
                for (t, (x, block, reward)) in rounds.iter().enumerate() {
                    let got = (replay.context(t), replay.reward(replay.record(t)).to_bits(), replay.block(t));
                    assert_eq!(got, (&x[..], reward.to_bits(), *block));
                }
            }
        }
    }
}
