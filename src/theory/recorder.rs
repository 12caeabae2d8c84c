//! Both sides of the paper's lemmas along a run of Algorithm 1.
//!
//! | lemma | left side | right side |
//! |---|---|---|
//! | elliptical potential (B.5), λ ≥ 1, C_3² L | Σ_{i≤t} ‖g_i·m^{−1/2}‖²_{Λ_{i−1}^{−1}} | 2 log(det Λ_t/det λI) |
//! | features hardly move (B.5) | \|log det(Λ̄_t⁻¹Λ_t)\| | 2 C_2 C_3² t^{3/2} m^{−1/6} (log m)^{1/2} L^{23/6} λ^{−1/6} |
//! | effective dimension (B.5) | log(det Λ̄_n/det λI) | d̃ log(1 + nK/λ) + 1 |
//! | weights stay near (B.2) | max_l ‖W_l^(t) − W_l^(0)‖_F | √(t/(mλL)) |
//! | Λ grows slowly (B.2) | ‖Λ_t‖_2 | λ + C_3² t L |
//!
//! Λ is exact, in its dual form: with K_ij = ⟨g_i, g_j⟩/m over the gradients g_i = ∇f_{W^(i−1)}(x_{i,a_i}) and
//! K + λI = R·Rᵀ, each round adds one row to R, whose last entry ρ_t satisfies
//!
//! ρ_t² = λ(1 + ‖g_t·m^{−1/2}‖²_{Λ_{t−1}^{−1}}),  so that  log(det Λ_t/det λI) = Σ_i log(ρ_i²/λ):
//!
//! one number per round gives both sides of the elliptical potential. O(t² + t·(m + d)) per round, whatever p.
//!
//! The online-to-batch lemma (A.3) needs the truth about the contexts: the caller who has it compares
//! (1/n) Σ SubOpt(π̂_t; x_t) + √((2/n) log(1/δ)) ([`online_to_batch`]) with the mean of SubOpt(π̂_t).

use crate::data::Pair;
use crate::error::{Error, positive};
use crate::linalg::symmetric::dot;
use crate::model::{Learner, Neural};
use crate::net::{FactorRows, Net, Number, Params, Tangents, Tensors};

/// Left and right sides after t rounds. Right sides that need constants are in [`super::Theorem`]'s letters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sides {
    /// t, rounds read.
    pub t: usize,
    /// ‖∇f_{W^(t−1)}(x_{t,a_t})·m^{−1/2}‖²_{Λ_{t−1}^{−1}} of this round.
    pub width_squared: f64,
    /// Σ of those so far.
    pub potential: f64,
    /// log(det Λ_t/det λI).
    pub log_det: f64,
    /// log(det Λ̄_t/det λI), with the gradients at W⁽⁰⁾.
    pub log_det_initial: f64,
    /// max_l ‖W_l^(t) − W_l^(0)‖_F.
    pub distance: f64,
    /// ‖W^(t) − W⁽⁰⁾‖_F over all layers.
    pub whole_distance: f64,
    /// max over rounds and layers so far of ‖∇_l f_{W^(i−1)}(x_{i,a_i})‖_F/√m: C_3 as this run has it.
    pub c_3: f64,
}

impl Sides {
    /// Whether the elliptical potential is at most twice the log determinant, up to rounding.
    pub fn potential_holds(&self) -> bool {
        self.potential <= 2.0 * self.log_det * (1.0 + 1e-12) + 1e-12
    }
}

/// Watches a run; it costs the run nothing but time.
#[derive(Debug, Clone)]
pub struct Recorder<T> {
    lambda: f64,
    t: usize,
    initial: Params<T>,
    initial_tensors: Tensors,
    moving: Growing,
    fixed: Growing,
    tangents: Tangents<T>,
    input: Vec<T>,
    potential: f64,
    c_3: f64,
}

/// The gradients so far and the factor of their Gram matrix.
#[derive(Debug, Clone)]
struct Growing {
    rows: FactorRows,
    /// R, row after row.
    factor: Vec<f64>,
    log_det: f64,
}

impl Growing {
    fn new(net: &Net) -> Self {
        Growing { rows: FactorRows::new(net), factor: Vec::new(), log_det: 0.0 }
    }

    /// Adds a gradient and returns ‖g·m^{−1/2}‖² in Λ⁻¹ before it was added.
    fn push<T: Number>(&mut self, net: &Net, tangents: &Tangents<T>, block: usize, lambda: f64) -> Result<f64, Error> {
        let mut new = FactorRows::new(net);
        new.push(net, tangents, block);
        self.rows.push(net, tangents, block);
        let t = self.rows.len();
        let mut row = vec![0.0; t];
        net.gram(&new, &self.rows, &mut row);
        let m = net.width() as f64;
        row.iter_mut().for_each(|v| *v /= m);
        row[t - 1] += lambda;
        let mut from = 0;
        for i in 0..t {
            let known = if i + 1 < t { &self.factor[from..from + i + 1] } else { &[] };
            let (done, rest) = row.split_at_mut(i);
            if let Some((&pivot, before)) = known.split_last() {
                rest[0] = (rest[0] - dot(before, done)) / pivot;
            } else {
                rest[0] -= dot(done, done);
            }
            from += i + 1;
        }
        let square = row[t - 1];
        if square <= 0.0 || square.is_nan() {
            return Err(Error::NotPositiveDefinite { pivot: t - 1 });
        }
        row[t - 1] = square.sqrt();
        self.factor.extend_from_slice(&row);
        self.log_det += (square / lambda).ln();
        Ok(square / lambda - 1.0)
    }

