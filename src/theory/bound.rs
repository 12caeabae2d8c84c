//! Theorem 4.1: the bound, the schedules β_t and η_t under which it holds, and the conditions on the width m.
//!
//! With probability at least 1 − δ
//!
//! ```text
//! n·E[SubOpt(π̂)] ≤ κ√n √(d̃ log(1 + nK/λ) + 2) + κ√n + 2 + √(2n log((10n + 4)/δ))
//!
//! β_t = √(λ + C_3² t L) (t^{1/2} λ^{−1/2} + (nK)^{1/2} λ_0^{−1/2}) m^{−1/2}        η_t = ι/√t
//! ```
//!
//! The theorem gives ι^{−1} as Ω(·) ∨ Ω(·); the proof of Lemma B.2 has the constants, and they are used here:
//!
//! ```text
//! ι^{−1} ≥ 4 C_3 m λ^{1/2} L^{1/2} (1 + R √2 log^{1/2}(6n/δ))
//! ι^{−1} ≥ 2 (n m λ L)^{1/2} (C_1 C_3 m^{1/3} λ^{−2/3} L^{7/3} n^{1/6} log^{1/2} m + (m λ L)^{−1/2} (C_3² L + λ))
//! ```
//!
//! The clean bound replaces Γ_1, …, Γ_5 by their limits for m → ∞; [`Theorem::finite_width`] keeps them as the proof
//! has them. C_1, C_2, C_3 are "absolute constants" whose values nobody states. C_3 can be measured
//! ([`super::Sides::c_3`]): at initialisation ‖∇_l f‖_F/√m tends to √2 in every layer but the last, where it is 1.

use serde::{Deserialize, Serialize};

use crate::error::{Error, at_least, positive};
use crate::net::{Optimiser, Schedule};

/// The absolute constants of the analysis, and what else it takes for granted.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `c1` | 1 | C_1 of Lemma B.4: how nearly linear the network is | > 0 |
/// | `c2` | 1 | C_2 of Lemma B.3: how little the gradient changes | > 0 |
/// | `c3` | √2 | C_3 of Lemma C.2: ‖∇_l f‖_F ≤ C_3 √m | > 0 |
/// | `noise` | 0.1 | R of the R-subgaussian noise | ≥ 0 |
/// | `delta` | 0.1 | δ, the probability of failure | (0, 1) |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Constants {
    /// C_1.
    pub c1: f64,
    /// C_2.
    pub c2: f64,
    /// C_3.
    pub c3: f64,
    /// R.
    pub noise: f64,
    /// δ.
    pub delta: f64,
}

impl Default for Constants {
    fn default() -> Self {
        Constants { c1: 1.0, c2: 1.0, c3: std::f64::consts::SQRT_2, noise: 0.1, delta: 0.1 }
    }
}

impl Constants {
    /// The least λ under which the elliptical-potential lemma holds for L layers: max(1, C_3² L).
    pub fn least_lambda(&self, depth: usize) -> f64 {
        (self.c3.powi(2) * depth as f64).max(1.0)
    }
}

/// The quantities of Theorem 4.1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Theorem {
    /// n, rounds in the log.
    pub n: usize,
    /// nK, contexts over all rounds.
    pub n_contexts: usize,
    /// L.
    pub depth: usize,
    /// m.
    pub width: usize,
    /// λ; the theorem asks for λ ≥ max(1, C_3² L).
    pub lambda: f64,
    /// λ_0, the smallest eigenvalue of H.
    pub lambda_0: f64,
    /// The constants.
    pub constants: Constants,
}

/// Γ_1, …, Γ_5 of the proof; the clean bound needs them to be at most 1, 2, 1, 1, 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gammas(pub [f64; 5]);

impl Gammas {
    /// What the proof asks of each.
    pub const LIMITS: [f64; 5] = [1.0, 2.0, 1.0, 1.0, 1.0];

    /// Whether the width is large enough for the clean bound.
    pub fn hold(&self) -> bool {
        self.0.iter().zip(Gammas::LIMITS).all(|(gamma, limit)| *gamma <= limit)
    }
}

