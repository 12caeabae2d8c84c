//! The number types of the network: f32 for work, f64 for proof.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// f32 or f64.
pub trait Scalar:
    Copy
    + Debug
    + Default
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + crate::archive::Element
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Rounds from f64.
    fn of(v: f64) -> Self;
    /// Converts from f32, exactly.
    fn of_f32(v: f32) -> Self;
    /// Widens to f64, exactly.
    fn to_f64(self) -> f64;
    /// The square root.
    fn root(self) -> Self;
    /// self·b + c, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// e to this power, without a branch; see `linalg::exp`.
    fn exp(self) -> Self;
}

macro_rules! scalar {
    ($t:ty, $exp:path) => {
        impl Scalar for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn of(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn of_f32(v: f32) -> Self {
                <$t>::from(v)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn root(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                <$t>::mul_add(self, b, c)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
        }
    };
}
scalar!(f32, super::exp::exp_f32);
scalar!(f64, super::exp::exp_f64);
