//! Full contexts of many rounds, in either shape.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Column, Error, at_least};

/// How an action meets the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Every action has its own vector.
    PerAction,
    /// One vector per round, placed in the block of the action; the other blocks are zero and never built.
    Disjoint,
}

/// The sizes every context of a problem shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Length d of a context vector.
    pub dim: usize,
    /// Number K of actions.
    pub n_actions: usize,
    /// How an action meets the context.
    pub encoding: Encoding,
}

impl Layout {
    /// Number of blocks of the disjoint encoding; 1 where every action has its own vector.
    pub fn n_blocks(&self) -> usize {
        match self.encoding {
            Encoding::PerAction => 1,
            Encoding::Disjoint => self.n_actions,
        }
    }

    /// The block in which the vector of `action` lies.
    pub fn block(&self, action: usize) -> usize {
        match self.encoding {
            Encoding::PerAction => 0,
            Encoding::Disjoint => action,
        }
    }
}

/// Which actions each round offers.
#[derive(Debug, Clone, PartialEq)]
pub enum Eligible {
    /// All K actions in every round.
    All,
    /// Round t offers `actions[offsets[t]..offsets[t + 1]]`, in rising order.
    Some {
        /// Where each round begins; one entry more than rounds.
        offsets: Vec<usize>,
        /// The actions offered, round after round.
        actions: Vec<u32>,
    },
}

/// A context together with one action: what a reward model observes and estimates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair<'a> {
    /// The context vector, of length d.
    pub x: &'a [f32],
    /// The action.
    pub action: usize,
}

/// The full contexts x_t = {x_{t,a}} of many rounds.
#[derive(Debug, Clone)]
pub struct Contexts {
    layout: Layout,
    x: Vec<f32>,
    eligible: Eligible,
    n_rounds: usize,
}

impl Contexts {
    /// Checks and takes the contexts. `x` holds vectors of `layout.dim` numbers one after another: one per pair for
    /// [`Encoding::PerAction`], one per round for [`Encoding::Disjoint`].
    pub fn new(layout: Layout, x: Vec<f32>, eligible: Eligible) -> Result<Self, Error> {
        at_least("dim", 1, "at least 1", layout.dim)?;
        at_least("n_actions", 1, "at least 1", layout.n_actions)?;
        if !x.len().is_multiple_of(layout.dim) {
            return Err(Error::Shape {
                what: "numbers in the contexts, a multiple of dim",
                expected: x.len().next_multiple_of(layout.dim),
                got: x.len(),
            });
        }
        let n_rows = x.len() / layout.dim;
        let n_rounds = match (&eligible, layout.encoding) {
            (Eligible::All, Encoding::Disjoint) => n_rows,
            (Eligible::All, Encoding::PerAction) => n_rows / layout.n_actions,
            (Eligible::Some { offsets, .. }, _) => offsets.len().saturating_sub(1),
        };
        check_eligible(&eligible, n_rounds, layout.n_actions)?;
        let expected = match (&eligible, layout.encoding) {
            (_, Encoding::Disjoint) => n_rounds,
            (Eligible::All, Encoding::PerAction) => n_rounds * layout.n_actions,
            (Eligible::Some { actions, .. }, Encoding::PerAction) => actions.len(),
        };
        if n_rows != expected {
            return Err(Error::Shape { what: "context vectors", expected, got: n_rows });
        }
        let contexts = Contexts { layout, x, eligible, n_rounds };
        contexts.check_finite()?;
        Ok(contexts)
    }

    fn check_finite(&self) -> Result<(), Error> {
        let Some(bad) = self.x.iter().position(|v| !v.is_finite()) else { return Ok(()) };
        let (row, index) = (bad / self.layout.dim, bad % self.layout.dim);
        let (round, action) = match self.layout.encoding {
            Encoding::Disjoint => (row, None),
            Encoding::PerAction => {
                let round = match &self.eligible {
                    Eligible::All => row / self.layout.n_actions,
                    Eligible::Some { offsets, .. } => offsets.partition_point(|&o| o <= row) - 1,
                };
                (round, Some(self.action(round, row - self.pairs(round).start)))
            }
        };
        let column = Column::Feature { action, index };
        Err(Error::Value { round, column, range: "a finite number", got: f64::from(self.x[bad]) })
    }

    /// The sizes of the problem.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of rounds.
    pub fn n_rounds(&self) -> usize {
        self.n_rounds
    }

    /// A copy of the given rounds.
    pub fn slice(&self, rounds: Range<usize>) -> Contexts {
        let eligible = match &self.eligible {
            Eligible::All => Eligible::All,
            Eligible::Some { offsets, actions } => {
                let from = offsets[rounds.start];
                Eligible::Some {
                    offsets: offsets[rounds.start..=rounds.end].iter().map(|offset| offset - from).collect(),
                    actions: actions[from..offsets[rounds.end]].to_vec(),
                }
            }
        };
        Contexts { layout: self.layout, x: self.rows(rounds.clone()).to_vec(), eligible, n_rounds: rounds.len() }
    }

