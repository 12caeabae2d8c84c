//! Vectors of eight numbers, run-time choice of the processor's instructions, and the only `unsafe` of the library.
//!
//! Kernels are written once against [`Arch`] and marked `#[inline(always)]`; a [`Job`] wraps them, and [`dispatch`]
//! runs it compiled for the best instruction set the processor has: AVX-512, AVX2 with fused multiply-add, NEON, or
//! plain Rust over arrays, which the compiler turns into whatever every processor of the target has. The order of every
//! sum is fixed by the source, so results do not depend on the number of threads; they are the same with all
//! instruction sets that have fused multiply-add, and may differ in the last bits from those without.

pub(crate) mod memory;
mod rows;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

use super::scalar::Scalar;
use crate::error::Error;
pub(crate) use rows::{
    Register, RowList, Rows, Scattered, Tile, Vectors, columns, fours, over_registers, pieces, turn_back,
};
#[cfg(target_arch = "x86_64")]
use x86::Registers;

/// Numbers side by side in one vector; widths are padded to a multiple of it.
pub(crate) const LANES: usize = 8;

/// Numbers in half a vector.
pub(crate) const HALF: usize = LANES / 2;

/// Eight numbers in memory.
pub type Lanes<T> = [T; LANES];

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
pub trait Arch: 'static {
    /// What the instruction set is called.
    const NAME: &'static str;
    /// Whether it pays to keep rows of units in registers, in functions for every width of such a row.
    const ROWS_IN_REGISTERS: bool = true;
    /// Whether a register has 64 bytes and there are more than thirty of them.
    const WIDE_REGISTERS: bool = false;
    /// Eight numbers.
    type V<T: Scalar>: Copy;
    /// Sixteen numbers.
    type Sixteen<T: Scalar>: Rows<T, Self::V<T>>;
    /// As many numbers as one register holds, eight or sixteen; eight also where these are more than one register.
    type Widest<T: Scalar>: Rows<T, Self::V<T>>;
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
    /// c − a·b, rounded once where the processor can.
    fn nmadd<T: Scalar>(a: Self::V<T>, b: Self::V<T>, c: Self::V<T>) -> Self::V<T>;
    /// max(a, 0).
    fn positive<T: Scalar>(a: Self::V<T>) -> Self::V<T>;
    /// `a` where `condition` > 0, else 0.
    fn where_positive<T: Scalar>(condition: Self::V<T>, a: Self::V<T>) -> Self::V<T>;
    /// Eight f32 from memory, widened if need be.
    fn load_f32<T: Scalar>(from: &Lanes<f32>) -> Self::V<T>;
    /// Rows become columns.
    fn transpose<T: Scalar>(rows: [Self::V<T>; LANES]) -> [Self::V<T>; LANES];
    /// Four numbers of each of eight rows become four vectors.
    fn turn<T: Scalar>(rows: [&[T; 4]; LANES]) -> [Self::V<T>; 4];
    /// Four vectors become four numbers of each of eight rows, which lie `stride` apart.
    fn turn_back<T: Scalar>(columns: [Self::V<T>; 4], rows: &mut [T], stride: usize);

    /// The lower halves of a and b, side by side.
    fn join_halves<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T>;
    /// The upper halves of a and b, side by side.
    fn join_uppers<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T>;
    /// The lower half of a, then the upper half of b.
    fn either_half<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T>;
    /// Writes the halves of v over the lower halves of a and b, whose upper halves stay.
    fn store_halves<T: Scalar>(v: Self::V<T>, a: &mut Lanes<T>, b: &mut Lanes<T>);
    /// Of each half: the sums of four numbers of each of four vectors.
    fn sum_fours<T: Scalar>(v: [Self::V<T>; HALF]) -> Self::V<T>;

    /// Runs a job as a function of its own, compiled for this instruction set: what many kernels share is compiled
    /// once and not into each of them.
    fn call<J: Job>(job: J) -> J::Out;

    /// Zero in every lane.
    #[inline(always)]
    fn zero<T: Scalar>() -> Self::V<T> {
        Self::splat(T::ZERO)
    }

    /// The number in the first lane.
    #[inline(always)]
    fn first<T: Scalar>(a: Self::V<T>) -> T {
        let mut v = [T::ZERO; LANES];
        Self::store(a, &mut v);
        v[0]
    }

    /// The sum of the lanes, as a tree.
    #[inline(always)]
    fn total<T: Scalar>(a: Self::V<T>) -> T {
        let mut v = [T::ZERO; LANES];
        Self::store(a, &mut v);
        ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
    }
}

