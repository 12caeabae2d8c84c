//! Mean and variance of a column that comes in blocks.
//!
//! Values are taken from the first one of the column, so that an offset costs no digits. Of each block the mean and the
//! sum of squared deviations M are taken in two passes; blocks are merged by
//! δ = m_b − m_a,  m = m_a + δ·n_b/n,  M = M_a + M_b + δ²·n_a·n_b/n  (Chan, Golub & LeVeque, 1979).

/// Moments of the values seen so far; NaN is no value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    pub count: u64,
    /// The first value.
    origin: f64,
    /// The mean, seen from the first value.
    from_origin: f64,
    squares: f64,
    pub min: f64,
    pub max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { count: 0, origin: 0.0, from_origin: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Moments {
    /// Adds the values of a block.
    pub fn add(&mut self, values: &[f64]) {
        let there = || values.iter().copied().filter(|v| !v.is_nan());
        let Some(first) = there().next() else { return };
        if self.count == 0 {
            self.origin = first;
        }
        let origin = self.origin;
        let (mut count, mut sum) = (0u64, 0.0);
        for v in there() {
            count += 1;
            sum += v - origin;
            self.min = self.min.min(v);
            self.max = self.max.max(v);
        }
        let mean = sum / count as f64;
        let squares: f64 = there().map(|v| (v - origin - mean).powi(2)).sum();
        let (n_a, n_b) = (self.count as f64, count as f64);
        let n = n_a + n_b;
        let delta = mean - self.from_origin;
        self.from_origin += delta * n_b / n;
        self.squares += squares + delta * delta * n_a * n_b / n;
        self.count += count;
    }

    /// The mean; 0 of no values.
    pub fn mean(&self) -> f64 {
        self.origin + self.from_origin
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
        let offset = values.iter().map(|v| v - 1e8).sum::<f64>() / n;
        let mean = 1e8 + offset;
        let deviation = (values.iter().map(|v| (v - 1e8 - offset).powi(2)).sum::<f64>() / n).sqrt();
        let mut moments = Moments::default();
        values.chunks(1234).for_each(|block| moments.add(block));
        // The mean itself is rounded to a step of 1e8·eps; the deviation does not know of the offset.
        assert!((moments.mean() - mean).abs() <= 1e8 * f64::EPSILON, "{} {mean}", moments.mean());
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