    /// A copy of the given rounds, in that order.
    pub fn select(&self, rounds: &[usize]) -> Contexts {
        let x = rounds.iter().flat_map(|&t| self.rows(t..t + 1)).copied().collect();
        let eligible = match &self.eligible {
            Eligible::All => Eligible::All,
            Eligible::Some { actions, .. } => {
                let (mut offsets, mut chosen) = (vec![0], Vec::new());
                for &t in rounds {
                    chosen.extend_from_slice(&actions[self.pairs(t)]);
                    offsets.push(chosen.len());
                }
                Eligible::Some { offsets, actions: chosen }
            }
        };
        Contexts { layout: self.layout, x, eligible, n_rounds: rounds.len() }
    }

    /// Contexts of that layout, one after another.
    pub(crate) fn concat(layout: Layout, parts: Vec<Contexts>) -> Contexts {
        let (mut x, mut offsets, mut listed, mut n_rounds) = (Vec::new(), vec![0], Vec::new(), 0);
        let all = parts.iter().all(|part| matches!(part.eligible, Eligible::All));
        for part in parts {
            for t in (0..part.n_rounds).filter(|_| !all) {
                listed.extend((0..part.pairs(t).len()).map(|i| part.action(t, i) as u32));
                offsets.push(listed.len());
            }
            n_rounds += part.n_rounds;
            x.extend(part.x);
        }
        let eligible = if all { Eligible::All } else { Eligible::Some { offsets, actions: listed } };
        Contexts { layout, x, eligible, n_rounds }
    }

    /// Number of pairs over all rounds.
    pub fn n_pairs(&self) -> usize {
        self.first_pair(self.n_rounds)
    }

    /// Which actions each round offers.
    pub fn eligible(&self) -> &Eligible {
        &self.eligible
    }

    /// The number of the first pair of `round`; `n_pairs()` for `round == n_rounds()`.
    pub fn first_pair(&self, round: usize) -> usize {
        match &self.eligible {
            Eligible::All => round * self.layout.n_actions,
            Eligible::Some { offsets, .. } => offsets[round],
        }
    }

    /// The numbers of the pairs of `round`.
    pub fn pairs(&self, round: usize) -> Range<usize> {
        self.first_pair(round)..self.first_pair(round + 1)
    }

    /// The i-th action that `round` offers.
    pub fn action(&self, round: usize, i: usize) -> usize {
        match &self.eligible {
            Eligible::All => i,
            Eligible::Some { offsets, actions } => actions[offsets[round] + i] as usize,
        }
    }

    /// The place of `action` among those that `round` offers, if it does.
    pub fn place(&self, round: usize, action: usize) -> Option<usize> {
        match &self.eligible {
            Eligible::All => (action < self.layout.n_actions).then_some(action),
            Eligible::Some { offsets, actions } => {
                let action = u32::try_from(action).ok()?;
                actions[offsets[round]..offsets[round + 1]].binary_search(&action).ok()
            }
        }
    }

    /// The i-th pair of `round`.
    pub fn pair(&self, round: usize, i: usize) -> Pair<'_> {
        let row = match self.layout.encoding {
            Encoding::PerAction => self.first_pair(round) + i,
            Encoding::Disjoint => round,
        };
        Pair { x: &self.x[row * self.layout.dim..][..self.layout.dim], action: self.action(round, i) }
    }

    /// All vectors of the given rounds, one after another: one per pair, or one per round if shared.
    pub fn rows(&self, rounds: Range<usize>) -> &[f32] {
        let d = self.layout.dim;
        match self.layout.encoding {
            Encoding::PerAction => &self.x[self.first_pair(rounds.start) * d..self.first_pair(rounds.end) * d],
            Encoding::Disjoint => &self.x[rounds.start * d..rounds.end * d],
        }
    }
}

fn check_eligible(eligible: &Eligible, n_rounds: usize, n_actions: usize) -> Result<(), Error> {
    let Eligible::Some { offsets, actions } = eligible else { return Ok(()) };
    if offsets.first() != Some(&0) || offsets.last() != Some(&actions.len()) {
        let got = offsets.last().copied().unwrap_or(0);
        return Err(Error::Shape { what: "eligible offsets, first 0 and last", expected: actions.len(), got });
    }
    for round in 0..n_rounds {
        let refuse = |range, got: f64| Err(Error::Value { round, column: Column::Eligible, range, got });
        if offsets[round + 1] <= offsets[round] {
            return refuse("at least one action", offsets[round + 1] as f64 - offsets[round] as f64);
        }
        let offered = &actions[offsets[round]..offsets[round + 1]];
        if let Some(&a) = offered.iter().find(|&&a| a as usize >= n_actions) {
            return refuse("below the number of actions", f64::from(a));
        }
        if let Some(pair) = offered.windows(2).find(|w| w[0] >= w[1]) {
            return refuse("in rising order without repeats", f64::from(pair[1]));
        }
    }
    Ok(())
}