/// Whether a register holds sixteen numbers and there are more than thirty of them. Asked within `const`, so that what other
/// instruction sets do not need is not compiled for them.
pub(crate) const fn many_registers<T: Scalar, A: Arch>() -> bool {
    A::WIDE_REGISTERS && size_of::<T>() == 4
}

/// Plain Rust over arrays of eight, which the compiler turns into what every processor of the target has.
pub struct Arrays<const FUSED: bool>;

/// Without fused multiply-add: every processor.
#[cfg(any(test, not(target_arch = "aarch64")))]
pub(crate) type Portable = Arrays<false>;

/// With fused multiply-add, for targets that always have it: on 64-bit ARM an array is two registers of NEON.
#[cfg(any(test, target_arch = "aarch64"))]
pub(crate) type Neon = Arrays<true>;

/// Eight numbers, one after the other: written out, because thousands of loops of eight would take minutes to compile.
#[inline(always)]
fn each<T: Scalar>(f: impl Fn(usize) -> T) -> Lanes<T> {
    [f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)]
}

impl<const FUSED: bool> Arch for Arrays<FUSED> {
    const NAME: &'static str = if FUSED { "neon" } else { "portable" };
    const ROWS_IN_REGISTERS: bool = FUSED;
    type V<T: Scalar> = Lanes<T>;
    type Sixteen<T: Scalar> = Vectors<Self, T, 2>;
    type Widest<T: Scalar> = Vectors<Self, T, 1>;
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
        if FUSED { each(|l| a[l].mul_add(b[l], c[l])) } else { each(|l| a[l] * b[l] + c[l]) }
    }
    #[inline(always)]
    fn nmadd<T: Scalar>(a: Lanes<T>, b: Lanes<T>, c: Lanes<T>) -> Lanes<T> {
        if FUSED { each(|l| (-a[l]).mul_add(b[l], c[l])) } else { each(|l| c[l] - a[l] * b[l]) }
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
    fn join_halves<T: Scalar>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
        each(|l| if l < HALF { a[l] } else { b[l - HALF] })
    }
    #[inline(always)]
    fn join_uppers<T: Scalar>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
        each(|l| if l < HALF { a[l + HALF] } else { b[l] })
    }
    #[inline(always)]
    fn sum_fours<T: Scalar>(v: [Lanes<T>; HALF]) -> Lanes<T> {
        each(|l| {
            let [a, b, c, d] = *v[l % HALF][l / HALF * HALF..].first_chunk().expect("four numbers");
            (a + c) + (b + d)
        })
    }
    #[inline(always)]
    fn either_half<T: Scalar>(a: Lanes<T>, b: Lanes<T>) -> Lanes<T> {
        each(|l| if l < HALF { a[l] } else { b[l] })
    }
    #[inline(always)]
    fn store_halves<T: Scalar>(v: Lanes<T>, a: &mut Lanes<T>, b: &mut Lanes<T>) {
        a[..HALF].copy_from_slice(&v[..HALF]);
        b[..HALF].copy_from_slice(&v[HALF..]);
    }
    #[inline(always)]
    fn transpose<T: Scalar>(rows: [Lanes<T>; LANES]) -> [Lanes<T>; LANES] {
        let column = |i: usize| each(|l| rows[l][i]);
        [column(0), column(1), column(2), column(3), column(4), column(5), column(6), column(7)]
    }
    #[inline(always)]
    fn turn<T: Scalar>(rows: [&[T; 4]; LANES]) -> [Lanes<T>; 4] {
        let column = |i: usize| each(|l| rows[l][i]);
        [column(0), column(1), column(2), column(3)]
    }
    #[inline(always)]
    fn turn_back<T: Scalar>(columns: [Lanes<T>; 4], rows: &mut [T], stride: usize) {
        for r in 0..LANES {
            rows[r * stride..][..4].copy_from_slice(&[columns[0][r], columns[1][r], columns[2][r], columns[3][r]]);
        }
    }
}

/// AVX2 with fused multiply-add. Its operations must only be reached through [`dispatch`].
#[cfg(target_arch = "x86_64")]
pub struct Avx2;

/// AVX-512 (F, DQ and VL). Its operations must only be reached through [`dispatch`].
#[cfg(target_arch = "x86_64")]
pub struct Avx512;

