//! Recipes: an algorithm's name and a preset, with what differs from it, become the full settings of a [`Method`].
//!
//! | preset | network | rewards | learning rate | β | when |
//! |---|---|---|---|---|---|
//! | `practical` | L = 3, m = 128, layer norm, uniform initialisation, output scale 1 | standardised | 1e-3 | 1 | the default |
//! | `paper` | L = 2, m = 20, layer norm, equation (1) | as they are | 1e-3 | 1 | the paper's text |
//! | `released-code` | L = 3, m = 20, biases, Λ per action, Λ after the step | as they are | 1e-3 | 1 | the code released with it |

use std::path::Path;

use neuralcb::ModelConfig;
use neuralcb::model::{
    Covariance, KernelConfig, LinearConfig, NeuralConfig, NeuralLinearConfig, Objective, RefitConfig, TabularConfig,
    TrunkConfig, When, Width,
};
use neuralcb::net::{NetConfig, Optimiser, Schedule, Towards};
use neuralcb::theory::{Constants, Rule, Theorem};
use serde::{Deserialize, Serialize};

use super::check_beta;
use super::error::PolicyError;
use super::method::{Method, RewardScale};
use super::names::{Algorithm, Mode, Preset};
use crate::log::{ActionSummary, LogSummary, PreparationConfig};

impl Algorithm {
    /// The settings of a learner on a shared trunk, where it is one.
    pub fn trunk(self) -> Option<TrunkConfig> {
        let objective = match self {
            Algorithm::Choice => Objective::Choice,
            Algorithm::Regression | Algorithm::ReluGreedy => Objective::Regression,
            Algorithm::Viper => return Some(TrunkConfig::viper()),
            Algorithm::Clone => Objective::Clone,
            Algorithm::CloneRewarded => Objective::CloneRewarded,
            Algorithm::RewardWeighted => Objective::RewardWeighted,
            Algorithm::AdvantageWeighted => Objective::AdvantageWeighted,
            Algorithm::InversePropensity => Objective::InversePropensity,
            Algorithm::DoublyRobust => Objective::DoublyRobust,
            Algorithm::LogSmoothing => Objective::LogSmoothing,
            _ => return None,
        };
        let width = if self == Algorithm::Choice { Width::Log } else { Width::Spread };
        let usual = TrunkConfig::default();
        let members = if self == Algorithm::ReluGreedy { 1 } else { usual.members };
        Some(TrunkConfig { objective, width, members, ..usual })
    }

    /// Whether it has a reward model, and so a β.
    pub(crate) fn has_beta(self) -> bool {
        use Algorithm::{Choice, KernLcb, LinLcb, NeuralLinLcb, NeuralRetrain, Neuralcb, Regression, TabLcb, Viper};
        [Choice, Regression, Viper, Neuralcb, NeuralLinLcb, LinLcb, KernLcb, TabLcb, NeuralRetrain].contains(&self)
    }

    /// Whether it has a network of its own settings.
    pub(crate) fn is_network(self) -> bool {
        use Algorithm::{NeuralGreedy, NeuralLinGreedy, NeuralLinLcb, NeuralRetrain, Neuralcb};
        [Neuralcb, NeuralGreedy, NeuralRetrain, NeuralLinLcb, NeuralLinGreedy].contains(&self)
    }

    /// Whether it is a ridge regression on contexts.
    pub(crate) fn is_ridge(self) -> bool {
        [Algorithm::LinLcb, Algorithm::LinGreedy, Algorithm::KernLcb].contains(&self)
    }

    /// β where nothing else is said.
    fn usual_beta(self) -> f64 {
        match self {
            Algorithm::Choice => 0.03,
            _ if self.is_greedy() || !self.has_beta() => 0.0,
            _ => 1.0,
        }
    }

    /// Whether it is greedy by its name.
    fn is_greedy(self) -> bool {
        matches!(
            self,
            Algorithm::NeuralGreedy
                | Algorithm::NeuralLinGreedy
                | Algorithm::LinGreedy
                | Algorithm::TabGreedy
                | Algorithm::ReluGreedy
        )
    }
}

