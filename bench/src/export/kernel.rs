//! Arrays of the kernel jobs.

use neuralcb::model::{Kernel, KernelConfig, Learner};
use neuralcb::{Contexts, Encoding};

use super::Folder;
use crate::data::{Rounds, SHARED, random_rounds, shared_contexts, synthetic_contexts, synthetic_rounds};
use crate::error::Error;
use crate::jobs::{CONTEXTS, SAMPLES};

pub(crate) fn one_block(folder: &Folder) -> Result<(), Error> {
    regression(folder, &synthetic_rounds(SAMPLES)?, &synthetic_contexts(CONTEXTS)?)
}

pub(crate) fn disjoint(folder: &Folder) -> Result<(), Error> {
    regression(folder, &random_rounds(SHARED, SAMPLES), &shared_contexts(SHARED, CONTEXTS, 1.0)?)
}

fn regression(folder: &Folder, rounds: &Rounds, contexts: &Contexts) -> Result<(), Error> {
    folder.rounds(rounds, "y")?;
    folder.contexts("x_test", contexts)?;
    let mut model = Kernel::new(KernelConfig::default(), rounds.layout)?;
    for t in 0..rounds.n() {
        let (chosen, reward) = rounds.round(t);
        model.observe(chosen, reward);
    }
    let estimates = model.model()?.estimate(contexts)?;
    match rounds.layout.encoding {
        Encoding::PerAction => folder.estimates(&[contexts.n_pairs()], &estimates),
        Encoding::Disjoint => {
            folder.write("block", &[rounds.n()], &rounds.blocks())?;
            folder.estimates(&[contexts.n_rounds(), rounds.layout.n_actions], &estimates)
        }
    }
}
