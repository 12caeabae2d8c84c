//! The paper's experiments as data: which figures, which algorithms, which grid, how many repetitions.
//!
//! [`Settings`] says what is asked for; [`Settings::problems`] gives the bandits and logs behind the figures, each once
//! however many figures show it.

use std::collections::BTreeMap;

use neuralcb::Error;
use neuralcb::bandit::{ContextForm, RewardFunction, SyntheticConfig};
use neuralcb::net::NetConfig;
use neuralcb::policy::{BehaviourConfig, LinUcbConfig};
use neuralcb::{Encoding, Layout};
use neuralcb_logs::datasets::{Preparation, Scale};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ExperimentError;
use crate::names::{Algorithm, Dataset, Figure, Preset, Returned, Split, TrainingMode};
use crate::problem::{ProblemConfig, Source};

/// Everything the experiments depend on; the same settings and seed give the same result files, to the byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The figures.
    pub figures: Vec<Figure>,
    /// Whose algorithms: the paper's text or the released code.
    pub preset: Preset,
    /// Whose data: the synthetic bandits' contexts and the real data's rows and scale.
    pub data: Preset,
    /// The real data's scale, where it is not the one of `data`.
    pub scale: Option<Scale>,
    /// How real rows are divided between log and test.
    pub split: Split,
    /// Fields of [`NetConfig`](neuralcb::net::NetConfig) that differ from the preset's.
    pub net: BTreeMap<String, Value>,
    /// Which policy a run returns.
    pub returned: Returned,
    /// The data sets; of each figure those that it shows.
    pub datasets: Vec<Dataset>,
    /// The algorithms and references.
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
    /// λ of every algorithm (the released KernLCB has its own, 1e-6).
    pub lambda: f64,
    /// Side of the cells in which tables count contexts as one; 0: only equal contexts are one.
    #[serde(default)]
    pub cell: f64,
    /// The neural model's ½·l2·‖W‖².
    pub l2: f64,
    /// Repetitions, each with its own bandit, log, test contexts and initial weights.
    pub reps: usize,
    /// Repetitions of B-mode on MNIST, by far the longest runs; at most `reps` are made.
    pub mnist_b_reps: usize,
    /// T, rounds in the log of a synthetic bandit.
    pub synthetic_rounds: usize,
    /// T, rounds in the log of a real data set.
    pub real_rounds: usize,
    /// n_te, test contexts; fewer where a data set has not enough rows.
    pub test_contexts: usize,
    /// Standard deviation of the synthetic rewards' noise ξ ~ N(0, 0.1); see [`SyntheticConfig`] on how to read the
    /// paper.
    pub noise_std: f64,
    /// The policy that makes the logs.
    pub behaviour: BehaviourConfig,
    /// The policy that makes the logs of Figure 3.
    pub dependent: BehaviourConfig,
    /// The seed of everything.
    pub seed: u64,
}

impl Settings {
    /// The paper's figures with its full grid.
    pub fn of(figures: &[Figure], preset: Preset) -> Self {
        let paper = preset == Preset::Paper;
        let grid = vec![0.01, 0.05, 0.1, 1.0, 5.0, 10.0];
        let epsilon = if paper { 0.9 } else { 0.1 };
        Settings {
            figures: figures.to_vec(),
            preset,
            data: preset,
            scale: None,
            split: Split::Disjoint,
            net: BTreeMap::new(),
            returned: Returned::Latest,
            datasets: Dataset::ALL
                .iter()
                .copied()
                .filter(|d| figures.iter().any(|f| f.datasets().contains(d)))
                .collect(),
            algorithms: Algorithm::of_the_figures(),
            modes: vec![TrainingMode::S, TrainingMode::B],
            learning_rates: vec![1e-4, 1e-3],
            betas: if paper { grid.clone() } else { vec![0.01, 0.05, 1.0, 5.0, 10.0] },
            baseline_betas: if paper { grid } else { vec![0.1] },
            sigmas: vec![0.1, 1.0, 10.0],
            lambda: 0.1,
            cell: 0.0,
            l2: 1e-4,
            reps: 10,
            mnist_b_reps: 3,
            synthetic_rounds: 10_000,
            real_rounds: 15_000,
            test_contexts: 10_000,
            noise_std: 0.1,
            behaviour: BehaviourConfig::EpsilonGreedy { epsilon: 0.1 },
            dependent: BehaviourConfig::LinUcbMixture { epsilon, linucb: LinUcbConfig::default() },
            seed: 1,
        }
    }

    /// The same experiments small enough for a first look: each figure takes a minute or three on two cores.
    pub fn quick(self) -> Self {
        Settings {
            reps: 3,
            mnist_b_reps: 1,
            synthetic_rounds: 2_000,
            real_rounds: 2_000,
            test_contexts: 1_000,
            learning_rates: vec![1e-3],
            ..self
        }
    }

    /// Refuses what cannot be run, before anything is started.
    pub fn check(&self) -> Result<(), ExperimentError> {
        self.check_ranges()?;
        self.net(100).map(|_| ())
    }

