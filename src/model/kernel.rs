//! KernLCB (Algorithm 3): kernel ridge regression with the RBF kernel, fitted on the first samples of the log.
//!
//! k(u, v) = exp(−‖u − v‖² / 2σ²),  mean(u) = k_n(u)ᵀ(K_n + λI)⁻¹y,  width(u) = √(1 − k_n(u)ᵀ(K_n + λI)⁻¹k_n(u))
//!
//! **Disjoint encoding.** Vectors of different blocks are orthogonal, so their kernel is e_u·e_v with
//! e_u = exp(−‖u‖²/2σ²): rank one. Hence K_n = D + e eᵀ with D block-diagonal (D_b = K_bb − e_b e_bᵀ, positive
//! semi-definite), and with M = D + λI, g = M⁻¹e, q = eᵀg the Sherman–Morrison formula leaves for u in block b, with
//! c = k_b(u) − e_u e_b, only work within the block:
//!
//! ```text
//! kᵀ(K + λI)⁻¹k = e_u²q + 2e_u·g_bᵀc + ‖L_b⁻¹c‖² − (e_u·q + g_bᵀc)² / (1 + q),   L_b L_bᵀ = M_b
//! ```
//!
//! Where every action has its own vector there is one block and e = 0. Model O(Σ n_b³), estimate O(n_b²) per pair.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kernel_scorer::{Fitted, FittedBlock};
use super::precision::Precision;
use super::rbf::{Rbf, Samples};
use super::{Learner, RewardModel};
use crate::archive::Archive;
use crate::data::{Encoding, Layout, Pair};
use crate::error::{Error, at_least, positive, regularisation};
use crate::linalg::cholesky::Cholesky;
use crate::linalg::scalar::Scalar;

/// Settings of KernLCB.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `sigma` | 1 | σ of the RBF kernel | > 0 |
/// | `lambda` | 0.1 | λ of the ridge regression | > 0 |
/// | `max_samples` | 1,000 | samples kept; later rounds are not learned | 1 … 16,384 |
/// | `precision` | auto | of the width's product | see [`Precision`] |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelConfig {
    /// σ.
    pub sigma: f64,
    /// λ.
    pub lambda: f64,
    /// Samples kept.
    pub max_samples: usize,
    /// Precision of the width's product.
    pub precision: Precision,
}

impl Default for KernelConfig {
    fn default() -> Self {
        KernelConfig { sigma: 1.0, lambda: 0.1, max_samples: 1000, precision: Precision::Auto }
    }
}

/// Samples per unit of λ up to which [`Precision::Auto`] is single: u·√(n/λ) < 1e-5.
const SINGLE_LIMIT: f64 = 2e4;

/// Samples whose kernel matrix takes 2 GB.
const MOST_SAMPLES: usize = 16_384;

/// The kernel regression in training.
pub struct Kernel {
    config: KernelConfig,
    layout: Layout,
    blocks: Vec<Block>,
    n: usize,
    fitted: Option<Arc<dyn RewardModel>>,
}

/// The samples of one block.
#[derive(Clone, Default)]
struct Block {
    x: Vec<f64>,
    norms_squared: Vec<f64>,
    y: Vec<f64>,
}

impl Kernel {
    /// Checks the settings.
    pub fn new(config: KernelConfig, layout: Layout) -> Result<Self, Error> {
        positive("sigma", config.sigma)?;
        regularisation(config.lambda)?;
        at_least("max_samples", 1, "at least 1", config.max_samples)?;
        if config.max_samples > MOST_SAMPLES {
            let (range, got) = ("at most 16384: the kernel matrix is their square", config.max_samples as f64);
            return Err(Error::Param { name: "max_samples", range, got });
        }
        Ok(Kernel { config, layout, blocks: vec![Block::default(); layout.n_blocks()], n: 0, fitted: None })
    }

    /// Whether ‖L⁻¹c‖² is computed in f32.
    fn single(&self) -> bool {
        self.config.precision.is_single(self.n as f64 <= SINGLE_LIMIT * self.config.lambda)
    }

    fn fit<T: Scalar>(&self) -> Result<Fitted<T>, Error> {
        let KernelConfig { sigma, lambda, .. } = self.config;
        let rbf = Rbf { gamma: 0.5 / (sigma * sigma), linked: self.layout.encoding == Encoding::Disjoint };
        let d = self.layout.dim;
        let mut solved = Vec::with_capacity(self.blocks.len());
        let (mut q, mut s) = (0.0, 0.0);
        for Block { x, norms_squared, y } in &self.blocks {
            let n = y.len();
            let e: Vec<f64> = norms_squared.iter().map(|&v| rbf.link(v)).collect();
            let mut m = rbf.corrections(x, norms_squared, &e, d);
            (0..n).for_each(|i| m[i * n + i] += lambda);
            let factor = Cholesky::factor(&m, n)?;
            let (mut g, mut alpha) = (e.clone(), y.clone());
            factor.solve(&mut g);
            factor.solve(&mut alpha); // M⁻¹y for now
            q += dot(&e, &g);
            s += dot(&e, &alpha);
            solved.push((e, g, alpha, factor.inverse().whitener()));
        }
        let mut blocks = Vec::with_capacity(solved.len());
        for ((e, g, mut alpha, whitener), own) in solved.into_iter().zip(&self.blocks) {
            alpha.iter_mut().zip(&g).for_each(|(a, g)| *a -= g * s / (1.0 + q));
            let samples = Samples::new(&own.x, d, &own.norms_squared, &e, &alpha, &g);
            blocks.push(FittedBlock { samples, whitener });
        }
        Ok(Fitted { rbf, lambda, layout: self.layout, blocks, q, e_alpha: s / (1.0 + q) })
    }
}

impl Learner for Kernel {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        if self.n == self.config.max_samples {
            return;
        }
        self.n += 1;
        self.fitted = None;
        let block = &mut self.blocks[self.layout.block(chosen.action)];
        block.x.extend(chosen.x.iter().map(|&v| f64::from(v)));
        block.norms_squared.push(chosen.x.iter().map(|&v| f64::from(v).powi(2)).sum());
        block.y.push(reward);
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        let d = self.layout.dim;
        for (b, block) in self.blocks.iter_mut().enumerate() {
            archive.list(&format!("support.{b}"), d, &mut block.x)?;
            archive.list(&format!("reward.{b}"), 1, &mut block.y)?;
            let (expected, got) = (block.x.len() / d, block.y.len());
            if expected != got {
                return Err(Error::Shape { what: "rewards of the support points", expected, got });
            }
            block.norms_squared = block.x.chunks_exact(d).map(|x| x.iter().map(|v| v * v).sum()).collect();
        }
        self.n = self.blocks.iter().map(|b| b.y.len()).sum();
        if self.n > self.config.max_samples {
            let (expected, got) = (self.config.max_samples, self.n);
            return Err(Error::Shape { what: "support points, at most", expected, got });
        }
        self.fitted = None;
        Ok(())
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        if self.fitted.is_none() {
            self.fitted = Some(if self.single() { Arc::new(self.fit::<f32>()?) } else { Arc::new(self.fit::<f64>()?) });
        }
        Ok(Arc::clone(self.fitted.as_ref().expect("just fitted")))
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
