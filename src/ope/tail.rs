//! How heavy the tail of the importance weights is: Pareto k̂.
//!
//! A generalised Pareto distribution is fitted to the largest weights, less the largest one that does not belong to
//! them, by the method of Zhang & Stephens (2009) with the prior of Vehtari et al. (2024, "Pareto smoothed importance
//! sampling"), which takes the largest ⌊min(n/5, 3√n)⌋ of n weights. The distribution has moments of orders below 1/k:
//! with k̂ above ½ the variance of the mean is not finite, above 0.7 no number of rounds that one meets makes it
//! steady.
//!
//! n counts the weights above 0: `psislw(log(w[w > 0]))` of ArviZ. At most [`KEPT`] of the largest are kept, so that
//! beyond 1.8 million such weights the tail is a smaller share than PSIS takes.

use serde::{Deserialize, Serialize};

use super::tape::Tape;
use crate::error::Error;

/// Weights that are kept: 3√n of 1.8 million, and one more.
const KEPT: usize = 4096;

/// Fewer weights than this are no tail.
const FEWEST: usize = 5;

/// The tail of the importance weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// k̂; none where fewer than 5 weights are above the rest, as where the largest are all equal: they are bounded.
    pub k: Option<f64>,
    /// Weights in the tail.
    pub rounds: u64,
    /// They are above this.
    pub above: f64,
}

/// The largest weights so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Largest {
    /// Weights above 0.
    positive: u64,
    /// The largest of them, in no order; up to twice as many as are kept.
    weights: Vec<f64>,
    /// No weight below this one can be among the largest.
    least: f64,
}

impl Largest {
    pub fn add(&mut self, w: f64) {
        self.positive += u64::from(w > 0.0);
        if w > self.least {
            self.weights.push(w);
            if self.weights.len() >= 2 * KEPT {
                self.cut();
            }
        }
    }

    pub fn merge(&mut self, other: &Largest) {
        self.positive += other.positive;
        self.weights.extend(other.weights.iter().filter(|&&w| w > self.least));
        if self.weights.len() >= 2 * KEPT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.weights.len() > KEPT {
            let (_, &mut least, _) = self.weights.select_nth_unstable_by(KEPT - 1, |a, b| b.total_cmp(a));
            self.weights.truncate(KEPT);
            self.least = least;
        }
    }

    /// The tail; none without weights above 0.
    pub fn tail(&self) -> Option<Tail> {
        let mut sorted = self.weights.clone();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        sorted.truncate(KEPT);
        let n = self.positive as f64;
        let size = (n / 5.0).min(3.0 * n.sqrt()) as usize;
        let above = *sorted.get(size.min(sorted.len().checked_sub(1)?))?;
        let mut tail: Vec<f64> = sorted.iter().take_while(|&&w| w > above).map(|w| w - above).collect();
        tail.reverse();
        let k = (tail.len() >= FEWEST).then(|| pareto_k(&tail)).filter(|k| k.is_finite());
        Some(Tail { k, rounds: tail.len() as u64, above })
    }

    /// Keeps the largest of so many rounds, in order, so that the bytes do not depend on how they were merged.
    pub fn keep(&mut self, tape: &mut Tape<'_>, rounds: u64) -> Result<(), Error> {
        self.weights.sort_unstable_by(|a, b| b.total_cmp(a));
        self.cut();
        tape.number(&mut self.positive, rounds)?;
        tape.list(&mut self.weights, |tape, w| {
            tape.double(w)?;
            tape.check(*w > 0.0 && *w < f64::INFINITY, "a weight above 0")
        })?;
        let known = self.weights.len() as u64 == self.positive.min(KEPT as u64);
        tape.check(known && self.weights.is_sorted_by(|a, b| a >= b), "the largest weights, in order")?;
        self.least = if self.weights.len() < KEPT { 0.0 } else { self.weights[KEPT - 1] };
        Ok(())
    }
}

/// k̂ of a generalised Pareto distribution that begins at 0, from a sorted sample: the posterior mean over a grid of
/// its parameter b = −k/σ (Zhang & Stephens 2009), drawn to ½ as by ten more observations.
fn pareto_k(sample: &[f64]) -> f64 {
    let n = sample.len() as f64;
    let points = 30 + n.sqrt() as usize;
    let quartile = sample[(n / 4.0 + 0.5) as usize - 1];
    let largest = sample[sample.len() - 1];
    let k_of = |b: f64| sample.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / n;
    let grid = |i: usize| (1.0 - (points as f64 / (i as f64 - 0.5)).sqrt()) / (3.0 * quartile) + 1.0 / largest;
    let scored: Vec<(f64, f64)> = (1..=points)
        .map(|i| {
            let b = grid(i);
            let k = k_of(b);
            (b, n * ((-b / k).ln() - k - 1.0))
        })
        .collect();
    let best = scored.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = scored.iter().map(|(_, score)| (score - best).exp()).sum();
    // what weighs less than rounding does is left out, as ArviZ leaves it out
    let weight = |score: f64| Some((score - best).exp() / total).filter(|w| *w >= 10.0 * f64::EPSILON);
    let kept: Vec<(f64, f64)> = scored.iter().filter_map(|(b, score)| Some((*b, weight(*score)?))).collect();
    let sum: f64 = kept.iter().map(|(_, w)| w).sum();
    let b = kept.iter().map(|(b, w)| b * w).sum::<f64>() / sum;
    (n * k_of(b) + 5.0) / (n + 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quantiles of a generalised Pareto distribution that begins at 1, at draws of a linear congruential
    /// generator.
    fn weights(n: usize, k: f64) -> Vec<f64> {
        let mut state = 12345u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        (0..n).map(|_| ((1.0 - draw()).powf(-k) - 1.0) / k + 1.0).collect()
    }

    fn of(weights: &[f64]) -> Largest {
        let mut largest = Largest::default();
        weights.iter().for_each(|&w| largest.add(w));
        largest
    }

    /// Values of `psislw` of arviz-stats 0.8.0, by `tests/golden/pareto_k.py`.
    #[test]
    fn k_is_that_of_arviz() {
        for (n, k, golden) in [
            (40, 1.5, 1.1418194660774215),
            (100, 0.2, 0.48548742030972186),
            (1000, 0.5, 0.5491129506856401),
            (1000, 0.9, 0.8878666022648463),
            (5000, -0.3, -0.20869704459080324),
            (20000, 0.7, 0.754903068291695),
        ] {
            let tail = of(&weights(n, k)).tail().unwrap();
            assert!((tail.k.unwrap() - golden).abs() < 1e-9, "{n} rounds, k = {k}: {tail:?}, {golden}");
        }
    }

    #[test]
    fn zeros_do_not_count_and_parts_merge_to_the_whole() {
        let all = weights(30_000, 0.6);
        let whole = of(&all).tail();
        let mut parts = of(&all[20_000..]);
        (0..1000).for_each(|_| parts.add(0.0));
        parts.merge(&of(&all[..20_000]));
        assert_eq!(parts.tail(), whole);
        assert_eq!(whole.unwrap().rounds, 519); // 3√30000
    }

    #[test]
    fn weights_with_an_end_that_many_reach_have_no_tail() {
        let bounded: Vec<f64> = (0..1000).map(|t| if t % 2 == 0 { 1.25 } else { 10.0 }).collect();
        assert_eq!(of(&bounded).tail(), Some(Tail { k: None, rounds: 0, above: 10.0 }));
        assert_eq!(of(&[0.0; 9]).tail(), None);
        assert_eq!(of(&[2.0]).tail().unwrap().k, None);
    }
}