    fn check_ranges(&self) -> Result<(), Error> {
        let count = |name, got: usize| {
            if got > 0 { Ok(()) } else { Err(Error::Param { name, range: "at least 1", got: got as f64 }) }
        };
        count("reps", self.reps)?;
        count("reps of B-mode on MNIST", self.mnist_b_reps)?;
        count("n", self.synthetic_rounds.min(self.real_rounds))?;
        count("test contexts", self.test_contexts)?;
        count("number of figures", self.figures.len())?;
        count("number of datasets", self.problems().len())?;
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
        each("cell", &[self.cell], "a finite number >= 0", |v| v >= 0.0)?;
        each("l2", &[self.l2], "a finite number >= 0", |v| v >= 0.0)?;
        each("lambda", &[self.lambda], "a finite number > 0", |v| v > 0.0)?;
        each("sigma", &self.sigmas, "a finite number > 0", |v| v > 0.0)?;
        count("number of modes", self.modes.len())
    }

    /// The panels of a figure.
    pub fn panels(&self, figure: Figure) -> impl Iterator<Item = ProblemConfig> + '_ {
        figure.datasets().iter().filter(|d| self.datasets.contains(d)).map(move |&d| self.problem(figure, d))
    }

    /// The bandits and logs behind all figures, each once, in the order of the paper.
    pub fn problems(&self) -> Vec<ProblemConfig> {
        let mut all: Vec<ProblemConfig> = Vec::new();
        for problem in self.figures.iter().flat_map(|&f| self.panels(f)) {
            if !all.contains(&problem) {
                all.push(problem);
            }
        }
        all
    }

    /// The algorithms that a panel shows: Figure 4 is about the neural ones and the references.
    pub fn shows(&self, figure: Figure, algorithm: Algorithm) -> bool {
        use Algorithm::{Behaviour, Clone, Constant, NeuralGreedy, Neuralcb, Uniform};
        let part = [Neuralcb, NeuralGreedy, Uniform, Constant, Behaviour, Clone].contains(&algorithm);
        self.algorithms.contains(&algorithm) && (figure != Figure::Fig4 || part)
    }

    /// The algorithms to run on a problem: those that any of its figures shows.
    pub(crate) fn algorithms_on(&self, problem: &ProblemConfig) -> Vec<Algorithm> {
        let shown = |a: Algorithm| {
            self.figures.iter().any(|&f| self.shows(f, a) && self.panels(f).any(|panel| panel == *problem))
        };
        Algorithm::ALL.iter().copied().filter(|&a| shown(a)).collect()
    }

    fn problem(&self, figure: Figure, dataset: Dataset) -> ProblemConfig {
        let source = match dataset.real() {
            Some(data) => {
                let mut preparation = match self.data {
                    Preset::Paper => Preparation::paper(data),
                    Preset::ReleasedCode => Preparation::released_code(data),
                };
                preparation.scale = self.scale.unwrap_or(preparation.scale);
                Source::Real { data, preparation, split: self.split }
            }
            None => Source::Synthetic(self.synthetic(dataset)),
        };
        ProblemConfig {
            dataset,
            source,
            behaviour: if figure == Figure::Fig3 { &self.dependent } else { &self.behaviour }.clone(),
            rounds: if dataset.real().is_some() { self.real_rounds } else { self.synthetic_rounds },
            test_contexts: self.test_contexts,
        }
    }

    /// The network of width m: the preset's, with the fields of `net` in place of its own.
    pub(crate) fn net(&self, width: usize) -> Result<NetConfig, ExperimentError> {
        let preset = NetConfig { width, ..self.preset.set_up().net };
        let mut fields = serde_json::to_value(preset).expect("settings are plain data");
        for (name, value) in &self.net {
            fields[name] = value.clone();
        }
        let net: NetConfig = serde_json::from_value(fields).map_err(|reason| ExperimentError::Net { reason })?;
        // the door of the network checks the ranges
        neuralcb::net::Net::new(net.clone(), Layout { dim: 2, n_actions: 2, encoding: Encoding::Disjoint })?;
        Ok(net)
    }

    fn synthetic(&self, dataset: Dataset) -> SyntheticConfig {
        let reward = match dataset {
            Dataset::Quadratic2 => RewardFunction::Quadratic2,
            Dataset::Cosine => RewardFunction::Cosine,
            _ => RewardFunction::Quadratic,
        };
        let form = match self.data {
            Preset::Paper => ContextForm::PerAction,
            Preset::ReleasedCode => ContextForm::Shared,
        };
        SyntheticConfig { reward, form, noise_std: self.noise_std, ..SyntheticConfig::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_several_figures_show_is_one() {
        let all = Settings::of(Figure::ALL, Preset::Paper);
        assert_eq!(all.problems().len(), 3 + 4 + 2, "Figure 4 adds none");
        let fig4 = Settings::of(&[Figure::Fig4], Preset::Paper);
        assert_eq!(fig4.problems().len(), 4);
        assert!(!fig4.algorithms_on(&fig4.problems()[0]).contains(&Algorithm::LinLcb));
        assert!(all.algorithms_on(&fig4.problems()[0]).contains(&Algorithm::LinLcb), "Figure 1 shows it on cosine");
    }

    #[test]
    fn bad_settings_are_refused_with_name_and_range() {
        let refusal = |s: Settings| s.check().unwrap_err().to_string();
        let base = || Settings::of(&[Figure::Fig1], Preset::Paper);
        assert_eq!(refusal(Settings { synthetic_rounds: 0, ..base() }), "`n` must be at least 1, got 0");
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
