//! eˣ without a branch or a call, so that loops over it become vector instructions. The library's is a call per number,
//! about 20 times slower.
//!
//! x = n·ln 2 + r with |r| ≤ ½ ln 2, eˣ = 2ⁿ·eʳ. In f64 eʳ is the polynomial of degree 11 whose largest relative error
//! is the smallest (3.1e-18, by the Remez exchange), and eˣ is within 2 units in the last place. In f32 it is
//! 1 + r + r²·p(r) with p of degree 5 (Cephes), and eˣ is within 2 units too. What is below the smallest normal number
//! is given as that.

use super::vectors::{Job, dispatch};

/// From the power 11 down to 0.
const POLYNOMIAL: [f64; 12] = [
    2.499_429_334_573_046_3e-8,
    2.763_230_822_445_254_3e-7,
    2.755_762_265_202_448_7e-6,
    2.480_148_648_128_35e-5,
    1.984_126_943_243_443_8e-4,
    1.388_888_895_126_120_4e-3,
    8.333_333_333_559_451e-3,
    4.166_666_666_649_263e-2,
    1.666_666_666_666_617e-1,
    0.500_000_000_000_001_8,
    1.0,
    1.0,
];

/// From the power 5 down to 0.
const POLYNOMIAL_F32: [f32; 6] = [1.987_569_2e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// eˣ in f64.
#[inline(always)]
pub(super) fn exp_f64(x: f64) -> f64 {
    // adding it rounds to the nearest integer, which then stands in the low bits
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x > -708.0 { x } else { -708.0 };
    let x = if x < 709.0 { x } else { 709.0 };
    let shifted = x.mul_add(std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut p = POLYNOMIAL[0];
    for c in &POLYNOMIAL[1..] {
        p = p.mul_add(r, *c);
    }
    p * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// eˣ in f32.
#[inline(always)]
pub(super) fn exp_f32(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > -87.0 { x } else { -87.0 };
    let x = if x < 88.0 { x } else { 88.0 };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut p = POLYNOMIAL_F32[0];
    for c in &POLYNOMIAL_F32[1..] {
        p = p.mul_add(r, *c);
    }
    (r * r).mul_add(p, r + 1.0) * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// v ← eᵛ for every element.
pub(crate) fn exp_in_place(v: &mut [f64]) {
    dispatch(Exp(v));
}

struct Exp<'a>(&'a mut [f64]);

impl Job for Exp<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.iter_mut().for_each(|v| *v = exp_f64(*v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_library_within_two_units() {
        let mut v: Vec<f64> = (-70_000..70_000).map(|i| f64::from(i) * 0.0101).collect();
        v.extend([0.0, -0.0, 1.0, -1.0, 1e-300, -708.0, 709.0]);
        let inputs = v.clone();
        exp_in_place(&mut v);
        for (&x, &got) in inputs.iter().zip(&v) {
            let want = x.exp();
            assert!((got - want).abs() <= 2.0 * f64::EPSILON * want, "exp({x}) = {want}, got {got}");
            let x = x as f32;
            if (-86.0..88.0).contains(&x) {
                let (got, want) = (f64::from(exp_f32(x)), f64::from(x).exp());
                assert!((got - want).abs() <= 2.0 * f64::from(f32::EPSILON) * want, "exp({x}) = {want}, got {got}");
            }
        }
        let mut far = [-1e300, f64::NEG_INFINITY, 1e300];
        exp_in_place(&mut far);
        assert!(far[0] < 1e-300 && far[1] < 1e-300 && far[2] > 1e300);
        assert!(exp_f32(-1e30) < 1e-37 && exp_f32(1e30) > 1e38);
    }
}