/// A recipe: what is not given comes from the preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// What is trained.
    pub algorithm: Algorithm,
    /// Whose settings.
    pub preset: Preset,
    /// β ≥ 0, or `theory`: β_n of Theorem 4.1 for the n rounds of the log.
    pub beta: Option<Rule>,
    /// Training mode of the neural model.
    pub mode: Option<Mode>,
    /// Learning rate of the neural model, > 0.
    pub lr: Option<f64>,
    /// The step η > 0 of Algorithm 1's SGD in place of Adam, or `theory`: η_t of Theorem 4.1.
    pub step: Option<Rule>,
    /// λ > 0; where β or η is the theorem's, the least that it allows.
    pub lambda: Option<f64>,
    /// σ of the kernel, > 0.
    pub sigma: Option<f64>,
    /// Samples the kernel keeps.
    pub max_samples: Option<usize>,
    /// The action that `constant` plays; the best of the log by its mean reward if none is named.
    pub action: Option<String>,
    /// Networks of a learner on a shared trunk, ≥ 1; 3 by default, 10 of `viper`.
    pub members: Option<usize>,
    /// The settings of a learner on a shared trunk, whole, in place of the algorithm's.
    pub trunk: Option<TrunkConfig>,
    /// The network, whole, in place of the preset's.
    pub net: Option<NetConfig>,
    /// What Theorem 4.1 takes for granted, where β or η is the theorem's.
    pub constants: Constants,
    /// The form of Λ.
    pub covariance: Option<Covariance>,
    /// Whether the model sees standardised rewards.
    pub standardise_rewards: Option<bool>,
    /// How raw records become contexts.
    pub preparation: PreparationConfig,
    /// The seed of initial weights and batches.
    pub seed: u64,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            algorithm: Algorithm::Auto,
            preset: Preset::Practical,
            beta: None,
            mode: None,
            lr: None,
            step: None,
            lambda: None,
            sigma: None,
            max_samples: None,
            action: None,
            members: None,
            trunk: None,
            net: None,
            constants: Constants::default(),
            covariance: None,
            standardise_rewards: None,
            preparation: PreparationConfig::default(),
            seed: 1,
        }
    }
}

/// λ of every preset.
const LAMBDA: f64 = 0.1;

/// Rounds of which an action's mean reward says something.
const ENOUGH: u64 = 10;

/// The action with the largest mean reward among those chosen often enough; where none was, among all.
fn best_action(log: &LogSummary) -> usize {
    let enough = log.actions.iter().any(|a| a.count >= ENOUGH);
    let mean = |a: &ActionSummary| a.mean_reward.filter(|_| !enough || a.count >= ENOUGH).unwrap_or(f64::NEG_INFINITY);
    let mut best = 0;
    for (i, action) in log.actions.iter().enumerate() {
        if mean(action) > mean(&log.actions[best]) {
            best = i;
        }
    }
    best
}

impl Recipe {
    /// Reads a recipe from a TOML file; an unknown name is refused.
    pub fn from_toml(path: &Path) -> Result<Recipe, PolicyError> {
        let refuse = |reason: String| PolicyError::Settings { path: path.to_path_buf(), reason };
        let text = std::fs::read_to_string(path).map_err(|e| refuse(e.to_string()))?;
        toml::from_str(&text).map_err(|e| refuse(e.to_string().trim().replace('\n', " ")))
    }

    /// L of the network, if the recipe needs λ_0 of the log.
    pub(crate) fn asks_lambda_0(&self) -> Option<usize> {
        (self.beta == Some(Rule::Theory)).then(|| self.net().depth)
    }

    /// Theorem 4.1 for a log.
    fn theorem(&self, log: &LogSummary, lambda_0: f64) -> Result<Theorem, PolicyError> {
        let (net, n, constants) = (self.net(), log.rounds as usize, self.constants.clone());
        let theorem = Theorem {
            n,
            n_contexts: n.saturating_mul(log.actions.len()),
            depth: net.depth,
            width: net.width,
            lambda: self.lambda.unwrap_or_else(|| constants.least_lambda(net.depth)),
            lambda_0,
            constants,
        };
        theorem.check()?;
        Ok(theorem)
    }

    /// The full settings, for a log of which the summary is known, and λ_0 where β is the theorem's.
    pub fn method(&self, log: &LogSummary, actions: &[String], lambda_0: Option<f64>) -> Result<Method, PolicyError> {
        self.check_names()?;
        let set_up = self.preset.set_up();
        let theory = self.beta == Some(Rule::Theory) || self.step == Some(Rule::Theory);
        // η needs no λ_0
        let theorem = theory.then(|| self.theorem(log, lambda_0.unwrap_or(1.0))).transpose()?;
        let lambda = theorem.as_ref().map_or_else(|| self.lambda.unwrap_or(LAMBDA), |theorem| theorem.lambda);
        let optimiser = match (self.step, &theorem) {
            (Some(Rule::Theory), Some(theorem)) => theorem.optimiser(),
            (Some(Rule::Fixed(eta)), _) => Optimiser::Sgd { schedule: Schedule::Constant(eta) },
            _ => Optimiser::Adam { lr: self.lr.unwrap_or(1e-3), l2: 1e-4, towards: Towards::Zero },
        };
        let covariance = self.covariance.unwrap_or(set_up.covariance);
        let config = match self.algorithm {
            Algorithm::Neuralcb | Algorithm::NeuralGreedy => ModelConfig::Neural(NeuralConfig {
                net: self.net(),
                optimiser,
                mode: self.mode.unwrap_or(Mode::S).of_model(),
                lambda,
                covariance,
                order: set_up.order,
            }),
            Algorithm::NeuralLinLcb | Algorithm::NeuralLinGreedy => ModelConfig::NeuralLinear(NeuralLinearConfig {
                net: self.net(),
                lambda,
                covariance,
                scale_features: set_up.scale_features,
            }),
            Algorithm::LinLcb | Algorithm::LinGreedy => {
                ModelConfig::Linear(LinearConfig { lambda, ..LinearConfig::default() })
            }
            Algorithm::TabLcb | Algorithm::TabGreedy => ModelConfig::Tabular(TabularConfig::default()),
            Algorithm::NeuralRetrain => ModelConfig::Refit(RefitConfig {
                net: self.net(),
                optimiser,
                when: When::EveryRound,
                lambda,
                covariance,
                ..RefitConfig::default()
            }),
            Algorithm::KernLcb => {
                let usual = KernelConfig::default();
                ModelConfig::Kernel(KernelConfig {
                    sigma: self.sigma.unwrap_or(usual.sigma),
                    lambda: self.lambda.or(set_up.kernel_lambda).unwrap_or(LAMBDA),
                    max_samples: self.max_samples.unwrap_or(usual.max_samples),
                    ..usual
                })
            }
            Algorithm::Auto => return Err(PolicyError::Undecided),
            Algorithm::Constant => return self.constant(log, actions),
            Algorithm::Uniform => return Ok(Method::Uniform),
            _ => ModelConfig::Trunk(self.trunk_config().expect("all others are learners on a trunk")),
        };
        let beta = match (self.beta.unwrap_or(Rule::Fixed(self.algorithm.usual_beta())), &theorem) {
            (Rule::Theory, Some(theorem)) => theorem.beta(theorem.n),
            (Rule::Theory, None) => unreachable!("β of the theorem asks for the theorem"),
            (Rule::Fixed(beta), _) => beta,
        };
        // a learner on a trunk knows the scale of its rewards
        let on_a_trunk = matches!(config, ModelConfig::Trunk(_));
        let standardise = self.standardise_rewards.unwrap_or(self.preset == Preset::Practical) && !on_a_trunk;
        let scale = if standardise { RewardScale::standardising(log)? } else { RewardScale::NONE };
        check_beta(beta)?;
        Ok(Method::Model { algorithm: self.algorithm.name().to_owned(), config, beta, scale })
    }

