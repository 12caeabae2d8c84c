//! Plain loops over arrays, compiled for the processor at hand.
//!
//! Kernels are ordinary Rust over arrays of [`LANES`] or [`ROWS`] numbers, marked `#[inline(always)]`. A [`Job`] wraps
//! one of them, and [`dispatch`] runs it compiled for AVX-512, for AVX2 with fused multiply-add, or for whatever every
//! processor of the target has: the crate `pulp` makes these copies and chooses among them. The compiler turns the
//! arrays into vector registers.
//!
//! The order of every sum is fixed by the source and every [`madd`] is rounded once, so the bits are the same with any
//! instruction set and any number of threads. On an x86-64 processor without fused multiply-add (before 2013) a `madd`
//! is a call, and everything is many times slower.

use std::sync::OnceLock;

use pulp::Arch;
/// What [`dispatch`] runs. Its `call` must be `#[inline(always)]`, and so must all that it calls in loops.
pub(crate) use pulp::NullaryFnOnce as Job;

use super::scalar::Scalar;
use crate::error::Error;

/// Units side by side in one vector; rows of weights are padded to a multiple of it.
pub(crate) const LANES: usize = 8;

/// Rows side by side in a tile.
pub(crate) const ROWS: usize = 16;

/// One number of each of [`ROWS`] rows.
pub(crate) type Tile<T> = [T; ROWS];

/// Runs a job with the best instructions.
pub(crate) fn dispatch<J: Job>(job: J) -> J::Output {
    match chosen() {
        Ok((arch, _)) => arch.dispatch(job),
        Err(error) => panic!("{error}"),
    }
}

/// What the instructions in use are called.
pub(crate) fn name() -> &'static str {
    chosen().as_ref().map_or("", |(_, name)| name)
}

/// Refuses a name of instructions that does not exist, at which [`dispatch`] would panic.
pub(crate) fn check() -> Result<(), Error> {
    chosen().as_ref().map_or_else(|error| Err(error.clone()), |_| Ok(()))
}

