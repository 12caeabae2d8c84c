//! The operations each job cannot do without, and the time they take at the machine's rates.
//!
//! One thread does them one after another, so the times are summed; what a processor does beside them in the same
//! cycles (loads, Λ's own sums, drawing a batch) is not counted. Counted are:
//!
//! * **square root and division**: Adam needs one of each per parameter and step, W_1 of all blocks, gain, offset and
//!   output, in whole vectors of eight per row of units, as they lie in memory: m = 20 counts as 24, 100 as 104.
//! * **FMA of the products.** One row forward is d·m multiply-adds. S-mode counts the forward product alone, since no
//!   parameter can move before it is done, while the gradient's product hides behind Adam's divisions. A batch counts
//!   the forward and the gradient's product of all rows, unpadded; scoring the forward product and the squared form of
//!   the width.
//! * **Element-wise operations** of rows of m units, each at the rate of an FMA. Fourteen per unit for forward and
//!   backward: one for the mean, two for the variance, one to scale, one for gain and offset, one for the ReLU, one for
//!   the output; back through output and ReLU one, gain one, the two means of the layer norm two, its result three.
//!   Scoring adds δ²: **15**. A batch adds the residual's factor and the sums for gain, offset and output: **18**.
//! * **Sparse rows** (19 % non-zero) are bound by the second cache: each non-zero entry reads one row of W_1 and one of
//!   1/Λ, 4·104 bytes each, for every pair; the multiply-adds, half as long, hide behind the loads.
//! * **Networks of several hidden layers** (`practical-`): a row forward also meets m² weights between two hidden
//!   layers, back m² more. S-mode counts both products, since W_1 cannot move before they are done. A batch and scoring
//!   count 3·m² per row: forward, back, and the gradient or the width.
//! * **A shared trunk** with K outputs and no layer norm: d·m multiply-adds forward and as many for the gradient, or
//!   for the inputs' part of all K widths of a context; m for each output that counts, forward, back and in its
//!   gradient. That is one output of a round that learns from a reward, and K of one that learns from a likelihood.
//!   Element-wise operations are **5** per unit (bias, ReLU, slope, δ², the sum for the bias), 20 per eˣ of the
//!   soft-max.
//! * **Memory**: with 200 features and 100 actions weights and moments are 31 MB, which every step reads from memory
//!   and writes there; in MNIST's shape they are 9.4 MB, which it reads from the third cache and writes there; LinLCB's
//!   100 triangles are 16 MB, of which a round reads and writes one in the third cache. The
//!   limit is the longer of this way and all operations. Where a larger cache holds the weights, the ratio may be
//!   below 1.
//! * **Kernel, linear, exact Λ**: multiply-adds in f64. Kernel rows: distances d·n, triangular product n²/2, mean n.
//!   Linear: lower triangle of Λ and target to observe; triangular product, its norm and the mean to score. Exact Λ:
//!   one rank-one product per round (p²/2), one factor (p³/6), then p²/2 per row. These are the counts of the direct
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
    /// Bytes read from the third cache and written to it.
    pub l3_bytes: f64,
    /// Bytes read from memory and written to it.
    pub memory_bytes: f64,
    /// Multiply-adds in f64.
    pub fma_f64: f64,
}

impl Counts {
    /// The least time on that machine.
    pub fn limit_seconds(&self, machine: &Machine) -> f64 {
        let f32_fmas = self.fma_f32 + self.elementwise;
        let operations = 2.0 * f32_fmas / machine.fma_f32_gflops
            + self.sqrt_div * machine.sqrt_div_ns
            + self.l2_bytes / machine.l2_gbs
            + 2.0 * self.fma_f64 / machine.fma_f64_gflops;
        let memory = self.l3_bytes / machine.l3_gbs + self.memory_bytes / machine.dram_gbs;
        operations.max(memory) * 1e-9
    }

    /// Multiply-adds in f64 alone.
    pub fn of_f64(fma_f64: f64) -> Counts {
        Counts { fma_f64, ..Counts::default() }
    }
}

/// A network with layer norm and one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// d, inputs of one block.
    pub d: usize,
    /// m, units.
    pub m: usize,
    /// Blocks of W_1.
    pub blocks: usize,
    /// Hidden layers.
    pub hidden: usize,
}

const SCORE_OPS: f64 = 15.0;
const BATCH_OPS: f64 = 18.0;

/// Parameters of which weights and moments do not fit a second cache, 2 MB, and a third, 16 MB.
const NEAR_PARAMS: f64 = 2e6 / 12.0;
const CACHED_PARAMS: f64 = 16e6 / 12.0;

impl Shape {
    /// The synthetic jobs.
    pub const SYNTHETIC: Shape = Shape { d: 20, m: 20, blocks: 1, hidden: 1 };
    /// The jobs in the shape of MNIST.
    pub const MNIST: Shape = Shape { d: 784, m: 100, blocks: 10, hidden: 1 };

    /// The network of the preset `practical`, on one context per round.
    pub const fn practical(d: usize, n_actions: usize) -> Shape {
        Shape { d, m: 128, blocks: n_actions, hidden: 2 }
    }

    /// m in whole vectors.
    fn padded(&self) -> f64 {
        self.m.next_multiple_of(8) as f64
    }

