//! arccos that can be inlined into loops of vector instructions, within 2 units in the last place; the C library's is a
//! call per number.
//!
//! asin(s) = s + s·R(s²) for s ≤ ½ with the rational minimax approximation R of Sun's fdlibm (1993), and with
//! s = √((1 − |x|)/2): arccos |x| = 2 asin(s) for |x| > ½.

use std::f64::consts::{FRAC_PI_2, PI};

/// R(z) = z·P(z)/Q(z), the highest power first.
const P: [f64; 6] = [
    3.479_331_075_960_212e-5,
    7.915_349_942_898_145e-4,
    -4.005_553_450_067_941e-2,
    2.012_125_321_348_629_3e-1,
    -3.255_658_186_224_009e-1,
    1.666_666_666_666_666_6e-1,
];
const Q: [f64; 5] =
    [7.703_815_055_590_194e-2, -6.882_839_716_054_533e-1, 2.020_945_760_233_505_7, -2.403_394_911_734_414, 1.0];

/// arccos x for x in [−1, 1].
#[inline(always)]
pub(crate) fn acos(x: f64) -> f64 {
    let small = x.abs() <= 0.5;
    let half = 0.5 * (1.0 - x.abs());
    let (z, s) = if small { (x * x, x.abs()) } else { (half, half.sqrt()) };
    let at = |coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * z + c);
    let asin = s + s * (z * at(&P) / at(&Q));
    // selections, no branches
    let of_abs = if small { FRAC_PI_2 - asin } else { 2.0 * asin };
    if x >= 0.0 { of_abs } else { PI - of_abs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_equals_the_library_s_to_the_last_digits() {
        let points = (0..=200_000).map(|i| f64::from(i) * 1e-5 - 1.0);
        let near_one = (1..60).flat_map(|k| [1.0 - 0.5f64.powi(k), 0.5f64.powi(k) - 1.0]);
        for x in points.chain(near_one).chain([1.0, -1.0, 0.0, 0.5, -0.5]) {
            let (got, want) = (acos(x), x.acos());
            assert!((got - want).abs() <= 3.0 * f64::EPSILON * want.max(1e-300), "{x}: {got} {want}");
        }
    }
}
