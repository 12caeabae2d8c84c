//! Decisions round by round, whatever they are written as.

use neuralcb::Contexts;

use crate::log::{Block, Place, Preparation};
use crate::policy::Decisions;

/// Rounds of a block with what a policy decided.
pub(super) struct Rows<'a> {
    pub preparation: &'a Preparation,
    pub block: &'a Block,
    /// The block's number of the first of them.
    pub first: usize,
    pub contexts: &'a Contexts,
    pub decisions: &'a Decisions,
    pub beta: Option<f64>,
}

/// What is known of one action in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Explained {
    pub mean: f64,
    pub width: f64,
    pub bound: f64,
}

impl Rows<'_> {
    pub fn len(&self) -> usize {
        self.contexts.n_rounds()
    }

    /// Where a round stands.
    pub fn place(&self, round: usize) -> Place {
        self.block.places[self.first + round]
    }

    /// The name of the chosen action of a round.
    pub fn name(&self, round: usize) -> Option<&str> {
        Some(self.preparation.action_name(self.block, self.first + round, self.action(round)?))
    }

    /// The chosen action of a round.
    pub fn action(&self, round: usize) -> Option<usize> {
        let choices = self.decisions.choices.as_ref()?;
        Some(self.contexts.action(round, choices[round] as usize))
    }

    /// Mean, width and bound of an action in a round, where it is eligible and there is a model.
    pub fn explained(&self, round: usize, action: usize) -> Option<Explained> {
        let (estimates, beta) = (self.decisions.estimates.as_ref()?, self.beta?);
        let pair = self.contexts.first_pair(round) + self.contexts.place(round, action)?;
        let (mean, width) = (estimates.mean[pair], estimates.width[pair]);
        Some(Explained { mean, width, bound: mean - beta * width })
    }
}
