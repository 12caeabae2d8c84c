//! A lower bound by betting, for n known beforehand (Waudby-Smith & Ramdas, "Estimating means of bounded random
//! variables by betting", JRSS B 2024; for importance weights Karampatziakis, Mineiro & Ramdas, "Off-policy Confidence
//! Sequences", ICML 2021). It needs no upper bound of the weights.
//!
//! **Theorem.** Let X_1, …, X_n ≥ 0 with E\[X_t | past\] = m, and let each λ_t > 0 be a function of the rounds before
//! t. With probability 1 − δ the mean m is at least the least m' whose wealth is at most 1/δ:
//!
//! K(m') = Π_t (1 + λ_t X_t) / (1 + λ_t m')
//!
//! *Key step.* K(m) is a martingale that starts at 1 and is never negative: a gambler who stakes the share f_t = λ_t
//! m/(1 + λ_t m) of all he has on a fair coin that pays X_t/m. By Markov's inequality he has more than 1/δ with
//! probability ≤ δ. K falls as m' grows, so what is ruled out is all that lies below one number, which halving finds.
//!
//! With one λ for all rounds this is logarithmic smoothing. Here λ_t is what would have earned most in the rounds so
//! far if n such rounds came: to second order ln K(m') = b (ΣX − n m') − ½ b² Σ(X − m')² with b = λ/(1 + λ m'), which
//! reaches a threshold ℓ at the largest m' for b = √(2ℓ / n σ²). So b_t takes the running variance, starting from
//! [`PRIOR`] rounds of variance [`VARIANCE`], with f_t ≤ ½; ℓ = [`LOG`] whatever δ is, so that bounds at different
//! confidences come from one wealth and are nested. Asymptotically the radius is √(2 σ² ln(1/δ) / n).
//!
//! Two wealths in the same m' may be averaged: where there is a least propensity, that of either form of [`Outcomes`]
//! has half.
//!
//! *Takes for granted:* X ≥ 0, and that its mean is m given any past. Weights may be unbounded and the log adaptive;
//! but where m itself changes with the past (the value of a log's own policy that learns), use
//! [`mixture`](super::mixture).
//!
//! [`Outcomes`]: super::outcomes::Outcomes

use super::super::quantiles::halve;

/// Rounds that the first guess of mean and variance counts for.
const PRIOR: f64 = 10.0;

/// The first guess of the variance, in units of the rewards' range.
const VARIANCE: f64 = 3.0;

/// ℓ = ln(1/δ) of δ = 0.02.
const LOG: f64 = 3.912;

/// The largest share that is staked.
const SHARE: f64 = 0.5;

/// The wealth of one form as a function of the statement's mean.
pub(crate) struct Wealth {
    bets: Vec<f64>,
    /// Σ ln(1 + λ_t X_t).
    gained: f64,
    shift: f64,
}

impl Wealth {
    /// Bets on every outcome from those before it.
    pub fn new(x: &[f64], shift: f64) -> Self {
        let n = x.len() as f64;
        let (mut rounds, mut sum, mut squares, mut gained) = (0.0, 0.0, 0.0, 0.0);
        let mut bets = Vec::with_capacity(x.len());
        for &x in x {
            // of X, as if the shift and a half had been seen before
            let mean = (PRIOR * (shift + 0.5) + shift * rounds + sum) / (PRIOR + rounds);
            let spread = if rounds > 0.0 { (squares - sum * sum / rounds).max(0.0) } else { 0.0 };
            let variance = (PRIOR * VARIANCE + spread) / (PRIOR + rounds);
            let share = (mean * (2.0 * LOG / (n * variance)).sqrt()).min(SHARE);
            let bet = share / ((1.0 - share) * mean);
            gained += (bet * x).ln_1p();
            bets.push(bet);
            rounds += 1.0;
            sum += x - shift;
            squares += (x - shift).powi(2);
        }
        Wealth { bets, gained, shift }
    }

