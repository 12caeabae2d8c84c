//! Implicit exploration (Gabbianelli, Neu & Papini, "Importance-Weighted Offline Learning Done Right", ALT 2024, after
//! Neu 2015).
//!
//! The estimate adds γ to the propensity: V̂ = (1/n) Σ π(a_t|x_t) r_t / (μ(a_t|x_t) + γ). For a policy that plays one
//! action that is w r / (1 + γ w).
//!
//! **Theorem.** Let X_1, …, X_n ≥ 0 with E\[X_t | past\] = m_t, γ > 0 and δ ∈ (0, 1) be given before the rounds. With
//! probability 1 − δ the mean m̄ of the m_t satisfies
//!
//! m̄ ≥ (exp(2γ IX − ln(1/δ)/n) − 1) / 2γ ≥ IX − ln(1/δ) / (2γ n),  IX = (1/n) Σ_t X_t / (1 + γ X_t)
//!
//! *Key step.* z / (1 + z/2) ≤ ln(1 + z) for z ≥ 0. With z = 2γ X this gives 2γ X / (1 + γ X) ≤ ln(1 + 2γ X), so that
//! the bound of logarithmic smoothing with λ = 2γ holds for it as well, and is never below it. With r ∈ \[0, 1\] and
//! X = w r the summand is at least w r / (1 + γ w), and this at least π r / (μ + γ): the bound here is at least the
//! published one (the second of the two).
//!
//! *Takes for granted:* as logarithmic smoothing. The default is γ = 1/(2√n), the λ of the default there.

/// Half of the λ of logarithmic smoothing.
pub(crate) fn default_gamma(n: usize) -> f64 {
    0.5 * super::log_smoothing::default_lambda(n)
}

/// A lower bound of the mean that errs with probability e^−`log`.
pub(crate) fn lower_mean(x: &[f64], gamma: f64, log: f64) -> f64 {
    let shrunk: f64 = x.iter().map(|x| x / (1.0 + gamma * x)).sum();
    (((2.0 * gamma * shrunk - log) / x.len() as f64).exp_m1() / (2.0 * gamma)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::log_smoothing;
    use super::*;

    #[test]
    fn it_lies_between_the_published_bound_and_logarithmic_smoothing() {
        let (weights, rewards) = ([0.0, 4.0, 1.5, 20.0, 0.0, 2.0], [0.3, 0.9, 0.2, 1.0, 1.0, 0.5]);
        let x: Vec<f64> = weights.iter().zip(rewards).map(|(w, r)| w * r).collect();
        for (gamma, log) in [(0.05, 0.4), (0.3, 1.0)] {
            let published = weights.iter().zip(rewards).map(|(w, r)| w * r / (1.0 + gamma * w)).sum::<f64>() / 6.0
                - log / (2.0 * gamma * 6.0);
            let bound = lower_mean(&x, gamma, log);
            assert!(published <= bound && bound <= log_smoothing::lower_mean(&x, 2.0 * gamma, log), "{bound}");
        }
    }
}
