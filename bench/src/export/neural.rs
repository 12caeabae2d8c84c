//! Arrays of the neural jobs: weights as [block, input, unit], vectors of units, the diagonal of Λ in the same shapes.

use neuralcb::model::{Learner, Mode, Neural, NeuralConfig};
use neuralcb::net::Params;
use neuralcb::{Contexts, Encoding, Seed};
use rand::Rng;

use super::Folder;
use crate::data::{
    MNIST, MNIST_DENSITY, Rounds, random_rounds, seed, shared_contexts, synthetic_contexts, synthetic_rounds,
};
use crate::error::Error;
use crate::jobs::{B_ROUNDS, B_STEPS, CONTEXTS, MNIST_B_ROUNDS, ROUNDS};
use crate::tasks::{MNIST_ROUNDS, mnist_config, synthetic_config};

pub(crate) fn synthetic_s(folder: &Folder) -> Result<(), Error> {
    training(folder, synthetic_config(None), &synthetic_rounds(ROUNDS)?)
}

pub(crate) fn synthetic_b(folder: &Folder) -> Result<(), Error> {
    training(folder, synthetic_config(Some(B_STEPS)), &synthetic_rounds(B_ROUNDS)?)
}

pub(crate) fn mnist_s(folder: &Folder) -> Result<(), Error> {
    training(folder, mnist_config(None), &random_rounds(MNIST, MNIST_ROUNDS))
}

pub(crate) fn mnist_b(folder: &Folder) -> Result<(), Error> {
    training(folder, mnist_config(Some(1)), &random_rounds(MNIST, MNIST_B_ROUNDS))
}

pub(crate) fn synthetic_score(folder: &Folder) -> Result<(), Error> {
    scoring(folder, synthetic_config(None), &synthetic_rounds(ROUNDS)?, &synthetic_contexts(CONTEXTS)?)
}

pub(crate) fn mnist_score_dense(folder: &Folder) -> Result<(), Error> {
    let contexts = shared_contexts(MNIST, CONTEXTS, 1.0)?;
    scoring(folder, mnist_config(None), &random_rounds(MNIST, MNIST_ROUNDS), &contexts)
}

pub(crate) fn mnist_score_sparse(folder: &Folder) -> Result<(), Error> {
    let contexts = shared_contexts(MNIST, CONTEXTS, MNIST_DENSITY)?;
    scoring(folder, mnist_config(None), &random_rounds(MNIST, MNIST_ROUNDS), &contexts)
}

fn model_seed() -> Seed {
    seed().child("model")
}

/// The rounds, the weights before and after, Λ after, and the batches of B-mode.
fn training(folder: &Folder, config: NeuralConfig, rounds: &Rounds) -> Result<(), Error> {
    folder.rounds(rounds, "reward")?;
    folder.write("block", &[rounds.n()], &rounds.blocks())?;
    if let Mode::Batch { steps, batch } = config.mode {
        let drawn = batches(rounds.n(), steps, batch);
        folder.write("batches", &[rounds.n() * steps, batch], &drawn)?;
    }
    let mut model = Neural::<f32>::new(config, rounds.layout, model_seed())?;
    params(folder, &model, model.weights(), ["w1_0", "gain_0", "offset_0", "out_0"])?;
    observe(&mut model, rounds);
    learned(folder, &model)
}

/// The rows, weights and Λ, and the estimates.
fn scoring(folder: &Folder, config: NeuralConfig, rounds: &Rounds, contexts: &Contexts) -> Result<(), Error> {
    let mut model = Neural::<f32>::new(config, rounds.layout, model_seed())?;
    observe(&mut model, rounds);
    folder.contexts("x", contexts)?;
    learned(folder, &model)?;
    let estimates = model.model()?.estimate(contexts)?;
    let n = contexts.n_pairs();
    match contexts.layout().encoding {
        Encoding::PerAction => {
            folder.write("block", &[n], &vec![0u32; n])?;
            folder.estimates(&[n], &estimates)
        }
        Encoding::Disjoint => folder.estimates(&[contexts.n_rounds(), contexts.layout().n_actions], &estimates),
    }
}

fn observe(model: &mut Neural<f32>, rounds: &Rounds) {
    for t in 0..rounds.n() {
        let (chosen, reward) = rounds.round(t);
        model.observe(chosen, reward);
    }
}

/// Weights and Λ as they are.
fn learned(folder: &Folder, model: &Neural<f32>) -> Result<(), Error> {
    params(folder, model, model.weights(), ["w1", "gain", "offset", "out"])?;
    let lambda = model.lambda_diagonal().expect("the jobs have one diagonal");
    params(folder, model, &lambda, ["lam_w1", "lam_gain", "lam_offset", "lam_out"])
}

fn params(folder: &Folder, model: &Neural<f32>, params: &Params<f32>, names: [&str; 4]) -> Result<(), Error> {
    let (net, tensors) = (model.net(), model.net().unpack(params));
    let (d, m) = (net.n_in(), net.width());
    let first = &tensors.weights[0];
    let columns = first[0].len();
    let mut w1 = Vec::with_capacity(columns * m);
    for j in 0..columns {
        w1.extend(first.iter().map(|row| row[j] as f32));
    }
    folder.write(names[0], &[columns / d, d, m], &w1)?;
    let vector = |v: &[f64]| v.iter().map(|&v| v as f32).collect::<Vec<_>>();
    let layer = |v: &Option<Vec<Vec<f64>>>| vector(&v.as_ref().expect("the jobs have a layer norm")[0]);
    folder.write(names[1], &[m], &layer(&tensors.gains))?;
    folder.write(names[2], &[m], &layer(&tensors.offsets))?;
    folder.write(names[3], &[m], &vector(&tensors.output))
}

/// The rounds that B-mode draws, in the order in which it draws them: ⌊u·n/2⁶⁴⌋ with n the rounds read so far.
fn batches(rounds: usize, steps: usize, batch: usize) -> Vec<u32> {
    let mut stream = model_seed().stream("batches");
    let mut drawn = Vec::with_capacity(rounds * steps * batch);
    for n in 1..=rounds as u128 {
        drawn.extend((0..steps * batch).map(|_| ((u128::from(stream.next_u64()) * n) >> 64) as u32));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With batches of one, B-mode is S-mode on the rounds that are drawn.
    #[test]
    fn the_exported_batches_are_those_that_the_library_draws() {
        let rounds = synthetic_rounds(40).unwrap();
        let mode = Mode::Batch { steps: 3, batch: 1 };
        let config = |mode| NeuralConfig { mode, ..synthetic_config(None) };
        let mut drawing = Neural::<f32>::new(config(mode), rounds.layout, model_seed()).unwrap();
        let mut replaying = Neural::<f32>::new(config(Mode::Single), rounds.layout, model_seed()).unwrap();
        let start = replaying.weights().clone();
        observe(&mut drawing, &rounds);
        for drawn in batches(rounds.n(), 3, 1) {
            let (chosen, reward) = rounds.round(drawn as usize);
            replaying.observe(chosen, reward);
        }
        // 120 steps of 1e-3 on 460 weights; the two paths may round differently
        let moved = drawing.weights().distance_squared(&start).sqrt();
        let apart = drawing.weights().distance_squared(replaying.weights()).sqrt();
        assert!(moved > 0.1 && apart < 1e-4 * moved, "moved {moved}, apart {apart}");
    }
}
