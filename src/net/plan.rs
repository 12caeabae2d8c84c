//! Which pass does which job: the only place that asks for the size of a network or how its rows look.
//!
//! A round of S-mode has one row and goes through `single.rs`. A batch and a scoring have many and go through
//! `tile.rs`; what differs is how they meet W_1.

use super::Net;

/// How rows meet W_1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entrance {
    /// With a row per lane.
    Tiles,
    /// A row after the other: the rows of a batch meet several blocks of W_1, a few rows each.
    Rows,
    /// A row after the other, reading only the inputs that are not zero.
    SparseRows,
}

/// Inputs from which it may pay to look for zeros: below, finding them takes as long as multiplying.
const WIDE: usize = 64;

impl Net {
    /// For the rows of a batch.
    pub(super) fn entrance_of_batch(&self) -> Entrance {
        if self.n_blocks > 1 { Entrance::Rows } else { Entrance::Tiles }
    }

    /// For rows to be scored, which all meet the same block.
    pub(super) fn entrance_of_scoring<'a>(&self, rows: impl Iterator<Item = &'a [f32]>) -> Entrance {
        if self.n_in >= WIDE && !self.layers.is_empty() && is_sparse(rows) {
            Entrance::SparseRows
        } else {
            Entrance::Tiles
        }
    }
}

/// Whether no more than one number in three of the rows is not zero.
fn is_sparse<'a>(rows: impl Iterator<Item = &'a [f32]>) -> bool {
    let (mut numbers, mut full) = (0, 0);
    for row in rows {
        numbers += row.len();
        full += row.iter().filter(|&&x| x != 0.0).count();
        // soon clear, if the first rows are not much fuller than the others
        if 3 * full > numbers + 2 * row.len() {
            return false;
        }
    }
    3 * full <= numbers
}
