//! Λ, the matrix that says how well each direction of the gradient space has been seen.
//!
//! Λ_t = Λ_{t−1} + g gᵀ/m with g = ∇f(x_{t,a_t}), Λ_0 = λI (Algorithm 1, line 6), as
//!
//! * **one diagonal** over all parameters, the paper's approximation: O(p) per round;
//! * **one diagonal per action**, the released code: an action's width knows only its own rounds;
//! * **exact**: the full matrix in f64, O(p²) per round and O(p³) per model; for many parameters the dual form over the
//!   n samples, gᵀΛ⁻¹g = (‖g‖² − kᵀ(K + λI)⁻¹k)/λ with K the Gram matrix of the gradients.
//!
//! Beside Λ the same shapes hold Σ g·r for the ridge regression on gradient features ([`super::NeuralLinear`]).

use serde::{Deserialize, Serialize};

use super::exact::{FrozenDual, FrozenPrimal};
use crate::archive::Archive;
use crate::data::Layout;
use crate::error::Error;
use crate::linalg::cholesky::{Cholesky, add_gram};
use crate::linalg::scalar::Scalar;
use crate::net::{Coefficients, FactorRows, Growth, Net, Number, Tangents};

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

/// Rounds that the primal form adds to Λ at a time.
const PRIMAL_BLOCK: usize = 128;

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
    /// Λ without the pending rows: p × p, the lower triangle.
    matrix: Vec<f64>,
    /// φ of the newest rounds, which one matrix product adds to Λ: a rank-one update would read and write all of Λ.
    pending: Vec<f64>,
    /// Σ φ·r.
    target: Vec<f64>,
    scale: f64,
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

impl<T: Number> Lambda<T> {
    /// λI for features c·∇f.
    pub(crate) fn new(covariance: Covariance, net: &Net, layout: Layout, lambda: f64, scale: f64) -> Self {
        match covariance {
            Covariance::Diagonal => Lambda::Diagonal(Diagonal::new(net, layout, T::of(lambda), scale, false)),
            Covariance::PerAction => Lambda::Diagonal(Diagonal::new(net, layout, T::of(lambda), scale, true)),
            Covariance::Exact(form) => {
                let p = net.n_params();
                if form == ExactForm::Primal || (form == ExactForm::Auto && p <= PRIMAL_LIMIT) {
                    let mut matrix = vec![0.0; p * p];
                    matrix.iter_mut().step_by(p + 1).for_each(|v| *v = lambda);
                    Lambda::Primal(Primal { matrix, pending: Vec::new(), target: vec![0.0; p], scale })
                } else {
                    let factor = Cholesky::of_identity(0, 1.0);
                    Lambda::Dual(Dual { rows: FactorRows::new(net), rewards: Vec::new(), factor, scale, lambda })
                }
            }
        }
    }

    /// Whether it is the full matrix.
    pub(crate) fn is_exact(&self) -> bool {
        !matches!(self, Lambda::Diagonal(_))
    }

    /// A diagonal handed over to a step, which lets it grow as [`Lambda::add`] would.
    pub(crate) fn growth(&mut self, net: &Net, block: usize, action: usize) -> Option<Growth<'_, T>> {
        let Lambda::Diagonal(d) = self else { return None };
        let s = T::of(d.scale_squared);
        let (first, rest) = d.parts_mut(net, block, action);
        Some(Growth { first, rest, s })
    }

    /// Λ ← Λ + φφᵀ for the gradient in the tangents; the reward is kept where a ridge regression needs it.
    pub(crate) fn add(&mut self, net: &Net, tangents: &Tangents<T>, block: usize, action: usize, reward: f64) {
        match self {
            Lambda::Diagonal(d) => {
                let e = T::of(d.scale_squared);
                d.accumulate(net, tangents, block, action, e, true);
            }
            Lambda::Primal(p) => {
                let (n_params, at) = (p.target.len(), p.pending.len());
                p.pending.resize(at + n_params, 0.0);
                let phi = &mut p.pending[at..];
                tangents.expand(net, block, phi);
                for (phi, target) in phi.iter_mut().zip(&mut p.target) {
                    *phi *= p.scale;
                    *target += *phi * reward;
                }
                if p.pending.len() == PRIMAL_BLOCK * n_params {
                    p.flush();
                }
            }
            Lambda::Dual(d) => {
                d.rows.push(net, tangents, block);
                d.rewards.push(reward);
            }
        }
    }
}

