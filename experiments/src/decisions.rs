//! What the policies of a pass decide: as they stand, or by the vote of all so far.

use std::borrow::Cow;
use std::sync::Arc;

use neuralcb::policy::{Choices, Votes, pessimistic};
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
    /// The votes so far for each output, where they decide.
    votes: Vec<Votes>,
}

impl<'a> Decisions<'a> {
    pub(crate) fn new(pass: &'a Pass) -> Self {
        Decisions { pass, model: None, estimates: Estimates::default(), latest: Vec::new(), votes: Vec::new() }
    }

    /// Lets the policies of a model decide.
    pub(crate) fn take(&mut self, model: &Arc<dyn RewardModel>, contexts: &Contexts) -> Result<(), Error> {
        if !self.model.as_ref().is_some_and(|old| Arc::ptr_eq(old, model)) {
            model.estimate_into(contexts, &mut self.estimates)?;
            let choose = |&(_, beta): &(Algorithm, Option<f64>)| {
                match pessimistic(contexts, &self.estimates, beta.unwrap_or(0.0), self.pass.rounding) {
                    // A run of a grid that diverged is a result: it plays the first action.
                    Err(Error::Estimate { .. }) => Ok(vec![0; contexts.n_rounds()]),
                    chosen => chosen,
                }
            };
            self.latest = self.pass.outputs.iter().map(choose).collect::<Result<_, Error>>()?;
            self.model = Some(model.clone());
        }
        if self.pass.returned == Returned::Vote {
            self.votes.resize_with(self.latest.len(), || Votes::new(contexts));
            self.votes.iter_mut().zip(&self.latest).for_each(|(votes, choices)| votes.add(contexts, choices));
        }
        Ok(())
    }

    /// The choices of each output.
    pub(crate) fn choices<'b>(&'b self, contexts: &'b Contexts) -> impl Iterator<Item = Cow<'b, [u32]>> {
        self.latest.iter().enumerate().map(|(output, latest)| match self.pass.returned {
            Returned::Latest => Cow::Borrowed(latest.as_slice()),
            Returned::Vote => Cow::Owned(self.votes[output].winners(contexts)),
        })
    }
}
