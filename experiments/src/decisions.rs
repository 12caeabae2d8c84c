//! What the policies of a pass decide: as they stand, or by the vote of all so far.

use std::borrow::Cow;
use std::sync::Arc;

use neuralcb::policy::{Choices, pessimistic};
use neuralcb::{Contexts, Error, Estimates, RewardModel};

use crate::names::{Algorithm, Returned};
use crate::pass::Pass;

/// What the policies of a pass decide on some contexts, as they stand or by the vote of all so far.
pub(crate) struct Decisions<'a> {
    pass: &'a Pass,
    /// A learner that has stopped learning gives the same model again: nothing is scored twice.
    model: Option<Arc<dyn RewardModel>>,
    estimates: Estimates,
    /// The latest choices of each output.
    latest: Vec<Choices>,
    /// The votes of each pair, for each output.
    votes: Vec<Vec<u16>>,
}

impl<'a> Decisions<'a> {
    pub(crate) fn new(pass: &'a Pass) -> Self {
        let votes = vec![Vec::new(); pass.outputs.len()];
        Decisions { pass, model: None, estimates: Estimates::default(), latest: Vec::new(), votes }
    }

    /// Lets the policies of a model decide.
    pub(crate) fn take(&mut self, model: &Arc<dyn RewardModel>, contexts: &Contexts) -> Result<(), Error> {
        if !self.model.as_ref().is_some_and(|old| Arc::ptr_eq(old, model)) {
            model.estimate_into(contexts, &mut self.estimates)?;
            let choose = |&(_, beta): &(Algorithm, Option<f64>)| {
                pessimistic(contexts, &self.estimates, beta.unwrap_or(0.0), self.pass.rounding)
            };
            self.latest = self.pass.outputs.iter().map(choose).collect::<Result<_, Error>>()?;
            self.model = Some(model.clone());
        }
        if self.pass.returned == Returned::Vote {
            for (votes, choices) in self.votes.iter_mut().zip(&self.latest) {
                votes.resize(contexts.n_pairs(), 0);
                for (round, &place) in choices.iter().enumerate() {
                    votes[contexts.first_pair(round) + place as usize] += 1;
                }
            }
        }
        Ok(())
    }

    /// The choices of each output; of actions with equal votes, the first.
    pub(crate) fn choices<'b>(&'b self, contexts: &'b Contexts) -> impl Iterator<Item = Cow<'b, [u32]>> {
        self.latest.iter().zip(&self.votes).map(|(latest, votes)| match self.pass.returned {
            Returned::Latest => Cow::Borrowed(latest.as_slice()),
            Returned::Vote => (0..contexts.n_rounds()).map(|t| winner(&votes[contexts.pairs(t)])).collect(),
        })
    }
}

fn winner(votes: &[u16]) -> u32 {
    let most = votes.iter().max();
    votes.iter().position(|v| Some(v) == most).unwrap_or(0) as u32
}
