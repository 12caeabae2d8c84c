//! What this machine can do at most, on one thread, measured with the library's own vectors.
//!
//! Every limit of a kernel is a count of operations divided by one of these rates, so a time can be judged on any
//! machine, and on a shared one at the speed it has just now:
//!
//! * **FMA**: a ← a·b + c on ten registers without dependence between them, two operations per lane;
//! * **square root and division**: Adam's w ← w − step·μ/(√ν + ε) on vectors of eight f32 in the first cache (both with vectors
//!   of eight and of sixteen f32, of which the better counts);
//! * **bandwidth**: the triad a ← b + s·c over three arrays that together fit the second cache, the third, or neither;
//!   twelve bytes per element, as is the custom.
//!
//! Each is the best of many short repeats: whatever disturbs a measurement makes it slower. All take about a third of
//! a second.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::scalar::Scalar;
use super::simd::{Arch, Job, LANES, Rows, Tile, check, dispatch, lanes, lanes_mut};
use crate::error::Error;

/// The rates of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Fused multiply-adds in f32, 10⁹ operations per second (two per multiply-add).
    pub fma_f32_gflops: f64,
    /// Fused multiply-adds in f64, 10⁹ operations per second.
    pub fma_f64_gflops: f64,
    /// Nanoseconds of a square root and a division of eight f32.
    pub sqrt_div_ns: f64,
    /// Triad in the second cache, 10⁹ bytes per second.
    pub l2_gbs: f64,
    /// Triad in the third cache, 10⁹ bytes per second.
    pub l3_gbs: f64,
    /// Triad in main memory, 10⁹ bytes per second.
    pub dram_gbs: f64,
}

/// Refuses a value of `NEURALCB_INSTRUCTIONS` that is none of `avx-512`, `avx2` and `portable`. On x86-64 it names the best
/// instruction set to be used, where it should not be the processor's best; it is read once. A program that wants to
/// answer with an error calls this before it computes: later a wrong name is a panic.
pub fn check_instructions() -> Result<(), Error> {
    check()
}

/// The vector instructions that this processor has and the library uses. Results are the same to the bit where they are,
/// and with AVX2 and AVX-512.
pub fn instructions() -> &'static str {
    struct Name;
    impl Job for Name {
        type Out = &'static str;
        fn run<A: Arch>(self) -> &'static str {
            A::NAME
        }
    }
    dispatch(Name)
}

impl Machine {
    /// Measures the machine as it is now.
    pub fn measure() -> Machine {
        Machine {
            fma_f32_gflops: fma_gflops::<f32, 10>().max(fma_gflops_of_sixteen()),
            // a vector of eight f64 is one register or two: ten registers, of which fewer would wait for themselves
            fma_f64_gflops: fma_gflops::<f64, 5>().max(fma_gflops::<f64, 10>()),
            sqrt_div_ns: sqrt_div_ns().min(sqrt_div_ns_of_sixteen()),
            l2_gbs: triad_gbs(96 << 10, 200, 20),
            l3_gbs: triad_gbs(2 << 20, 8, 20),
            dram_gbs: triad_gbs(48 << 20, 1, 6),
        }
    }

    /// The better of two measurements, rate by rate.
    pub fn best(self, other: Machine) -> Machine {
        Machine {
            fma_f32_gflops: self.fma_f32_gflops.max(other.fma_f32_gflops),
            fma_f64_gflops: self.fma_f64_gflops.max(other.fma_f64_gflops),
            sqrt_div_ns: self.sqrt_div_ns.min(other.sqrt_div_ns),
            l2_gbs: self.l2_gbs.max(other.l2_gbs),
            l3_gbs: self.l3_gbs.max(other.l3_gbs),
            dram_gbs: self.dram_gbs.max(other.dram_gbs),
        }
    }
}

