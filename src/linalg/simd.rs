//! Run-time choice of vector instructions, and the only `unsafe` of the library.
//!
//! Kernels are plain Rust over lanes of eight, marked `#[inline(always)]` and written as a [`Job`]. [`dispatch`]
//! compiles each job once per instruction set and calls the best one the processor has; the compiler turns the lanes
//! into vector instructions. The order of every sum is fixed by the source, so the result does not depend on the
//! number of threads; it does depend on whether the processor has fused multiply-add.

use super::scalar::Scalar;

/// How a·b + c is computed.
pub(crate) trait Arith {
    fn madd<T: Scalar>(a: T, b: T, c: T) -> T;
}

/// With fused multiply-add in hardware.
pub(crate) struct Fused;

/// Without: the library call that rounds once would cost twenty times as much.
pub(crate) struct Plain;

impl Arith for Fused {
    #[inline(always)]
    fn madd<T: Scalar>(a: T, b: T, c: T) -> T {
        a.fused(b, c)
    }
}

impl Arith for Plain {
    #[inline(always)]
    fn madd<T: Scalar>(a: T, b: T, c: T) -> T {
        a * b + c
    }
}

/// Work that is compiled once per instruction set. `run` must be `#[inline(always)]`.
pub(crate) trait Job {
    type Out;
    fn run<A: Arith>(self) -> Self::Out;
}

/// Runs the job with the best instructions this processor has.
#[inline]
pub(crate) fn dispatch<J: Job>(job: J) -> J::Out {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the two features that `avx2` is compiled for were found on this processor in the line above.
        return unsafe { avx2(job) };
    }
    if cfg!(target_arch = "aarch64") {
        return job.run::<Fused>(); // NEON with fused multiply-add is part of every aarch64
    }
    job.run::<Plain>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<J: Job>(job: J) -> J::Out {
    job.run::<Fused>()
}
