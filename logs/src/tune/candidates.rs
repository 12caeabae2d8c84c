//! What `tune` compares: one line per candidate.
//!
//! Few and different ones: those of `auto`, with pessimism, the best action, and the network of the paper in S-mode.
//! More lines would make the choice worse: the best of many is the luckiest.

use neuralcb::ModelConfig;
use neuralcb::model;
use serde::{Deserialize, Serialize};

use super::TuneOptions;
use crate::policy::{Algorithm, Mode, PolicyError, Recipe};

/// A candidate and what the rounds that it was chosen by say of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Its place in the list: what is learned is the same for all β.
    pub candidate: usize,
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
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub recipe: Recipe,
    pub betas: Vec<f64>,
}

/// What is compared where nothing else is asked for, simple ones first.
pub const USUAL: [Algorithm; 8] = [
    Algorithm::Constant,
    Algorithm::Clone,
    Algorithm::CloneRewarded,
    Algorithm::InversePropensity,
    Algorithm::LinLcb,
    Algorithm::Regression,
    Algorithm::Choice,
    Algorithm::Neuralcb,
];

/// β of the width that comes from the log's own policy: pessimism towards what the log does.
const TOWARDS_THE_LOG: [f64; 5] = [0.0, 0.03, 0.1, 0.3, 1.0];

/// λ of `lin-lcb`, as `auto` has it.
const LAMBDA: f64 = 1.0;

/// The candidates in their order.
pub(super) fn candidates(options: &TuneOptions) -> Result<Vec<Candidate>, PolicyError> {
    let (base, mut all) = (&options.base, Vec::new());
    for &algorithm in options.algorithms.as_deref().unwrap_or(&USUAL) {
        if matches!(algorithm, Algorithm::Auto | Algorithm::Uniform) {
            let cure = "name algorithms that learn to choose";
            return Err(PolicyError::Recipe { name: "algorithms", algorithm: algorithm.name().to_owned(), cure });
        }
        let (network, ridge) = (algorithm.is_network(), algorithm.is_ridge());
        let recipe = Recipe {
            algorithm,
            preset: base.preset,
            lambda: base.lambda.filter(|_| network || ridge).or((algorithm == Algorithm::LinLcb).then_some(LAMBDA)),
            net: base.net.clone().filter(|_| network),
            covariance: base.covariance.filter(|_| network),
            action: base.action.clone().filter(|_| algorithm == Algorithm::Constant),
            max_samples: base.max_samples.filter(|_| algorithm == Algorithm::KernLcb),
            members: base.members.filter(|_| algorithm.trunk().is_some()),
            constants: base.constants.clone(),
            standardise_rewards: base.standardise_rewards,
            preparation: base.preparation.clone(),
            seed: base.seed,
            ..Recipe::default()
        };
        let betas = match algorithm {
            // towards the log by default; the members of a regression differ too little to tell anything
            Algorithm::Choice => TOWARDS_THE_LOG.to_vec(),
            Algorithm::Regression => vec![0.0],
            _ if algorithm.has_beta() => options.betas.clone(),
            _ => Vec::new(),
        };
        let mut push = |recipe: Recipe| all.push(Candidate { recipe, betas: betas.clone() });
        match algorithm {
            Algorithm::Neuralcb => {
                for &mode in options.modes.as_deref().unwrap_or(&[Mode::S]) {
                    for &lr in &options.lrs {
                        push(Recipe { mode: Some(mode), lr: Some(lr), ..recipe.clone() });
                    }
                }
            }
            Algorithm::KernLcb => {
                [0.1, 1.0, 10.0].into_iter().for_each(|s| push(Recipe { sigma: Some(s), ..recipe.clone() }));
            }
            _ => push(recipe),
        }
    }
    if all.is_empty() {
        return Err(neuralcb::Error::Param { name: "candidates", range: "at least 1", got: 0.0 }.into());
    }
    Ok(all)
}

/// Whether a model keeps the rounds it learns from, so that it is given a sample of a long log. The others read all of
/// it.
pub(super) fn holds_its_rounds(config: &ModelConfig) -> bool {
    match config {
        ModelConfig::Trunk(_) | ModelConfig::Refit(_) => true,
        ModelConfig::Neural(config) => !matches!(config.mode, model::Mode::Single),
        _ => false,
    }
}