/// Makes an [`Arch`] of the operations on its [`x86::Registers`].
#[cfg(target_arch = "x86_64")]
macro_rules! arch {
    ($name:ident, $with:ident, $text:literal, $wide:literal) => {
        impl Arch for $name {
            const NAME: &'static str = $text;
            const WIDE_REGISTERS: bool = $wide;
            type V<T: Scalar> = <T as Registers<Self>>::V;
            type Sixteen<T: Scalar> = <T as Registers<Self>>::Sixteen;
            type Widest<T: Scalar> = <T as Registers<Self>>::Widest;
            #[inline(always)]
            fn call<J: Job>(job: J) -> J::Out {
                // SAFETY: this is reached only from code that `dispatch` runs after it has found the instructions.
                unsafe { $with(job) }
            }
            #[inline(always)]
            fn splat<T: Scalar>(v: T) -> Self::V<T> {
                <T as Registers<Self>>::splat(v)
            }
            #[inline(always)]
            fn load<T: Scalar>(from: &Lanes<T>) -> Self::V<T> {
                <T as Registers<Self>>::load(from)
            }
            #[inline(always)]
            fn load_f32<T: Scalar>(from: &Lanes<f32>) -> Self::V<T> {
                <T as Registers<Self>>::load_f32(from)
            }
            #[inline(always)]
            fn add<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::add(a, b)
            }
            #[inline(always)]
            fn sub<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::sub(a, b)
            }
            #[inline(always)]
            fn mul<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::mul(a, b)
            }
            #[inline(always)]
            fn div<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::div(a, b)
            }
            #[inline(always)]
            fn sqrt<T: Scalar>(a: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::sqrt(a)
            }
            #[inline(always)]
            fn madd<T: Scalar>(a: Self::V<T>, b: Self::V<T>, c: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::madd(a, b, c)
            }
            #[inline(always)]
            fn nmadd<T: Scalar>(a: Self::V<T>, b: Self::V<T>, c: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::nmadd(a, b, c)
            }
            #[inline(always)]
            fn positive<T: Scalar>(a: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::positive(a)
            }
            #[inline(always)]
            fn where_positive<T: Scalar>(condition: Self::V<T>, a: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::where_positive(condition, a)
            }
            #[inline(always)]
            fn store<T: Scalar>(v: Self::V<T>, to: &mut Lanes<T>) {
                <T as Registers<Self>>::store(v, to);
            }
            #[inline(always)]
            fn join_halves<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::join_halves(a, b)
            }
            #[inline(always)]
            fn join_uppers<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::join_uppers(a, b)
            }
            #[inline(always)]
            fn sum_fours<T: Scalar>(v: [Self::V<T>; HALF]) -> Self::V<T> {
                <T as Registers<Self>>::sum_fours(v)
            }
            #[inline(always)]
            fn either_half<T: Scalar>(a: Self::V<T>, b: Self::V<T>) -> Self::V<T> {
                <T as Registers<Self>>::either_half(a, b)
            }
            #[inline(always)]
            fn store_halves<T: Scalar>(v: Self::V<T>, a: &mut Lanes<T>, b: &mut Lanes<T>) {
                <T as Registers<Self>>::store_halves(v, a, b);
            }
            #[inline(always)]
            fn total<T: Scalar>(a: Self::V<T>) -> T {
                <T as Registers<Self>>::total(a)
            }
            #[inline(always)]
            fn transpose<T: Scalar>(rows: [Self::V<T>; LANES]) -> [Self::V<T>; LANES] {
                <T as Registers<Self>>::transpose(rows)
            }
            #[inline(always)]
            fn turn<T: Scalar>(rows: [&[T; 4]; LANES]) -> [Self::V<T>; 4] {
                <T as Registers<Self>>::turn(rows)
            }
            #[inline(always)]
            fn turn_back<T: Scalar>(columns: [Self::V<T>; 4], rows: &mut [T], stride: usize) {
                <T as Registers<Self>>::turn_back(columns, rows, stride);
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
arch!(Avx2, with_avx2, "avx2", false);
#[cfg(target_arch = "x86_64")]
arch!(Avx512, with_avx512, "avx-512", true);

/// Work that is compiled once per instruction set. `run` must be `#[inline(always)]`.
pub trait Job {
    type Out;
    fn run<A: Arch>(self) -> Self::Out;
}

/// Runs the job with the best instructions this processor has, or those that [`INSTRUCTIONS`] allows.
#[inline]
pub(crate) fn dispatch<J: Job>(job: J) -> J::Out {
    #[cfg(target_arch = "x86_64")]
    match chosen() {
        // SAFETY: `chosen` has found the features that `with_avx512` is compiled for on this processor.
        Choice::Avx512 => return unsafe { with_avx512(job) },
        // SAFETY: as above, for `with_avx2`.
        Choice::Avx2 => return unsafe { with_avx2(job) },
        Choice::Portable => {}
    }
    #[cfg(target_arch = "aarch64")]
    return job.run::<Neon>();
    #[cfg(not(target_arch = "aarch64"))]
    job.run::<Portable>()
}

/// Names the best instruction set to be used, where it should not be the processor's best: for tests, and to compare.
pub(crate) const INSTRUCTIONS: &str = "NEURALCB_INSTRUCTIONS";

/// What [`dispatch`] runs jobs with.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Choice {
    Portable = 1,
    Avx2,
    Avx512,
}

