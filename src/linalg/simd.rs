//! Vectors of eight numbers, run-time choice of the processor's instructions, and the only `unsafe` of the library.
//!
//! Kernels are written once against [`Arch`] and marked `#[inline(always)]`; a [`Job`] wraps them, and [`dispatch`]
//! runs it compiled for the best instruction set the processor has: AVX2 with fused multiply-add, or plain Rust over
//! arrays, which the compiler turns into whatever every processor of the target has (SSE2, NEON). The order of every
//! sum is fixed by the source, so results do not depend on the number of threads; they may differ in the last bits
//! between processors with and without fused multiply-add.

use super::scalar::Scalar;

/// Numbers side by side in one vector; widths are padded to a multiple of it.
pub(crate) const LANES: usize = 8;

/// Eight numbers in memory.
pub(crate) type Lanes<T> = [T; LANES];

/// A slice as whole vectors; its length is a multiple of [`LANES`].
#[inline(always)]
pub(crate) fn lanes<T>(v: &[T]) -> &[Lanes<T>] {
    v.as_chunks().0
}

/// As [`lanes`], to change.
#[inline(always)]
pub(crate) fn lanes_mut<T>(v: &mut [T]) -> &mut [Lanes<T>] {
    v.as_chunks_mut().0
}

/// Replaces each vector of a slice, given its number. A macro, because the body of a closure would not
/// be compiled for the instruction set of its caller.
macro_rules! map {
    ($arch:ident, $slice:expr, |$at:pat_param, $v:pat_param| $new:expr) => {{
        let vectors = $crate::linalg::simd::lanes_mut($slice);
        for at in 0..vectors.len() {
            let ($at, $v) = (at, $arch::load(&vectors[at]));
            let new = $new;
            $arch::store(new, &mut vectors[at]);
        }
    }};
}
pub(crate) use map;

/// An instruction set: vectors of [`LANES`] numbers and what can be done with them.
pub(crate) trait Arch: 'static {
    /// Whether a·b + c is rounded once.
    const FUSED: bool;
    /// Eight numbers.
    type V<T: Scalar>: Copy;
    fn splat<T: Scalar>(v: T) -> Self::V<T>;
    fn load<T: Scalar>(from: &Lanes<T>) -> Self::V<T>;
    fn store<T: Scalar>(v: Self::V<T>, to: &mut Lanes<T>);
    fn add<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T>;
    fn sub<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T>;
    fn mul<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T>;
    fn div<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T>;
    fn sqrt<T: Scalar>(a: Self::V<T>) -> Self::V<T>;
    /// a·b + c, rounded once where the processor can.
    fn madd<T: Scalar>(a: Self::V<T>, b: Self::V<T>, c: Self::V<T>) -> Self::V<T>;
    /// max(a, 0).
    fn positive<T: Scalar>(a: Self::V<T>) -> Self::V<T>;
    /// `a` where `condition` > 0, else 0.
    fn where_positive<T: Scalar>(condition: Self::V<T>, a: Self::V<T>) -> Self::V<T>;
    /// Eight f32 from memory, widened if need be.
    fn load_f32<T: Scalar>(from: &Lanes<f32>) -> Self::V<T>;
    /// Rows become columns.
    fn transpose<T: Scalar>(rows: [Self::V<T>; LANES]) -> [Self::V<T>; LANES];

    /// Runs a job as a function of its own, compiled for this instruction set: what many kernels share is compiled
    /// once and not into each of them.
    fn call<J: Job>(job: J) -> J::Out;

    /// Zero in every lane.
    #[inline(always)]
    fn zero<T: Scalar>() -> Self::V<T> {
        Self::splat(T::ZERO)
    }

    /// The sum of the lanes, as a tree.
    #[inline(always)]
    fn total<T: Scalar>(a: Self::V<T>) -> T {
        let mut v = [T::ZERO; LANES];
        Self::store(a, &mut v);
        ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
    }
}

/// Plain Rust.
pub(crate) struct Portable;

#[inline(always)]
fn each<T: Scalar>(f: impl Fn(usize) -> T) -> Lanes<T> {
    let mut out = [T::ZERO; LANES];
    for l in 0..LANES {
        out[l] = f(l);
    }
    out
}

