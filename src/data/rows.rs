//! The rows a model estimates: the vectors of a block of rounds, in groups that share parameters, each with the place
//! of its result.

use std::ops::Range;

use super::{Contexts, Eligible, Encoding};
use crate::linalg::scalar::Scalar;

/// A vector, and the place of its pair's result within the block.
pub(crate) type Row<'a> = (&'a [f32], usize);

/// Rows that share parameters.
pub(crate) struct RowGroup<'a> {
    /// The action, or 0 where all pairs form one group.
    pub(crate) action: usize,
    rows: Kept<'a>,
}

enum Kept<'a> {
    Regular(Regular<'a>),
    Listed(Vec<Row<'a>>),
}

/// `n` rows by a rule: row i is vector i·`step`, and its place is `place` + i·`place_step`.
#[derive(Clone, Copy)]
pub(crate) struct Regular<'a> {
    vectors: &'a [f32],
    dim: usize,
    n: usize,
    step: usize,
    place: usize,
    place_step: usize,
}

impl RowGroup<'_> {
    /// All rows.
    pub(crate) fn rows(&self) -> Rows<'_> {
        match &self.rows {
            Kept::Regular(regular) => Rows::Regular(*regular),
            Kept::Listed(list) => Rows::Listed(list),
        }
    }
}

/// Some rows of a group. Where they follow a rule they are never listed: a list of all would have to leave the first
/// cache.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    Regular(Regular<'a>),
    Listed(&'a [Row<'a>]),
}

impl<'a> Rows<'a> {
    /// Rows.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Rows::Regular(regular) => regular.n,
            Rows::Listed(list) => list.len(),
        }
    }

    /// One row.
    #[inline(always)]
    fn row(&self, i: usize) -> Row<'a> {
        match self {
            Rows::Regular(Regular { vectors, dim, step, place, place_step, .. }) => {
                (&vectors[i * step * dim..][..*dim], place + i * place_step)
            }
            Rows::Listed(list) => list[i],
        }
    }

    /// The rows from `from` on, `n` at most.
    #[inline(always)]
    pub(crate) fn part(&self, from: usize, n: usize) -> Self {
        let n = n.min(self.len() - from);
        match self {
            Rows::Regular(all) => Rows::Regular(Regular {
                vectors: &all.vectors[(from * all.step * all.dim).min(all.vectors.len())..],
                n,
                place: all.place + from * all.place_step,
                ..*all
            }),
            Rows::Listed(list) => Rows::Listed(&list[from..from + n]),
        }
    }

    /// The rows, `n` at a time.
    pub(crate) fn chunks(self, n: usize) -> impl Iterator<Item = Self> {
        (0..self.len()).step_by(n).map(move |from| self.part(from, n))
    }

    /// The rows, one by one.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = Row<'a>> + Clone {
        (0..self.len()).map(move |i| self.row(i))
    }

    /// The vectors, one by one.
    #[inline(always)]
    pub(crate) fn vectors(self) -> impl ExactSizeIterator<Item = &'a [f32]> + Clone {
        self.iter().map(|(x, _)| x)
    }

    /// Writes a number of each row to its place.
    #[inline(always)]
    pub(crate) fn put<T: Scalar>(&self, numbers: &[T], out: &mut [f64]) {
        if let &Rows::Regular(Regular { n, place, place_step: 1, .. }) = self {
            for (out, v) in out[place..place + n].iter_mut().zip(numbers) {
                *out = v.to_f64();
            }
        } else {
            for ((_, place), v) in self.iter().zip(numbers) {
                out[place] = v.to_f64();
            }
        }
    }
}

