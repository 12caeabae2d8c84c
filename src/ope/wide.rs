//! Integers of 512 bits: as much arithmetic as exact sums of products need.

use super::sums::rounded;
use super::tape::Tape;
use crate::error::Error;

/// A signed integer of 512 bits in two's complement, the lowest limb first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wide([u64; 8]);

impl From<i128> for Wide {
    fn from(x: i128) -> Self {
        let mut limbs = [(x >> 127) as u64; 8];
        (limbs[0], limbs[1]) = (x as u64, (x >> 64) as u64);
        Wide(limbs)
    }
}

impl Wide {
    pub fn add(&mut self, other: Wide) {
        let mut carry = false;
        for (a, b) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = a.overflowing_add(b);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*a, carry) = (sum, first | second);
        }
    }

    /// Keeps the limbs of its size, and its sign.
    pub fn keep(&mut self, tape: &mut Tape<'_>) -> Result<(), Error> {
        let mut negative = self.negative();
        let mut size = self.magnitude();
        tape.flag(&mut negative)?;
        let mut limbs = size.0.iter().rposition(|&l| l != 0).map_or(0, |last| last as u64 + 1);
        tape.number(&mut limbs, 8)?;
        for limb in &mut size.0[..limbs as usize] {
            tape.number(limb, u64::MAX)?;
        }
        *self = if negative { size.negated() } else { size };
        Ok(())
    }

    fn negative(&self) -> bool {
        self.0[7] >> 63 == 1
    }

    fn negated(&self) -> Wide {
        let mut out = Wide(self.0.map(|limb| !limb));
        out.add(Wide::from(1));
        out
    }

    fn magnitude(&self) -> Wide {
        if self.negative() { self.negated() } else { *self }
    }

    /// The product, which must fit.
    pub fn times(&self, factor: i128) -> Wide {
        let (a, b) = (self.magnitude().0, factor.unsigned_abs());
        let (low, high) = (b as u64, (b >> 64) as u64);
        let mut out = [0u64; 8];
        for (offset, b) in [(0, low), (1, high)] {
            if b == 0 {
                continue;
            }
            let mut carry = 0u128;
            for i in 0..8 - offset {
                let sum = u128::from(a[i]) * u128::from(b) + u128::from(out[i + offset]) + carry;
                out[i + offset] = sum as u64;
                carry = sum >> 64;
            }
        }
        let out = Wide(out);
        if self.negative() != (factor < 0) { out.negated() } else { out }
    }

    /// The number times 2^unit, rounded to the nearest double.
    pub fn value(&self, unit: i32) -> f64 {
        let size = rounded(&self.magnitude().0, unit);
        if self.negative() { -size } else { size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_and_sums_are_those_of_integers(
            a in any::<i64>(), b in any::<i64>(), c in -(1i128 << 100)..1i128 << 100,
        ) {
            let product = Wide::from(i128::from(a)).times(i128::from(b));
            prop_assert_eq!(product, Wide::from(i128::from(a) * i128::from(b)));
            let mut sum = product;
            sum.add(Wide::from(c));
            prop_assert_eq!(sum, Wide::from(i128::from(a) * i128::from(b) + c));
            // (x y) c = (x c) y, far beyond 128 bits
            let far = Wide::from(c).times(c).times(i128::from(a));
            prop_assert_eq!(far, Wide::from(i128::from(a)).times(c).times(c));
            let expected = (c as f64) * (c as f64) * (a as f64);
            prop_assert!((far.value(0) - expected).abs() <= 4.0 * f64::EPSILON * expected.abs());
        }
    }
}
