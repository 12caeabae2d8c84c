//! Λ, the matrix that says how well each direction of the gradient space has been seen.
//!
//! Λ_t = Λ_{t−1} + g gᵀ/m with g = ∇f(x_{t,a_t}), Λ_0 = λI (Algorithm 1, line 6), as
//!
//! * **one diagonal** over all parameters, the paper's approximation: O(p) per round;
//! * **one diagonal per action**, the released code: an action's width knows only its own rounds;
//! * **exact**: the full matrix, its Cholesky factor updated by rank one in f64, O(p²) per round; for many parameters
//!   the dual form over the n samples, gᵀΛ⁻¹g = (‖g‖² − kᵀ(K + λI)⁻¹k)/λ with K the Gram matrix of the gradients.
//!
//! Beside Λ the same shapes hold Σ g·r for the ridge regression on gradient features ([`super::NeuralLinear`]).

use serde::{Deserialize, Serialize};

use crate::data::Layout;
use crate::error::Error;
use crate::linalg::cholesky::{Cholesky, Whitener};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::Arch;
use crate::net::{FactorRows, Net, Tangents};

/// The form of Λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covariance {
    /// One diagonal over all parameters.
    Diagonal,
    /// One diagonal per action.
    PerAction,
    /// The full matrix.
    Exact(ExactForm),
}

/// How the full matrix is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExactForm {
    /// Primal up to 2,048 parameters, dual beyond.
    Auto,
    /// p × p over the parameters.
    Primal,
    /// n × n over the samples.
    Dual,
}

/// Parameters up to which [`ExactForm::Auto`] holds the p × p matrix.
const PRIMAL_LIMIT: usize = 2048;

/// New rows of the dual form that are factored at a time.
const DUAL_BLOCK: usize = 256;

/// Λ in training. Gradients enter as φ = c·∇f.
#[derive(Debug, Clone)]
pub(crate) enum Lambda<T> {
    Diagonal(Diagonal<T>),
    Primal(Primal),
    Dual(Dual),
}

