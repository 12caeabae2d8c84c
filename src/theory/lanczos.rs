//! Lanczos' method with full reorthogonalisation: the largest eigenvalue, and log det(I + A/λ) by stochastic
//! quadrature.
//!
//! **Deflation.** The few large eigenvalues of a kernel matrix would make a random estimate of its trace noisy. A
//! random sketch A·Ω of `rank` columns, orthonormalised to Q, catches them: with C = QᵀAQ/λ, I + C = R·Rᵀ and
//! S = I + Q(R⁻¹ − I)Qᵀ,
//!
//! log det(I + A/λ) = log det(I + C) + tr log M,  M = S(I + A/λ)Sᵀ,
//!
//! where the first part is exact and M is nearly the identity.
//!
//! **Quadrature.** tr log M = E[zᵀ log(M) z] for random signs z (Hutchinson). After k steps from z the tridiagonal T
//! gives zᵀ log(M)z ≈ ‖z‖² Σ τ_i² log θ_i, with θ the eigenvalues of T and τ the first components of its eigenvectors
//! (Gauss quadrature; Ubaru, Chen & Saad 2017).
//!
//! The error has two parts, and both are told. All even derivatives of log are negative, so the Gauss rule lies
//! **above** the truth and the Gauss–Radau rule with a node below all eigenvalues of M **below**: their distance bounds
//! the error of the quadrature. The rest is the spread over the z. O((probes·steps + rank)·n² + rank²·n), in blocks as
//! matrix products.

use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, at_least};
use crate::linalg::cholesky::Cholesky;
use crate::linalg::symmetric::dot;
use crate::seed::Seed;

/// Settings of the approximation.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `probes` | 32 | random vectors z | ≥ 2 |
/// | `steps` | 24 | k, Lanczos steps from each | ≥ 2 |
/// | `rank` | 320 | columns of the sketch, at most a quarter of the order; 0: no deflation | ≥ 0 |
/// | `seed` | 1 | the draws of z | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LanczosConfig {
    /// Random vectors.
    pub probes: usize,
    /// Steps from each.
    pub steps: usize,
    /// Columns of the sketch.
    pub rank: usize,
    /// The draws.
    pub seed: u64,
}

impl Default for LanczosConfig {
    fn default() -> Self {
        LanczosConfig { probes: 32, steps: 24, rank: 320, seed: 1 }
    }
}

/// An estimate of log det(I + A/λ).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogDet {
    /// The middle of the two quadratures.
    pub value: f64,
    /// Standard error over the probes.
    pub standard_error: f64,
    /// Half the distance of the two quadratures, which bounds their error.
    pub quadrature_error: f64,
}

impl LogDet {
    /// Half of a 95 % interval: 1.96 standard errors and the quadrature's bound.
    pub fn half_width(&self) -> f64 {
        1.96 * self.standard_error + self.quadrature_error
    }
}

/// Probes that share a matrix product.
const TOGETHER: usize = 16;

impl LanczosConfig {
    /// log det(I + A/λ) of a positive semi-definite A, given as V ↦ A·V for k columns (row-major).
    pub(super) fn log_det(
        &self,
        n: usize,
        lambda: f64,
        product: impl Fn(&[f64], usize) -> Vec<f64> + Sync,
    ) -> Result<LogDet, Error> {
        at_least("probes", 2, "at least 2", self.probes)?;
        at_least("steps", 2, "at least 2", self.steps)?;
        let signs = |name: &str, columns: usize| {
            let mut rng = Seed::new(self.seed).stream(name);
            let mut sign = || if rng.random() { 1.0 } else { -1.0 };
            (0..columns).map(|_| (0..n).map(|_| sign()).collect()).collect::<Vec<Vec<f64>>>()
        };
        let sketch = signs("sketch", self.rank.min(n / 4));
        let deflation = Deflation::new(sketch, lambda, &product)?;
        let whitened = |columns: Vec<Vec<f64>>| {
            let inner: Vec<Vec<f64>> = columns.into_par_iter().map(|v| deflation.apply(v, Side::Transposed)).collect();
            let mut out = multiply(&inner, &product);
            out.par_iter_mut().zip(&inner).for_each(|(out, v)| {
                out.iter_mut().zip(v).for_each(|(out, v)| *out = v + *out / lambda);
            });
            out.into_par_iter().map(|v| deflation.apply(v, Side::Plain)).collect::<Vec<Vec<f64>>>()
        };
        let mut values = Vec::with_capacity(self.probes); // (Gauss, Radau)
        for some in signs("probes", self.probes).chunks(TOGETHER) {
            for run in tridiagonals(some, self.steps.min(n), whitened) {
                let rule = |nodes: Vec<(f64, f64)>| {
                    n as f64 * nodes.iter().map(|(theta, w)| w * theta.max(f64::MIN_POSITIVE).ln()).sum::<f64>()
                };
                let (gauss, radau) = (quadrature(&run.alpha, &run.beta), run.radau(deflation.smallest));
                values.push((deflation.log_det + rule(gauss), deflation.log_det + rule(radau)));
            }
        }
        let count = self.probes as f64;
        let mean = |f: &dyn Fn(&(f64, f64)) -> f64| values.iter().map(f).sum::<f64>() / count;
        let (upper, lower) = (mean(&|v| v.0), mean(&|v| v.1));
        let value = (upper + lower) / 2.0;
        let spread = values.iter().map(|v| ((v.0 + v.1) / 2.0 - value).powi(2)).sum::<f64>() / (count - 1.0);
        let quadrature_error = ((upper - lower) / 2.0).max(0.0);
        Ok(LogDet { value, standard_error: (spread / count).sqrt(), quadrature_error })
    }
}