/// The instruction set and its name, found once.
fn chosen() -> &'static Result<(Arch, &'static str), Error> {
    static CHOSEN: OnceLock<Result<(Arch, &'static str), Error>> = OnceLock::new();
    CHOSEN.get_or_init(choose)
}

#[cfg(target_arch = "x86_64")]
fn choose() -> Result<(Arch, &'static str), Error> {
    use pulp::x86::{V3, V4};

    const VARIABLE: &str = "NEURALCB_INSTRUCTIONS";
    const KNOWN: &str = "avx-512, avx2, portable";
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let (avx512, avx2) = match wanted.as_str() {
        "" | "avx-512" => (V4::try_new(), V3::try_new()),
        "avx2" => (None, V3::try_new()),
        "portable" => (None, None),
        _ => return Err(Error::Name { what: VARIABLE, known: KNOWN, got: wanted }),
    };
    Ok(match (avx512, avx2) {
        (Some(v4), _) => (Arch::V4(v4), "avx-512"),
        (None, Some(v3)) => (Arch::V3(v3), "avx2"),
        (None, None) => (Arch::Scalar, "portable"),
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn choose() -> Result<(Arch, &'static str), Error> {
    Ok((Arch::new(), if cfg!(target_arch = "aarch64") { "neon" } else { "portable" }))
}

/// A slice as whole vectors; its length is a multiple of [`LANES`].
#[inline(always)]
pub(crate) fn lanes<T>(v: &[T]) -> &[[T; LANES]] {
    v.as_chunks().0
}

/// As [`lanes`], to change.
#[inline(always)]
pub(crate) fn lanes_mut<T>(v: &mut [T]) -> &mut [[T; LANES]] {
    v.as_chunks_mut().0
}

/// A loop over tiles that sums nothing up. In a plain loop the compiler would take sixteen tiles at a time there, a
/// number of each in a vector, with a load and a store of its own for every number. The count that it cannot foresee
/// keeps it from that. A macro, because a closure might be compiled without the processor's vectors.
macro_rules! one_by_one {
    ($item:pat in $items:expr => $body:expr) => {{
        let mut count = 0usize;
        for $item in $items {
            $body;
            count = count.rotate_left(1) ^ 1;
        }
        std::hint::black_box(count);
    }};
}
pub(crate) use one_by_one;

/// v in every lane.
#[inline(always)]
pub(crate) fn splat<T: Scalar, const N: usize>(v: T) -> [T; N] {
    [v; N]
}

/// f of every lane.
#[inline(always)]
pub(crate) fn map<T: Scalar, const N: usize>(mut a: [T; N], f: impl Fn(T) -> T) -> [T; N] {
    for i in 0..N {
        a[i] = f(a[i]);
    }
    a
}

/// a + b.
#[inline(always)]
pub(crate) fn add<T: Scalar, const N: usize>(mut a: [T; N], b: [T; N]) -> [T; N] {
    for i in 0..N {
        a[i] += b[i];
    }
    a
}

/// a − b.
#[inline(always)]
pub(crate) fn sub<T: Scalar, const N: usize>(mut a: [T; N], b: [T; N]) -> [T; N] {
    for i in 0..N {
        a[i] = a[i] - b[i];
    }
    a
}

/// a·b.
#[inline(always)]
pub(crate) fn mul<T: Scalar, const N: usize>(mut a: [T; N], b: [T; N]) -> [T; N] {
    for i in 0..N {
        a[i] = a[i] * b[i];
    }
    a
}

/// a/b.
#[inline(always)]
pub(crate) fn div<T: Scalar, const N: usize>(mut a: [T; N], b: [T; N]) -> [T; N] {
    for i in 0..N {
        a[i] = a[i] / b[i];
    }
    a
}

/// a·b + c, rounded once.
#[inline(always)]
pub(crate) fn madd<T: Scalar, const N: usize>(a: [T; N], b: [T; N], mut c: [T; N]) -> [T; N] {
    for i in 0..N {
        c[i] = a[i].mul_add(b[i], c[i]);
    }
    c
}

/// a·b + c for one number a, rounded once.
#[inline(always)]
pub(crate) fn scale_add<T: Scalar, const N: usize>(a: T, b: &[T; N], mut c: [T; N]) -> [T; N] {
    for i in 0..N {
        c[i] = a.mul_add(b[i], c[i]);
    }
    c
}

/// The sum over the lanes, by halves. The array goes through memory: the compiler would otherwise cut the loop before
/// it into the halves that are added here, and take two numbers at a time.
#[inline(always)]
pub(crate) fn total<T: Scalar, const N: usize>(a: [T; N]) -> T {
    let (mut a, mut n) = (std::hint::black_box(a), N);
    while n > 1 {
        n /= 2;
        for i in 0..n {
            a[i] += a[i + n];
        }
    }
    a[0]
}

/// The sum of any numbers.
#[inline(always)]
pub(crate) fn sum<T: Scalar>(v: &[T]) -> T {
    let (whole, rest) = v.as_chunks::<LANES>();
    let mut sums = [T::ZERO; LANES];
    for v in whole {
        sums = add(sums, *v);
    }
    rest.iter().fold(total(sums), |sum, v| sum + *v)
}

/// The largest of some numbers and `least`.
#[inline(always)]
pub(crate) fn largest<T: Scalar>(v: &[T], least: T) -> T {
    let (whole, rest) = v.as_chunks::<LANES>();
    let mut tops = [least; LANES];
    for v in whole {
        for l in 0..LANES {
            tops[l] = if v[l] > tops[l] { v[l] } else { tops[l] };
        }
    }
    tops.iter().chain(rest).fold(least, |top, v| if *v > top { *v } else { top })
}

/// Σ a·b of slices in whole vectors.
#[inline(always)]
pub(crate) fn dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    let mut sum = [T::ZERO; LANES];
    for (a, b) in lanes(a).iter().zip(lanes(b)) {
        sum = madd(*a, *b, sum);
    }
    total(sum)
}

/// to += a·x, in whole vectors.
#[inline(always)]
pub(crate) fn add_scaled<T: Scalar>(a: T, x: &[T], to: &mut [T]) {
    for (to, x) in lanes_mut(to).iter_mut().zip(lanes(x)) {
        *to = scale_add(a, x, *to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sums<'a>(&'a [f32]);

    impl Job for Sums<'_> {
        type Output = f32;
        #[inline(always)]
        fn call(self) -> f32 {
            dot(self.0, self.0)
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let v: Vec<f32> = (0..64).map(|i| (i as f32 * 0.37).sin()).collect();
        let plain = Arch::Scalar.dispatch(Sums(&v));
        assert_eq!(Arch::new().dispatch(Sums(&v)).to_bits(), plain.to_bits());
        assert_eq!(dispatch(Sums(&v)).to_bits(), plain.to_bits());
        assert!((plain - v.iter().map(|v| v * v).sum::<f32>()).abs() < 1e-4);
    }
}
