//! The empirical Bernstein inequality on outcomes that are cut (Maurer & Pontil, "Empirical Bernstein Bounds and
//! Sample Variance Penalization", COLT 2009, Theorem 4; clipping as in Thomas, Theocharous & Ghavamzadeh, AAAI 2015).
//!
//! **Theorem.** Let X_1, …, X_n ≥ 0 be independent with the mean m, and M > 0 and δ ∈ (0, 1) given before the rounds.
//! With Y_t = min(X_t, M), their mean Ȳ and their sample variance S², with probability 1 − δ
//!
//! m ≥ E\[Y\] ≥ Ȳ − √(2 S² ln(2/δ) / n) − 7 M ln(2/δ) / (3 (n − 1))
//!
//! *Key step.* Cutting numbers that are never negative from above can only lower their mean, so a lower bound of E\[Y\]
//! is one of m; and Y lies in \[0, M\], for which Maurer and Pontil's inequality is made. X = w r' with r' ≤ 1 is cut
//! later than the weights would be: min(w r', M) ≥ min(w, M) r'.
//!
//! *Takes for granted:* independent rounds. A log that was collected adaptively is refused. The default is M = ½√n (at
//! least 2).

/// M of the default.
pub(crate) fn default_clip(n: usize) -> f64 {
    (0.5 * (n as f64).sqrt()).max(2.0)
}

/// A lower bound of the mean that errs with probability e^−`log`; of fewer than two rounds 0.
pub(crate) fn lower_mean(x: &[f64], clip: f64, log: f64) -> f64 {
    let n = x.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = x.iter().map(|x| x.min(clip)).sum::<f64>() / n;
    let variance = x.iter().map(|x| (x.min(clip) - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let log = log + std::f64::consts::LN_2;
    (mean - (2.0 * variance * log / n).sqrt() - 7.0 * clip * log / (3.0 * (n - 1.0))).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_that_of_maurer_and_pontil() {
        // 100 rounds, 50 of them 0 and 50 of them 1: mean 1/2, sample variance 25/99
        let x: Vec<f64> = (0..100).map(|t| f64::from(t % 2)).collect();
        let log = 20f64.ln();
        let expected = 0.5 - (2.0 * 25.0 / 99.0 * 40f64.ln() / 100.0).sqrt() - 7.0 * 40f64.ln() / (3.0 * 99.0);
        assert!((lower_mean(&x, 1.0, log) - expected).abs() < 1e-12);
        let mut heavy = x;
        heavy[0] = 1e9;
        assert!(lower_mean(&heavy, 1.0, log) < 0.51); // cut
        assert_eq!(lower_mean(&[1.0], 1.0, log), 0.0);
    }
}
