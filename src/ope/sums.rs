//! Sums of doubles without any rounding: the order of adding and the places of cutting do not matter, to the bit.
//!
//! A [`Sum`] is a fixed-point number of 2,176 bits that reaches from the smallest to the largest double (the small
//! superaccumulator of Neal, 2015): a double is added to two neighbouring digits of 32 bits, and carries are settled
//! once in a thousand additions. [`Sum::value`] is the exact sum rounded once, as Python's `fsum`. Adding costs a few
//! nanoseconds, merging and rounding O(68).

use super::tape::Tape;
use crate::error::Error;

/// Digits of 32 bits; 2⁻¹⁰⁷⁴ is the unit of the first.
const DIGITS: usize = 68;

/// The exponent of the unit.
const UNIT: i32 = -1074;

/// Additions between carries: each adds less than 2⁵² to a digit of 63 bits.
const ADDITIONS: u32 = 1024;

/// An exact sum of finite doubles.
#[derive(Debug, Clone)]
pub(crate) struct Sum {
    digits: [i64; DIGITS],
    pending: u32,
}

impl Default for Sum {
    fn default() -> Self {
        Sum { digits: [0; DIGITS], pending: 0 }
    }
}

impl Sum {
    /// Adds a finite number.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        debug_assert!(x.is_finite());
        if x == 0.0 {
            return;
        }
        let bits = x.to_bits();
        let (exponent, fraction) = ((bits >> 52) as usize & 0x7ff, bits & ((1 << 52) - 1));
        let (mantissa, place) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        let (digit, shift) = (place >> 5, place & 31);
        let low = (mantissa << shift) as u32 as i64;
        let high = (mantissa >> (32 - shift)) as i64;
        let sign = 1 - 2 * (bits >> 63) as i64;
        self.digits[digit] += sign * low;
        self.digits[digit + 1] += sign * high;
        self.pending += 1;
        if self.pending == ADDITIONS {
            self.settle();
        }
    }

    /// Adds x·y exactly, as the rounded product and its rounding error.
    #[inline(always)]
    pub fn add_product(&mut self, x: f64, y: f64) {
        let product = x * y;
        if product != 0.0 {
            self.add(product);
            self.add(x.mul_add(y, -product));
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Sum) {
        self.settle();
        let mut other = other.clone();
        other.settle();
        self.digits.iter_mut().zip(other.digits).for_each(|(a, b)| *a += b);
        self.settle();
    }

    /// Brings all digits but the last, which holds the sign, into 0..2³².
    fn settle(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..DIGITS - 1] {
            let sum = *digit + carry;
            *digit = sum & 0xffff_ffff;
            carry = sum >> 32;
        }
        self.digits[DIGITS - 1] += carry;
        self.pending = 0;
    }

    /// Keeps the sum as a sign and the digits of its size.
    pub fn keep(&mut self, tape: &mut Tape<'_>) -> Result<(), Error> {
        /// Below 2⁹⁰⁹: sums and products of what a sample may hold, over 2⁵³ rounds, stay below 2⁸⁷⁶.
        const MOST: u64 = 62;
        let mut negative = self.strip_sign();
        tape.flag(&mut negative)?;
        let mut first = self.digits.iter().position(|&d| d != 0).unwrap_or(0) as u64;
        let mut end = self.digits.iter().rposition(|&d| d != 0).map_or(0, |last| last as u64 + 1);
        tape.number(&mut first, MOST)?;
        tape.number(&mut end, MOST)?;
        for digit in self.digits.iter_mut().take(end as usize).skip(first as usize) {
            let mut number = *digit as u64;
            tape.number(&mut number, u64::from(u32::MAX))?;
            *digit = number as i64;
        }
        if negative {
            self.negate();
        }
        Ok(())
    }

    /// Leaves the size alone; whether the sum was negative.
    fn strip_sign(&mut self) -> bool {
        self.settle();
        let negative = self.digits[DIGITS - 1] < 0;
        if negative {
            self.negate();
        }
        negative
    }

    fn negate(&mut self) {
        self.digits.iter_mut().for_each(|d| *d = -*d);
        self.settle();
    }

    /// The sum, rounded once to the nearest double.
    pub fn value(&self) -> f64 {
        let mut settled = self.clone();
        let negative = settled.strip_sign();
        let limbs: [u64; DIGITS / 2] =
            std::array::from_fn(|i| settled.digits[2 * i] as u64 | (settled.digits[2 * i + 1] as u64) << 32);
        let size = rounded(&limbs, UNIT);
        if negative { -size } else { size }
    }

    /// The sum as a double and what it leaves over: together 106 bits.
    pub fn pair(&self) -> (f64, f64) {
        let high = self.value();
        if !high.is_finite() {
            return (high, 0.0);
        }
        let mut rest = self.clone();
        rest.settle();
        rest.add(-high);
        (high, rest.value())
    }
}

