//! The work of the jobs at any size.

use neuralcb::model::{Covariance, ExactForm, KernelConfig, LinearConfig, Mode, NeuralConfig};
use neuralcb::net::NetConfig;
use neuralcb::{Contexts, Error, ModelConfig};

use crate::data::{
    MNIST, MNIST_DENSITY, Rounds, SHARED, random_rounds, shared_contexts, synthetic_contexts, synthetic_rounds,
};
use crate::task::{Scoring, Task, Training};

/// Samples of a batch in B-mode.
pub const BATCH: usize = 50;

/// Rounds that the model of a scoring job has read in the shape of MNIST.
pub(crate) const MNIST_ROUNDS: usize = 100;

/// S-mode, or B-mode with that many steps per round.
pub(crate) fn mode(steps: Option<usize>) -> Mode {
    steps.map_or(Mode::Single, |steps| Mode::Batch { steps, batch: BATCH })
}

/// The paper's network for the synthetic data: m = 20, Adam, one diagonal Λ.
pub(crate) fn synthetic_config(steps: Option<usize>) -> NeuralConfig {
    NeuralConfig { mode: mode(steps), ..NeuralConfig::default() }
}

/// The same with m = 100.
pub(crate) fn mnist_config(steps: Option<usize>) -> NeuralConfig {
    let net = NetConfig { width: 100, ..NetConfig::default() };
    NeuralConfig { net, ..synthetic_config(steps) }
}

pub(crate) fn exact_config() -> NeuralConfig {
    NeuralConfig { covariance: Covariance::Exact(ExactForm::Auto), ..NeuralConfig::default() }
}

fn train(config: ModelConfig, rounds: Rounds) -> Result<Task, Error> {
    Training::new(config, rounds).map(Task::Train)
}

fn score(config: ModelConfig, rounds: Rounds, contexts: Contexts) -> Result<Task, Error> {
    Scoring::new(&config, &rounds, contexts).map(Task::Score)
}

/// `n` rounds of S-mode on synthetic data.
pub fn synthetic_s(n: usize) -> Result<Task, Error> {
    train(ModelConfig::Neural(synthetic_config(None)), synthetic_rounds(n)?)
}

/// `n` rounds of B-mode on synthetic data, each of `steps` steps.
pub fn synthetic_b(n: usize, steps: usize) -> Result<Task, Error> {
    train(ModelConfig::Neural(synthetic_config(Some(steps))), synthetic_rounds(n)?)
}

/// Mean and width of 30 actions in each of `contexts` contexts, after `n` rounds of S-mode.
pub fn synthetic_score(n: usize, contexts: usize) -> Result<Task, Error> {
    score(ModelConfig::Neural(synthetic_config(None)), synthetic_rounds(n)?, synthetic_contexts(contexts)?)
}

/// `n` rounds of S-mode in the shape of MNIST.
pub fn mnist_s(n: usize) -> Result<Task, Error> {
    train(ModelConfig::Neural(mnist_config(None)), random_rounds(MNIST, n))
}

/// `n` rounds of B-mode in the shape of MNIST, of one step each.
pub fn mnist_b(n: usize) -> Result<Task, Error> {
    train(ModelConfig::Neural(mnist_config(Some(1))), random_rounds(MNIST, n))
}

/// Mean and width of 10 actions in each of `contexts` contexts, dense or with 19 % non-zero entries, after `n` rounds.
pub fn mnist_score(n: usize, contexts: usize, sparse: bool) -> Result<Task, Error> {
    let density = if sparse { MNIST_DENSITY } else { 1.0 };
    let contexts = shared_contexts(MNIST, contexts, density)?;
    score(ModelConfig::Neural(mnist_config(None)), random_rounds(MNIST, n), contexts)
}

/// Kernel regression on `n` samples: mean and width of 30 vectors in each of `contexts` contexts.
pub fn kernel_score(n: usize, contexts: usize) -> Result<Task, Error> {
    score(ModelConfig::Kernel(KernelConfig::default()), synthetic_rounds(n)?, synthetic_contexts(contexts)?)
}

/// Kernel regression on `n` samples over 30 blocks: mean and width of 30 actions in each of `contexts` contexts.
pub fn kernel_score_disjoint(n: usize, contexts: usize) -> Result<Task, Error> {
    let contexts = shared_contexts(SHARED, contexts, 1.0)?;
    score(ModelConfig::Kernel(KernelConfig::default()), random_rounds(SHARED, n), contexts)
}

/// Ridge regression reads `n` rounds.
pub fn linear_observe(n: usize) -> Result<Task, Error> {
    train(ModelConfig::Linear(LinearConfig::default()), synthetic_rounds(n)?)
}

/// Ridge regression on `n` rounds: mean and width of 30 vectors in each of `contexts` contexts.
pub fn linear_score(n: usize, contexts: usize) -> Result<Task, Error> {
    score(ModelConfig::Linear(LinearConfig::default()), synthetic_rounds(n)?, synthetic_contexts(contexts)?)
}

/// `n` rounds of S-mode with the exact p × p matrix Λ, then mean and width of 30 actions in each of `contexts`
/// contexts.
pub fn exact_lambda(n: usize, contexts: usize) -> Result<Task, Error> {
    let training = Training::new(ModelConfig::Neural(exact_config()), synthetic_rounds(n)?)?;
    Ok(Task::Both(training, synthetic_contexts(contexts)?))
}