/// A·V, column by column.
fn multiply(columns: &[Vec<f64>], product: &impl Fn(&[f64], usize) -> Vec<f64>) -> Vec<Vec<f64>> {
    let (k, n) = (columns.len(), columns.first().map_or(0, Vec::len));
    let mut v = vec![0.0; n * k];
    for (c, column) in columns.iter().enumerate() {
        v.iter_mut().skip(c).step_by(k).zip(column).for_each(|(to, from)| *to = *from);
    }
    let w = product(&v, k);
    (0..k).into_par_iter().map(|c| w.iter().skip(c).step_by(k).copied().collect()).collect()
}

/// S, and the part of the determinant that it takes out.
struct Deflation {
    q: Vec<Vec<f64>>,
    /// R.
    factor: Cholesky,
    /// log det(I + C).
    log_det: f64,
    /// No eigenvalue of M is smaller: 1/(1 + tr C).
    smallest: f64,
}

/// S or Sᵀ.
#[derive(Clone, Copy)]
enum Side {
    Plain,
    Transposed,
}

impl Deflation {
    fn new(
        sketch: Vec<Vec<f64>>,
        lambda: f64,
        product: &(impl Fn(&[f64], usize) -> Vec<f64> + Sync),
    ) -> Result<Self, Error> {
        let rank = sketch.len();
        if rank == 0 {
            return Ok(Deflation { q: sketch, factor: Cholesky::of_identity(0, 1.0), log_det: 0.0, smallest: 1.0 });
        }
        let q = orthonormal(orthonormal(multiply(&sketch, product)));
        let aq = multiply(&q, product);
        let own = |at: usize| dot(&q[at / q.len()], &aq[at % q.len()]) / lambda;
        let mut c: Vec<f64> = (0..q.len() * q.len()).into_par_iter().map(own).collect();
        let trace: f64 = c.iter().step_by(q.len() + 1).sum();
        c.iter_mut().step_by(q.len() + 1).for_each(|v| *v += 1.0);
        let factor = Cholesky::factor(&c, q.len())?;
        Ok(Deflation { log_det: factor.log_det(), smallest: 1.0 / (1.0 + trace), q, factor })
    }

    /// v + Q(R⁻¹ − I)Qᵀv, or with R⁻ᵀ.
    fn apply(&self, mut v: Vec<f64>, side: Side) -> Vec<f64> {
        let before: Vec<f64> = self.q.iter().map(|q| dot(q, &v)).collect();
        let mut after = before.clone();
        match side {
            Side::Plain => self.factor.solve_lower(&mut after),
            Side::Transposed => self.factor.solve_upper(&mut after),
        }
        for ((q, after), before) in self.q.iter().zip(&after).zip(&before) {
            let c = after - before;
            v.iter_mut().zip(q).for_each(|(v, q)| *v += c * q);
        }
        v
    }
}

