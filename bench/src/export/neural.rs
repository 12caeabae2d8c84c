//! Arrays of the neural jobs: W_1 as [block, input, unit] in `w1`, a further layer as [input, unit] in `w2`, …; vectors
//! of units in `bias`, `gain`, `offset` of the first layer and `bias2`, … of the next; the output weights in `out`, of
//! several outputs [output, unit], with `out_bias`; what the output is multiplied by in `scale`; the diagonal of Λ in
//! the same shapes.

use neuralcb::model::{Learner, Mode, Neural, NeuralConfig};
use neuralcb::net::{OutputScale, Outputs, Params};
use neuralcb::{Contexts, Encoding, Seed};
use rand::Rng;

use super::Folder;
use crate::data::{
    MNIST, MNIST_DENSITY, Rounds, random_rounds, seed, shared_contexts, synthetic_contexts, synthetic_rounds,
};
use crate::error::Error;
use crate::jobs::{B_ROUNDS, B_STEPS, CONTEXTS, MNIST_B_ROUNDS, ROUNDS};
use crate::practical::{self, Size};
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

pub(crate) fn practical_rounds(folder: &Folder, size: Size) -> Result<(), Error> {
    training(folder, practical::config(None), &size.log(size.rounds))
}

pub(crate) fn practical_batches(folder: &Folder, size: Size) -> Result<(), Error> {
    training(folder, practical::config(Some(1)), &size.log(size.batches))
}

pub(crate) fn practical_score(folder: &Folder, size: Size) -> Result<(), Error> {
    scoring(folder, practical::config(None), &size.log(size.rounds), &size.contexts()?)
}

pub(crate) fn trunk_batches(folder: &Folder, size: Size) -> Result<(), Error> {
    training(folder, practical::trunk_config(), &size.log(size.batches))
}

pub(crate) fn trunk_score(folder: &Folder, size: Size) -> Result<(), Error> {
    scoring(folder, practical::trunk_config(), &size.log(size.rounds), &size.contexts()?)
}

fn model_seed() -> Seed {
    seed().child("model")
}

/// The rounds, the weights before and after, Λ after, and the batches of B-mode.
fn training(folder: &Folder, config: NeuralConfig, rounds: &Rounds) -> Result<(), Error> {
    folder.rounds(rounds, "reward")?;
    if config.net.outputs == Outputs::PerAction {
        folder.write("output", &[rounds.n()], &rounds.actions)?;
    } else {
        folder.write("block", &[rounds.n()], &rounds.blocks())?;
    }
    if let Mode::Batch { steps, batch } = config.mode {
        let drawn = batches(rounds.n(), steps, batch);
        folder.write("batches", &[rounds.n() * steps, batch], &drawn)?;
    }
    scale(folder, &config)?;
    let mut model = Neural::<f32>::new(config, rounds.layout, model_seed())?;
    params(folder, &model, model.weights(), &|name| format!("{name}_0"))?;
    observe(&mut model, rounds);
    learned(folder, &model)
}

/// The rows, weights and Λ, and the estimates.
fn scoring(folder: &Folder, config: NeuralConfig, rounds: &Rounds, contexts: &Contexts) -> Result<(), Error> {
    scale(folder, &config)?;
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

/// What the output is multiplied by.
fn scale(folder: &Folder, config: &NeuralConfig) -> Result<(), Error> {
    let scale = match config.net.output_scale {
        OutputScale::SqrtWidth => (config.net.width as f64).sqrt(),
        OutputScale::One => 1.0,
    };
    folder.write("scale", &[1], &[scale])
}

fn observe(model: &mut Neural<f32>, rounds: &Rounds) {
    for t in 0..rounds.n() {
        let (chosen, reward) = rounds.round(t);
        model.observe(chosen, reward);
    }
}

/// Weights and Λ as they are.
fn learned(folder: &Folder, model: &Neural<f32>) -> Result<(), Error> {
    params(folder, model, model.weights(), &str::to_owned)?;
    let lambda = model.lambda_diagonal().expect("the jobs have one diagonal");
    params(folder, model, &lambda, &|name| format!("lam_{name}"))
}

fn params(
    folder: &Folder,
    model: &Neural<f32>,
    params: &Params<f32>,
    named: &dyn Fn(&str) -> String,
) -> Result<(), Error> {
    let (net, tensors) = (model.net(), model.net().unpack(params));
    let (d, m) = (net.n_in(), net.width());
    let short = |v: &[f64]| v.iter().map(|&v| v as f32).collect::<Vec<_>>();
    for (l, rows) in tensors.weights.iter().enumerate() {
        let columns = rows[0].len();
        let w: Vec<f32> = (0..columns).flat_map(|j| rows.iter().map(move |row| row[j] as f32)).collect();
        let shape: &[usize] = if l == 0 { &[columns / d, d, m] } else { &[columns, m] };
        folder.write(&named(&format!("w{}", l + 1)), shape, &w)?;
    }
    for (name, vectors) in [("bias", &tensors.biases), ("gain", &tensors.gains), ("offset", &tensors.offsets)] {
        for (l, vector) in vectors.iter().flatten().enumerate() {
            let name = if l == 0 { name.to_owned() } else { format!("{name}{}", l + 1) };
            folder.write(&named(&name), &[m], &short(vector))?;
        }
    }
    let outputs = tensors.output.len() / m;
    let shape: &[usize] = if outputs == 1 { &[m] } else { &[outputs, m] };
    folder.write(&named("out"), shape, &short(&tensors.output))?;
    let biases: Vec<f64> = tensors.output_bias.into_iter().chain(tensors.output_biases.into_iter().flatten()).collect();
    if !biases.is_empty() {
        folder.write(&named("out_bias"), &[outputs], &short(&biases))?;
    }
    Ok(())
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
