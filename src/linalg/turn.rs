//! Rows become tiles: a lane per row, a tile for each of a row's numbers.

use super::scalar::Scalar;
use super::simd::{Arch, LANES, Rows, Tile, fours};

/// Rows of a tile.
const ROWS: usize = 2 * LANES;

/// Writes four numbers of each row into tiles, one tile per number, up to four.
#[inline(always)]
pub(crate) fn turn_in<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(rows: [&[T; 4]; ROWS], tiles: &mut [Tile<T>]) {
    let columns = R::turn(rows);
    if let [a, b, c, d] = tiles {
        columns[0].store(a);
        columns[1].store(b);
        columns[2].store(c);
        columns[3].store(d);
    } else {
        for k in 0..tiles.len() {
            columns[k].store(&mut tiles[k]);
        }
    }
}

/// Turns rows that lie side by side, as many as R holds and of as many numbers as there are tiles; false, and nothing done,
/// where they are numbers of another type, or too short.
#[inline(always)]
pub(crate) fn turn_all<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(rows: &[f32], tiles: &mut [Tile<T>]) -> bool {
    let (Some(rows), d) = (T::same(rows), tiles.len()) else { return false };
    if d < 4 {
        return false;
    }
    let mut at = 0;
    while at < d {
        // the last four overlap those before
        at = at.min(d - 4);
        turn_in::<T, A, R>(fours(&rows[at..], d, LANES * R::VECTORS), &mut tiles[at..at + 4]);
        at += 4;
    }
    true
}

/// Turns rows from anywhere.
#[inline(always)]
pub(crate) fn turn_rows<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(rows: &[&[f32]; ROWS], tiles: &mut [Tile<T>]) {
    let d = rows[0].len();
    if d < 4 {
        for (row, x) in rows.iter().enumerate() {
            for (tile, &x) in tiles.iter_mut().zip(*x) {
                tile.0[row / LANES][row % LANES] = T::of_f32(x);
            }
        }
        return;
    }
    let mut own = [rows[0]; ROWS];
    for r in 0..ROWS {
        own[r] = &rows[r][..d]; // all of one length: what follows needs no check
    }
    let tiles = &mut tiles[..d];
    let mut at = 0;
    while at < d {
        // the last four overlap those before
        at = at.min(d - 4);
        let (zeros, mut room) = ([T::ZERO; 4], [[T::ZERO; 4]; ROWS]);
        let mut four = [&zeros; ROWS];
        for (r, room) in room.iter_mut().enumerate() {
            four[r] = T::four(own[r][at..].first_chunk().expect("four numbers"), room);
        }
        turn_in::<T, A, R>(four, &mut tiles[at..at + 4]);
        at += 4;
    }
}
