//! Exponents: the slope of a line through points in log-log.

/// The least-squares slope of log y against log x; NaN without two different positive points.
pub fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> =
        points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0).map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    let (mx, my) = (logs.iter().map(|p| p.0).sum::<f64>() / n, logs.iter().map(|p| p.1).sum::<f64>() / n);
    let xy: f64 = logs.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    xy / logs.iter().map(|(x, _)| (x - mx).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_gives_its_power_and_zeros_are_passed_over() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 5.0, 9.0].iter().map(|x: &f64| (*x, 3.0 * x.powf(-0.5))).collect();
        assert!((exponent(&points) + 0.5).abs() < 1e-12);
        assert!((exponent(&[(1.0, 1.0), (2.0, 0.0), (4.0, 16.0)]) - 2.0).abs() < 1e-12);
        assert!(exponent(&[(1.0, 1.0)]).is_nan());
    }
}
