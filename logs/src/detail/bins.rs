//! Groups along a number whose range is not known before: cells of width 2^e, which becomes wider as more of them are
//! taken.
//!
//! Which e it ends with depends on the numbers alone and not on their order. At most [`CELLS`] cells are held.

use std::collections::BTreeMap;

use super::group::Group;

const CELLS: usize = 256;

/// The width to begin with is 2^FINEST.
const FINEST: i32 = -30;

/// Cells on the way.
#[derive(Debug, Clone)]
pub(crate) struct Bins {
    exponent: i32,
    cells: BTreeMap<i64, Cell>,
}

/// Neighbouring numbers and their rounds.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub low: f64,
    pub high: f64,
    pub group: Group,
}

impl Cell {
    fn merge(&mut self, other: &Cell) {
        (self.low, self.high) = (self.low.min(other.low), self.high.max(other.high));
        self.group.merge(&other.group);
    }
}

impl Default for Bins {
    fn default() -> Self {
        Bins { exponent: FINEST, cells: BTreeMap::new() }
    }
}

impl Bins {
    /// Adds a round at a finite number.
    pub fn add(&mut self, x: f64, terms: [f64; 4], times: f64) {
        while x.abs() * 2f64.powi(-self.exponent) >= 2f64.powi(62) {
            self.widen();
        }
        let key = (x * 2f64.powi(-self.exponent)).floor() as i64;
        let cell = self.cells.entry(key).or_insert_with(|| Cell { low: x, high: x, group: Group::default() });
        (cell.low, cell.high) = (cell.low.min(x), cell.high.max(x));
        cell.group.add(terms, times);
        while self.cells.len() > CELLS {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.exponent += 1;
        for (key, cell) in std::mem::take(&mut self.cells) {
            self.cells.entry(key.div_euclid(2)).and_modify(|to| to.merge(&cell)).or_insert(cell);
        }
    }

    /// At most so many groups of neighbours with about equally many rounds; few different numbers stay apart.
    pub fn parts(&self, most: usize) -> Vec<Cell> {
        let total: u64 = self.cells.values().map(|cell| cell.group.rounds).sum();
        let apart = self.cells.len() <= most;
        let (mut parts, mut before) = (Vec::<Cell>::new(), 0u64);
        let mut last = None;
        for cell in self.cells.values() {
            let part = (u128::from(before) * most as u128 / u128::from(total.max(1))) as usize;
            match parts.last_mut() {
                Some(to) if !apart && last == Some(part) => to.merge(cell),
                _ => parts.push(cell.clone()),
            }
            last = Some(part);
            before += cell.group.rounds;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(bins: &Bins, most: usize) -> Vec<(f64, f64, u64)> {
        bins.parts(most).iter().map(|part| (part.low, part.high, part.group.rounds)).collect()
    }

    #[test]
    fn parts_have_equally_many_rounds_in_any_order() {
        let (mut up, mut down) = (Bins::default(), Bins::default());
        for i in 0..4096 {
            up.add(f64::from(i), [0.0; 4], 1.0);
            down.add(f64::from(4095 - i), [0.0; 4], 1.0);
        }
        assert_eq!(
            ends(&up, 4),
            [(0.0, 1023.0, 1024), (1024.0, 2047.0, 1024), (2048.0, 3071.0, 1024), (3072.0, 4095.0, 1024)]
        );
        assert_eq!(ends(&up, 4), ends(&down, 4));
    }

    #[test]
    fn few_numbers_stay_apart_and_one_far_away_does_not_hide_the_rest() {
        let mut few = Bins::default();
        (0..90).for_each(|i| few.add(f64::from(u8::from(i % 9 == 0)), [0.0; 4], 1.0));
        assert_eq!(ends(&few, 4), [(0.0, 0.0, 80), (1.0, 1.0, 10)]);
        let mut far = Bins::default();
        (0..100).for_each(|i| far.add(f64::from(i) / 100.0, [0.0; 4], 1.0));
        far.add(-3e38, [0.0; 4], 1.0);
        assert_eq!(far.parts(4).len(), 2, "beyond 2^62 steps all others are one");
        let mut near = Bins::default();
        (0..100).for_each(|i| near.add(f64::from(i) / 100.0, [0.0; 4], 1.0));
        near.add(1e6, [0.0; 4], 1.0);
        assert_eq!(near.parts(4).len(), 4);
    }
}
