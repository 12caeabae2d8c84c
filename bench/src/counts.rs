//! The operations each job cannot do without, and the time they take at the machine's rates.
//!
//! One thread does them one after another, so the times are summed; what a processor does beside them in the same
//! cycles (loads, Λ's own sums, drawing a batch) is not counted. Counted are:
//!
//! * **square root and division**: Adam needs one of each per parameter and step, W_1 of all blocks, gain, offset and
//!   output, in whole vectors of eight per row of units, as they lie in memory: m = 20 counts as 24, 100 as 104.
//! * **FMA of the products.** One row forward is d·m multiply-adds. S-mode counts the forward product alone, since no
//!   parameter can move before it is done, while the gradient's product hides behind Adam's divisions. A batch counts the
//!   forward and the gradient's product of all rows, unpadded; scoring the forward product and the squared form of the
//!   width.
//! * **Element-wise operations** of rows of m units, each at the rate of an FMA. Fourteen per unit for forward and
//!   backward: one for the mean, two for the variance, one to scale, one for gain and offset, one for the ReLU, one for the
//!   output; back through output and ReLU one, gain one, the two means of the layer norm two, its result three. Scoring
//!   adds δ²: **15**. A batch adds the residual's factor and the sums for gain, offset and output: **18**.
//! * **Sparse rows** (19 % non-zero) are bound by the second cache: each non-zero entry reads one row of W_1 and one of
//!   1/Λ, 4·104 bytes each, for every pair; the multiply-adds, half as long, hide behind the loads.
//! * **Kernel, linear, exact Λ**: multiply-adds in f64. Kernel rows: distances d·n, triangular product n²/2, mean n.
//!   Linear: lower triangle of Λ and target to observe; triangular product, its norm and the mean to score. Exact Λ: one
//!   rank-one product per round (p²/2), one factor (p³/6), then p²/2 per row. These are the counts of the direct
//!   method; a cleverer one may take less.
//!
//! In B-mode of MNIST's shape the limit is the sum of divisions (64 %) and products; on a machine that could do both at
//! once it would be the divisions alone.

use neuralcb::machine::Machine;

/// Operations of one unit of a job.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    /// Multiply-adds in f32.
    pub fma_f32: f64,
    /// Other operations on f32, each as long as a multiply-add.
    pub elementwise: f64,
    /// Vectors of eight f32 that need a square root and a division.
    pub sqrt_div: f64,
    /// Bytes read from the second cache.
    pub l2_bytes: f64,
    /// Multiply-adds in f64.
    pub fma_f64: f64,
}

impl Counts {
    /// The least time on that machine.
    pub fn limit_seconds(&self, machine: &Machine) -> f64 {
        let f32_fmas = self.fma_f32 + self.elementwise;
        (2.0 * f32_fmas / machine.fma_f32_gflops
            + self.sqrt_div * machine.sqrt_div_ns
            + self.l2_bytes / machine.l2_gbs
            + 2.0 * self.fma_f64 / machine.fma_f64_gflops)
            * 1e-9
    }

    /// Multiply-adds in f64 alone.
    pub fn of_f64(fma_f64: f64) -> Counts {
        Counts { fma_f64, ..Counts::default() }
    }
}

/// A network with one hidden layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// d, inputs of one block.
    pub d: usize,
    /// m, units.
    pub m: usize,
    /// Blocks of W_1.
    pub blocks: usize,
}

const SCORE_OPS: f64 = 15.0;
const BATCH_OPS: f64 = 18.0;

impl Shape {
    /// The synthetic jobs.
    pub const SYNTHETIC: Shape = Shape { d: 20, m: 20, blocks: 1 };
    /// The jobs in the shape of MNIST.
    pub const MNIST: Shape = Shape { d: 784, m: 100, blocks: 10 };

    /// m in whole vectors.
    fn padded(&self) -> f64 {
        self.m.next_multiple_of(8) as f64
    }