/// Orthonormal columns of the same span; those that depend on earlier ones are left out.
fn orthonormal(mut columns: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut out: Vec<Vec<f64>> = Vec::with_capacity(columns.len());
    let scale = columns.iter().map(|v| dot(v, v).sqrt()).fold(0.0, f64::max);
    while let Some(mut q) = (!columns.is_empty()).then(|| columns.remove(0)) {
        let norm = dot(&q, &q).sqrt();
        if norm <= 1e-10 * scale {
            continue;
        }
        q.iter_mut().for_each(|v| *v /= norm);
        columns.par_iter_mut().for_each(|other| {
            let c = dot(other, &q);
            other.iter_mut().zip(&q).for_each(|(v, q)| *v -= c * q);
        });
        out.push(q);
    }
    out
}

/// T of one start: diagonal α, off-diagonal β; `last` is the β that would come next, 0 where the space was exhausted.
#[derive(Debug, Clone, Default)]
struct Tridiagonal {
    alpha: Vec<f64>,
    beta: Vec<f64>,
    last: f64,
}

impl Tridiagonal {
    /// Nodes and weights of the Gauss–Radau rule with a node at `a`, which is at most the smallest eigenvalue.
    fn radau(&self, a: f64) -> Vec<(f64, f64)> {
        let k = self.alpha.len();
        if self.last == 0.0 {
            return quadrature(&self.alpha, &self.beta);
        }
        // (T − aI)δ = β_k² e_k by elimination from the top; α_{k+1} = a + δ_k makes a an eigenvalue
        let mut pivot = self.alpha[0] - a;
        for i in 1..k {
            pivot = self.alpha[i] - a - self.beta[i - 1].powi(2) / pivot;
        }
        let (mut alpha, mut beta) = (self.alpha.clone(), self.beta.clone());
        alpha.push(a + self.last.powi(2) / pivot);
        beta.push(self.last);
        quadrature(&alpha, &beta)
    }
}

/// One probe under way.
struct Probe {
    basis: Vec<Vec<f64>>,
    run: Tridiagonal,
    done: bool,
}

/// Lanczos' method from several starts at once.
fn tridiagonals(starts: &[Vec<f64>], steps: usize, apply: impl Fn(Vec<Vec<f64>>) -> Vec<Vec<f64>>) -> Vec<Tridiagonal> {
    let unit = |v: &Vec<f64>| {
        let norm = dot(v, v).sqrt();
        v.iter().map(|v| v / norm).collect::<Vec<f64>>()
    };
    let mut probes: Vec<Probe> =
        starts.iter().map(|v| Probe { basis: vec![unit(v)], run: Tridiagonal::default(), done: false }).collect();
    for _ in 0..steps {
        let newest = probes.iter().map(|probe| probe.basis[probe.basis.len() - 1].clone()).collect();
        probes
            .par_iter_mut()
            .zip(apply(newest))
            .filter(|(probe, _)| !probe.done)
            .for_each(|(probe, w)| probe.advance(w));
    }
    probes.into_iter().map(|probe| probe.run).collect()
}

impl Probe {
    /// Takes A·q of the newest basis vector q.
    fn advance(&mut self, mut w: Vec<f64>) {
        let scale = dot(&w, &w).sqrt();
        if let Some(&before) = Some(&self.run.last).filter(|_| !self.run.alpha.is_empty()) {
            self.run.beta.push(before);
        }
        self.run.alpha.push(dot(&w, &self.basis[self.basis.len() - 1]));
        // twice is enough (Parlett)
        for _ in 0..2 {
            for q in &self.basis {
                let c = dot(&w, q);
                w.iter_mut().zip(q).for_each(|(w, q)| *w -= c * q);
            }
        }
        self.run.last = dot(&w, &w).sqrt();
        if self.run.last <= 1e-13 * scale || self.basis.len() == w.len() {
            (self.run.last, self.done) = (0.0, true);
        } else {
            w.iter_mut().for_each(|w| *w /= self.run.last);
            self.basis.push(w);
        }
    }
}

