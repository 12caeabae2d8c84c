//! Logarithmic smoothing (Sakhi, Aouali, Alquier & Chopin, "Logarithmic Smoothing for Pessimistic Off-Policy
//! Evaluation, Selection and Learning", NeurIPS 2024).
//!
//! **Theorem.** Let X_1, …, X_n ≥ 0 with E\[X_t | past\] = m_t, λ > 0 and δ ∈ (0, 1) be given before the rounds. With
//! probability 1 − δ the mean m̄ of the m_t satisfies
//!
//! m̄ ≥ (exp(λ LS − ln(1/δ)/n) − 1) / λ,  LS = (1/n) Σ_t ln(1 + λ X_t) / λ
//!
//! *Key step.* E\[1 + λ X_t | past\] = 1 + λ m_t, so Π (1 + λ X_t) / (1 + λ m_t) is a martingale that starts at 1: by
//! Markov's inequality it exceeds 1/δ with probability ≤ δ. The logarithm is concave, so Σ ln(1 + λ m_t) ≤ n ln(1 + λ
//! m̄); solved for m̄ that is the bound.
//!
//! *Takes for granted:* X ≥ 0, and that the mean of X given the past is what is asked about. No bound from above, no
//! finite variance, no independence: a log that was collected adaptively will do.
//!
//! The paper's λ for a log of n rounds is 1/√n, the default. Costs there are −w r, and its bound is this one in other
//! letters.

/// The paper's λ.
pub(crate) fn default_lambda(n: usize) -> f64 {
    1.0 / (n.max(1) as f64).sqrt()
}

/// A lower bound of the mean that errs with probability e^−`log`.
pub(crate) fn lower_mean(x: &[f64], lambda: f64, log: f64) -> f64 {
    let smoothed: f64 = x.iter().map(|x| (lambda * x).ln_1p()).sum();
    (((smoothed - log) / x.len() as f64).exp_m1() / lambda).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_mean_that_the_wealth_just_does_not_rule_out() {
        let x = [0.0, 3.0, 0.5, 0.0, 12.0, 1.0, 1.0, 1.0];
        for (lambda, log) in [(0.1, 0.5), (1.0, 2.0), (5.0, 1.0)] {
            let bound = lower_mean(&x, lambda, log);
            let wealth = |m: f64| x.iter().map(|x| (1.0 + lambda * x) / (1.0 + lambda * m)).product::<f64>();
            assert!(bound > 0.0 && (wealth(bound).ln() - log).abs() < 1e-12, "{bound}");
        }
        assert_eq!(lower_mean(&[0.0; 5], 0.3, 1.0), 0.0);
    }

    #[test]
    fn it_is_above_the_linear_form_that_pac_bayesian_proofs_use() {
        // m ≥ LS − ln(1/δ)/(λ n)
        let x: Vec<f64> = (0..50).map(|t| f64::from(t % 7)).collect();
        let (lambda, log) = (0.2, 3.0);
        let smoothed = x.iter().map(|x| f64::ln(1.0 + lambda * x) / lambda).sum::<f64>() / 50.0;
        assert!(lower_mean(&x, lambda, log) > smoothed - log / (lambda * 50.0));
    }
}