    /// Units whose outputs meet weights of a further hidden layer.
    fn inner(&self) -> usize {
        (self.hidden - 1) * self.m
    }

    /// Vectors of parameters: W_1, …; gain and offset of each hidden layer; output.
    fn parameter_vectors(&self) -> f64 {
        (self.blocks * self.d + self.inner() + 2 * self.hidden + 1) as f64 * self.padded() / 8.0
    }

    /// Every parameter of a step of Adam: its arithmetic, and the way of weights and moments to where they are kept and
    /// back.
    fn adam(&self) -> Counts {
        let (vectors, n) = (self.parameter_vectors(), 8.0 * self.parameter_vectors());
        let (l3_bytes, memory_bytes) = match n {
            n if n > CACHED_PARAMS => (0.0, 24.0 * n),
            n if n > NEAR_PARAMS => (24.0 * n, 0.0),
            _ => (0.0, 0.0),
        };
        Counts { sqrt_div: vectors, l3_bytes, memory_bytes, ..Counts::default() }
    }

    /// One step of S-mode.
    pub fn single_step(&self) -> Counts {
        Counts { fma_f32: (self.d + 2 * self.inner()) as f64 * self.padded(), ..self.adam() }
    }

    /// One step of B-mode.
    pub fn batch_step(&self, rows: usize) -> Counts {
        Counts { elementwise: BATCH_OPS * self.units(rows), ..Counts { fma_f32: self.products(rows), ..self.adam() } }
    }

    /// Mean and width of rows.
    pub fn score(&self, rows: usize) -> Counts {
        Counts { fma_f32: self.products(rows), elementwise: SCORE_OPS * self.units(rows), ..Counts::default() }
    }

    /// Hidden units of rows.
    fn units(&self, rows: usize) -> f64 {
        (rows * self.m * self.hidden) as f64
    }

    /// Multiply-adds of rows forward and back, and of their gradient or width.
    fn products(&self, rows: usize) -> f64 {
        (rows * self.m * (2 * self.d + 3 * self.inner())) as f64
    }

    /// Mean and width of rows with that share of non-zero entries.
    pub fn score_sparse(&self, rows: usize, density: f64) -> Counts {
        let l2_bytes = 2.0 * rows as f64 * density * self.d as f64 * self.padded() * 4.0;
        Counts { l2_bytes, fma_f32: 0.0, ..self.score(rows) }
    }

    /// p, the number of parameters.
    pub fn n_params(&self) -> usize {
        (self.blocks * self.d + self.inner() + 2 * self.hidden + 1) * self.m
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
            ..Counts::default()
        }
    }
}

/// A shared trunk of one hidden layer with an output per action, without layer norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trunk {
    /// d, inputs.
    pub d: usize,
    /// K, outputs.
    pub outputs: usize,
}

/// Operations per unit, and of the exponential of an output.
const TRUNK_OPS: f64 = 5.0;
const EXP_OPS: f64 = 20.0;

impl Trunk {
    /// m, units.
    pub const WIDTH: usize = 100;

    /// One step on the likelihood of rounds.
    pub fn likelihood_step(&self, rounds: usize) -> Counts {
        self.step(rounds, self.outputs, EXP_OPS)
    }

    /// One step on the rewards of rounds.
    pub fn reward_step(&self, rounds: usize) -> Counts {
        self.step(rounds, 1, 0.0)
    }

    /// One step on rounds of which so many outputs count, with further operations for each of these.
    fn step(&self, rounds: usize, outputs: usize, more: f64) -> Counts {
        let (n, d, m, k) = (rounds as f64, self.d as f64, Self::WIDTH as f64, self.outputs as f64);
        Counts {
            sqrt_div: (d * m + m + k * m + k) / 8.0,
            fma_f32: n * m * (2.0 * d + 3.0 * outputs as f64),
            elementwise: n * (TRUNK_OPS * m + more * outputs as f64),
            ..Counts::default()
        }
    }

    /// Mean and width of all actions of contexts.
    pub fn score(&self, contexts: usize) -> Counts {
        let (n, d, m, k) = (contexts as f64, self.d as f64, Self::WIDTH as f64, self.outputs as f64);
        Counts { fma_f32: 2.0 * n * m * d, elementwise: n * TRUNK_OPS * m * k, ..Counts::default() }
    }

    /// The probabilities of all actions of contexts.
    pub fn probabilities(&self, contexts: usize) -> Counts {
        let (n, d, m, k) = (contexts as f64, self.d as f64, Self::WIDTH as f64, self.outputs as f64);
        Counts { fma_f32: n * m * (d + k), elementwise: n * (2.0 * m + EXP_OPS * k), ..Counts::default() }
    }
}

/// LinLCB with a triangle per action reads a round.
pub(crate) fn linear_round(d: usize, n_actions: usize) -> Counts {
    let triangle = (d * (d + 1) / 2) as f64;
    let l3_bytes = if n_actions as f64 * 8.0 * triangle > 4e6 { 16.0 * triangle } else { 0.0 };
    Counts { l3_bytes, ..Counts::of_f64(triangle + d as f64) }
}

/// LinLCB's mean and width of pairs.
pub(crate) fn linear_score(d: usize, pairs: usize) -> Counts {
    Counts::of_f64((pairs * (d * (d + 1) / 2 + 2 * d)) as f64)
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
