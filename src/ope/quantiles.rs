//! Quantiles and special functions of the intervals, to some units in the last place also for millions of rounds.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::ln_gamma;

/// The number that a standard normal variable exceeds with the given probability.
pub(crate) fn normal(tail: f64) -> f64 {
    -Normal::standard().inverse_cdf(tail)
}

/// The number that Student's t with `freedom` degrees exceeds with the given probability.
pub(crate) fn student_t(freedom: f64, tail: f64) -> f64 {
    if freedom < 1000.0 {
        return -StudentsT::new(0.0, 1.0, freedom).expect("positive freedom").inverse_cdf(tail);
    }
    // Cornish and Fisher's expansion in 1/ν (Abramowitz & Stegun 26.7.5): the next term is of order ν⁻⁵.
    let z = normal(tail);
    let s = z * z;
    let g1 = (s + 1.0) / 4.0;
    let g2 = ((5.0 * s + 16.0) * s + 3.0) / 96.0;
    let g3 = (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0;
    let g4 = ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0;
    let u = 1.0 / freedom;
    z * (1.0 + u * (g1 + u * (g2 + u * (g3 + u * g4))))
}

/// ln Γ(a) − (a − ½) ln a + a − ½ ln 2π: what Stirling's formula leaves over.
pub(crate) fn stirling_rest(a: f64) -> f64 {
    if a < 16.0 {
        return ln_gamma(a) - (a - 0.5) * a.ln() + a - 0.5 * std::f64::consts::TAU.ln();
    }
    let u = 1.0 / (a * a);
    (1.0 / 12.0 - u * (1.0 / 360.0 - u * (1.0 / 1260.0 - u * (1.0 / 1680.0 - u / 1188.0)))) / a
}

/// x with I_x(a, b) = p: the p-quantile of the beta distribution, by halving.
pub(crate) fn beta(a: f64, b: f64, p: f64) -> f64 {
    halve(0.0, 1.0, |x| beta_cdf(a, b, x) < p)
}

/// I_x(a, b), the regularised incomplete beta function, by its continued fraction (modified Lentz).
fn beta_cdf(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return f64::from(u8::from(x >= 1.0));
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_cdf(b, a, 1.0 - x);
    }
    let n = a + b;
    // x^a (1 − x)^b / (a B(a, b)), the large terms of the three gamma functions cancelled by hand
    let front = a * (x * n / a).ln()
        + b * ((-x).ln_1p() + (n / b).ln())
        + 0.5 * (a * b / (std::f64::consts::TAU * n)).ln()
        + stirling_rest(n)
        - stirling_rest(a)
        - stirling_rest(b);
    let tiny = 1e-300;
    let keep = |v: f64| if v.abs() < tiny { tiny } else { v };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - n * x / (a + 1.0)));
    let mut h = d;
    let most = 500 + 20 * (a.max(b).sqrt() as usize).min(1_000_000);
    for m in 1..most {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / keep(1.0 + even * d);
        c = keep(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (n + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / keep(1.0 + odd * d);
        c = keep(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    (front.exp() * h / a).min(1.0)
}

/// The place in [low, high] at which `below` turns from true to false, to the last bit (or 2⁻²⁰⁰ of the interval).
pub(crate) fn halve(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got / expected - 1.0).abs() < tolerance, "{got} against {expected}");
    }

    /// Values of SciPy 1.17.1 (norm.isf, t.isf, beta.ppf).
    #[test]
    fn quantiles_are_those_of_scipy() {
        close(normal(0.025), 1.9599639845400545, 1e-14);
        close(normal(0.05), 1.6448536269514729, 1e-14);
        close(normal(0.0001), 3.7190164854556804, 1e-14);
        close(normal(0.3), 0.5244005127080409, 1e-14);
        close(student_t(3.0, 0.025), 3.1824463052837086, 1e-11);
        close(student_t(50.0, 0.05), 1.6759050251630974, 1e-11);
        close(student_t(999.0, 0.025), 1.9623414611334498, 1e-11);
        close(student_t(1001.0, 0.025), 1.96233670528088, 1e-11);
        close(student_t(9999.0, 0.05), 1.6450060333112992, 1e-11);
        close(student_t(9999.0, 0.0001), 3.720396007115577, 1e-11);
        close(student_t(10000000.0, 0.025), 1.9599642217672055, 1e-11);
        close(beta(2.5, 30.0, 0.025), 0.013428162532299868, 1e-11);
        close(beta(0.1, 3.0, 0.025), 2.2572530288170913e-17, 1e-11);
        close(beta(7.6, 1340.3, 0.025), 0.0023752350275873303, 1e-11);
        close(beta(8.6, 1339.3, 0.975), 0.011275024822858998, 1e-11);
        close(beta(300.5, 1000000.0, 0.975), 0.0003353064169423093, 1e-11);
        close(beta(50000.0, 60000.0, 0.025), 0.45160373458669295, 1e-11);
        close(beta(0.5, 0.5, 0.7), 0.7938926261462365, 1e-11);
    }

    #[test]
    fn both_forms_of_stirlings_rest_meet() {
        for a in [15.9f64, 20.0, 50.0] {
            let plain = ln_gamma(a) - (a - 0.5) * a.ln() + a - 0.5 * std::f64::consts::TAU.ln();
            assert!((stirling_rest(a) - plain).abs() < 1e-12);
        }
        assert!((stirling_rest(1.0) - (1.0 - 0.5 * std::f64::consts::TAU.ln())).abs() < 1e-14);
    }
}
