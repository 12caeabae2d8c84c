//! Some rounds of a log, as a log.

use sha2::{Digest, Sha256};

use super::block::{Block, Categories, Offered, Values};
use super::error::LogError;
use super::read_log::{ReadBlocks, ReadLog};
use super::schema::Schema;
use crate::hex::hex;

/// Those rounds of a log that are kept, in their order. Rounds beyond the list are not.
pub struct SomeRounds<'a> {
    log: &'a dyn ReadLog,
    kept: &'a [bool],
}

impl<'a> SomeRounds<'a> {
    /// Round t of the log is in it if `kept[t]`.
    pub fn new(log: &'a dyn ReadLog, kept: &'a [bool]) -> Self {
        SomeRounds { log, kept }
    }
}

impl ReadLog for SomeRounds<'_> {
    fn schema(&self) -> &Schema {
        self.log.schema()
    }

    fn read(&self) -> ReadBlocks<'_> {
        let mut first = 0;
        let some = move |block: Result<Block, LogError>| {
            let block = match block {
                Ok(block) => block,
                Err(error) => return Some(Err(error)),
            };
            let n = block.n_rounds();
            let kept = |t: &usize| self.kept.get(first + t).copied().unwrap_or(false);
            let rounds: Vec<usize> = (0..n).filter(kept).collect();
            first += n;
            match rounds.len() {
                0 => None,
                all if all == n => Some(Ok(block)),
                _ => Some(Ok(select(&block, &rounds))),
            }
        };
        Box::new(self.log.read().filter_map(some))
    }

    fn actions(&self) -> Vec<String> {
        self.log.actions()
    }

    fn bad_rows(&self) -> u64 {
        self.log.bad_rows()
    }

    fn parts(&self) -> Vec<String> {
        self.log.parts()
    }

    /// That of the whole log together with the list: another log than the whole.
    fn digest(&self) -> Result<String, LogError> {
        let mut sum = Sha256::new();
        sum.update(self.log.digest()?);
        sum.update(self.kept.iter().map(|&kept| u8::from(kept)).collect::<Vec<u8>>());
        Ok(hex(sum.finalize()))
    }

    fn go_on(&self) -> Result<(), LogError> {
        self.log.go_on()
    }
}

/// Some rounds of a block, in their order.
fn select(block: &Block, rounds: &[usize]) -> Block {
    fn of<T: Copy>(all: &[T], places: &[usize]) -> Vec<T> {
        places.iter().map(|&place| all[place]).collect()
    }
    let words =
        |all: &Categories, places: &[usize]| Categories { codes: of(&all.codes, places), names: all.names.clone() };
    let values = |all: &Values, places: &[usize]| match all {
        Values::Numbers(numbers) => Values::Numbers(of(numbers, places)),
        Values::Categories(categories) => Values::Categories(words(categories, places)),
    };
    let numbers = |all: &Option<Vec<f64>>| all.as_ref().map(|all| of(all, rounds));
    Block {
        places: of(&block.places, rounds),
        shared: block.shared.iter().map(|all| values(all, rounds)).collect(),
        offered: match &block.offered {
            Offered::All => Offered::All,
            Offered::Listed { offsets, actions, features } => {
                let pairs: Vec<usize> = rounds.iter().flat_map(|&t| offsets[t]..offsets[t + 1]).collect();
                let mut ends = vec![0];
                for &t in rounds {
                    ends.push(ends[ends.len() - 1] + offsets[t + 1] - offsets[t]);
                }
                Offered::Listed {
                    offsets: ends,
                    actions: words(actions, &pairs),
                    features: features.iter().map(|all| values(all, &pairs)).collect(),
                }
            }
        },
        chosen: block.chosen.as_ref().map(|all| words(all, rounds)),
        rewards: numbers(&block.rewards),
        propensities: numbers(&block.propensities),
        counts: numbers(&block.counts),
        extra: block.extra.iter().map(|all| of(all, rounds)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Place;

    #[test]
    fn a_round_keeps_all_that_is_its_own() {
        let words =
            |codes: &[u32]| Categories { codes: codes.to_vec(), names: vec!["a".into(), "b".into(), "c".into()] };
        let block = Block {
            places: (1..=3).map(|line| Place { file: 0, line }).collect(),
            shared: vec![Values::Numbers(vec![1.0, 2.0, 3.0]), Values::Categories(words(&[0, 1, 2]))],
            offered: Offered::Listed {
                offsets: vec![0, 2, 3, 5],
                actions: words(&[0, 1, 2, 0, 2]),
                features: vec![Values::Numbers(vec![0.1, 0.2, 0.3, 0.4, 0.5])],
            },
            chosen: Some(words(&[1, 2, 0])),
            rewards: Some(vec![10.0, 20.0, 30.0]),
            propensities: None,
            counts: Some(vec![1.0, 2.0, 1.0]),
            extra: vec![vec![7.0, 8.0, 9.0]],
        };
        let some = select(&block, &[0, 2]);
        assert_eq!((some.n_rounds(), some.places[1].line), (2, 3));
        assert_eq!(some.shared, [Values::Numbers(vec![1.0, 3.0]), Values::Categories(words(&[0, 2]))]);
        let Offered::Listed { offsets, actions, features } = &some.offered else { panic!("listed") };
        assert_eq!((offsets.as_slice(), actions.codes.as_slice()), (&[0, 2, 4][..], &[0, 1, 0, 2][..]));
        assert_eq!(features[0], Values::Numbers(vec![0.1, 0.2, 0.4, 0.5]));
        assert_eq!((some.rewards, some.extra), (Some(vec![10.0, 30.0]), vec![vec![7.0, 9.0]]));
    }
}
