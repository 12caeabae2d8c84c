//! Decisions round by round, whatever they are written as.

use neuralcb::Contexts;

use crate::log::{Block, Place, Preparation};
use crate::policy::Decisions;

/// Rounds of a block with what a policy decided.
pub struct Rows<'a> {
    /// How raw records became contexts.
    pub preparation: &'a Preparation,
    /// The raw records.
    pub block: &'a Block,
    /// The block's number of the first of the rounds.
    pub first: usize,
    /// The contexts that they became.
    pub contexts: &'a Contexts,
    /// What was decided.
    pub decisions: &'a Decisions,
    /// β, where the policy has one.
    pub beta: Option<f64>,
}

/// What is known of one action in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explained {
    /// The estimated mean of the reward.
    pub mean: f64,
    /// The width of its confidence interval.
    pub width: f64,
    /// Mean − β·width.
    pub bound: f64,
}

impl Rows<'_> {
    /// Number of rounds.
    pub fn len(&self) -> usize {
        self.contexts.n_rounds()
    }

    /// Where a round stands.
    pub fn place(&self, round: usize) -> Place {
        self.block.places[self.first + round]
    }

    /// Whether there is no round.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the actions that a round offers and the policy can judge, by their places.
    pub fn offered(&self, round: usize) -> impl Iterator<Item = &str> {
        let places = 0..self.contexts.pairs(round).len();
        places.map(move |place| {
            self.preparation.action_name(self.block, self.first + round, self.contexts.action(round, place))
        })
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
