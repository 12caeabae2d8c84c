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
//! Where every action has its own vector there is one block and e = 0. Model O(Σ n_b³), estimate O(n_b²) per pair, f64.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Learner, RewardModel, row_groups};
use crate::data::{Contexts, Encoding, Layout, Pair};
use crate::error::{Error, at_least, positive};
use crate::linalg::cholesky::{Cholesky, Whitener, gram};
use crate::linalg::exp::exp_in_place;

/// Settings of KernLCB.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `sigma` | 1 | σ of the RBF kernel | > 0 |
/// | `lambda` | 0.1 | λ of the ridge regression | > 0 |
/// | `max_samples` | 1,000 | samples kept; later rounds are not learned | ≥ 1 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelConfig {
    /// σ.
    pub sigma: f64,
    /// λ.
    pub lambda: f64,
    /// Samples kept.
    pub max_samples: usize,
}

impl Default for KernelConfig {
    fn default() -> Self {
        KernelConfig { sigma: 1.0, lambda: 0.1, max_samples: 1000 }
    }
}

/// The kernel regression in training.
pub struct Kernel {
    config: KernelConfig,
    layout: Layout,
    blocks: Vec<Samples>,
    n: usize,
    fitted: Option<Arc<dyn RewardModel>>,
}

/// The samples of one block.
#[derive(Clone, Default)]
struct Samples {
    x: Vec<f64>,
    norms_squared: Vec<f64>,
    y: Vec<f64>,
}

impl Kernel {
    /// Checks the settings.
    pub fn new(config: KernelConfig, layout: Layout) -> Result<Self, Error> {
        positive("sigma", config.sigma)?;
        positive("lambda", config.lambda)?;
        at_least("max_samples", 1, "at least 1", config.max_samples)?;
        Ok(Kernel { config, layout, blocks: vec![Samples::default(); layout.n_blocks()], n: 0, fitted: None })
    }

    fn fit(&self) -> Result<Fitted, Error> {
        let KernelConfig { sigma, lambda, .. } = self.config;
        let rbf = Rbf { gamma: 0.5 / (sigma * sigma), linked: self.layout.encoding == Encoding::Disjoint };
        let mut blocks = Vec::with_capacity(self.blocks.len());
        let (mut q, mut s) = (0.0, 0.0);
        for samples in &self.blocks {
            let n = samples.y.len();
            let e: Vec<f64> = samples.norms_squared.iter().map(|&v| rbf.link(v)).collect();
            let mut m = vec![0.0; n * n];
            rbf.corrections(&samples.x, &samples.norms_squared, samples, &e, self.layout.dim, &mut m);
            (0..n).for_each(|i| m[i * n + i] += lambda);
            let factor = Cholesky::factor(&m, n)?;
            let (mut g, mut alpha) = (e.clone(), samples.y.clone());
            factor.solve(&mut g);
            factor.solve(&mut alpha); // M⁻¹y for now
            q += dot(&e, &g);
            s += dot(&e, &alpha);
            blocks.push(FittedBlock { samples: samples.clone(), e, g, alpha, whitener: factor.whitener() });
        }
        for block in &mut blocks {
            block.alpha.iter_mut().zip(&block.g).for_each(|(a, g)| *a -= g * s / (1.0 + q));
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
        let samples = &mut self.blocks[self.layout.block(chosen.action)];
        samples.x.extend(chosen.x.iter().map(|&v| f64::from(v)));
        samples.norms_squared.push(chosen.x.iter().map(|&v| f64::from(v).powi(2)).sum());
        samples.y.push(reward);
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        if self.fitted.is_none() {
            self.fitted = Some(Arc::new(self.fit()?));
        }
        Ok(Arc::clone(self.fitted.as_ref().expect("just fitted")))
    }
}

/// The kernel, split into the rank-one part between blocks and the correction within a block.
#[derive(Clone, Copy)]
struct Rbf {
    /// 1/2σ².
    gamma: f64,
    /// Whether blocks are linked by e_u·e_v; false where there is one block.
    linked: bool,
}

impl Rbf {
    /// e_u of a vector with that squared norm.
    fn link(&self, norm_squared: f64) -> f64 {
        if self.linked { (-self.gamma * norm_squared).exp() } else { 0.0 }
    }

