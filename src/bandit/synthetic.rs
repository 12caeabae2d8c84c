//! The synthetic bandits of Section 6.1, after Zhou et al. (2020):
//!
//! h_1(u) = 10(uᵀa)²,  h_2(u) = uᵀAᵀAu,  h_3(u) = cos(3uᵀa)
//!
//! with ‖a‖ = 1 drawn uniformly from the sphere, A_ij ~ N(0, 1), d = 20, K = 30, reward = h + ξ.
//!
//! | | the paper's text | the released code |
//! |---|---|---|
//! | contexts | K per round, uniform on the sphere | one per round, uniform in the cube, normalised |
//! | h | one for all actions | one for each action |
//!
//! The paper writes ξ ~ N(0, 0.1) and does not say whether 0.1 is the variance or the standard deviation. Its code
//! draws with standard deviation 0.1, and so does this one by default; `noise_std` = √0.1 is the other reading.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::{Bandit, gaussian};
use crate::data::{Contexts, Eligible, Encoding, Layout, Pair};
use crate::error::{Error, at_least, not_negative};
use crate::seed::Stream;

/// The reward function h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardFunction {
    /// h_1(u) = 10(uᵀa)².
    Quadratic,
    /// h_2(u) = uᵀAᵀAu.
    Quadratic2,
    /// h_3(u) = cos(3uᵀa).
    Cosine,
}

/// Which form of the contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextForm {
    /// K vectors per round, uniform on the unit sphere; one h for all.
    PerAction,
    /// One vector per round, uniform in the cube [−1, 1]^d and normalised; one h per action.
    Shared,
}

/// Settings of a synthetic bandit.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `reward` | quadratic | h | |
/// | `form` | per action | the paper's or the released contexts | |
/// | `dim` | 20 | d | ≥ 1 |
/// | `n_actions` | 30 | K | ≥ 1 |
/// | `noise_std` | 0.1 | standard deviation of ξ | ≥ 0 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SyntheticConfig {
    /// h.
    pub reward: RewardFunction,
    /// The form of the contexts.
    pub form: ContextForm,
    /// d.
    pub dim: usize,
    /// K.
    pub n_actions: usize,
    /// Standard deviation of ξ.
    pub noise_std: f64,
}

impl Default for SyntheticConfig {
    fn default() -> Self {
        SyntheticConfig {
            reward: RewardFunction::Quadratic,
            form: ContextForm::PerAction,
            dim: 20,
            n_actions: 30,
            noise_std: 0.1,
        }
    }
}

/// A synthetic bandit: the drawn a or A.
#[derive(Debug, Clone)]
pub struct Synthetic {
    config: SyntheticConfig,
    /// One a (d) or A (d × d, row-major), or one per action.
    parameters: Vec<Vec<f64>>,
}

impl Synthetic {
    /// Checks the settings and draws a or A.
    pub fn new(config: SyntheticConfig, rng: &mut Stream) -> Result<Self, Error> {
        at_least("dim", 1, "at least 1", config.dim)?;
        at_least("n_actions", 1, "at least 1", config.n_actions)?;
        not_negative("noise_std", config.noise_std)?;
        let (n, d) = match config.form {
            ContextForm::PerAction => (1, config.dim),
            ContextForm::Shared => (config.n_actions, config.dim),
        };
        let mut one = || match (config.reward, config.form) {
            (RewardFunction::Quadratic2, _) => (0..d * d).map(|_| StandardNormal.sample(rng)).collect(),
            (_, ContextForm::PerAction) => on_sphere(d, rng),
            (_, ContextForm::Shared) => from_cube(d, rng),
        };
        Ok(Synthetic { parameters: (0..n).map(|_| one()).collect(), config })
    }

    /// h(u), for the parameters of one action.
    fn h(&self, parameters: &[f64], u: &[f32]) -> f64 {
        let dot = |a: &[f64]| a.iter().zip(u).map(|(a, &u)| a * f64::from(u)).sum::<f64>();
        match self.config.reward {
            RewardFunction::Quadratic => 10.0 * dot(parameters).powi(2),
            RewardFunction::Quadratic2 => parameters.chunks_exact(u.len()).map(|row| dot(row).powi(2)).sum(),
            RewardFunction::Cosine => (3.0 * dot(parameters)).cos(),
        }
    }
}

impl Bandit for Synthetic {
    fn layout(&self) -> Layout {
        let encoding = match self.config.form {
            ContextForm::PerAction => Encoding::PerAction,
            ContextForm::Shared => Encoding::Disjoint,
        };
        Layout { dim: self.config.dim, n_actions: self.config.n_actions, encoding }
    }

    fn draw(&self, n: usize, rng: &mut Stream) -> Result<(Contexts, Vec<f64>), Error> {
        let (d, form) = (self.config.dim, self.config.form);
        let per_round = if form == ContextForm::PerAction { self.config.n_actions } else { 1 };
        let too_many =
            Error::Param { name: "n", range: "small enough for its contexts to fit in memory", got: n as f64 };
        let rows = n.checked_mul(per_round).filter(|rows| rows.checked_mul(d).is_some()).ok_or(too_many.clone())?;
        let mut x = Vec::new();
        x.try_reserve_exact(rows * d).map_err(|_| too_many)?;
        for _ in 0..rows {
            let row = if form == ContextForm::PerAction { on_sphere(d, rng) } else { from_cube(d, rng) };
            x.extend(row.into_iter().map(|v| v as f32));
        }
        let contexts = Contexts::new(self.layout(), x, Eligible::All)?;
        let h = |pair: Pair<'_>| self.h(&self.parameters[pair.action % self.parameters.len()], pair.x);
        let expected = (0..n)
            .flat_map(|t| (0..self.config.n_actions).map(move |a| (t, a)))
            .map(|(t, a)| h(contexts.pair(t, a)))
            .collect();
        Ok((contexts, expected))
    }

    fn draw_reward(&self, expected: f64, rng: &mut Stream) -> f64 {
        gaussian(expected, self.config.noise_std, rng)
    }
}

/// Uniform on the unit sphere.
fn on_sphere(d: usize, rng: &mut Stream) -> Vec<f64> {
    normalised((0..d).map(|_| StandardNormal.sample(rng)).collect())
}

/// Uniform in the cube, then normalised.
fn from_cube(d: usize, rng: &mut Stream) -> Vec<f64> {
    normalised((0..d).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect())
}

fn normalised(mut v: Vec<f64>) -> Vec<f64> {
    let norm = v.iter().map(|v| v * v).sum::<f64>().sqrt();
    v.iter_mut().for_each(|v| *v /= norm);
    v
}
