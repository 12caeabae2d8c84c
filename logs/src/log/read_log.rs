//! What can be read as a log: files, or arrays in memory.

use sha2::{Digest, Sha256};

use super::block::{Block, Categories, Offered, Values};
use super::error::LogError;
use super::open::Log;
use super::schema::Schema;
use crate::hex::hex;

/// Blocks of a reading, in order.
pub type ReadBlocks<'a> = Box<dyn Iterator<Item = Result<Block, LogError>> + 'a>;

/// Rounds that can be read from the start as often as it takes. [`Log`] reads them from files; whoever holds them in
/// memory gives them as blocks, and everything that learns from a log learns from those as well.
pub trait ReadLog: Sync {
    /// What the columns are.
    fn schema(&self) -> &Schema;

    /// The rounds from the start, at most [`BLOCK`](super::BLOCK) at a time.
    fn read(&self) -> ReadBlocks<'_>;

    /// Actions that exist, whether or not a round tells of them.
    fn actions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bad rows that the latest reading has skipped.
    fn bad_rows(&self) -> u64;

    /// What to call the parts that it was read from.
    fn parts(&self) -> Vec<String>;

    /// SHA-256 of its content, in hexadecimal.
    fn digest(&self) -> Result<String, LogError>;

    /// Asked every few rounds of long work: an error ends it.
    fn go_on(&self) -> Result<(), LogError> {
        Ok(())
    }
}

impl ReadLog for Log {
    fn schema(&self) -> &Schema {
        Log::schema(self)
    }

    fn read(&self) -> ReadBlocks<'_> {
        Box::new(self.blocks())
    }

    fn bad_rows(&self) -> u64 {
        self.skipped().bad_rows
    }

    fn parts(&self) -> Vec<String> {
        self.names()
    }

    fn digest(&self) -> Result<String, LogError> {
        self.sha256()
    }
}

/// SHA-256 of the values of blocks, for logs that are in no file: it does not depend on how the rounds are cut into
/// blocks.
pub fn sha256_of_values(blocks: ReadBlocks<'_>) -> Result<String, LogError> {
    let mut columns: Vec<Sha256> = Vec::new();
    for block in blocks {
        let block = block?;
        let mut at = 0;
        let mut column = |feed: &dyn Fn(&mut Sha256)| {
            if columns.len() == at {
                columns.push(Sha256::new());
            }
            feed(&mut columns[at]);
            at += 1;
        };
        let numbers = |values: &[f64], to: &mut Sha256| {
            for some in values.chunks(512) {
                to.update(some.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
            }
        };
        let words = |names: &Categories, to: &mut Sha256| {
            for i in 0..names.codes.len() {
                let name = names.get(i).unwrap_or_default();
                to.update((name.len() as u64).to_le_bytes());
                to.update(name);
            }
        };
        let values = |values: &Values, to: &mut Sha256| match values {
            Values::Numbers(v) => numbers(v, to),
            Values::Categories(names) => words(names, to),
        };
        block.shared.iter().for_each(|v| column(&|to| values(v, to)));
        if let Offered::Listed { offsets, actions, features } = &block.offered {
            column(&|to| offsets.windows(2).for_each(|w| to.update(((w[1] - w[0]) as u64).to_le_bytes())));
            column(&|to| words(actions, to));
            features.iter().for_each(|v| column(&|to| values(v, to)));
        }
        block.chosen.iter().for_each(|names| column(&|to| words(names, to)));
        block.rewards.iter().chain(&block.propensities).for_each(|v| column(&|to| numbers(v, to)));
    }
    let mut all = Sha256::new();
    columns.into_iter().for_each(|column| all.update(column.finalize()));
    Ok(hex(all.finalize()))
}