/// The number of the given limbs (the lowest first) times 2^unit, rounded to the nearest double, ties to even.
pub(crate) fn rounded(limbs: &[u64], unit: i32) -> f64 {
    let Some(top) = limbs.iter().rposition(|&l| l != 0) else { return 0.0 };
    let mut head = u128::from(limbs[top]) << 64;
    if top > 0 {
        head |= u128::from(limbs[top - 1]);
        head |= u128::from(limbs[..top - 1].iter().any(|&l| l != 0)); // below the bit that decides: only breaks ties
    }
    scaled(head as f64, unit + 64 * (top as i32 - 1))
}

/// x·2^e for |e| ≤ 2044; in two steps, because 2^e itself may be no double.
pub(crate) fn scaled(x: f64, e: i32) -> f64 {
    x * power(e / 2) * power(e - e / 2)
}

/// 2^e by its bits; e is clamped to those of normal doubles.
fn power(e: i32) -> f64 {
    f64::from_bits(((1023 + e.clamp(-1022, 1023)) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(values: &[f64]) -> Sum {
        let mut sum = Sum::default();
        values.iter().for_each(|&v| sum.add(v));
        sum
    }

    #[test]
    fn sums_that_rounding_destroys_are_exact() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]).value(), 1.0);
        assert_eq!(sum(&[0.1; 10]).value(), 1.0); // as Python's fsum
        assert_eq!(sum(&[1e300, 1e-300, -1e300]).value(), 1e-300);
        assert_eq!(sum(&[f64::MIN_POSITIVE / 4.0, -1.0, 1.0]).value(), f64::MIN_POSITIVE / 4.0);
        assert_eq!(sum(&[1.0, 2f64.powi(-53), 2f64.powi(-106)]).value(), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0, 2f64.powi(-53)]).value(), 1.0);
        assert_eq!(sum(&[-3.0]).value(), -3.0);
        assert_eq!(sum(&[]).value(), 0.0);
        assert_eq!(sum(&[1.0, 2f64.powi(-80)]).pair(), (1.0, 2f64.powi(-80)));
    }

    #[test]
    fn many_additions_do_not_overflow_a_digit() {
        let values = vec![-1.999_999_9; 100_000];
        assert_eq!(sum(&values).value(), -199_999.99);
    }

    #[test]
    fn a_product_keeps_its_rounding_error() {
        let mut sum = Sum::default();
        sum.add_product(1.0 + f64::EPSILON, 1.0 + f64::EPSILON);
        sum.add(-1.0);
        sum.add(-2.0 * f64::EPSILON);
        assert_eq!(sum.value(), f64::EPSILON * f64::EPSILON);
    }

    proptest! {
        #[test]
        fn any_order_and_any_cut_give_the_same_bits(
            values in prop::collection::vec(prop::num::f64::NORMAL.prop_map(|v| v * 1e-20), 0..60),
            cut in 0usize..60,
        ) {
            let cut = cut.min(values.len());
            let whole = sum(&values);
            let mut merged = sum(&values[cut..]);
            merged.merge(&sum(&values[..cut]));
            let reversed: Vec<f64> = values.iter().rev().copied().collect();
            prop_assert_eq!(whole.pair(), merged.pair());
            prop_assert_eq!(whole.value(), sum(&reversed).value());
        }
    }
}
