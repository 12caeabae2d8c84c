//! What `tune` compares: one line per candidate.

use serde::{Deserialize, Serialize};

use super::TuneOptions;
use crate::policy::{Algorithm, Mode, Recipe};

/// A candidate and what the rounds that it was chosen by say of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Mode, learning rate, σ and β, where it has them.
    pub mode: Option<Mode>,
    /// Learning rate.
    pub lr: Option<f64>,
    /// σ.
    pub sigma: Option<f64>,
    /// β.
    pub beta: Option<f64>,
    /// The estimate of its value; none where no round agrees with it.
    pub value: Option<f64>,
    /// The score: a lower bound of its value. Each stands for itself; together they promise nothing.
    pub lower: f64,
    /// Mean weight: the share of it that the log covers.
    pub coverage: f64,
    /// Rounds in which it would have done what was done.
    pub agreeing: u64,
}

/// A recipe and the β to be read off it; none where it has no β.
pub(super) struct Candidate {
    pub recipe: Recipe,
    pub betas: Vec<f64>,
}

/// β of the width that comes from the log's own policy: pessimism towards what the log does.
const TOWARDS_THE_LOG: [f64; 5] = [0.0, 0.03, 0.1, 0.3, 1.0];

/// The candidates, simple ones first.
pub(super) fn candidates(options: &TuneOptions) -> Vec<Candidate> {
    let base = &options.base;
    let of = |algorithm| {
        let none = Recipe { beta: None, mode: None, lr: None, step: None, sigma: None, ..base.clone() };
        Recipe { algorithm, members: None, trunk: None, ..none }
    };
    let plain = |algorithm| Recipe { lambda: None, net: None, covariance: None, ..of(algorithm) };
    let linear = |algorithm| Recipe { net: None, covariance: None, ..of(algorithm) };
    let alone = |algorithm| Candidate { recipe: plain(algorithm), betas: Vec::new() };
    let dialled = |recipe| Candidate { recipe, betas: options.betas.clone() };
    let mut all = vec![
        alone(Algorithm::Constant),
        alone(Algorithm::Clone),
        alone(Algorithm::CloneRewarded),
        Candidate { recipe: plain(Algorithm::Choice), betas: TOWARDS_THE_LOG.to_vec() },
        dialled(plain(Algorithm::Regression)),
        alone(Algorithm::InversePropensity),
        dialled(linear(Algorithm::LinLcb)),
        dialled(of(Algorithm::NeuralLinLcb)),
    ];
    all.extend([0.1, 1.0, 10.0].map(|sigma| dialled(Recipe { sigma: Some(sigma), ..linear(Algorithm::KernLcb) })));
    for &mode in options.modes.as_deref().unwrap_or(&[Mode::S]) {
        for &lr in &options.lrs {
            all.push(dialled(Recipe { mode: Some(mode), lr: Some(lr), ..of(Algorithm::Neuralcb) }));
        }
    }
    all
}