    /// c(u, x_j) = k(u, x_j) − e_u·e_j for each row u and each sample j (rows × n).
    fn corrections(&self, u: &[f64], norms: &[f64], samples: &Samples, e: &[f64], d: usize, out: &mut [f64]) {
        let n = samples.y.len();
        if n == 0 {
            return;
        }
        gram(u, &samples.x, d, out);
        for (row, &norm) in out.chunks_exact_mut(n).zip(norms) {
            for (v, &sample_norm) in row.iter_mut().zip(&samples.norms_squared) {
                *v = -self.gamma * (norm + sample_norm - 2.0 * *v).max(0.0);
            }
            exp_in_place(row);
            if self.linked {
                let e_u = self.link(norm);
                row.iter_mut().zip(e).for_each(|(v, e)| *v -= e_u * e);
            }
        }
    }
}

struct FittedBlock {
    samples: Samples,
    e: Vec<f64>,
    g: Vec<f64>,
    alpha: Vec<f64>,
    whitener: Whitener,
}

struct Fitted {
    rbf: Rbf,
    lambda: f64,
    layout: Layout,
    blocks: Vec<FittedBlock>,
    q: f64,
    /// eᵀα over all samples.
    e_alpha: f64,
}

/// Rows that are scored at a time.
const ROWS: usize = 128;

impl RewardModel for Fitted {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let d = self.layout.dim;
        let mut u = vec![0.0; ROWS * d];
        let mut c = Vec::new();
        let mut kept = Vec::with_capacity(ROWS);
        let (mut norms, mut whitened) = ([0.0; ROWS], [0.0; ROWS]);
        for group in row_groups(contexts, rounds, self.layout.encoding == Encoding::Disjoint) {
            let block = &self.blocks[self.layout.block(group.action)];
            let n = block.e.len();
            c.resize(ROWS * n, 0.0);
            for rows in group.rows.chunks(ROWS) {
                for ((u, (x, _)), norm) in u.chunks_exact_mut(d).zip(rows).zip(&mut norms) {
                    u.iter_mut().zip(*x).for_each(|(u, &x)| *u = f64::from(x));
                    *norm = dot(u, u);
                }
                let (u, norms) = (&u[..rows.len() * d], &norms[..rows.len()]);
                self.rbf.corrections(u, norms, &block.samples, &block.e, d, &mut c[..rows.len() * n]);

                // Rows that no sample reaches need no product: ‖L⁻¹c‖² ≤ ‖c‖²/λ is lost in the rounding of 1.
                kept.clear();
                for (i, (_, place)) in rows.iter().enumerate() {
                    let own = &c[i * n..(i + 1) * n];
                    let (e_u, g_c) = (self.rbf.link(norms[i]), dot(&block.g, own));
                    mean[*place] = e_u * self.e_alpha + dot(&block.alpha, own);
                    let linked = e_u * self.q + g_c;
                    width[*place] = e_u * e_u * self.q + 2.0 * e_u * g_c - linked * linked / (1.0 + self.q);
                    if dot(own, own) > 1e-18 * self.lambda {
                        kept.push(i);
                    }
                }
                for (to, &from) in kept.iter().enumerate() {
                    c.copy_within(from * n..(from + 1) * n, to * n);
                }
                let whitened = &mut whitened[..kept.len()];
                whitened.fill(0.0);
                block.whitener.add_norms(&c[..kept.len() * n], whitened);
                for (&i, norm) in kept.iter().zip(whitened) {
                    width[rows[i].1] += *norm;
                }
                for (_, place) in rows {
                    width[*place] = (1.0 - width[*place]).max(0.0).sqrt();
                }
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
