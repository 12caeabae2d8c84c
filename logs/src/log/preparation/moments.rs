//! Mean and variance of a column that comes in blocks.
//!
//! Of each block the mean and the sum of squared deviations M are taken in two passes; blocks are merged by
//! δ = m_b − m_a,  m = m_a + δ·n_b/n,  M = M_a + M_b + δ²·n_a·n_b/n
//! (Chan, Golub & LeVeque, 1979), which loses no digits to an offset of the column.

/// Moments of the values seen so far; NaN is no value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    pub count: u64,
    pub mean: f64,
    squares: f64,
    pub min: f64,
    pub max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Moments {
    /// Adds the values of a block.
    pub fn add(&mut self, values: &[f64]) {
        let there = || values.iter().copied().filter(|v| !v.is_nan());
        let (mut count, mut sum, mut min, mut max) = (0u64, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        for v in there() {
            count += 1;
            sum += v;
            min = min.min(v);
            max = max.max(v);
        }
        if count == 0 {
            return;
        }
        let mean = sum / count as f64;
        let squares = there().map(|v| (v - mean).powi(2)).sum();
        self.merge(&Moments { count, mean, squares, min, max });
    }

    fn merge(&mut self, other: &Moments) {
        let (n_a, n_b) = (self.count as f64, other.count as f64);
        let n = n_a + n_b;
        let delta = other.mean - self.mean;
        self.mean += delta * n_b / n;
        self.squares += other.squares + delta * delta * n_a * n_b / n;
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The population standard deviation; exactly 0 for a column with one value only.
    pub fn deviation(&self) -> f64 {
        match self.min < self.max {
            true => (self.squares / self.count as f64).sqrt(),
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_merge_to_the_moments_of_the_whole_whatever_the_offset() {
        let values: Vec<f64> = (0..10_000).map(|i| 1e8 + f64::from(i * 7919 % 10_007) / 10_007.0).collect();
        let n = values.len() as f64;
        let mean = 1e8 + values.iter().map(|v| v - 1e8).sum::<f64>() / n;
        let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let mut moments = Moments::default();
        values.chunks(1234).for_each(|block| moments.add(block));
        // The mean is rounded to a step of 1e8·eps ≈ 1.5e-8 in each merge; its error enters the deviation squared.
        assert!((moments.mean - mean).abs() < 9.0 * 1e8 * f64::EPSILON, "{} {mean}", moments.mean);
        assert!((moments.deviation() - deviation).abs() < 1e-12, "{} {deviation}", moments.deviation());
        assert_eq!((moments.min, moments.max), (1e8, 1e8 + 10_006.0 / 10_007.0));
    }

    #[test]
    fn a_constant_has_no_deviation_and_absent_values_do_not_count() {
        let mut moments = Moments::default();
        (0..7).for_each(|_| moments.add(&[0.1, f64::NAN, 0.1, 0.1]));
        moments.add(&[f64::NAN]);
        assert_eq!((moments.count, moments.deviation()), (21, 0.0));
    }
}
