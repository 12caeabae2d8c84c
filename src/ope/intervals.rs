//! The intervals of one estimate. Each errs with probability `tail` on each side: an interval at confidence 1 − δ takes
//! δ/2, a lower bound alone takes δ.

use super::bootstrap::quantile;
use super::config::Interval;
use super::quantiles::{beta, normal, student_t};

/// What is known of an estimate's spread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread {
    /// V̂.
    pub value: f64,
    /// Number of rounds.
    pub n: f64,
    /// Standard error; `None` where the estimate has none.
    pub error: Option<f64>,
    /// For a mean: how far apart two rounds can be.
    pub width: Option<f64>,
    /// The values of the bootstrap replicates, sorted; empty if there are none.
    pub replicates: Vec<f64>,
}

impl Spread {
    /// An interval that rests on the spread alone.
    ///
    /// * `normal`, `student-t`: V̂ ± quantile · standard error
    /// * `bootstrap`: quantiles of the replicates
    /// * `hoeffding`: V̂ ± width √(ln(1/tail) / 2n)
    /// * `bernstein`: V̂ ± (7 width ln(2/tail) / 3(n − 1) + √(2 ln(2/tail)) · standard error)
    pub fn interval(&self, interval: Interval, tail: f64) -> Option<[f64; 2]> {
        let around = |half: f64| Some([self.value - half, self.value + half]);
        match interval {
            Interval::Normal => around(normal(tail) * self.error?),
            Interval::StudentT if self.n > 1.0 => around(student_t(self.n - 1.0, tail) * self.error?),
            Interval::Bootstrap if !self.replicates.is_empty() => {
                Some([quantile(&self.replicates, tail), quantile(&self.replicates, 1.0 - tail)])
            }
            Interval::Hoeffding => around(self.width? * ((1.0 / tail).ln() / (2.0 * self.n)).sqrt()),
            Interval::Bernstein if self.n > 1.0 => {
                let log = (2.0 / tail).ln();
                around(7.0 * self.width? * log / (3.0 * (self.n - 1.0)) + (2.0 * log).sqrt() * self.error?)
            }
            _ => None,
        }
    }
}

/// Clopper and Pearson's interval for rewards in `range`, as if the log were n / max w trials of which
/// Σ w (r − least) / (max w · span) succeeded.
pub(crate) fn clopper_pearson(n: f64, w: f64, wr: f64, max_w: f64, tail: f64, range: [f64; 2]) -> Option<[f64; 2]> {
    if max_w <= 0.0 {
        return None;
    }
    let span = range[1] - range[0];
    let successes = (wr - range[0] * w) / span / max_w;
    let trials = n / max_w;
    let low = if successes > 0.0 { beta(successes, trials - successes + 1.0, tail) } else { 0.0 };
    let high = if successes < trials { beta(successes + 1.0, trials - successes, 1.0 - tail) } else { 1.0 };
    // more successes than trials: w r sums to more than the largest reward allows, and no mean below the top explains
    // it
    let low = if low.is_finite() { low } else { 1.0 };
    Some([range[0] + low * span, range[0] + high * span])
}