impl Arch for Portable {
    const FUSED: bool = false;
    type V<T: Scalar> = Lanes<T>;
    fn call<J: Job>(job: J) -> J::Out {
        job.run::<Self>()
    }
    #[inline(always)]
    fn splat<T: Scalar>(v: T) -> Lanes<T> {
        [v; LANES]
    }
    #[inline(always)]
    fn load<T: Scalar>(from: &Lanes<T>) -> Lanes<T> {
        *from
    }
    #[inline(always)]
    fn store<T: Scalar>(v: Lanes<T>, to: &mut Lanes<T>) {
        *to = v;
    }
    #[inline(always)]
    fn add<T: Scalar>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
        each(|l| a[l] + b[l])
    }
    #[inline(always)]
    fn sub<T: Scalar>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
        each(|l| a[l] - b[l])
    }
    #[inline(always)]
    fn mul<T: Scalar>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
        each(|l| a[l] * b[l])
    }
    #[inline(always)]
    fn div<T: Scalar>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
        each(|l| a[l] / b[l])
    }
    #[inline(always)]
    fn sqrt<T: Scalar>(a: Lanes<T>) -> Lanes<T> {
        each(|l| a[l].root())
    }
    #[inline(always)]
    fn madd<T: Scalar>(a: Lanes<T>, b: Lanes<T>, c: Lanes<T>) -> Lanes<T> {
        each(|l| a[l] * b[l] + c[l])
    }
    #[inline(always)]
    fn positive<T: Scalar>(a: Lanes<T>) -> Lanes<T> {
        Self::where_positive(a, a)
    }
    #[inline(always)]
    fn where_positive<T: Scalar>(condition: Lanes<T>, a: Lanes<T>) -> Lanes<T> {
        each(|l| if condition[l] > T::ZERO { a[l] } else { T::ZERO })
    }
    #[inline(always)]
    fn load_f32<T: Scalar>(from: &Lanes<f32>) -> Lanes<T> {
        each(|l| T::of_f32(from[l]))
    }
    #[inline(always)]
    fn transpose<T: Scalar>(rows: [Lanes<T>; LANES]) -> [Lanes<T>; LANES] {
        let mut out = rows;
        for i in 0..LANES {
            for j in 0..LANES {
                out[i][j] = rows[j][i];
            }
        }
        out
    }
}

/// AVX2 with fused multiply-add. Its operations must only be reached through [`dispatch`].
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Arch for Avx2 {
    const FUSED: bool = true;
    type V<T: Scalar> = T::Avx2;
    #[inline(always)]
    fn call<J: Job>(job: J) -> J::Out {
        // SAFETY: this is reached only from code that `dispatch` runs after it has found AVX2 and FMA.
        unsafe { with_avx2(job) }
    }
    #[inline(always)]
    fn splat<T: Scalar>(v: T) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::splat(v)
    }
    #[inline(always)]
    fn load<T: Scalar>(from: &Lanes<T>) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::load(from)
    }
    #[inline(always)]
    fn store<T: Scalar>(v: T::Avx2, to: &mut Lanes<T>) {
        <T as avx2::Avx2Lanes>::store(v, to);
    }
    #[inline(always)]
    fn add<T: Scalar>(a: T::Avx2, b: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::add(a, b)
    }
    #[inline(always)]
    fn sub<T: Scalar>(a: T::Avx2, b: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::sub(a, b)
    }
    #[inline(always)]
    fn mul<T: Scalar>(a: T::Avx2, b: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::mul(a, b)
    }
    #[inline(always)]
    fn div<T: Scalar>(a: T::Avx2, b: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::div(a, b)
    }
    #[inline(always)]
    fn sqrt<T: Scalar>(a: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::sqrt(a)
    }
    #[inline(always)]
    fn madd<T: Scalar>(a: T::Avx2, b: T::Avx2, c: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::madd(a, b, c)
    }
    #[inline(always)]
    fn positive<T: Scalar>(a: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::positive(a)
    }
    #[inline(always)]
    fn where_positive<T: Scalar>(condition: T::Avx2, a: T::Avx2) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::where_positive(condition, a)
    }
    #[inline(always)]
    fn load_f32<T: Scalar>(from: &Lanes<f32>) -> T::Avx2 {
        <T as avx2::Avx2Lanes>::load_f32(from)
    }
    #[inline(always)]
    fn transpose<T: Scalar>(rows: [T::Avx2; LANES]) -> [T::Avx2; LANES] {
        <T as avx2::Avx2Lanes>::transpose(rows)
    }
}