    /// ‖Λ_t‖_2 = ‖R·Rᵀ‖_2, by the power method.
    fn norm(&self) -> f64 {
        let t = self.rows.len();
        let mut v = vec![1.0; t];
        let mut value = 0.0;
        for _ in 0..100 {
            let mut down = vec![0.0; t]; // Rᵀv
            let mut from = 0;
            for (i, v) in v.iter().enumerate() {
                let row = &self.factor[from..from + i + 1];
                down.iter_mut().zip(row).for_each(|(d, r)| *d += r * v);
                from += i + 1;
            }
            from = 0;
            for (i, v) in v.iter_mut().enumerate() {
                *v = dot(&self.factor[from..from + i + 1], &down[..=i]);
                from += i + 1;
            }
            let norm = dot(&v, &v).sqrt();
            v.iter_mut().for_each(|v| *v /= norm);
            if (norm - value).abs() <= 1e-10 * norm {
                return norm;
            }
            value = norm;
        }
        value
    }
}

impl<T: Number> Recorder<T> {
    /// Watches a model from its start, with a Λ of its own that begins at λI.
    pub fn new(neural: &Neural<T>, lambda: f64) -> Result<Self, Error> {
        positive("lambda", lambda)?;
        let net = neural.net();
        Ok(Recorder {
            lambda,
            t: 0,
            initial: neural.weights().clone(),
            initial_tensors: net.unpack(neural.weights()),
            moving: Growing::new(net),
            fixed: Growing::new(net),
            tangents: Tangents::new(net),
            input: vec![T::ZERO; net.n_in()],
            potential: 0.0,
            c_3: 0.0,
        })
    }

    /// Lets the model read a round, and says where both sides stand after it. `block` is the block of the round's
    /// action.
    pub fn observe(
        &mut self,
        neural: &mut Neural<T>,
        block: usize,
        chosen: Pair<'_>,
        reward: f64,
    ) -> Result<Sides, Error> {
        let net = neural.net().clone();
        net.write_input(chosen.x, &mut self.input);
        net.tangents(&self.initial, block, &self.input, &mut self.tangents);
        self.fixed.push(&net, &self.tangents, block, self.lambda)?;
        net.tangents(neural.weights(), block, &self.input, &mut self.tangents);
        let layers = net.unpack(&self.tangents.gradient(&net, block));
        let largest = layer_norms(&layers, None).into_iter().fold(0.0, f64::max);
        self.c_3 = self.c_3.max(largest / (net.width() as f64).sqrt());
        let width_squared = self.moving.push(&net, &self.tangents, block, self.lambda)?;
        self.potential += width_squared;
        self.t += 1;
        neural.observe(chosen, reward);
        let distances = layer_norms(&net.unpack(neural.weights()), Some(&self.initial_tensors));
        Ok(Sides {
            t: self.t,
            width_squared,
            potential: self.potential,
            log_det: self.moving.log_det,
            log_det_initial: self.fixed.log_det,
            distance: distances.iter().copied().fold(0.0, f64::max),
            whole_distance: neural.weights().distance_squared(&self.initial).sqrt(),
            c_3: self.c_3,
        })
    }

    /// ‖Λ_t‖_2, asked for when wanted: O(t²) per call.
    pub fn lambda_norm(&self) -> f64 {
        self.moving.norm()
    }
}

/// ‖W_l‖_F of every layer, or of the differences. Only W_1, …, W_L count, as in the paper.
fn layer_norms(a: &Tensors, b: Option<&Tensors>) -> Vec<f64> {
    let norm = |a: &mut dyn Iterator<Item = &f64>, b: &mut dyn Iterator<Item = &f64>| {
        a.map(|a| (a - b.next().copied().unwrap_or(0.0)).powi(2)).sum::<f64>().sqrt()
    };
    let mut norms: Vec<f64> = (0..a.weights.len())
        .map(|l| {
            let other = b.map(|b| &b.weights[l][..]).unwrap_or_default();
            norm(&mut a.weights[l].iter().flatten(), &mut other.iter().flatten())
        })
        .collect();
    let other = b.map(|b| &b.output[..]).unwrap_or_default();
    norms.push(norm(&mut a.output.iter(), &mut other.iter()));
    norms
}

/// Lemma A.3: (1/n) Σ SubOpt(π̂_t; x_t) + √((2/n) log(1/δ)), which E[SubOpt(π̂)] exceeds with probability at most δ.
pub fn online_to_batch(suboptimalities: &[f64], delta: f64) -> f64 {
    let n = suboptimalities.len() as f64;
    suboptimalities.iter().sum::<f64>() / n + (2.0 / n * (1.0 / delta).ln()).sqrt()
}