impl Theorem {
    /// Refuses quantities for which the formulas have no meaning.
    pub fn check(&self) -> Result<(), Error> {
        at_least("n", 1, "at least 1", self.n)?;
        at_least("number of contexts", self.n, "at least n", self.n_contexts)?;
        at_least("depth", 2, "at least 2", self.depth)?;
        at_least("width", 2, "at least 2", self.width)?;
        positive("lambda", self.lambda)?;
        positive("lambda_0", self.lambda_0)?;
        let Constants { c1, c2, c3, noise, delta } = self.constants;
        positive("c1", c1)?;
        positive("c2", c2)?;
        positive("c3", c3)?;
        crate::error::not_negative("noise", noise)?;
        if delta > 0.0 && delta < 1.0 {
            Ok(())
        } else {
            Err(Error::Param { name: "delta", range: "in (0, 1)", got: delta })
        }
    }

    /// β_t, the pessimism of the policy that has read t rounds.
    pub fn beta(&self, t: usize) -> f64 {
        let (t, m, l) = (t as f64, self.width as f64, self.depth as f64);
        let radius = (t / self.lambda).sqrt() + (self.n_contexts as f64 / self.lambda_0).sqrt();
        (self.lambda + self.constants.c3.powi(2) * t * l).sqrt() * radius / m.sqrt()
    }

    /// ι, the largest step that both conditions of Lemma B.2 allow.
    pub fn iota(&self) -> f64 {
        let Constants { c1, c3, noise, delta, .. } = self.constants;
        let (n, m, l, lambda) = (self.n as f64, self.width as f64, self.depth as f64, self.lambda);
        let by_noise = 4.0 * c3 * m * (lambda * l).sqrt() * (1.0 + noise * (2.0 * (6.0 * n / delta).ln()).sqrt());
        let bent = c1 * c3 * m.cbrt() * lambda.powf(-2.0 / 3.0) * l.powf(7.0 / 3.0) * n.powf(1.0 / 6.0) * m.ln().sqrt();
        let pulled = (c3.powi(2) * l + lambda) / (m * lambda * l).sqrt();
        1.0 / by_noise.max(2.0 * (n * m * lambda * l).sqrt() * (bent + pulled))
    }

    /// η_t = ι/√t as an optimiser's setting: Algorithm 1's SGD.
    pub fn optimiser(&self) -> Optimiser {
        Optimiser::Sgd { schedule: Schedule::InverseRoot(self.iota()) }
    }

    /// The right-hand side over n: what E[SubOpt(π̂)] is at most, for rewards in [0, 1].
    pub fn bound(&self, effective_dimension: f64, kappa: f64) -> f64 {
        let n = self.n as f64;
        let root = (self.log_det_of(effective_dimension) + 2.0).sqrt();
        (kappa * n.sqrt() * (root + 1.0) + 2.0 + self.online_to_batch()) / n
    }

    /// The bound before Γ_1, …, Γ_5 are replaced by their limits: what the proof gives for this width.
    pub fn finite_width(&self, effective_dimension: f64, kappa: f64) -> f64 {
        let (n, Gammas([g1, g2, g3, g4, g5])) = (self.n as f64, self.gammas());
        let root = (self.log_det_of(effective_dimension) + g2).sqrt();
        (kappa * n.sqrt() * (g1 * root + g3) + g4 + g5 + self.online_to_batch()) / n
    }

    /// d̃ log(1 + nK/λ).
    fn log_det_of(&self, effective_dimension: f64) -> f64 {
        effective_dimension * (self.n_contexts as f64 / self.lambda).ln_1p()
    }

    /// √(2n log((10n + 4)/δ)).
    fn online_to_batch(&self) -> f64 {
        let n = self.n as f64;
        (2.0 * n * ((10.0 * n + 4.0) / self.constants.delta).ln()).sqrt()
    }