    /// ln K for the mean of X − s.
    fn log(&self, mean: f64) -> f64 {
        self.gained - self.bets.iter().map(|bet| (bet * (mean + self.shift)).ln_1p()).sum::<f64>()
    }
}

/// A lower bound of the mean of X − s in [−min(s, 1), 1] that errs with probability e^−`log`, from wealths of the same
/// statement.
pub(crate) fn lower_mean(wealths: &[Wealth], log: f64) -> f64 {
    let average = |mean: f64| log_mean_exp(wealths.iter().map(|wealth| wealth.log(mean)));
    least_not_ruled_out(if wealths[0].shift > 0.0 { -1.0 } else { 0.0 }, |mean| average(mean) > log)
}

/// Where in [`low`, 1] `rules_out` turns from true to false.
pub(crate) fn least_not_ruled_out(low: f64, rules_out: impl Fn(f64) -> bool) -> f64 {
    if !rules_out(low) {
        low
    } else if rules_out(1.0) {
        1.0
    } else {
        halve(low, 1.0, rules_out)
    }
}

/// ln of the mean of exp.
pub(crate) fn log_mean_exp(logs: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let (n, top) = (logs.len() as f64, logs.clone().fold(f64::NEG_INFINITY, f64::max));
    top + (logs.map(|log| (log - top).exp()).sum::<f64>() / n).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(n: usize) -> Vec<f64> {
        (0..n).map(|t| if t % 5 == 0 { 4.0 } else { f64::from(u8::from(t % 7 == 0)) }).collect()
    }

    #[test]
    fn the_wealth_is_that_of_its_definition_and_the_bound_the_least_mean_left() {
        let x = outcomes(60);
        let wealth = Wealth::new(&x, 0.0);
        let product =
            |m: f64| -> f64 { x.iter().zip(&wealth.bets).map(|(x, l)| (1.0 + l * x) / (1.0 + l * m)).product() };
        assert!((wealth.log(0.4) - product(0.4).ln()).abs() < 1e-12);
        let log = 3.0;
        // the grid of all means: nothing below the bound is left, everything above is
        let left: Vec<f64> = (0..=10_000).map(|i| f64::from(i) / 1e4).filter(|&m| product(m).ln() <= log).collect();
        let bound = lower_mean(&[wealth], log);
        assert!(bound > 0.0 && (left[0] - bound).abs() <= 1e-4, "{bound}, {}", left[0]);
    }

    #[test]
    fn a_bet_knows_only_the_rounds_before_it() {
        let mut x = outcomes(40);
        let before = Wealth::new(&x, 1.0).bets;
        x[25] = 1e6;
        let after = Wealth::new(&x, 1.0).bets;
        assert_eq!(before[..=25], after[..=25]);
        assert_ne!(before[26], after[26]);
    }

    #[test]
    fn every_bet_is_fair() {
        // E[(1 + λX)/(1 + λm)] = 1, so with two outcomes the average wealth over all 2^8 histories is 1
        let (m, n, mut total) = (0.5, 8, 0.0);
        for history in 0u32..1 << n {
            // X is 2 with probability 1/4
            let x: Vec<f64> = (0..n).map(|t| if history >> t & 1 == 1 { 2.0 } else { 0.0 }).collect();
            let p: f64 = x.iter().map(|&x| if x > 0.0 { 0.25 } else { 0.75 }).product();
            total += p * Wealth::new(&x, 0.0).log(m).exp();
        }
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }

    #[test]
    fn without_evidence_the_bound_is_the_least_that_is_possible() {
        assert_eq!(lower_mean(&[Wealth::new(&[], 0.0)], 3.0), 0.0);
        assert_eq!(lower_mean(&[Wealth::new(&[0.0; 50], 0.0)], 3.0), 0.0);
        assert_eq!(lower_mean(&[Wealth::new(&[0.0; 2], 1.0)], 3.0), -1.0);
    }
}