/// Vectors of eight in AVX2 registers, for f32 in one and for f64 in two.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, Lanes};

    /// The operations of [`super::Arch`] on one number type.
    pub trait Avx2Lanes: Sized {
        type Avx2: Copy;
        fn splat(v: Self) -> Self::Avx2;
        fn load(from: &Lanes<Self>) -> Self::Avx2;
        fn store(v: Self::Avx2, to: &mut Lanes<Self>);
        fn add(a: Self::Avx2, b: Self::Avx2) -> Self::Avx2;
        fn sub(a: Self::Avx2, b: Self::Avx2) -> Self::Avx2;
        fn mul(a: Self::Avx2, b: Self::Avx2) -> Self::Avx2;
        fn div(a: Self::Avx2, b: Self::Avx2) -> Self::Avx2;
        fn sqrt(a: Self::Avx2) -> Self::Avx2;
        fn madd(a: Self::Avx2, b: Self::Avx2, c: Self::Avx2) -> Self::Avx2;
        fn positive(a: Self::Avx2) -> Self::Avx2;
        fn where_positive(condition: Self::Avx2, a: Self::Avx2) -> Self::Avx2;
        fn load_f32(from: &Lanes<f32>) -> Self::Avx2;
        fn transpose(rows: [Self::Avx2; LANES]) -> [Self::Avx2; LANES];
    }

    // SAFETY, for every block below: these functions are reached only from code that `dispatch` runs after it has
    // found AVX2 and FMA on the processor; loads and stores are unaligned ones within an array of eight.
    impl Avx2Lanes for f32 {
        type Avx2 = __m256;
        #[inline(always)]
        fn splat(v: f32) -> __m256 {
            unsafe { _mm256_set1_ps(v) }
        }
        #[inline(always)]
        fn load(from: &Lanes<f32>) -> __m256 {
            unsafe { _mm256_loadu_ps(from.as_ptr()) }
        }
        #[inline(always)]
        fn store(v: __m256, to: &mut Lanes<f32>) {
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
        }
        #[inline(always)]
        fn add(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_add_ps(a, b) }
        }
        #[inline(always)]
        fn sub(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_sub_ps(a, b) }
        }
        #[inline(always)]
        fn mul(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_mul_ps(a, b) }
        }
        #[inline(always)]
        fn div(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_div_ps(a, b) }
        }
        #[inline(always)]
        fn sqrt(a: __m256) -> __m256 {
            unsafe { _mm256_sqrt_ps(a) }
        }
        #[inline(always)]
        fn madd(a: __m256, b: __m256, c: __m256) -> __m256 {
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn positive(a: __m256) -> __m256 {
            unsafe { _mm256_max_ps(a, _mm256_setzero_ps()) }
        }
        #[inline(always)]
        fn where_positive(condition: __m256, a: __m256) -> __m256 {
            unsafe { _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(condition, _mm256_setzero_ps()), a) }
        }
        #[inline(always)]
        fn load_f32(from: &Lanes<f32>) -> __m256 {
            Self::load(from)
        }
        #[inline(always)]
        fn transpose(r: [__m256; LANES]) -> [__m256; LANES] {
            unsafe {
                // pairs of rows, then quadruples within halves of a register, then the halves
                let (a0, a1) = (_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
                let (a2, a3) = (_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
                let (a4, a5) = (_mm256_unpacklo_ps(r[4], r[5]), _mm256_unpackhi_ps(r[4], r[5]));
                let (a6, a7) = (_mm256_unpacklo_ps(r[6], r[7]), _mm256_unpackhi_ps(r[6], r[7]));
                let (b0, b1) = (_mm256_shuffle_ps::<0x44>(a0, a2), _mm256_shuffle_ps::<0xEE>(a0, a2));
                let (b2, b3) = (_mm256_shuffle_ps::<0x44>(a1, a3), _mm256_shuffle_ps::<0xEE>(a1, a3));
                let (b4, b5) = (_mm256_shuffle_ps::<0x44>(a4, a6), _mm256_shuffle_ps::<0xEE>(a4, a6));
                let (b6, b7) = (_mm256_shuffle_ps::<0x44>(a5, a7), _mm256_shuffle_ps::<0xEE>(a5, a7));
                [
                    _mm256_permute2f128_ps::<0x20>(b0, b4),
                    _mm256_permute2f128_ps::<0x20>(b1, b5),
                    _mm256_permute2f128_ps::<0x20>(b2, b6),
                    _mm256_permute2f128_ps::<0x20>(b3, b7),
                    _mm256_permute2f128_ps::<0x31>(b0, b4),
                    _mm256_permute2f128_ps::<0x31>(b1, b5),
                    _mm256_permute2f128_ps::<0x31>(b2, b6),
                    _mm256_permute2f128_ps::<0x31>(b3, b7),
                ]
            }
        }
    }

    /// Two registers of four.
    type Pair = (__m256d, __m256d);

    #[inline(always)]
    fn transpose4(r: [__m256d; 4]) -> [__m256d; 4] {
        unsafe {
            let (a0, a1) = (_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1]));
            let (a2, a3) = (_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3]));
            [
                _mm256_permute2f128_pd::<0x20>(a0, a2),
                _mm256_permute2f128_pd::<0x20>(a1, a3),
                _mm256_permute2f128_pd::<0x31>(a0, a2),
                _mm256_permute2f128_pd::<0x31>(a1, a3),
            ]
        }
    }

    impl Avx2Lanes for f64 {
        type Avx2 = Pair;
        #[inline(always)]
        fn splat(v: f64) -> Pair {
            let v = unsafe { _mm256_set1_pd(v) };
            (v, v)
        }
        #[inline(always)]
        fn load(from: &Lanes<f64>) -> Pair {
            unsafe { (_mm256_loadu_pd(from.as_ptr()), _mm256_loadu_pd(from[4..].as_ptr())) }
        }
        #[inline(always)]
        fn store(v: Pair, to: &mut Lanes<f64>) {
            unsafe {
                _mm256_storeu_pd(to.as_mut_ptr(), v.0);
                _mm256_storeu_pd(to[4..].as_mut_ptr(), v.1);
            }
        }
        #[inline(always)]
        fn add(a: Pair, b: Pair) -> Pair {
            unsafe { (_mm256_add_pd(a.0, b.0), _mm256_add_pd(a.1, b.1)) }
        }
        #[inline(always)]
        fn sub(a: Pair, b: Pair) -> Pair {
            unsafe { (_mm256_sub_pd(a.0, b.0), _mm256_sub_pd(a.1, b.1)) }
        }
        #[inline(always)]
        fn mul(a: Pair, b: Pair) -> Pair {
            unsafe { (_mm256_mul_pd(a.0, b.0), _mm256_mul_pd(a.1, b.1)) }
        }
        #[inline(always)]
        fn div(a: Pair, b: Pair) -> Pair {
            unsafe { (_mm256_div_pd(a.0, b.0), _mm256_div_pd(a.1, b.1)) }
        }
        #[inline(always)]
        fn sqrt(a: Pair) -> Pair {
            unsafe { (_mm256_sqrt_pd(a.0), _mm256_sqrt_pd(a.1)) }
        }
        #[inline(always)]
        fn madd(a: Pair, b: Pair, c: Pair) -> Pair {
            unsafe { (_mm256_fmadd_pd(a.0, b.0, c.0), _mm256_fmadd_pd(a.1, b.1, c.1)) }
        }
        #[inline(always)]
        fn positive(a: Pair) -> Pair {
            unsafe { (_mm256_max_pd(a.0, _mm256_setzero_pd()), _mm256_max_pd(a.1, _mm256_setzero_pd())) }
        }
        #[inline(always)]
        fn load_f32(from: &Lanes<f32>) -> Pair {
            unsafe { (_mm256_cvtps_pd(_mm_loadu_ps(from.as_ptr())), _mm256_cvtps_pd(_mm_loadu_ps(from[4..].as_ptr()))) }
        }
        #[inline(always)]
        fn transpose(r: [Pair; LANES]) -> [Pair; LANES] {
            let low = transpose4([r[0].0, r[1].0, r[2].0, r[3].0]);
            let low_right = transpose4([r[4].0, r[5].0, r[6].0, r[7].0]);
            let high = transpose4([r[0].1, r[1].1, r[2].1, r[3].1]);
            let high_right = transpose4([r[4].1, r[5].1, r[6].1, r[7].1]);
            [
                (low[0], low_right[0]),
                (low[1], low_right[1]),
                (low[2], low_right[2]),
                (low[3], low_right[3]),
                (high[0], high_right[0]),
                (high[1], high_right[1]),
                (high[2], high_right[2]),
                (high[3], high_right[3]),
            ]
        }
        #[inline(always)]
        fn where_positive(condition: Pair, a: Pair) -> Pair {
            unsafe {
                let zero = _mm256_setzero_pd();
                (
                    _mm256_and_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(condition.0, zero), a.0),
                    _mm256_and_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(condition.1, zero), a.1),
                )
            }
        }
    }
}

/// Asks for the memory of a slice's first and last cache lines ahead of its use; changes no result.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T]) {
    #[cfg(target_arch = "x86_64")]
    if let (Some(first), Some(last)) = (slice.first(), slice.last()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program sees; SSE is part of the target.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(first).cast());
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(last).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slice;
}

/// Work that is compiled once per instruction set. `run` must be `#[inline(always)]`.
pub(crate) trait Job {
    type Out;
    fn run<A: Arch>(self) -> Self::Out;
}

/// Runs the job with the best instructions this processor has.
#[inline]
pub(crate) fn dispatch<J: Job>(job: J) -> J::Out {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the two features that `with_avx2` is compiled for were found on this processor in the line above.
        return unsafe { with_avx2(job) };
    }
    job.run::<Portable>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
fn with_avx2<J: Job>(job: J) -> J::Out {
    job.run::<Avx2>()
}
