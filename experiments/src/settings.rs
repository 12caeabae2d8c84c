//! An experiment as data: which bandits, which algorithms, which grid, how many repetitions.
//!
//! [`Settings`] says what is asked for; [`Settings::passes`] turns it into the fewest training passes: β and the
//! greedy twin are read off one and the same pass.

use neuralcb::bandit::{ContextForm, RewardFunction, SyntheticConfig};
use neuralcb::model::{Covariance, KernelConfig, LinearConfig, Mode, NeuralConfig, NeuralLinearConfig, UpdateOrder};
use neuralcb::net::{Init, NetConfig, Optimiser, OutputScale, Towards};
use neuralcb::policy::{BehaviourConfig, Rounding};
use neuralcb::{Error, ModelConfig};
use serde::{Deserialize, Serialize};

use crate::names::{Algorithm, Dataset, Preset, TrainingMode};

/// Everything an experiment depends on; the same settings and seed give the same result files, to the byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The figure of the paper, for example `fig1`.
    pub figure: String,
    /// Whose set-up: the paper's text or the released code.
    pub preset: Preset,
    /// The bandits.
    pub datasets: Vec<Dataset>,
    /// The algorithms.
    pub algorithms: Vec<Algorithm>,
    /// Training modes of the neural model.
    pub modes: Vec<TrainingMode>,
    /// Learning rates of the neural model.
    pub learning_rates: Vec<f64>,
    /// β of NeuraLCB.
    pub betas: Vec<f64>,
    /// β of LinLCB, KernLCB and NeuralLinLCB.
    pub baseline_betas: Vec<f64>,
    /// σ of KernLCB.
    pub sigmas: Vec<f64>,
    /// Repetitions, each with its own bandit, log, test contexts and initial weights.
    pub reps: usize,
    /// T, rounds in the log.
    pub rounds: usize,
    /// n_te, test contexts.
    pub test_contexts: usize,
    /// Standard deviation of the rewards' noise ξ ~ N(0, 0.1); see [`SyntheticConfig`] on how to read the paper.
    pub noise_std: f64,
    /// The policy that makes the log.
    pub behaviour: BehaviourConfig,
    /// The seed of everything.
    pub seed: u64,
}

/// One training pass and everything that is read off it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// The reward model.
    pub model: ModelConfig,
    /// Training mode, where the model has one.
    pub mode: Option<TrainingMode>,
    /// Learning rate, where the model has one.
    pub learning_rate: Option<f64>,
    /// σ, where the model has one.
    pub sigma: Option<f64>,
    /// The algorithms, with their β; `None` is the greedy twin.
    pub outputs: Vec<(Algorithm, Option<f64>)>,
    /// The precision in which bounds are compared.
    pub rounding: Rounding,
}

impl Settings {
    /// Figure 1: the three synthetic bandits with the paper's full grid.
    pub fn fig1(preset: Preset) -> Self {
        let paper = preset == Preset::Paper;
        Settings {
            figure: "fig1".to_owned(),
            preset,
            datasets: Dataset::ALL.to_vec(),
            algorithms: Algorithm::ALL.to_vec(),
            modes: vec![TrainingMode::S, TrainingMode::B],
            learning_rates: vec![1e-4, 1e-3],
            betas: if paper { vec![0.01, 0.05, 0.1, 1.0, 5.0, 10.0] } else { vec![0.01, 0.05, 1.0, 5.0, 10.0] },
            baseline_betas: if paper { vec![0.01, 0.05, 0.1, 1.0, 5.0, 10.0] } else { vec![0.1] },
            sigmas: vec![0.1, 1.0, 10.0],
            reps: 10,
            rounds: 10_000,
            test_contexts: 10_000,
            noise_std: 0.1,
            behaviour: BehaviourConfig::EpsilonGreedy { epsilon: 0.1 },
            seed: 1,
        }
    }

    /// The same experiment small enough for a first look: under a minute on two cores.
    pub fn quick(self) -> Self {
        Settings { reps: 3, rounds: 2_000, test_contexts: 1_000, learning_rates: vec![1e-3], ..self }
    }

    /// The figure's name in words.
    pub fn title(&self) -> String {
        self.figure.replace("fig", "Figure ")
    }

    /// Refuses what cannot be run, before anything is started.
    pub fn check(&self) -> Result<(), Error> {
        let count = |name, got: usize| {
            if got > 0 { Ok(()) } else { Err(Error::Param { name, range: "at least 1", got: got as f64 }) }
        };
        count("reps", self.reps)?;
        count("n", self.rounds)?;
        count("test contexts", self.test_contexts)?;
        count("number of datasets", self.datasets.len())?;
        count("number of algorithms", self.algorithms.len())?;
        let each = |name, values: &[f64], range, ok: fn(f64) -> bool| match values
            .iter()
            .find(|v| !(v.is_finite() && ok(**v)))
        {
            Some(&got) => Err(Error::Param { name, range, got }),
            None => count(name, values.len()),
        };
        each("beta", &self.betas, "a finite number >= 0", |v| v >= 0.0)?;
        each("beta", &self.baseline_betas, "a finite number >= 0", |v| v >= 0.0)?;
        each("lr", &self.learning_rates, "a finite number > 0", |v| v > 0.0)?;
        each("noise-std", &[self.noise_std], "a finite number >= 0", |v| v >= 0.0)?;
        each("sigma", &self.sigmas, "a finite number > 0", |v| v > 0.0)?;
        count("number of modes", self.modes.len())
    }