/// Seconds of the fastest of some runs.
fn fastest(repeats: usize, mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..repeats {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// `rounds` multiply-adds on each of N vectors.
struct Fma<T, const N: usize> {
    rounds: usize,
    factor: T,
}

impl<T: Scalar, const N: usize> Job for Fma<T, N> {
    type Out = T;

    #[inline(always)]
    fn run<A: Arch>(self) -> T {
        let factor = A::splat(self.factor);
        let mut sums = [A::zero::<T>(); N];
        for i in 0..N {
            // different starts, or the compiler would see one chain in place of N
            sums[i] = A::splat(T::of(i as f64));
        }
        for _ in 0..self.rounds {
            for i in 0..N {
                sums[i] = A::madd(sums[i], factor, factor);
            }
        }
        let mut total = sums[0];
        for i in 1..N {
            total = A::add(total, sums[i]);
        }
        A::total(total)
    }
}

fn fma_gflops<T: Scalar, const N: usize>() -> f64 {
    const ROUNDS: usize = 200_000;
    // below one, so that the sums stay in range
    let run = || black_box(dispatch(Fma::<T, N> { rounds: ROUNDS, factor: black_box(T::of(0.5)) }));
    let seconds = fastest(40, || {
        run();
    });
    (2 * LANES * N * ROUNDS) as f64 / seconds / 1e9
}

/// As [`Fma`], on ten registers of sixteen f32 where there are such.
struct FmaOfSixteen {
    rounds: usize,
    factor: f32,
}

impl Job for FmaOfSixteen {
    type Out = [f32; 2 * LANES];

    #[inline(always)]
    fn run<A: Arch>(self) -> [f32; 2 * LANES] {
        let factor = A::Sixteen::<f32>::splat(self.factor);
        let mut sums = [factor; TEN];
        for i in 0..TEN {
            sums[i] = A::Sixteen::<f32>::splat(i as f32);
        }
        for _ in 0..self.rounds {
            for i in 0..TEN {
                sums[i] = sums[i].madd(factor, factor);
            }
        }
        let mut total = sums[0];
        for i in 1..TEN {
            total = total.add(sums[i]);
        }
        let mut out = Tile::ZERO;
        total.store(&mut out);
        out.numbers()
    }
}

const TEN: usize = 10;

fn fma_gflops_of_sixteen() -> f64 {
    const ROUNDS: usize = 100_000;
    let seconds = fastest(40, || {
        black_box(dispatch(FmaOfSixteen { rounds: ROUNDS, factor: black_box(0.5) }));
    });
    (2 * 2 * LANES * TEN * ROUNDS) as f64 / seconds / 1e9
}

/// As [`SqrtDiv`], on vectors of sixteen.
struct SqrtDivOfSixteen<'a> {
    passes: usize,
    w: &'a mut [Tile<f32>],
    mu: &'a [Tile<f32>],
    nu: &'a [Tile<f32>],
}

impl Job for SqrtDivOfSixteen<'_> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (step, eps) = (A::Sixteen::<f32>::splat(1e-3), A::Sixteen::<f32>::splat(1e-8));
        for _ in 0..self.passes {
            for ((w, mu), nu) in self.w.iter_mut().zip(self.mu).zip(self.nu) {
                let root = A::Sixteen::<f32>::load(nu).sqrt().add(eps);
                let moved = A::Sixteen::<f32>::load(w).sub(step.mul(Rows::load(mu)).div(root));
                moved.store(w);
            }
        }
    }
}

fn sqrt_div_ns_of_sixteen() -> f64 {
    const VECTORS: usize = 32;
    const PASSES: usize = 2000;
    let filled = |v: f32| vec![Tile([[v; LANES]; 2]); VECTORS];
    let (mut w, mu, nu) = (filled(1.0), filled(0.1), filled(0.7));
    let seconds = fastest(30, || {
        dispatch(SqrtDivOfSixteen { passes: PASSES, w: &mut w, mu: black_box(&mu), nu: black_box(&nu) });
        black_box(&w);
    });
    seconds * 1e9 / (2 * VECTORS * PASSES) as f64
}

/// Adam's last line, again and again over the same vectors.
struct SqrtDiv<'a> {
    passes: usize,
    w: &'a mut [f32],
    mu: &'a [f32],
    nu: &'a [f32],
}

impl Job for SqrtDiv<'_> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (w, mu, nu) = (lanes_mut(self.w), lanes(self.mu), lanes(self.nu));
        let (mu, nu) = (&mu[..w.len()], &nu[..w.len()]);
        let (step, eps) = (A::splat(1e-3f32), A::splat(1e-8f32));
        for _ in 0..self.passes {
            for i in 0..w.len() {
                let root = A::add(A::sqrt(A::load(&nu[i])), eps);
                let moved = A::sub(A::load(&w[i]), A::div(A::mul(step, A::load(&mu[i])), root));
                A::store(moved, &mut w[i]);
            }
        }
    }
}

fn sqrt_div_ns() -> f64 {
    const VECTORS: usize = 64;
    const PASSES: usize = 2000;
    let (mut w, mu, nu) = (vec![1.0; VECTORS * LANES], vec![0.1; VECTORS * LANES], vec![0.7; VECTORS * LANES]);
    let seconds = fastest(30, || {
        dispatch(SqrtDiv { passes: PASSES, w: &mut w, mu: black_box(&mu), nu: black_box(&nu) });
        black_box(&w);
    });
    seconds * 1e9 / (VECTORS * PASSES) as f64
}

/// a ← b + s·c.
struct Triad<'a> {
    a: &'a mut [f32],
    b: &'a [f32],
    c: &'a [f32],
}

impl Job for Triad<'_> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (a, b, c) = (lanes_mut(self.a), lanes(self.b), lanes(self.c));
        let (b, c) = (&b[..a.len()], &c[..a.len()]);
        let s = A::splat(0.5f32);
        for i in 0..a.len() {
            A::store(A::madd(s, A::load(&c[i]), A::load(&b[i])), &mut a[i]);
        }
    }
}

/// Three arrays of that many bytes each.
fn triad_gbs(bytes: usize, passes: usize, repeats: usize) -> f64 {
    let n = bytes / size_of::<f32>();
    let (mut a, b, c) = (vec![1.0; n], vec![2.0; n], vec![3.0; n]);
    let seconds = fastest(repeats, || {
        for _ in 0..passes {
            dispatch(Triad { a: &mut a, b: black_box(&b), c: black_box(&c) });
            black_box(&a);
        }
    });
    (3 * bytes * passes) as f64 / seconds / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_are_positive_and_the_best_of_two_is_no_worse_than_either() {
        let (a, b) = (Machine::measure(), Machine::measure());
        let rates =
            |m: Machine| [m.fma_f32_gflops, m.fma_f64_gflops, 1.0 / m.sqrt_div_ns, m.l2_gbs, m.l3_gbs, m.dram_gbs];
        for i in 0..6 {
            assert!(rates(a)[i] > 0.0 && rates(a)[i].is_finite());
            assert!(rates(a.best(b))[i] >= rates(a)[i].max(rates(b)[i]));
        }
    }
}
