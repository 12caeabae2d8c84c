//! The neural tangent kernel matrix of Definition 4.1 and what the analysis reads off it.
//!
//! With H̃⁽¹⁾ = Σ⁽¹⁾ = ⟨x⁽ⁱ⁾, x⁽ʲ⁾⟩,
//!
//! ```text
//! Σ⁽ˡ⁺¹⁾ = 2 E[σ(u)σ(v)],   H̃⁽ˡ⁺¹⁾ = 2 H̃⁽ˡ⁾ E[σ′(u)σ′(v)] + Σ⁽ˡ⁺¹⁾,   (u, v) ~ N(0, A⁽ˡ⁾),   H = (H̃⁽ᴸ⁾ + Σ⁽ᴸ⁾)/2
//! ```
//!
//! The expectations are arc-cosine kernels (Cho & Saul 2009): for cos θ = Σ_ij/√(Σ_ii Σ_jj)
//!
//! ```text
//! 2 E[σ(u)σ(v)] = √(Σ_ii Σ_jj) (sin θ + (π − θ) cos θ)/π,      2 E[σ′(u)σ′(v)] = 1 − θ/π
//! ```
//!
//! so that Σ_ii never changes from layer to layer, and H_ij = ‖x⁽ⁱ⁾‖‖x⁽ʲ⁾‖·k_L(cos ∠(x⁽ⁱ⁾, x⁽ʲ⁾)): one matrix product
//! gives the cosines and L − 1 arc cosines per entry the rest. O((nK)²(d + L)) over tiles of the lower triangle.
//!
//! **Two limits.** ⟨∇f_{W⁽⁰⁾}(x), ∇f_{W⁽⁰⁾}(y)⟩/m tends to H if the output weights have variance 1/m (Cao & Gu 2019,
//! where the definition comes from). Algorithm 1 draws them from N(0, 2/m): every layer but the last then counts twice,
//! and the limit is H̃⁽ᴸ⁾ = 2H − Σ⁽ᴸ⁾. Both are here ([`Limit`]); H ⪯ H̃⁽ᴸ⁾ ⪯ 2H, so the theory's rates are the same.

use std::f64::consts::PI;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::lanczos::{self, LanczosConfig, LogDet};
use super::points::Points;
use crate::error::{Error, at_least, positive};
use crate::linalg::acos::acos;
use crate::linalg::symmetric::{Stretch, Symmetric, gram};
use crate::linalg::vectors::{Job, dispatch};
use crate::net::{FactorRows, Net, Number, Params, Tangents};

/// Which limit of the empirical kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// H = (H̃⁽ᴸ⁾ + Σ⁽ᴸ⁾)/2: Definition 4.1; the limit for output weights N(0, 1/m).
    Definition,
    /// H̃⁽ᴸ⁾: the limit for the output weights N(0, 2/m) that Algorithm 1 draws.
    Algorithm1,
}

/// Settings of H.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `depth` | 2 | L | ≥ 2 |
/// | `limit` | definition | H, or the limit for Algorithm 1's initialisation | |
/// | `max_exact` | 10,000 | contexts up to which factorisations are made, O((nK)³) | ≥ 1 |
/// | `max_contexts` | 30,000 | contexts up to which H is held, 4·(nK)² bytes | ≥ 1 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NtkConfig {
    /// L.
    pub depth: usize,
    /// Which limit.
    pub limit: Limit,
    /// Contexts up to which factorisations are made.
    pub max_exact: usize,
    /// Contexts up to which the matrix is held.
    pub max_contexts: usize,
}

impl Default for NtkConfig {
    fn default() -> Self {
        NtkConfig { depth: 2, limit: Limit::Definition, max_exact: 10_000, max_contexts: 30_000 }
    }
}

/// A kernel matrix over contexts: H, or the empirical one.
#[derive(Debug, Clone)]
pub struct Ntk {
    matrix: Symmetric,
    /// The first two contexts with one direction: number of the earlier and of the later.
    parallel: Option<(usize, usize)>,
    origin: Vec<(usize, usize)>,
    max_exact: usize,
}

/// Cosines nearer to 1 than this are those of parallel contexts: f32 contexts that differ in one last digit have 1e-15
/// to 1e-14, and the arc cosine could not tell them apart.
const PARALLEL: f64 = 1e-12;