/// The choice, made once.
#[cfg(target_arch = "x86_64")]
#[inline]
fn chosen() -> Choice {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    static CHOICE: AtomicU8 = AtomicU8::new(0);
    match CHOICE.load(Relaxed) {
        1 => Choice::Portable,
        2 => Choice::Avx2,
        3 => Choice::Avx512,
        _ => {
            let choice = choose().unwrap_or_else(|error| panic!("{error}"));
            CHOICE.store(choice as u8, Relaxed);
            choice
        }
    }
}

/// The best instruction set that the processor has and [`INSTRUCTIONS`] allows.
#[cfg(target_arch = "x86_64")]
#[cold]
fn choose() -> Result<Choice, Error> {
    let best = if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
        Choice::Portable
    } else if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        Choice::Avx512
    } else {
        Choice::Avx2
    };
    let allowed = match std::env::var(INSTRUCTIONS).unwrap_or_default().as_str() {
        "" | "avx-512" => Choice::Avx512,
        "avx2" => Choice::Avx2,
        "portable" => Choice::Portable,
        got => {
            let known = "avx-512, avx2, portable";
            return Err(Error::Name { what: INSTRUCTIONS, known, got: got.to_owned() });
        }
    };
    Ok(best.min(allowed))
}

/// Refuses a name of instructions that does not exist, which [`dispatch`] would panic at.
pub(crate) fn check() -> Result<(), Error> {
    #[cfg(target_arch = "x86_64")]
    choose()?;
    Ok(())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
fn with_avx2<J: Job>(job: J) -> J::Out {
    job.run::<Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
#[inline(never)]
fn with_avx512<J: Job>(job: J) -> J::Out {
    job.run::<Avx512>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done with halves of vectors of numbers that are all different.
    struct Halves<T>(std::marker::PhantomData<T>);

    impl<T: Scalar> Job for Halves<T> {
        type Out = [Lanes<T>; 5];
        #[inline(always)]
        fn run<A: Arch>(self) -> [Lanes<T>; 5] {
            let mut v = [A::zero::<T>(); HALF];
            for k in 0..HALF {
                v[k] = A::load(&each(|l| T::of((10 * k + l) as f64 + 0.1)));
            }
            let sixteen = A::Sixteen::<T>::load_from(&[each(|l| T::of(l as f64)), each(|l| T::of(0.3 * l as f64))]);
            let all = [
                A::join_halves(v[1], v[2]),
                A::join_uppers(v[1], v[2]),
                A::either_half(v[1], v[2]),
                A::sum_fours(v),
                sixteen.folded(),
            ];
            let mut out = [[T::ZERO; LANES]; 5];
            for k in 0..5 {
                A::store(all[k], &mut out[k]);
            }
            out
        }
    }

    fn halves_agree<T: Scalar>() {
        let job = || Halves::<T>(std::marker::PhantomData);
        let [joined, uppers, either, sums, folded] = job().run::<Portable>();
        let of = |v: [f64; LANES]| v.map(T::of);
        assert_eq!(joined, of([10.1, 11.1, 12.1, 13.1, 20.1, 21.1, 22.1, 23.1]));
        assert_eq!(uppers, of([14.1, 15.1, 16.1, 17.1, 24.1, 25.1, 26.1, 27.1]));
        assert_eq!(either, of([10.1, 11.1, 12.1, 13.1, 24.1, 25.1, 26.1, 27.1]));
        for (l, sum) in sums.iter().enumerate() {
            let want = 40.0 * (l % HALF) as f64 + if l < HALF { 6.4 } else { 22.4 };
            assert!((sum.wide() - want).abs() < 1e-4, "{l}: {} in place of {want}", sum.wide());
        }
        assert!((folded[3].wide() - 3.9).abs() < 1e-6);
        assert_eq!(dispatch(job()), [joined, uppers, either, sums, folded], "the same to the bit");
        assert_eq!(job().run::<Neon>(), [joined, uppers, either, sums, folded], "the same to the bit");
    }

    #[test]
    fn halves_of_vectors_are_those_of_arrays() {
        halves_agree::<f32>();
        halves_agree::<f64>();
    }
}