/// The largest eigenvalue of a symmetric positive operator (v ← A·v), to ten digits or as far as 200 steps go.
pub(super) fn largest_eigenvalue(n: usize, apply: impl Fn(&mut Vec<f64>)) -> f64 {
    let mut rng = Seed::new(1).stream("start");
    let start: Vec<f64> = (0..n).map(|_| rng.random::<f64>() - 0.5).collect();
    let norm = dot(&start, &start).sqrt();
    let basis = vec![start.iter().map(|v| v / norm).collect()];
    let mut probe = Probe { basis, run: Tridiagonal::default(), done: false };
    let mut best = 0.0f64;
    for step in 1..=200.min(n) {
        let mut w = probe.basis[probe.basis.len() - 1].clone();
        apply(&mut w);
        probe.advance(w);
        if step % 5 == 0 || probe.done || step == n.min(200) {
            let nodes = quadrature(&probe.run.alpha, &probe.run.beta);
            let top = nodes.iter().map(|node| node.0).fold(0.0, f64::max);
            if probe.done || (top - best).abs() <= 1e-10 * top {
                return top;
            }
            best = top;
        }
    }
    best
}

/// Eigenvalues of the symmetric tridiagonal matrix and the squared first components of its eigenvectors, by the
/// implicit QL method (Golub & Welsch 1969).
fn quadrature(alpha: &[f64], beta: &[f64]) -> Vec<(f64, f64)> {
    let n = alpha.len();
    let (mut d, mut e) = (alpha.to_vec(), beta.to_vec());
    e.push(0.0);
    let mut z = vec![0.0; n];
    z[0] = 1.0;
    for l in 0..n {
        for _ in 0..100 {
            let split = (l..n - 1).find(|&m| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs()));
            let m = split.unwrap_or(n - 1);
            if m == l {
                break;
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = g.hypot(1.0);
            let mut g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split_early = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    split_early = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                (z[i + 1], z[i]) = (s * z[i] + c * z[i + 1], c * z[i] - s * z[i + 1]);
            }
            if !split_early {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    d.into_iter().zip(z).map(|(d, z)| (d, z * z)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadrature_nodes_are_the_eigenvalues_of_the_second_difference() {
        // diagonal 2, off-diagonal −1: eigenvalues 2 − 2cos(jπ/(n+1)), first components √(2/(n+1)) sin(jπ/(n+1))
        let n = 12;
        let mut nodes = quadrature(&vec![2.0; n], &vec![-1.0; n - 1]);
        nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (j, (theta, weight)) in nodes.into_iter().enumerate() {
            let angle = (j + 1) as f64 * std::f64::consts::PI / (n + 1) as f64;
            assert!((theta - (2.0 - 2.0 * angle.cos())).abs() < 1e-13);
            assert!((weight - 2.0 / (n + 1) as f64 * angle.sin().powi(2)).abs() < 1e-13);
        }
    }

    /// A diagonal matrix: A·V by hand.
    fn diagonal(values: &[f64]) -> impl Fn(&[f64], usize) -> Vec<f64> + '_ {
        |v, k| v.iter().enumerate().map(|(at, v)| v * values[at / k]).collect()
    }

    #[test]
    fn the_truth_lies_between_the_two_rules_and_within_the_interval() {
        let values: Vec<f64> = (1..=400).map(|i| 50.0 / f64::from(i).powf(1.2)).collect();
        let exact: f64 = values.iter().map(|v| v.ln_1p()).sum();
        for steps in [4, 8, 30] {
            let config = LanczosConfig { probes: 20, steps, rank: 0, seed: 3 };
            let got = config.log_det(400, 1.0, diagonal(&values)).unwrap();
            // signs make the trace of a diagonal matrix exact: only the quadrature errs
            assert!((got.value - exact).abs() <= got.quadrature_error + 1e-9 * exact, "{steps}: {got:?} {exact}");
        }
        for rank in [1, 20, 100, 1000] {
            let config = LanczosConfig { probes: 20, steps: 30, rank, seed: 3 };
            let got = config.log_det(400, 1.0, diagonal(&values)).unwrap();
            assert!((got.value - exact).abs() <= 2.0 * got.half_width() + 1e-9 * exact, "{rank}: {got:?} {exact}");
            assert!(rank < 100 || (got.value / exact - 1.0).abs() < 0.01, "{rank}: {got:?} {exact}");
        }
    }

    #[test]
    fn the_largest_eigenvalue_is_found_to_ten_digits() {
        let values: Vec<f64> = (1..=300).map(|i| 1.0 + f64::from(i).ln()).collect();
        let got = largest_eigenvalue(300, |v| v.iter_mut().zip(&values).for_each(|(v, a)| *v *= a));
        assert!((got / values[299] - 1.0).abs() < 1e-9, "{got}");
        assert!((largest_eigenvalue(1, |v| v[0] *= 7.0) - 7.0).abs() < 1e-12);
    }
}
