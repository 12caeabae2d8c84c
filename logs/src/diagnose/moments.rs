//! Count, mean, spread and range of some numbers; parts can be merged.
//!
//! With weights w: n = Σw, mean = Σwx/n, m2 = Σw(x − mean)², updated as in West (1979) and merged as in Chan, Golub and
//! LeVeque (1983), so that nothing cancels.

/// The moments of the numbers seen so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moments {
    pub n: f64,
    pub mean: f64,
    m2: f64,
    pub min: f64,
    pub max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { n: 0.0, mean: 0.0, m2: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Moments {
    /// A number that counts `w` > 0 times.
    pub fn push(&mut self, x: f64, w: f64) {
        self.n += w;
        let off = x - self.mean;
        self.mean += off * w / self.n;
        self.m2 += w * off * (x - self.mean);
        self.min = self.min.min(x);
        self.max = self.max.max(x);
    }

    /// Both together.
    pub fn merge(&mut self, other: &Moments) {
        let n = self.n + other.n;
        if other.n == 0.0 {
            return;
        }
        let off = other.mean - self.mean;
        self.mean += off * other.n / n;
        self.m2 += other.m2 + off * off * self.n * other.n / n;
        self.n = n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The variance of the numbers themselves, Σw(x − mean)²/n.
    pub fn variance(&self) -> f64 {
        if self.n > 0.0 { (self.m2 / self.n).max(0.0) } else { 0.0 }
    }

    /// √variance.
    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }

    /// Whether all numbers are the same one.
    pub fn is_constant(&self) -> bool {
        self.n > 0.0 && self.min == self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_merge_to_the_whole() {
        let numbers: Vec<f64> = (0..100).map(|i| 1e6 + f64::from(i * i % 37)).collect();
        let mut whole = Moments::default();
        let (mut left, mut right) = (Moments::default(), Moments::default());
        for (i, &x) in numbers.iter().enumerate() {
            whole.push(x, 1.0);
            if i < 30 { left.push(x, 1.0) } else { right.push(x, 1.0) }
        }
        left.merge(&right);
        left.merge(&Moments::default());
        let mean = numbers.iter().sum::<f64>() / 100.0;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 100.0;
        for m in [whole, left] {
            assert!((m.mean - mean).abs() < 1e-9, "{m:?}");
            assert!((m.variance() - variance).abs() < 1e-8 * variance, "{m:?}");
            assert_eq!((m.n, m.min, m.max), (100.0, 1e6, 1e6 + 36.0));
        }
    }

    #[test]
    fn a_weight_is_a_number_of_times() {
        let (mut once, mut thrice) = (Moments::default(), Moments::default());
        once.push(2.0, 3.0);
        once.push(5.0, 1.0);
        for x in [2.0, 2.0, 2.0, 5.0] {
            thrice.push(x, 1.0);
        }
        assert!((once.mean - thrice.mean).abs() < 1e-15 && (once.variance() - thrice.variance()).abs() < 1e-14);
    }
}