impl<T: Number> Lambda<T> {
    /// Goes through Λ under `lambda.`.
    pub(crate) fn archive(&mut self, net: &Net, archive: &mut Archive) -> Result<(), Error> {
        match self {
            Lambda::Diagonal(d) => {
                net.archive_parts("lambda", &mut d.first, &mut d.rest, archive)?;
                // padding is λ, and so is what no round has reached
                if let Some(bad) = d.first.iter().chain(d.rest.iter()).find(|&&v| v <= T::ZERO) {
                    let (name, want) = ("lambda".to_owned(), "above 0".to_owned());
                    return Err(Error::Array { name, want, got: bad.to_f64().to_string() });
                }
            }
            Lambda::Primal(p) => {
                let n = p.target.len();
                archive.array("lambda.matrix", &[n, n], &mut p.matrix)?;
                archive.list("lambda.pending", n, &mut p.pending)?;
                archive.array("lambda.target", &[n], &mut p.target)?;
            }
            Lambda::Dual(d) => {
                net.archive_factors("lambda", &mut d.rows, archive)?;
                archive.list("lambda.reward", 1, &mut d.rewards)?;
                if d.rewards.len() != d.rows.len() {
                    let (expected, got) = (d.rows.len(), d.rewards.len());
                    return Err(Error::Shape { what: "rewards of Λ's samples", expected, got });
                }
                if archive.is_reading() {
                    d.factor = Cholesky::of_identity(0, 1.0);
                }
            }
        }
        Ok(())
    }
}

impl<T: Number> Diagonal<T> {
    /// `value` everywhere.
    pub(crate) fn new(net: &Net, layout: Layout, value: T, scale: f64, by_action: bool) -> Self {
        let (n_first, n_rest) = if by_action { (layout.n_actions, layout.n_actions) } else { (net.n_blocks(), 1) };
        Diagonal {
            first: vec![value; n_first * net.first_len()],
            rest: vec![value; n_rest * net.rest_len()],
            by_action,
            scale_squared: scale * scale,
        }
    }

    /// self += e·∇f, or e·(∇f)² if `square`.
    pub(crate) fn accumulate(
        &mut self,
        net: &Net,
        tangents: &Tangents<T>,
        block: usize,
        action: usize,
        e: T,
        square: bool,
    ) {
        let (first, rest) = self.parts_mut(net, block, action);
        T::add_gradient(net, tangents, square, e, [first, rest]);
    }

    fn parts_mut(&mut self, net: &Net, block: usize, action: usize) -> (&mut [T], &mut [T]) {
        let (block, part) = if self.by_action { (action, action) } else { (block, 0) };
        let rest = &mut self.rest[part * net.rest_len()..(part + 1) * net.rest_len()];
        (net.block_mut(&mut self.first, block), rest)
    }

    /// The coefficients over W_1 and over the rest that belong to a block and action.
    pub(crate) fn parts(&self, net: &Net, block: usize, action: usize) -> Coefficients<'_, T> {
        let (block, part) = if self.by_action { (action, action) } else { (block, 0) };
        let rest = &self.rest[part * net.rest_len()..(part + 1) * net.rest_len()];
        Coefficients { first: net.block(&self.first, block), rest }
    }

    /// The element-wise map of two arrays of this shape.
    pub(crate) fn zip(&self, other: &Self, f: impl Fn(T, T) -> T) -> Self {
        let mut both = self.clone();
        for (own, other) in [(&mut both.first, &other.first), (&mut both.rest, &other.rest)] {
            own.iter_mut().zip(other.iter()).for_each(|(a, &b)| *a = f(*a, b));
        }
        both
    }
}

impl Primal {
    /// Λ ← Λ + Σ φφᵀ over the pending rows.
    fn flush(&mut self) {
        add_gram(&self.pending, self.target.len(), &mut self.matrix);
        self.pending.clear();
    }

    /// Factors Λ, and solves for θ = Λ⁻¹ Σφr if a ridge mean is asked for.
    pub(super) fn freeze<T: Scalar>(&mut self, ridge: bool) -> Result<FrozenPrimal<T>, Error> {
        self.flush();
        let factor = Cholesky::factor(&self.matrix, self.target.len())?;
        let theta = ridge.then(|| {
            let mut theta = self.target.clone();
            factor.solve(&mut theta);
            theta
        });
        Ok(FrozenPrimal { whitener: factor.inverse().whitener(), theta, scale: self.scale })
    }
}

impl Dual {
    /// Factors the rows that came since the last call, then freezes everything.
    pub(super) fn freeze(&mut self, net: &Net, ridge: bool) -> Result<FrozenDual, Error> {
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
        let alpha = ridge.then(|| {
            let mut alpha = self.rewards.clone();
            self.factor.solve(&mut alpha);
            alpha
        });
        Ok(FrozenDual {
            rows: self.rows.clone(),
            whitener: self.factor.inverse().whitener(),
            alpha,
            scale_squared: self.scale * self.scale,
            lambda: self.lambda,
        })
    }
}
