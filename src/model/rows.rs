//! The rows a model estimates: the vectors of a block of rounds, in groups that share parameters, each with the place
//! of its result.

use std::ops::Range;

use crate::data::{Contexts, Eligible, Encoding};

/// A vector, and the place of its pair's result within the block.
pub(super) type Row<'a> = (&'a [f32], usize);

/// Rows that share parameters.
pub(super) struct RowGroup<'a> {
    /// The action, or 0 where all pairs form one group.
    pub(super) action: usize,
    rows: Rows<'a>,
}

enum Rows<'a> {
    /// Row i is vector i·`step`, and its place is `place` + i·`place_step`.
    Regular {
        vectors: &'a [f32],
        dim: usize,
        n: usize,
        step: usize,
        place: usize,
        place_step: usize,
    },
    Listed(Vec<Row<'a>>),
}

impl<'a> RowGroup<'a> {
    /// The rows, `n` at a time.
    pub(super) fn chunks(&self, n: usize) -> Chunks<'_, 'a> {
        Chunks { rows: &self.rows, n, from: 0, list: Vec::new() }
    }
}

/// Goes through a group, chunk by chunk. Where rows follow a rule, only those of the chunk are listed: a list of all would
/// have to leave the first cache.
pub(super) struct Chunks<'g, 'a> {
    rows: &'g Rows<'a>,
    n: usize,
    from: usize,
    list: Vec<Row<'a>>,
}

impl<'a> Chunks<'_, 'a> {
    /// The next rows, if there are any.
    pub(super) fn next(&mut self) -> Option<&[Row<'a>]> {
        let from = self.from;
        let rows = match self.rows {
            &Rows::Regular { vectors, dim, n, step, place, place_step } => {
                self.list.clear();
                let row = |i: usize| (&vectors[i * step * dim..][..dim], place + i * place_step);
                self.list.extend((from..n.min(from + self.n)).map(row));
                &self.list[..]
            }
            Rows::Listed(list) => &list[from..list.len().min(from + self.n)],
        };
        self.from += rows.len();
        (!rows.is_empty()).then_some(rows)
    }
}

/// The pairs of `rounds`, in one group, or one group per action if `by_action`.
pub(super) fn row_groups<'a>(contexts: &'a Contexts, rounds: Range<usize>, by_action: bool) -> Vec<RowGroup<'a>> {
    let (layout, n, vectors) = (contexts.layout(), rounds.len(), contexts.rows(rounds.clone()));
    let (dim, k) = (layout.dim, layout.n_actions);
    let shared = layout.encoding == Encoding::Disjoint;
    if !matches!(contexts.eligible(), Eligible::All) || (shared && !by_action) {
        return listed_groups(contexts, rounds, by_action);
    }
    if !by_action {
        let rows = Rows::Regular { vectors, dim, n: n * k, step: 1, place: 0, place_step: 1 };
        return vec![RowGroup { action: 0, rows }];
    }
    let group = |action: usize| {
        let (vectors, step) = if shared { (vectors, 1) } else { (&vectors[action * dim..], k) };
        RowGroup { action, rows: Rows::Regular { vectors, dim, n, step, place: action, place_step: k } }
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
    groups.map(|(action, list)| RowGroup { action, rows: Rows::Listed(list) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Layout;

    fn listed<'a>(groups: &[RowGroup<'a>]) -> Vec<(usize, Vec<Row<'a>>)> {
        let list = |group: &RowGroup<'a>| {
            let (mut chunks, mut rows) = (group.chunks(4), Vec::new());
            while let Some(chunk) = chunks.next() {
                assert!(chunk.len() <= 4);
                rows.extend_from_slice(chunk);
            }
            (group.action, rows)
        };
        groups.iter().map(list).collect()
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
                    let by_rule = listed(&row_groups(&contexts, rounds.clone(), by_action));
                    assert_eq!(by_rule, listed(&listed_groups(&contexts, rounds, by_action)));
                }
            }
        }
    }
}