impl Ntk {
    /// H over the points.
    pub fn new(points: &Points, config: &NtkConfig) -> Result<Self, Error> {
        at_least("depth", 2, "at least 2", config.depth)?;
        let n = door(points, config.max_contexts)?;
        let first = AtomicUsize::new(usize::MAX);
        let fill = |rows: Stretch, cols: Stretch, values: &mut [f64]| {
            gram(points.directions(rows.clone()), points.directions(cols.clone()), points.dim(), values);
            for (row, i) in values.chunks_exact_mut(cols.len()).zip(rows.clone()) {
                for (v, j) in row.iter_mut().zip(cols.clone()) {
                    if i == j {
                        *v = 1.0;
                    } else if points.block(i) != points.block(j) {
                        *v = 0.0;
                    } else if *v > 1.0 - PARALLEL {
                        first.fetch_min(i.max(j) * n + i.min(j), Ordering::Relaxed);
                        *v = 1.0;
                    }
                }
            }
            dispatch(Kernels { values, depth: config.depth, limit: config.limit });
            for (row, i) in values.chunks_exact_mut(cols.len()).zip(rows) {
                for (v, j) in row.iter_mut().zip(cols.clone()) {
                    *v *= points.norm(i) * points.norm(j);
                }
            }
            Ok::<(), Error>(())
        };
        let matrix = Symmetric::from_tiles(n, fill)?;
        let parallel = Some(first.into_inner()).filter(|&at| at != usize::MAX).map(|at| (at % n, at / n));
        Ok(Ntk { matrix, parallel, origin: origins(points), max_exact: config.max_exact })
    }

    /// ⟨∇f_W(x⁽ⁱ⁾), ∇f_W(x⁽ʲ⁾)⟩/m of a network, which sees the contexts as it sees those of a log.
    pub fn empirical<T: Number>(net: &Net, weights: &Params<T>, points: &Points) -> Result<Self, Error> {
        let defaults = NtkConfig::default();
        let n = door(points, defaults.max_contexts)?;
        let mut factors = FactorRows::new(net);
        let (mut tangents, mut input) = (Tangents::new(net), vec![T::ZERO; net.n_in()]);
        for i in 0..n {
            let x: Vec<f32> = points.direction(i).iter().map(|v| (v * points.norm(i)) as f32).collect();
            net.write_input(&x, &mut input);
            net.tangents(weights, points.block(i), &input, &mut tangents);
            factors.push(net, &tangents, points.block(i));
        }
        let m = net.width() as f64;
        let fill = |rows: Stretch, cols: Stretch, values: &mut [f64]| {
            net.gram(&factors.slice(rows), &factors.slice(cols), values);
            values.iter_mut().for_each(|v| *v /= m);
            Ok::<(), Error>(())
        };
        let matrix = Symmetric::from_tiles(n, fill)?;
        Ok(Ntk { matrix, parallel: None, origin: origins(points), max_exact: defaults.max_exact })
    }

    /// The matrix over the first `n` contexts.
    pub fn leading(&self, n: usize) -> Self {
        Ntk {
            matrix: self.matrix.leading(n),
            parallel: self.parallel.filter(|&(_, later)| later < n),
            origin: self.origin[..n].to_vec(),
            max_exact: self.max_exact,
        }
    }

    /// Number nK of contexts.
    pub fn n_contexts(&self) -> usize {
        self.matrix.order()
    }