    /// Γ_1, …, Γ_5 of the proof of Theorem 4.1.
    pub fn gammas(&self) -> Gammas {
        let Constants { c1, c2, c3, delta, .. } = self.constants;
        let (n, nk, m, l) = (self.n as f64, self.n_contexts as f64, self.width as f64, self.depth as f64);
        let (lambda, lambda_0) = (self.lambda, self.lambda_0);
        let (log_m, tail) = (m.ln().sqrt(), ((10.0 * n + 4.0) / delta).ln().sqrt());
        let g1 =
            2.0 * (2.0 * (lambda + c3.powi(2) * n * l) / m).sqrt() * ((n * lambda).sqrt() + (nk / lambda_0).sqrt());
        let g2 = 1.0
            + 2.0
                * c2
                * c3.powi(2)
                * n.powf(1.5)
                * m.powf(-1.0 / 6.0)
                * log_m
                * l.powf(23.0 / 6.0)
                * lambda.powf(-1.0 / 6.0);
        let g3 = g1 * (n / 2.0).sqrt() * c3 * (l / lambda_0).sqrt() * tail;
        let g4 = 2.0 * c1 * n.powf(5.0 / 3.0) * m.powf(-1.0 / 6.0) * log_m * l.powf(7.0 / 3.0) / lambda.sqrt();
        let g5 = 2.0
            * 2f64.sqrt()
            * c2
            * (nk / lambda_0).sqrt()
            * m.powf(-11.0 / 6.0)
            * log_m
            * n.powf(7.0 / 6.0)
            * l.powf(10.0 / 3.0)
            * lambda.powf(-1.0 / 6.0);
        Gammas([g1, g2, g3, g4, g5])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theorem() -> Theorem {
        Theorem {
            n: 100,
            n_contexts: 400,
            depth: 2,
            width: 64,
            lambda: 4.0,
            lambda_0: 0.25,
            constants: Constants { c1: 1.0, c2: 1.0, c3: 1.0, noise: 0.5, delta: 0.1 },
        }
    }

    /// Every number by hand, with a calculator and the formulas of the paper.
    #[test]
    fn the_formulas_are_those_of_the_paper() {
        let t = theorem();
        // √(4 + 2t)·(√(t/4) + √(400/0.25))/8
        assert!((t.beta(0) - 2.0 * 40.0 / 8.0).abs() < 1e-12);
        assert!((t.beta(16) - 6.0 * 42.0 / 8.0).abs() < 1e-12);
        // 4·64·√8·(1 + 0.5·√(2 ln 6000)) = 724.077·3.08564 = 2234.3;
        // 2·√(100·64·8)·(4·4^(−2/3)·2^(7/3)·100^(1/6)·√(ln 64) + 6/√512) = 452.548·(35.0094 + 0.265165)
        let want = 2.0
            * 51_200f64.sqrt()
            * (4.0 * 4f64.powf(-2.0 / 3.0) * 2f64.powf(7.0 / 3.0) * 100f64.powf(1.0 / 6.0) * 64f64.ln().sqrt()
                + 6.0 / 512f64.sqrt());
        assert!((1.0 / t.iota() / want - 1.0).abs() < 1e-12, "{} {want}", 1.0 / t.iota());
        assert!(want > 2234.3);
        assert_eq!(t.optimiser(), Optimiser::Sgd { schedule: Schedule::InverseRoot(t.iota()) });
        // d̃ ln 101 + 2 with d̃ = 3; κ = 2; √(200 ln 10040)
        let want = (20.0 * ((3.0 * 101f64.ln() + 2.0).sqrt() + 1.0) + 2.0 + (200.0 * 10_040f64.ln()).sqrt()) / 100.0;
        assert!((t.bound(3.0, 2.0) - want).abs() < 1e-12);
    }

    #[test]
    fn the_bound_of_a_very_wide_network_is_at_most_the_clean_one_and_that_of_a_narrow_one_is_not() {
        let wide = Theorem { n: 10, n_contexts: 40, width: usize::MAX >> 1, ..theorem() };
        let mut gammas = wide.gammas();
        assert!(!gammas.hold(), "m^(−1/6) is slow: {gammas:?}");
        gammas.0 = [0.9, 1.5, 0.2, 0.3, 0.1];
        assert!(gammas.hold());
        assert!(theorem().finite_width(3.0, 2.0) > theorem().bound(3.0, 2.0));
    }

    #[test]
    fn the_rate_is_one_over_root_n_up_to_logarithms() {
        let at = |n: usize| Theorem { n, n_contexts: 4 * n, ..theorem() }.bound(3.0, 2.0);
        let slope = (at(1_000_000) / at(10_000)).ln() / 100f64.ln();
        assert!((-0.5..-0.4).contains(&slope), "{slope}");
    }

    #[test]
    fn quantities_without_meaning_are_refused() {
        let refuse = |t: Theorem| t.check().unwrap_err().to_string();
        assert_eq!(refuse(Theorem { lambda_0: 0.0, ..theorem() }), "`lambda_0` must be a finite number > 0, got 0");
        let constants = Constants { delta: 1.0, ..Constants::default() };
        assert_eq!(refuse(Theorem { constants, ..theorem() }), "`delta` must be in (0, 1), got 1");
        assert!(theorem().check().is_ok());
        assert_eq!(theorem().constants.least_lambda(2), 2.0);
    }
}
