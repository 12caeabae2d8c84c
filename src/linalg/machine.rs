//! What this machine can do at most, on one thread, measured with loops compiled as the library's own.
//!
//! Every limit of a kernel is a count of operations divided by one of these rates, so a time can be judged on any
//! machine, and on a shared one at the speed it has just now:
//!
//! * **FMA**: a ← a·b + c on registers without dependence between them, two operations per lane;
//! * **square root and division**: Adam's w ← w − step·μ/(√ν + ε) on f32 in the first cache, for eight numbers;
//! * **bandwidth**: the triad a ← b + s·c over three arrays that together fit the second cache, the third, or neither;
//!   twelve bytes per element, as is the custom.
//!
//! Each is the best of many short repeats: whatever disturbs a measurement makes it slower. All take about a third of
//! a second.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::scalar::Scalar;
use super::vectors::{Job, ROWS, check, dispatch, name};
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

/// Refuses a value of `NEURALCB_INSTRUCTIONS` that is none of `avx-512`, `avx2` and `portable`. On x86-64 it names the
/// best instruction set to be used, where it should not be the processor's best; it is read once. A program that wants
/// to answer with an error calls this before it computes: later a wrong name is a panic.
pub fn check_instructions() -> Result<(), Error> {
    check()
}

/// The vector instructions that this processor has and the library uses. Results are the same to the bit with all of
/// them.
pub fn instructions() -> &'static str {
    name()
}

impl Machine {
    /// Measures the machine as it is now.
    pub fn measure() -> Machine {
        Machine {
            // ten registers do not wait for themselves; sixteen numbers are one register or up to four
            fma_f32_gflops: fma_gflops::<f32, 10>().max(fma_gflops::<f32, 5>()),
            fma_f64_gflops: fma_gflops::<f64, 10>().max(fma_gflops::<f64, 5>()).max(fma_gflops::<f64, 3>()),
            sqrt_div_ns: sqrt_div_ns(),
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

/// `rounds` multiply-adds on each of N arrays of sixteen numbers.
struct Fma<T, const N: usize> {
    rounds: usize,
    factor: T,
}

impl<T: Scalar, const N: usize> Job for Fma<T, N> {
    type Output = T;

    #[inline(always)]
    fn call(self) -> T {
        let mut sums = [[T::ZERO; ROWS]; N];
        for i in 0..N {
            // different starts, or the compiler would see one chain in place of N
            sums[i] = [T::of(i as f64); ROWS];
        }
        for _ in 0..self.rounds {
            for i in 0..N {
                for l in 0..ROWS {
                    sums[i][l] = sums[i][l].mul_add(self.factor, self.factor);
                }
            }
        }
        sums.as_flattened().iter().copied().sum()
    }
}

fn fma_gflops<T: Scalar, const N: usize>() -> f64 {
    const ROUNDS: usize = 50_000;
    // below one, so that the sums stay in range
    let run = || black_box(dispatch(Fma::<T, N> { rounds: ROUNDS, factor: black_box(T::of(0.5)) }));
    let seconds = fastest(40, || {
        run();
    });
    (2 * ROWS * N * ROUNDS) as f64 / seconds / 1e9
}

/// Adam's last line, again and again over the same numbers.
struct SqrtDiv<'a> {
    passes: usize,
    w: &'a mut [f32],
    mu: &'a [f32],
    nu: &'a [f32],
}

impl Job for SqrtDiv<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for _ in 0..self.passes {
            for ((w, mu), nu) in self.w.iter_mut().zip(self.mu).zip(self.nu) {
                *w -= 1e-3 * mu / (nu.sqrt() + 1e-8);
            }
        }
    }
}

/// Nanoseconds for eight numbers.
fn sqrt_div_ns() -> f64 {
    const NUMBERS: usize = 512;
    const PASSES: usize = 2000;
    let (mut w, mu, nu) = (vec![1.0; NUMBERS], vec![0.1; NUMBERS], vec![0.7; NUMBERS]);
    let seconds = fastest(30, || {
        dispatch(SqrtDiv { passes: PASSES, w: &mut w, mu: black_box(&mu), nu: black_box(&nu) });
        black_box(&w);
    });
    seconds * 1e9 / (NUMBERS / 8 * PASSES) as f64
}

/// a ← b + s·c.
struct Triad<'a> {
    a: &'a mut [f32],
    b: &'a [f32],
    c: &'a [f32],
}

impl Job for Triad<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for ((a, b), c) in self.a.iter_mut().zip(self.b).zip(self.c) {
            *a = 0.5f32.mul_add(*c, *b);
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