    /// H_ij.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.matrix.get(i, j)
    }

    /// max_ij |H_ij − G_ij|.
    pub fn max_difference(&self, other: &Ntk) -> Result<f64, Error> {
        let (expected, got) = (self.n_contexts(), other.n_contexts());
        if expected != got {
            return Err(Error::Shape { what: "contexts of the other matrix", expected, got });
        }
        let row = |i: usize| (0..=i).map(move |j| (self.get(i, j) - other.get(i, j)).abs()).fold(0.0, f64::max);
        Ok((0..expected).map(row).fold(0.0, f64::max))
    }

    /// λ_0, the smallest eigenvalue, by Lanczos' method on H⁻¹.
    pub fn lambda_0(&self) -> Result<f64, Error> {
        let factor = self.factor()?;
        Ok(1.0 / lanczos::largest_eigenvalue(self.n_contexts(), |v| factor.solve(v)))
    }

    /// S = ‖h‖_{H⁻¹} = √(hᵀH⁻¹h) for the expected reward of each context.
    pub fn complexity(&self, h: &[f64]) -> Result<f64, Error> {
        let expected = self.n_contexts();
        if h.len() != expected {
            return Err(Error::Shape { what: "expected rewards, one per context", expected, got: h.len() });
        }
        let mut whitened = h.to_vec();
        self.factor()?.solve_lower(&mut whitened);
        Ok(whitened.iter().map(|v| v * v).sum::<f64>().sqrt())
    }

    fn factor(&self) -> Result<crate::linalg::symmetric::TiledCholesky, Error> {
        self.check_exact()?;
        if let Some((i, j)) = self.parallel {
            let ((round, action), (other_round, other_action)) = (self.origin[i], self.origin[j]);
            return Err(Error::Parallel { round, action, other_round, other_action });
        }
        self.matrix.clone().factor().map_err(|error| match error {
            Error::NotPositiveDefinite { pivot } => Error::SingularKernel { index: pivot },
            other => other,
        })
    }

    fn check_exact(&self) -> Result<(), Error> {
        let (got, limit) = (self.n_contexts(), self.max_exact);
        if got <= limit { Ok(()) } else { Err(Error::TooManyContexts { got, limit }) }
    }

    /// log det(I + H/λ), exact. H may be singular.
    pub fn log_det(&self, lambda: f64) -> Result<f64, Error> {
        positive("lambda", lambda)?;
        self.check_exact()?;
        Ok(self.matrix.clone().map(|v| v / lambda).add_identity(1.0).factor()?.log_det())
    }

    /// d̃ = log det(I + H/λ)/log(1 + nK/λ), exact.
    pub fn effective_dimension(&self, lambda: f64) -> Result<f64, Error> {
        Ok(self.log_det(lambda)? / self.scale(lambda))
    }

    /// log(1 + nK/λ), the denominator of d̃.
    pub fn scale(&self, lambda: f64) -> f64 {
        (self.n_contexts() as f64 / lambda).ln_1p()
    }

    /// log det(I + H/λ) by deflated stochastic Lanczos quadrature, with its error; d̃ is this over [`Ntk::scale`].
    pub fn approximate(&self, lambda: f64, config: &LanczosConfig) -> Result<LogDet, Error> {
        positive("lambda", lambda)?;
        config.log_det(self.n_contexts(), lambda, |v, k| self.matrix.product(v, k))
    }
}

fn origins(points: &Points) -> Vec<(usize, usize)> {
    (0..points.len()).map(|i| points.origin(i)).collect()
}

fn door(points: &Points, limit: usize) -> Result<usize, Error> {
    let got = points.len();
    at_least("number of contexts", 1, "at least 1", got)?;
    if got <= limit { Ok(got) } else { Err(Error::TooManyContexts { got, limit }) }
}

/// ρ ← k_L(ρ), with the processor's vector instructions.
///
/// The matrix product before it leaves the vector registers in a state in which plain instructions are ten times
/// slower.
struct Kernels<'a> {
    values: &'a mut [f64],
    depth: usize,
    limit: Limit,
}

impl Job for Kernels<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Kernels { values, depth, limit } = self;
        values.iter_mut().for_each(|v| *v = kernel(*v, depth, limit));
    }
}

/// k_L(ρ): the kernel of unit vectors with cosine ρ.
#[inline(always)]
fn kernel(rho: f64, depth: usize, limit: Limit) -> f64 {
    let (mut sigma, mut h) = (rho, rho);
    for _ in 1..depth {
        let theta = acos(sigma.clamp(-1.0, 1.0));
        let sine = ((1.0 - sigma) * (1.0 + sigma)).max(0.0).sqrt();
        let next = (sine + (PI - theta) * sigma) / PI;
        h = h * (1.0 - theta / PI) + next;
        sigma = next;
    }
    match limit {
        Limit::Definition => (h + sigma) / 2.0,
        Limit::Algorithm1 => h,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_of_two_layers_is_the_textbook_s() {
        // (ρ(π − θ)/π + 2(sin θ + (π − θ)ρ)/π)/2 at θ = π/3 and π/2
        let at = |theta: f64| (3.0 * theta.cos() * (PI - theta) + 2.0 * theta.sin()) / (2.0 * PI);
        for theta in [PI / 3.0, PI / 2.0, 2.5, 0.1] {
            assert!((kernel(theta.cos(), 2, Limit::Definition) - at(theta)).abs() < 1e-14);
        }
        for depth in [2, 3, 4] {
            let want = (depth as f64 + 1.0) / 2.0; // H̃_ii = L, Σ_ii = 1
            assert!((kernel(1.0, depth, Limit::Definition) - want).abs() < 1e-14);
            assert!((kernel(1.0, depth, Limit::Algorithm1) - depth as f64).abs() < 1e-14);
        }
    }
}