    /// Vectors of parameters: W_1, gain, offset, output.
    fn parameter_vectors(&self) -> f64 {
        (self.blocks * self.d + 3) as f64 * self.padded() / 8.0
    }

    /// One step of S-mode.
    pub fn single_step(&self) -> Counts {
        Counts { sqrt_div: self.parameter_vectors(), fma_f32: self.d as f64 * self.padded(), ..Counts::default() }
    }

    /// One step of B-mode.
    pub fn batch_step(&self, rows: usize) -> Counts {
        let units = (rows * self.m) as f64;
        Counts {
            sqrt_div: self.parameter_vectors(),
            fma_f32: 2.0 * units * self.d as f64,
            elementwise: BATCH_OPS * units,
            ..Counts::default()
        }
    }

    /// Mean and width of rows.
    pub fn score(&self, rows: usize) -> Counts {
        let units = (rows * self.m) as f64;
        Counts { fma_f32: 2.0 * units * self.d as f64, elementwise: SCORE_OPS * units, ..Counts::default() }
    }

    /// Mean and width of rows with that share of non-zero entries.
    pub fn score_sparse(&self, rows: usize, density: f64) -> Counts {
        let l2_bytes = 2.0 * rows as f64 * density * self.d as f64 * self.padded() * 4.0;
        Counts { l2_bytes, fma_f32: 0.0, ..self.score(rows) }
    }

    /// p, the number of parameters.
    pub fn n_params(&self) -> usize {
        (self.blocks * self.d + 3) * self.m
    }

    /// `n` rounds of S-mode with the exact Λ, then mean and width of rows.
    pub fn exact_lambda(&self, n: usize, rows: usize) -> Counts {
        let p = self.n_params() as f64;
        let step = self.single_step();
        Counts {
            sqrt_div: n as f64 * step.sqrt_div,
            fma_f32: n as f64 * step.fma_f32 + (rows * self.m * self.d) as f64,
            elementwise: SCORE_OPS * (rows * self.m) as f64,
            fma_f64: (n + rows) as f64 * p * (p + 1.0) / 2.0 + p.powi(3) / 6.0,
            l2_bytes: 0.0,
        }
    }
}

/// Mean and width of one row by kernel regression on `n` samples of `d` numbers.
pub(crate) fn kernel_row(n: usize, d: usize) -> f64 {
    let (n, d) = (n as f64, d as f64);
    d * n + n * (n + 1.0) / 2.0 + n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JOBS;

    /// A machine of two cores of AMD's Zen 3 at 3.2 GHz, on which the limits were first worked out.
    const ZEN3: Machine = Machine {
        fma_f32_gflops: 103.7,
        fma_f64_gflops: 51.9,
        sqrt_div_ns: 2.61,
        l2_gbs: 101.0,
        l3_gbs: 73.0,
        dram_gbs: 20.0,
    };

    #[test]
    fn the_limits_are_those_first_worked_out() {
        for (name, want) in [
            ("synthetic-s-step", 0.19e-6),
            ("synthetic-b-step", 1.3e-6),
            ("synthetic-score", 6.4e-3),
            ("mnist-s-step", 266e-6),
            ("mnist-b-step", 417e-6),
            ("mnist-score-dense", 302e-3),
            ("mnist-score-sparse", 127e-3),
        ] {
            let job = JOBS.iter().find(|j| j.name == name).unwrap();
            let got = job.counts().unwrap().limit_seconds(&ZEN3);
            assert!((got / want - 1.0).abs() < 0.05, "{name}: {got} s, expected {want} s");
        }
    }

    #[test]
    fn every_timed_job_has_a_limit() {
        let without: Vec<&str> = JOBS.iter().filter(|j| j.counts().is_none()).map(|j| j.name).collect();
        let want = ["two-cores-repetitions", "two-cores-score", "growth-s", "growth-b", "mnist-run-memory"];
        assert_eq!(without, want);
        for counts in JOBS.iter().filter_map(|j| j.counts()) {
            assert!(counts.limit_seconds(&ZEN3) > 1e-9);
        }
    }
}