    /// How raw records become contexts, for the algorithm.
    pub fn prepares(&self) -> PreparationConfig {
        let on_a_trunk = self.algorithm == Algorithm::Auto || self.algorithm.trunk().is_some();
        let unit_norm = self.preparation.unit_norm.unwrap_or(!on_a_trunk);
        PreparationConfig { unit_norm: Some(unit_norm), ..self.preparation.clone() }
    }

    /// The settings of a learner on a shared trunk.
    fn trunk_config(&self) -> Option<TrunkConfig> {
        let usual = self.algorithm.trunk()?;
        let mut config = self.trunk.clone().unwrap_or(usual);
        config.lr = self.lr.unwrap_or(config.lr);
        config.members = self.members.unwrap_or(config.members);
        Some(config)
    }

    /// Refuses settings that the algorithm has no use for.
    pub(crate) fn check_names(&self) -> Result<(), PolicyError> {
        use Algorithm::{Constant, KernLcb, NeuralGreedy, NeuralRetrain, Neuralcb};
        let a = self.algorithm;
        let cure = "leave it out, or choose another algorithm";
        let theory = self.beta == Some(Rule::Theory);
        let stepped = [Neuralcb, NeuralGreedy, NeuralRetrain].contains(&a);
        let (network, trunk) = (a.is_network(), a.trunk().is_some());
        let checks: [(&'static str, bool, bool); 13] = [
            ("beta", self.beta.is_some(), a.has_beta()),
            ("beta = theory", theory, a == Neuralcb),
            ("step", self.step.is_some(), stepped),
            ("mode", self.mode.is_some(), [Neuralcb, NeuralGreedy].contains(&a)),
            ("lr", self.lr.is_some(), stepped || trunk),
            ("members", self.members.is_some(), trunk),
            ("trunk", self.trunk.is_some(), trunk),
            ("net", self.net.is_some(), network),
            ("covariance", self.covariance.is_some(), network),
            ("sigma", self.sigma.is_some(), a == KernLcb),
            ("max_samples", self.max_samples.is_some(), a == KernLcb),
            ("lambda", self.lambda.is_some(), network || a.is_ridge()),
            ("action", self.action.is_some(), a == Constant),
        ];
        for (name, given, fits) in checks {
            if given && !fits {
                return Err(PolicyError::Recipe { name, algorithm: a.name().to_owned(), cure });
            }
        }
        if self.step.is_some() && self.lr.is_some() {
            let (name, algorithm) = ("lr", "the SGD that `step` asks for".to_owned());
            return Err(PolicyError::Recipe { name, algorithm, cure: "give one of `lr` (Adam) and `step` (SGD)" });
        }
        Ok(())
    }

    fn constant(&self, log: &LogSummary, actions: &[String]) -> Result<Method, PolicyError> {
        let action = match &self.action {
            Some(name) => actions.iter().position(|a| a == name).ok_or_else(|| PolicyError::Recipe {
                name: "action",
                algorithm: format!("`constant`, because the log has no action `{name}`"),
                cure: "name one of the log's actions (neuralcb diagnose lists them)",
            })?,
            None => best_action(log),
        };
        Ok(Method::Constant { action: action as u32 })
    }

    /// The network: the one given, or the preset's.
    pub fn net(&self) -> NetConfig {
        self.net.clone().unwrap_or_else(|| self.preset.set_up().net)
    }
}
