//! A lower bound by all bets at once: valid after every round, however often it is looked at (Karampatziakis, Mineiro &
//! Ramdas, ICML 2021; mixtures as in Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro, "Anytime-valid off-policy
//! inference for contextual bandits", 2022).
//!
//! **Theorem.** Let X_1, X_2, … ≥ 0 with E\[X_t | past\] = m_t, whose mean over the first n rounds is m̄_n. For a fixed
//! list of λ_1, …, λ_J > 0, with probability 1 − δ it holds for all n at once that
//!
//! K_n(m̄_n) = (1/J) Σ_j Π_{t≤n} (1 + λ_j X_t) / (1 + λ_j m̄_n) ≤ 1/δ
//!
//! *Key step.* For each λ the product with m_t in the place of m̄ is a martingale (logarithmic smoothing), so their
//! average is one; by Ville's inequality it ever exceeds 1/δ with probability ≤ δ. The logarithm is concave, so m̄ in
//! the place of the m_t only makes it smaller.
//!
//! λ_j = 4/2^j, j = 0 … 19 covers variances and numbers of rounds from few to millions. It pays ln J less what
//! neighbours earn: a radius about a third larger than [`betting`](super::betting) at one n.
//!
//! The state is the sums Σ_t ln(1 + λ_j X_t) and n: a log may be read in blocks, and go on tomorrow.
//!
//! *Takes for granted:* X ≥ 0. Weights may be unbounded, the log adaptive and its policy learning: then the mean of the
//! m_t is bounded.

use super::betting::{least_not_ruled_out, log_mean_exp};

/// Bets.
const BETS: usize = 20;

/// The largest.
const FIRST: f64 = 4.0;

/// The wealth of every bet on one form of the outcomes.
#[derive(Debug, Clone)]
pub(crate) struct Mixture {
    gained: [f64; BETS],
    rounds: u64,
    shift: f64,
}

fn bet(j: usize) -> f64 {
    FIRST * 0.5f64.powi(j as i32)
}

impl Mixture {
    /// Before the first round.
    pub fn new(shift: f64) -> Self {
        Mixture { gained: [0.0; BETS], rounds: 0, shift }
    }

    /// The next outcome.
    pub fn add(&mut self, x: f64) {
        self.gained.iter_mut().enumerate().for_each(|(j, gained)| *gained += (bet(j) * x).ln_1p());
        self.rounds += 1;
    }

    /// ln K for the mean of X − s.
    fn log(&self, mean: f64) -> f64 {
        let (n, m) = (self.rounds as f64, mean + self.shift);
        log_mean_exp(self.gained.iter().enumerate().map(|(j, gained)| gained - n * (bet(j) * m).ln_1p()))
    }
}

/// A lower bound of the mean of X − s, as [`betting::lower_mean`](super::betting::lower_mean).
pub(crate) fn lower_mean(mixtures: &[Mixture], log: f64) -> f64 {
    least_not_ruled_out(if mixtures[0].shift > 0.0 { -1.0 } else { 0.0 }, |mean| evidence(mixtures, mean) > log)
}

/// ln K, averaged over the forms: the evidence that the mean is above the given number.
pub(crate) fn evidence(mixtures: &[Mixture], mean: f64) -> f64 {
    log_mean_exp(mixtures.iter().map(|mixture| mixture.log(mean)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evidence_is_the_average_wealth_of_all_bets() {
        let x = [0.0, 2.0, 7.0, 0.5, 0.0];
        let mut mixture = Mixture::new(1.0);
        x.iter().for_each(|&x| mixture.add(x));
        let wealth = |j: usize| x.iter().map(|x| (1.0 + bet(j) * x) / (1.0 + bet(j) * 1.3)).product::<f64>();
        let average = (0..BETS).map(wealth).sum::<f64>() / BETS as f64;
        assert!((evidence(&[mixture], 0.3) - average.ln()).abs() < 1e-12);
    }

    #[test]
    fn the_bound_is_where_the_evidence_reaches_the_threshold() {
        let mut mixture = Mixture::new(0.0);
        (0..400).for_each(|t| mixture.add(if t % 3 == 0 { 2.0 } else { 0.0 }));
        let mixtures = [mixture];
        let bound = lower_mean(&mixtures, 3.0);
        assert!(bound > 0.4 && (evidence(&mixtures, bound) - 3.0).abs() < 1e-9, "{bound}");
    }
}
