//! What is measured, on what and how long.

use neuralcb::Error;
use neuralcb::model::{Covariance, ExactForm, NeuralConfig};
use neuralcb::net::{NetConfig, Optimiser};
use neuralcb::theory::{Constants, Rule, Theorem};
use serde::{Deserialize, Serialize};

use crate::names::Dataset;

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// (a) The empirical NTK tends to H as m grows.
    Kernel,
    /// (b) d̃ and λ_0 against n.
    Dimension,
    /// (c) Sub-optimality of Algorithm 1 against n, and the bound.
    Rate,
    /// (d) Sub-optimality against κ, pessimistic and greedy.
    Coverage,
    /// (e) Training time against n.
    Cost,
    /// (f) Both sides of the lemmas.
    Lemmas,
}

impl Figure {
    /// All, in order.
    pub const ALL: [Figure; 6] =
        [Figure::Kernel, Figure::Dimension, Figure::Rate, Figure::Coverage, Figure::Cost, Figure::Lemmas];

    /// The letter of the figure.
    pub fn letter(self) -> &'static str {
        ["a", "b", "c", "d", "e", "f"][self as usize]
    }

    /// The figure with that letter.
    pub fn parse(text: &str) -> Option<Self> {
        Figure::ALL.into_iter().find(|figure| figure.letter() == text)
    }

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Kernel => "The empirical NTK and its limit",
            Figure::Dimension => "Effective dimension and smallest eigenvalue",
            Figure::Rate => "Sub-optimality against n",
            Figure::Coverage => "Sub-optimality against κ",
            Figure::Cost => "Training time against n",
            Figure::Lemmas => "Both sides of the lemmas",
        }
    }
}

/// Everything the measurements depend on.
///
/// | name | default | purpose |
/// |---|---|---|
/// | `dataset` | quadratic | the bandit |
/// | `n` | 400 | rounds in the log |
/// | `width`, `depth` | 64, 2 | m and L of the network |
/// | `lambda` | max(1, C_3² L) | λ |
/// | `epsilon` | 0.1 | ε of the behaviour policy |
/// | `beta`, `step` | theory | β_t and η_t of Algorithm 1 |
/// | `reps` | 3 | repetitions of (c) and (d) |
/// | `test_contexts` | 300 | rounds on which policies are judged |
/// | `max_contexts` | 12,000 | contexts up to which H is made for (b) and the summary |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The bandit; `None` for a log.
    pub dataset: Option<Dataset>,
    /// Rounds.
    pub n: usize,
    /// m.
    pub width: usize,
    /// L.
    pub depth: usize,
    /// λ; the least that the lemmas allow where it is not given.
    pub lambda: Option<f64>,
    /// ε of the behaviour policy.
    pub epsilon: f64,
    /// β_t.
    pub beta: Rule,
    /// η_t.
    pub step: Rule,
    /// C_1, C_2, C_3, R, δ.
    pub constants: Constants,
    /// Repetitions.
    pub reps: usize,
    /// Test contexts.
    pub test_contexts: usize,
    /// Contexts up to which H is made.
    pub max_contexts: usize,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            dataset: Some(Dataset::Quadratic),
            n: 400,
            width: 64,
            depth: 2,
            lambda: None,
            epsilon: 0.1,
            beta: Rule::Theory,
            step: Rule::Theory,
            constants: Constants::default(),
            reps: 3,
            test_contexts: 300,
            max_contexts: 12_000,
            figures: Figure::ALL.to_vec(),
            seed: 1,
        }
    }
}

impl Settings {
    /// Refuses what cannot be measured.
    pub fn check(&self) -> Result<(), Error> {
        let least = |name, least: usize, range, got: usize| {
            if got >= least { Ok(()) } else { Err(Error::Param { name, range, got: got as f64 }) }
        };
        least("n", 16, "at least 16", self.n)?;
        least("reps", 1, "at least 1", self.reps)?;
        least("test contexts", 1, "at least 1", self.test_contexts)?;
        least("max contexts", 2, "at least 2", self.max_contexts)?;
        for (name, rule, zero) in [("beta", self.beta, true), ("step", self.step, false)] {
            let Rule::Fixed(got) = rule else { continue };
            if !(got.is_finite() && (got > 0.0 || zero && got == 0.0)) {
                return Err(Error::Param { name, range: "`theory` or a finite number > 0 (of beta, also 0)", got });
            }
        }
        // the theorem's door looks at the rest
        self.theorem(self.n, self.n, 1.0).check()
    }

    /// λ.
    pub fn lambda(&self) -> f64 {
        self.lambda.unwrap_or_else(|| self.constants.least_lambda(self.depth))
    }

    /// The theorem's quantities for n rounds.
    pub fn theorem(&self, n: usize, n_contexts: usize, lambda_0: f64) -> Theorem {
        Theorem {
            n,
            n_contexts,
            depth: self.depth,
            width: self.width,
            lambda: self.lambda(),
            lambda_0,
            constants: self.constants.clone(),
        }
    }

    /// The network of equation (1) and Assumption 4.1: no layer norm, [x, x]/√2, block initialisation.
    pub fn net(&self, width: usize) -> NetConfig {
        NetConfig { depth: self.depth, width, layer_norm: false, duplicate_input: true, ..NetConfig::default() }
    }

    /// Algorithm 1 as written, with the exact Λ.
    pub fn algorithm_1(&self, optimiser: Optimiser) -> NeuralConfig {
        NeuralConfig {
            net: self.net(self.width),
            optimiser,
            lambda: self.lambda(),
            covariance: Covariance::Exact(ExactForm::Auto),
            ..NeuralConfig::default()
        }
    }

    /// Rounds at which things are measured against n: halves of n, at least 16.
    pub(crate) fn halves(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..5).map(|i| self.n >> i).filter(|n| *n >= 16).collect();
        all.reverse();
        all
    }
}