    /// The numbers of rounds at which policies are judged: 1, 1.5, 2, 3, 5, 7 times powers of ten, and the last.
    pub fn checkpoints(&self) -> Vec<usize> {
        let mut n: Vec<usize> = (1..=9)
            .flat_map(|decade| [10, 15, 20, 30, 50, 70].map(|step: usize| step * 10usize.pow(decade) / 10))
            .filter(|&n| n < self.rounds && n != 15)
            .collect();
        n.push(self.rounds);
        n
    }

    /// The bandit of a data set.
    pub fn bandit(&self, dataset: Dataset) -> SyntheticConfig {
        let reward = match dataset {
            Dataset::Quadratic => RewardFunction::Quadratic,
            Dataset::Quadratic2 => RewardFunction::Quadratic2,
            Dataset::Cosine => RewardFunction::Cosine,
        };
        let form = match self.preset {
            Preset::Paper => ContextForm::PerAction,
            Preset::ReleasedCode => ContextForm::Shared,
        };
        SyntheticConfig { reward, form, noise_std: self.noise_std, ..SyntheticConfig::default() }
    }

    fn net(&self) -> NetConfig {
        match self.preset {
            Preset::Paper => NetConfig::default(),
            Preset::ReleasedCode => NetConfig {
                depth: 3,
                biases: true,
                output_scale: OutputScale::One,
                init: Init::Uniform,
                ..NetConfig::default()
            },
        }
    }

    /// The training passes that serve every algorithm and every point of the grid.
    pub fn passes(&self) -> Vec<Pass> {
        let released = self.preset == Preset::ReleasedCode;
        let covariance = if released { Covariance::PerAction } else { Covariance::Diagonal };
        let order = if released { UpdateOrder::AfterStep } else { UpdateOrder::BeforeStep };
        let mut passes = Vec::new();
        let mut add = |model, mode, learning_rate, sigma, lcb, betas: &[f64], greedy: Option<Algorithm>| {
            let mut outputs = Vec::new();
            if self.algorithms.contains(&lcb) {
                outputs.extend(betas.iter().map(|&beta| (lcb, Some(beta))));
            }
            outputs.extend(greedy.filter(|g| self.algorithms.contains(g)).map(|g| (g, None)));
            let rounding = if released && lcb == Algorithm::KernLcb { Rounding::F32 } else { Rounding::None };
            if !outputs.is_empty() {
                passes.push(Pass { model, mode, learning_rate, sigma, outputs, rounding });
            }
        };
        for &mode in &self.modes {
            for &lr in &self.learning_rates {
                let config = NeuralConfig {
                    net: self.net(),
                    optimiser: Optimiser::Adam { lr, l2: 1e-4, towards: Towards::Zero },
                    mode: match mode {
                        TrainingMode::S => Mode::Single,
                        TrainingMode::B => Mode::Batch { steps: 100, batch: 50 },
                    },
                    lambda: 0.1,
                    covariance,
                    order,
                };
                let greedy = Some(Algorithm::NeuralGreedy);
                let model = ModelConfig::Neural(config);
                add(model, Some(mode), Some(lr), None, Algorithm::Neuralcb, &self.betas, greedy);
            }
        }
        let config = NeuralLinearConfig { net: self.net(), lambda: 0.1, covariance, scale_features: released };
        let (model, greedy) = (ModelConfig::NeuralLinear(config), Some(Algorithm::NeuralLinGreedy));
        add(model, None, None, None, Algorithm::NeuralLinLcb, &self.baseline_betas, greedy);
        let model = ModelConfig::Linear(LinearConfig { lambda: 0.1 });
        add(model, None, None, None, Algorithm::LinLcb, &self.baseline_betas, None);
        for &sigma in &self.sigmas {
            let lambda = if released { 1e-6 } else { 0.1 };
            let model =
                ModelConfig::Kernel(KernelConfig { sigma, lambda, max_samples: 1000, ..KernelConfig::default() });
            add(model, None, None, Some(sigma), Algorithm::KernLcb, &self.baseline_betas, None);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_serves_every_beta_and_the_greedy_twin() {
        let passes = Settings::fig1(Preset::Paper).passes();
        assert_eq!(passes.len(), 2 * 2 + 1 + 1 + 3);
        assert_eq!(passes[0].outputs.len(), 7);
        assert_eq!(passes[0].outputs[6], (Algorithm::NeuralGreedy, None));
        let only = Settings { algorithms: vec![Algorithm::NeuralGreedy], ..Settings::fig1(Preset::Paper) }.passes();
        assert_eq!(only.len(), 4);
        assert_eq!(only[0].outputs, [(Algorithm::NeuralGreedy, None)]);
    }

    #[test]
    fn checkpoints_rise_to_the_last_round() {
        let at = |rounds| Settings { rounds, ..Settings::fig1(Preset::Paper) }.checkpoints();
        assert_eq!(at(1), [1]);
        assert_eq!(at(100), [10, 20, 30, 50, 70, 100]);
        let full = at(10_000);
        assert!(full.is_sorted_by(|a, b| a < b));
        for n in [1000, 2000, 3000, 5000, 10_000] {
            assert!(full.contains(&n));
        }
    }

    #[test]
    fn bad_settings_are_refused_with_name_and_range() {
        let refusal = |s: Settings| s.check().unwrap_err().to_string();
        let base = || Settings::fig1(Preset::Paper);
        assert_eq!(refusal(Settings { rounds: 0, ..base() }), "`n` must be at least 1, got 0");
        assert_eq!(
            refusal(Settings { betas: vec![0.1, -1.0], ..base() }),
            "`beta` must be a finite number >= 0, got -1"
        );
        assert_eq!(
            refusal(Settings { learning_rates: vec![0.0], ..base() }),
            "`lr` must be a finite number > 0, got 0"
        );
        assert!(base().check().is_ok() && base().quick().check().is_ok());
    }
}
