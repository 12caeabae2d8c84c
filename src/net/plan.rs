//! Which pass does which job: the only place where the size of a network, or how its rows look, decides anything.
//!
//! A round of S-mode has one row and goes through `single.rs`. A batch and a scoring have many and go through
//! `tile.rs`; what differs is how they meet W_1.

use super::Net;

/// How the rows of a batch meet W_1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchEntrance {
    /// With a row per lane, where there is one block.
    Tiles,
    /// A row after the other, where there is a hidden layer: rows of several blocks, a few of each.
    Rows,
}

/// How rows to be scored meet W_1. They all meet the same block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScoreEntrance {
    /// With a row per lane.
    Tiles,
    /// A row after the other, without the inputs that are zero, where there is a hidden layer.
    SparseRows,
}

/// Inputs from which it may pay to look for zeros: below, finding them takes as long as multiplying.
const MANY_INPUTS: usize = 64;

impl Net {
    /// The way of a batch.
    pub(super) fn batch_entrance(&self) -> BatchEntrance {
        if self.n_blocks > 1 { BatchEntrance::Rows } else { BatchEntrance::Tiles }
    }

    /// The way of rows to be scored.
    pub(super) fn score_entrance<'a>(&self, rows: impl Iterator<Item = &'a [f32]>) -> ScoreEntrance {
        if self.n_in >= MANY_INPUTS && !self.layers.is_empty() && is_sparse(rows) {
            ScoreEntrance::SparseRows
        } else {
            ScoreEntrance::Tiles
        }
    }

    /// Whether one pass of a row serves all its outputs, which are scored one after the other.
    pub(crate) fn outputs_share_a_pass(&self) -> bool {
        self.n_outputs > 1
    }

    /// Whether what the squared inputs were multiplied to is still in place for the next output of the same rows: no
    /// other layer and no ridge mean has taken its room.
    pub(super) fn keeps_product(&self, ridge: bool) -> bool {
        self.layers.len() == 1 && !ridge
    }
}

/// Whether at most a third of the numbers are not zero.
fn is_sparse<'a>(rows: impl Iterator<Item = &'a [f32]>) -> bool {
    let (mut numbers, mut full) = (0, 0);
    for row in rows {
        numbers += row.len();
        full += row.iter().filter(|&&x| x != 0.0).count();
        // soon clear, if the first rows are not much fuller than the rest
        if 3 * full > numbers + 2 * row.len() {
            return false;
        }
    }
    3 * full <= numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::net::NetConfig;

    fn net(depth: usize, dim: usize, encoding: Encoding) -> Net {
        Net::new(NetConfig { depth, ..NetConfig::default() }, Layout { dim, n_actions: 3, encoding }).unwrap()
    }

    #[test]
    fn batches_of_several_blocks_enter_row_by_row() {
        assert_eq!(net(2, 5, Encoding::PerAction).batch_entrance(), BatchEntrance::Tiles);
        assert_eq!(net(2, 5, Encoding::Disjoint).batch_entrance(), BatchEntrance::Rows);
    }

    #[test]
    fn only_long_rows_with_many_zeros_are_scored_as_sparse() {
        let one_in = |k: usize, dim: usize| (0..dim).map(|j| f32::from(u8::from(j % k == 0))).collect::<Vec<f32>>();
        let way = |net: &Net, rows: &[Vec<f32>]| net.score_entrance(rows.iter().map(|row| &row[..]));
        let long = net(2, 99, Encoding::PerAction);
        assert_eq!(way(&long, &[one_in(3, 99), one_in(4, 99)]), ScoreEntrance::SparseRows);
        assert_eq!(way(&long, &[one_in(3, 99), one_in(2, 99)]), ScoreEntrance::Tiles);
        assert_eq!(way(&net(2, 20, Encoding::PerAction), &[one_in(5, 20)]), ScoreEntrance::Tiles);
        assert_eq!(way(&net(1, 99, Encoding::PerAction), &[one_in(5, 99)]), ScoreEntrance::Tiles);
    }
}