/// The pairs of `rounds`, in one group, or one group per action if `by_action`.
pub(crate) fn row_groups<'a>(contexts: &'a Contexts, rounds: Range<usize>, by_action: bool) -> Vec<RowGroup<'a>> {
    let (layout, n, vectors) = (contexts.layout(), rounds.len(), contexts.rows(rounds.clone()));
    let (dim, k) = (layout.dim, layout.n_actions);
    let shared = layout.encoding == Encoding::Disjoint;
    if !matches!(contexts.eligible(), Eligible::All) || (shared && !by_action) {
        return listed_groups(contexts, rounds, by_action);
    }
    if !by_action {
        let rows = Regular { vectors, dim, n: n * k, step: 1, place: 0, place_step: 1 };
        return vec![RowGroup { action: 0, rows: Kept::Regular(rows) }];
    }
    let group = |action: usize| {
        let (vectors, step) = if shared { (vectors, 1) } else { (&vectors[action * dim..], k) };
        RowGroup { action, rows: Kept::Regular(Regular { vectors, dim, n, step, place: action, place_step: k }) }
    };
    (0..k).map(group).collect()
}

/// As [`row_groups`], pair by pair.
fn listed_groups<'a>(contexts: &'a Contexts, rounds: Range<usize>, by_action: bool) -> Vec<RowGroup<'a>> {
    let layout = contexts.layout();
    let mut lists = vec![Vec::new(); if by_action { layout.n_actions } else { 1 }];
    let data = contexts.rows(rounds.clone());
    let first = contexts.first_pair(rounds.start);
    let all = matches!(contexts.eligible(), Eligible::All);
    for (t, round) in rounds.enumerate() {
        for (i, place) in (contexts.first_pair(round) - first..contexts.first_pair(round + 1) - first).enumerate() {
            let row = if layout.encoding == Encoding::PerAction { place } else { t };
            let action = if all { i } else { contexts.action(round, i) };
            let x = &data[row * layout.dim..][..layout.dim];
            lists[if by_action { action } else { 0 }].push((x, place));
        }
    }
    let groups = lists.into_iter().enumerate().filter(|(_, list)| !list.is_empty());
    groups.map(|(action, list)| RowGroup { action, rows: Kept::Listed(list) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Layout;

    fn listed<'a>(groups: &'a [RowGroup<'a>]) -> Vec<(usize, Vec<Row<'a>>)> {
        let list = |group: &'a RowGroup<'a>| {
            let chunks = group.rows().chunks(4).inspect(|chunk| assert!(chunk.len() <= 4));
            (group.action, chunks.flat_map(Rows::iter).collect())
        };
        groups.iter().map(list).collect()
    }

    /// What [`Rows::put`] writes: twice the place of each row.
    fn put(groups: &[RowGroup<'_>], pairs: usize) -> Vec<f64> {
        let mut out = vec![-1.0; pairs];
        for rows in groups.iter().flat_map(|group| group.rows().chunks(4)) {
            let numbers: Vec<f32> = rows.iter().map(|(_, place)| 2.0 * place as f32).collect();
            rows.put(&numbers, &mut out);
        }
        out
    }

    #[test]
    fn rows_by_rule_are_those_pair_by_pair() {
        for encoding in [Encoding::PerAction, Encoding::Disjoint] {
            let layout = Layout { dim: 2, n_actions: 3, encoding };
            let per_round = if encoding == Encoding::PerAction { 3 } else { 1 };
            let x = (0..2 * 9 * per_round).map(|i| i as f32).collect();
            let contexts = Contexts::new(layout, x, Eligible::All).unwrap();
            for by_action in [false, true] {
                for rounds in [0..9, 2..8, 8..9] {
                    let by_rule = row_groups(&contexts, rounds.clone(), by_action);
                    let by_pair = listed_groups(&contexts, rounds.clone(), by_action);
                    assert_eq!(listed(&by_rule), listed(&by_pair));
                    let twice: Vec<f64> = (0..3 * rounds.len()).map(|place| 2.0 * place as f64).collect();
                    assert_eq!([put(&by_rule, twice.len()), put(&by_pair, twice.len())], [twice.clone(), twice]);
                }
            }
        }
    }
}
