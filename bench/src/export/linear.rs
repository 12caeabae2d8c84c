//! Arrays of the linear jobs.

use neuralcb::model::{Learner, Linear, LinearConfig};
use neuralcb::{Contexts, Eligible, RewardModel};

use std::sync::Arc;

use super::Folder;
use crate::data::{Rounds, SYNTHETIC, synthetic_contexts, synthetic_rounds};
use crate::error::Error;
use crate::jobs::{CONTEXTS, ROUNDS};

pub(crate) fn observe(folder: &Folder) -> Result<(), Error> {
    let rounds = synthetic_rounds(ROUNDS)?;
    folder.rounds(&rounds, "reward")?;
    // θ is the mean of the unit vectors
    let d = SYNTHETIC.dim;
    let unit = (0..d * d).map(|i| f32::from(u8::from(i / d == i % d))).collect();
    let contexts = Contexts::new(SYNTHETIC, unit, Eligible::Some { offsets: (0..=d).collect(), actions: vec![0; d] })?;
    folder.write("theta", &[d], &fit(&rounds)?.estimate(&contexts)?.mean)
}

pub(crate) fn score(folder: &Folder) -> Result<(), Error> {
    let (rounds, contexts) = (synthetic_rounds(ROUNDS)?, synthetic_contexts(CONTEXTS)?);
    folder.rounds(&rounds, "reward")?;
    folder.contexts("x_test", &contexts)?;
    folder.estimates(&[contexts.n_pairs()], &fit(&rounds)?.estimate(&contexts)?)
}

fn fit(rounds: &Rounds) -> Result<Arc<dyn RewardModel>, Error> {
    let mut model = Linear::new(LinearConfig::default(), rounds.layout)?;
    for t in 0..rounds.n() {
        let (chosen, reward) = rounds.round(t);
        model.observe(chosen, reward);
    }
    Ok(model.model()?)
}