/// The diagonal, for all actions together or for each.
#[derive(Debug, Clone)]
pub(crate) struct Diagonal<T> {
    /// Over W_1: one stretch per block, or per action.
    pub(crate) first: Vec<T>,
    /// Over the other parameters: one stretch, or one per action.
    pub(crate) rest: Vec<T>,
    pub(crate) by_action: bool,
    pub(crate) scale_squared: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Primal {
    factor: Cholesky,
    /// Σ φ·r.
    target: Vec<f64>,
    scale: f64,
    scratch: Vec<f64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Dual {
    rows: FactorRows,
    rewards: Vec<f64>,
    /// The factor of K + λI over the first rows; extended when a model is asked for.
    factor: Cholesky,
    scale: f64,
    lambda: f64,
}

impl<T: Scalar> Lambda<T> {
    /// λI for features c·∇f.
    pub(crate) fn new(covariance: Covariance, net: &Net, layout: Layout, lambda: f64, scale: f64) -> Self {
        match covariance {
            Covariance::Diagonal => Lambda::Diagonal(Diagonal::new(net, layout, T::of(lambda), scale, false)),
            Covariance::PerAction => Lambda::Diagonal(Diagonal::new(net, layout, T::of(lambda), scale, true)),
            Covariance::Exact(form) => {
                let p = net.n_params();
                if form == ExactForm::Primal || (form == ExactForm::Auto && p <= PRIMAL_LIMIT) {
                    let factor = Cholesky::of_identity(p, lambda);
                    Lambda::Primal(Primal { factor, target: vec![0.0; p], scale, scratch: vec![0.0; p] })
                } else {
                    let factor = Cholesky::of_identity(0, 1.0);
                    Lambda::Dual(Dual { rows: FactorRows::new(net), rewards: Vec::new(), factor, scale, lambda })
                }
            }
        }
    }

    /// Λ ← Λ + φφᵀ for the first row of the tangents; the reward is kept where a ridge regression needs it.
    #[inline(always)]
    pub(crate) fn add<A: Arch>(&mut self, net: &Net, tangents: &Tangents<T>, block: usize, action: usize, reward: f64) {
        match self {
            Lambda::Diagonal(d) => {
                let e = T::of(d.scale_squared);
                d.accumulate::<A, true>(net, tangents, block, action, e);
            }
            Lambda::Primal(p) => {
                tangents.expand(net, block, 0, &mut p.scratch);
                for (phi, target) in p.scratch.iter_mut().zip(&mut p.target) {
                    *phi *= p.scale;
                    *target += *phi * reward;
                }
                p.factor.update(&mut p.scratch);
            }
            Lambda::Dual(d) => {
                d.rows.push(net, tangents, block, 0);
                d.rewards.push(reward);
            }
        }
    }
}

impl<T: Scalar> Diagonal<T> {
    /// `value` everywhere.
    pub(crate) fn new(net: &Net, layout: Layout, value: T, scale: f64, by_action: bool) -> Self {
        let (n_first, n_rest) = if by_action { (layout.n_actions, layout.n_actions) } else { (layout.n_blocks(), 1) };
        Diagonal {
            first: vec![value; n_first * net.first_len()],
            rest: vec![value; n_rest * net.rest_len()],
            by_action,
            scale_squared: scale * scale,
        }
    }

    /// self += e·∇f (or e·(∇f)²) of the first row.
    #[inline(always)]
    pub(crate) fn accumulate<A: Arch, const SQUARE: bool>(
        &mut self,
        net: &Net,
        tangents: &Tangents<T>,
        block: usize,
        action: usize,
        e: T,
    ) {
        let (block, part) = if self.by_action { (action, action) } else { (block, 0) };
        let rest = &mut self.rest[part * net.rest_len()..(part + 1) * net.rest_len()];
        net.accumulate::<T, A, SQUARE>(tangents, e, net.block_mut(&mut self.first, block), rest);
    }

    /// The coefficients over W_1 and over the rest that belong to a block and action.
    pub(crate) fn parts(&self, net: &Net, block: usize, action: usize) -> (&[T], &[T]) {
        let (block, part) = if self.by_action { (action, action) } else { (block, 0) };
        (net.block(&self.first, block), &self.rest[part * net.rest_len()..(part + 1) * net.rest_len()])
    }

    /// The element-wise map of two arrays of this shape.
    pub(crate) fn zip(&self, other: &Self, f: impl Fn(T, T) -> T) -> Self {
        let map = |a: &[T], b: &[T]| a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect();
        Diagonal { first: map(&self.first, &other.first), rest: map(&self.rest, &other.rest), ..*self }
    }
}

impl Primal {
    /// θ = Λ⁻¹ Σφr.
    pub(crate) fn theta(&self) -> Vec<f64> {
        let mut theta = self.target.clone();
        self.factor.solve(&mut theta);
        theta
    }

    pub(crate) fn whitener(&self) -> Whitener {
        self.factor.whitener()
    }

    pub(crate) fn scale(&self) -> f64 {
        self.scale
    }
}

impl Dual {
    /// Factors the rows that came since the last call, then freezes everything.
    pub(crate) fn freeze(&mut self, net: &Net) -> Result<FrozenDual, Error> {
        while self.factor.dim() < self.rows.len() {
            let known = self.factor.dim();
            let new = self.rows.slice(known..(known + DUAL_BLOCK).min(self.rows.len()));
            let old = self.rows.slice(0..known);
            let mut cross = vec![0.0; new.len() * known];
            net.gram(&new, &old, &mut cross);
            let mut own = vec![0.0; new.len() * new.len()];
            net.gram(&new, &new, &mut own);
            let scale_squared = self.scale * self.scale;
            cross.iter_mut().chain(&mut own).for_each(|v| *v *= scale_squared);
            (0..new.len()).for_each(|i| own[i * new.len() + i] += self.lambda);
            self.factor.extend(&cross, &own, new.len())?;
        }
        let mut alpha = self.rewards.clone();
        self.factor.solve(&mut alpha);
        Ok(FrozenDual {
            rows: self.rows.clone(),
            whitener: self.factor.whitener(),
            alpha,
            scale_squared: self.scale * self.scale,
            lambda: self.lambda,
        })
    }
}

/// The dual form, ready to score.
#[derive(Debug)]
pub(crate) struct FrozenDual {
    rows: FactorRows,
    whitener: Whitener,
    /// (K + λI)⁻¹ r.
    alpha: Vec<f64>,
    scale_squared: f64,
    lambda: f64,
}

impl FrozenDual {
    /// Ridge mean kᵀα and width² = (φᵀφ − kᵀ(K + λI)⁻¹k)/λ of each row.
    pub(crate) fn estimate(
        &self,
        net: &Net,
        rows: &FactorRows,
        norms_squared: &[f64],
        mean: &mut [f64],
        width: &mut [f64],
    ) {
        let n = self.rows.len();
        let mut k = vec![0.0; rows.len() * n];
        net.gram(rows, &self.rows, &mut k);
        k.iter_mut().for_each(|k| *k *= self.scale_squared);
        width.fill(0.0);
        self.whitener.add_norms(&k, width);
        for i in 0..rows.len() {
            mean[i] = k[i * n..(i + 1) * n].iter().zip(&self.alpha).map(|(k, a)| k * a).sum();
            width[i] = ((norms_squared[i] * self.scale_squared - width[i]).max(0.0) / self.lambda).sqrt();
        }
    }
}
