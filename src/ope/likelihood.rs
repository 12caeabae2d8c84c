//! Empirical likelihood for policy values by the Cressie–Read divergence of power −2 (Karampatziakis, Langford &
//! Mineiro, "Empirical Likelihood for Contextual Bandits", 2020).
//!
//! Among all distributions over (w, r) that put mass on the rounds seen and on one round more, E\[w\] = 1 selects the
//! likeliest; its mean of w r is the estimate, and the values of all distributions that the likelihood does not reject
//! form the interval. Both are closed forms of the sums of 1, w, w², w r, w² r, w² r² and r. The round more has weight
//! 0, or no bound on its weight, whichever moves E\[w\] towards 1 (or the bound outwards).

use super::moments::{Moments, R, W, WR};
use super::quantiles::student_t;

/// A bound is moved outwards by √2 times this where it is degenerate.
const SLACK: f64 = 1e-9;

/// The sums that both closed forms need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Likelihood {
    n: f64,
    r: f64,
    w: f64,
    wr: f64,
    ww: f64,
    wwr: f64,
    wwrr: f64,
}

impl Likelihood {
    pub fn new(moments: &Moments) -> Self {
        Likelihood {
            n: moments.n(),
            r: moments.sum(R),
            w: moments.sum(W),
            wr: moments.sum(WR),
            ww: moments.product(W, W),
            wwr: moments.product(W, WR),
            wwrr: moments.product(WR, WR),
        }
    }

    /// The likeliest value. Mass that no round seen can hold earns the log's mean reward.
    pub fn value(&self) -> f64 {
        let Likelihood { n, w, wr, ww, wwr, .. } = *self;
        let (gamma, beta) = if w < n {
            ((1.0 + n) / n, 0.0)
        } else {
            let (a, b) = (w / (1.0 + n), ww / (1.0 + n));
            ((b - a) / (b - a * a), (1.0 - a) / (b - a * a))
        };
        let mean = |x: f64, wx: f64| (gamma * x + beta * wx) / (1.0 + n);
        let missing = (1.0 - mean(w, ww)).max(0.0);
        mean(wr, wwr) + missing * self.r / n
    }

    /// The values that are not rejected, each end with error probability `tail`, for rewards in `range`.
    pub fn interval(&self, tail: f64, range: [f64; 2]) -> [f64; 2] {
        let n = self.n;
        let best = if self.w < n {
            1.0 + 1.0 / n
        } else {
            let (a, b) = (self.w / (1.0 + n), self.ww / (1.0 + n));
            (1.0 + n) * (a - 1.0).powi(2) / (b - a * a)
        };
        // the F distribution with (1, n) degrees is the square of Student's t
        let phi = -(best + student_t(n, tail).powi(2)) / (2.0 * (1.0 + n));
        let bound = |extreme: f64, sign: f64| {
            let ends = [self.with_zero_weight(phi, sign), self.with_any_weight(phi, extreme, sign)];
            let outer = ends.into_iter().flatten().fold(f64::INFINITY, f64::min);
            if outer.is_finite() { (sign * outer).clamp(range[0], range[1]) } else { extreme }
        };
        [bound(range[0], 1.0), bound(range[1], -1.0)]
    }

    /// The least value (of sign·r) if the round more has weight 0.
    fn with_zero_weight(&self, phi: f64, sign: f64) -> Option<f64> {
        let mean = |sum: f64| sum / (1.0 + self.n);
        let (w, ww, wwrr) = (mean(self.w), mean(self.ww), mean(self.wwrr));
        let (wr, wwr) = (sign * mean(self.wr), sign * mean(self.wwr));
        let spread = ww - w * w;
        if spread <= 0.0 {
            return None;
        }
        let slope = wwr - w * wr;
        let x = wr + (1.0 - w) * slope / spread;
        let y = slope * slope / spread - (wwrr - wr * wr);
        least(x, y, phi + 0.5 * (1.0 - w).powi(2) / spread)
    }

    /// The least value (of sign·r) if the weight of the round more is not bounded and its reward is `r`, the worst.
    fn with_any_weight(&self, phi: f64, r: f64, sign: f64) -> Option<f64> {
        let n = self.n;
        let x = sign * (r + (self.wr - self.w * r) / n);
        let y = (r * self.w - self.wr).powi(2) / (n * (1.0 + n))
            - (r * r * self.ww - 2.0 * r * self.wwr + self.wwrr) / (1.0 + n);
        least(x, y, phi + 0.5 / n)
    }
}

fn least(x: f64, y: f64, z: f64) -> Option<f64> {
    if (y * z).abs() <= SLACK * SLACK {
        Some(x - std::f64::consts::SQRT_2 * SLACK)
    } else {
        (z <= 0.0 && y * z >= 0.0).then(|| x - (2.0 * y * z).sqrt())
    }
}
