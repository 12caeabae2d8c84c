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
    + sealed::Sealed
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// A vector of ones, then one of zeros: in memory, where a call need not write them first.
    const ONES_AND_ZEROS: &'static [Self; 16];
    /// Rounds from f64.
    fn of(v: f64) -> Self;
    /// Converts from f32, exactly.
    fn of_f32(v: f32) -> Self;
    /// Four f32 as numbers of this type: themselves, or copies in `room`.
    fn four<'a>(x: &'a [f32; 4], room: &'a mut [Self; 4]) -> &'a [Self; 4];
    /// f32 as numbers of this type, where they are such.
    fn same(x: &[f32]) -> Option<&[Self]>;
    /// Widens to f64, exactly.
    fn wide(self) -> f64;
    /// The square root.
    fn root(self) -> Self;
    /// self·b + c, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
}

mod sealed {
    use crate::kernels::Kernels;
    #[cfg(target_arch = "x86_64")]
    use crate::linalg::simd::{Avx2, Avx512, x86::Registers};

    /// What only f32 and f64 have.
    #[cfg(target_arch = "x86_64")]
    pub trait Sealed: Kernels + Registers<Avx2> + Registers<Avx512> {}
    #[cfg(not(target_arch = "x86_64"))]
    pub trait Sealed: Kernels {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

macro_rules! scalar {
    ($t:ty, |$x:ident, $room:ident| $four:expr, |$all:ident| $same:expr) => {
        impl Scalar for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const ONES_AND_ZEROS: &'static [Self; 16] =
                &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
            #[inline(always)]
            fn of(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn of_f32(v: f32) -> Self {
                <$t>::from(v)
            }
            #[inline(always)]
            fn four<'a>($x: &'a [f32; 4], $room: &'a mut [Self; 4]) -> &'a [Self; 4] {
                $four
            }
            #[inline(always)]
            fn same($all: &[f32]) -> Option<&[Self]> {
                $same
            }
            #[inline(always)]
            fn wide(self) -> f64 {
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
        }
    };
}
scalar!(f32, |x, _room| x, |all| Some(all));
scalar!(
    f64,
    |x, room| {
        *room = x.map(f64::from);
        room
    },
    |_all| None
);
