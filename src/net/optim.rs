//! The two optimisers: Algorithm 1's stochastic gradient descent, and the experiments' Adam.
//!
//! SGD:  W ← W − η_t (∇ + mλ (W − W⁽⁰⁾)),  η_t constant or ι/√t
//! Adam: g = ∇ + l2·(W − C);  μ ← 0.9 μ + 0.1 g;  ν ← 0.999 ν + 0.001 g²;  W ← W − lr · μ̂ / (√ν̂ + 1e-8)
//!
//! where C is 0 or W⁽⁰⁾, μ̂ = μ/(1 − 0.9ᵗ) and ν̂ = ν/(1 − 0.999ᵗ). Blocks of W_1 that no sample of the step touches have ∇ = 0
//! but still move: with l2 and momentum every weight moves at every step.
//!
//! What Adam costs is a square root, a division and the multiplications of every weight. Kept are therefore the discounted
//! sums μ/0.1 and ν/0.001, which need one multiplication less each; what is the same for all weights is worked out
//! once a step; and two weights share a division.
//!
//! The gradient of a weight matrix is Σ_r x_r u_rᵀ over the rows of the step. It is never stored: a tile of it is
//! summed in registers and moves its weights from there, in one pass over the parameters.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Net, Params};
use crate::archive::Archive;
use crate::error::{Error, not_negative, positive};
use crate::linalg::dense::over_columns;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{
    Arch, HALF, Job, LANES, Lanes, RowList, Rows, Tile, Vectors, lanes, lanes_mut, many_registers,
};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPS: f64 = 1e-8;

/// Step sizes η_t.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// η_t = η.
    Constant(f64),
    /// η_t = ι/√t, as in Theorem 4.1.
    InverseRoot(f64),
}

/// What the l2 penalty of Adam pulls towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Towards {
    /// ½·l2·‖W‖².
    Zero,
    /// ½·l2·‖W − W⁽⁰⁾‖².
    Initial,
}

/// How the weights are moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimiser {
    /// Algorithm 1: SGD on ½(f − r)² + (mλ/2)‖W − W⁽⁰⁾‖².
    Sgd {
        /// Step sizes.
        schedule: Schedule,
    },
    /// The experiments: Adam (0.9, 0.999, 1e-8) on ½(f − r)² + (l2/2)‖W − C‖².
    Adam {
        /// Learning rate, > 0.
        lr: f64,
        /// Weight of the penalty, ≥ 0.
        l2: f64,
        /// What the penalty pulls towards.
        towards: Towards,
    },
}

impl Optimiser {
    fn check(&self) -> Result<(), Error> {
        match *self {
            Optimiser::Sgd { schedule: Schedule::Constant(eta) } => positive("step size", eta),
            Optimiser::Sgd { schedule: Schedule::InverseRoot(iota) } => positive("iota", iota),
            Optimiser::Adam { lr, l2, .. } => positive("learning rate", lr).and(not_negative("l2", l2)),
        }
    }
}

/// An optimiser with its memory.
#[derive(Debug, Clone)]
pub(crate) struct Stepper<T> {
    optimiser: Optimiser,
    /// mλ, the weight of Algorithm 1's penalty.
    pull: f64,
    /// W⁽⁰⁾, where the penalty needs it.
    initial: Option<Params<T>>,
    /// Adam's Σ 0.9^(t−i) g_i = μ/0.1 and Σ 0.999^(t−i) g_i² = ν/0.001.
    moments: Option<(Params<T>, Params<T>)>,
    /// 0.9ᵗ and 0.999ᵗ after t steps of Adam.
    powers: (f64, f64),
}

impl<T: Scalar> Stepper<T> {
    /// An optimiser at its start, for the weights W⁽⁰⁾ = `initial` of a network with regularisation λ.
    pub(crate) fn new(optimiser: Optimiser, net: &Net, initial: &Params<T>, lambda: f64) -> Result<Self, Error> {
        optimiser.check()?;
        let zero = || initial.filled(T::ZERO);
        let (keep_initial, moments) = match optimiser {
            Optimiser::Sgd { .. } => (true, None),
            Optimiser::Adam { towards, .. } => (towards == Towards::Initial, Some((zero(), zero()))),
        };
        Ok(Stepper {
            optimiser,
            pull: net.width() as f64 * lambda,
            initial: keep_initial.then(|| initial.clone()),
            moments,
            powers: (1.0, 1.0),
        })
    }

    /// Goes through the optimiser's memory: W⁽⁰⁾ as `initial`, Adam's sums as `gradients` and `squared_gradients`.
    pub(crate) fn archive(&mut self, net: &Net, archive: &mut Archive) -> Result<(), Error> {
        if let Some(initial) = &mut self.initial {
            net.archive("initial", initial, archive)?;
        }
        if let Some((first, second)) = &mut self.moments {
            net.archive("gradients", first, archive)?;
            net.archive("squared_gradients", second, archive)?;
        }
        let mut powers = [self.powers.0, self.powers.1];
        archive.array("powers", &[2], &mut powers)?;
        self.powers = (powers[0], powers[1]);
        Ok(())
    }

    /// Begins a step of round `t` (from 1). Every part of the weights must then be moved once.
    #[inline(always)]
    pub(crate) fn begin<'a>(&'a mut self, t: usize, weights: &'a mut Params<T>) -> Step<'a, T> {
        let numbers = match self.optimiser {
            Optimiser::Sgd { schedule } => {
                let eta = match schedule {
                    Schedule::Constant(eta) => eta,
                    Schedule::InverseRoot(iota) => iota / (t as f64).sqrt(),
                };
                Numbers::Sgd { eta: T::of(eta), pull: T::of(self.pull) }
            }
            Optimiser::Adam { lr, l2, .. } => {
                self.powers = (self.powers.0 * BETA1, self.powers.1 * BETA2);
                // lr·μ̂ / (√ν̂ + ε) = step·Σg / (√Σg² + eps)
                let root = ((1.0 - self.powers.1) * (1.0 / (1.0 - BETA2))).sqrt();
                let mut step = lr * (1.0 - BETA1) * root;
                if self.powers.0 > f64::EPSILON / 4.0 {
                    step /= 1.0 - self.powers.0; // exactly one from round 350 on: the weights need the divider
                }
                Numbers::Adam { step: T::of(step), eps: T::of(EPS * root), l2: T::of(l2) }
            }
        };
        Step { numbers, weights, initial: self.initial.as_ref(), moments: self.moments.as_mut() }
    }
}

/// The scalars of one step.
#[derive(Clone, Copy)]
enum Numbers<T> {
    Sgd { eta: T, pull: T },
    Adam { step: T, eps: T, l2: T },
}

/// One step of the optimiser.
pub(crate) struct Step<'a, T> {
    numbers: Numbers<T>,
    weights: &'a mut Params<T>,
    initial: Option<&'a Params<T>>,
    moments: Option<&'a mut (Params<T>, Params<T>)>,
}

impl<T: Scalar> Step<'_, T> {
    /// The weights as they are.
    #[inline(always)]
    pub(super) fn weights(&self) -> &Params<T> {
        self.weights
    }

    /// A stretch of W_1.
    #[inline(always)]
    pub(crate) fn first(&mut self, at: Range<usize>) -> Part<'_, T> {
        Part {
            numbers: self.numbers,
            w: &mut self.weights.first[at.clone()],
            initial: self.initial.map(|c| &c.first[at.clone()]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m.first[at.clone()], &mut v.first[at])),
        }
    }

    /// A stretch of the other parameters.
    #[inline(always)]
    pub(crate) fn rest(&mut self, at: Range<usize>) -> Part<'_, T> {
        Part {
            numbers: self.numbers,
            w: &mut self.weights.rest[at.clone()],
            initial: self.initial.map(|c| &c.rest[at.clone()]),
            moments: self.moments.as_mut().map(|(m, v)| (&mut m.rest[at.clone()], &mut v.rest[at])),
        }
    }
}

/// A stretch of parameters with all that belongs to them.
pub(crate) struct Part<'a, T> {
    numbers: Numbers<T>,
    w: &'a mut [T],
    initial: Option<&'a [T]>,
    moments: Option<(&'a mut [T], &'a mut [T])>,
}

/// Chooses the rule once, outside the loops.
macro_rules! with_rule {
    ($part:expr, $arch:ident, |$rule:ident| $body:expr) => {{
        let part = $part;
        match (part.numbers, part.initial, part.moments) {
            (Numbers::Adam { step, eps, l2 }, None, Some(moments)) => {
                let $rule = &mut Adam::<T, $arch>::new(part.w, moments, step, eps, l2);
                $body
            }
            (Numbers::Adam { step, eps, l2 }, Some(initial), Some(moments)) => {
                let adam = Adam::<T, $arch>::new(part.w, moments, step, eps, l2);
                let $rule = &mut AdamTowards { adam, initial: lanes(initial) };
                $body
            }
            (Numbers::Sgd { eta, pull }, Some(initial), _) => {
                let (eta, pull) = ($arch::splat(eta), $arch::splat(pull));
                let $rule = &mut Sgd::<T, $arch> { w: lanes_mut(part.w), initial: lanes(initial), eta, pull };
                $body
            }
            _ => unreachable!("Adam keeps its moments and SGD the initial weights"),
        }
    }};
}

impl<T: Scalar> Part<'_, T> {
    /// Moves by a gradient in the shape of the parameters.
    #[inline(always)]
    pub(crate) fn along<A: Arch>(self, grad: &[T]) {
        A::call(Along { part: self, grad: Some(grad) });
    }

    /// Moves where the gradient is zero.
    #[inline(always)]
    pub(crate) fn still<A: Arch>(self) {
        if self.w.is_empty() {
            return;
        }
        A::call(Along { part: self, grad: None });
    }

    /// Moves a weight matrix (n_in × ld) by x (e·u)ᵀ; `growth` grows by s·x² (u²)ᵀ in the same pass.
    #[inline(always)]
    pub(crate) fn outer_one<A: Arch>(self, x: &[T], u: &[T], e: T, growth: Option<(&mut [T], T)>) {
        A::call(OuterOne { part: self, x, u, e, growth });
    }

    /// As [`Part::outer_one`], for a row of C vectors in registers, with `padding` numbers of zero at its end.
    #[inline(always)]
    pub(super) fn outer_in<A: Arch, const C: usize>(
        self,
        x: &[f32],
        u: [A::V<T>; C],
        padding: usize,
        e: T,
        growth: Option<(&mut [T], T)>,
    ) {
        let (e, short) = (A::splat(e), padding >= HALF);
        with_rule!(self, A, |rule| {
            if let Some((grows, s)) = growth {
                outer_inputs::<T, A, _, C, true>(rule, x, u, short, e, lanes_mut(grows), A::splat(s));
            } else {
                outer_inputs::<T, A, _, C, false>(rule, x, u, short, e, &mut [], e);
            }
        });
    }

    /// Moves rows of parameters in registers, those that have a place, by e·u, and the number at `one` by e; `growth`
    /// grows by s·u², or s. With `padding` numbers of zero at the end of a row, as in [`Part::outer_in`], the first two rows,
    /// which are there both or not at all, move together.
    #[inline(always)]
    pub(super) fn vectors_in<A: Arch, const C: usize>(
        self,
        places: [Option<usize>; 4],
        rows: [[A::V<T>; C]; 4],
        padding: usize,
        one: Option<usize>,
        e: T,
        growth: Option<(&mut [T], T)>,
    ) {
        let (e, (grows, s)) = (A::splat(e), growth.unwrap_or_default());
        let (grows, s) = (lanes_mut(grows), A::splat(s));
        let mut unit = [T::ZERO; LANES];
        unit[0] = T::ONE;
        with_rule!(self, A, |rule| {
            let [a, b, more @ ..] = places.map(|at| at.map(|at| at / LANES));
            if let (Some(a), Some(b)) = (a, b) {
                let u = grow_row::<T, A, C>(rows[0], e, grows, s, a);
                let v = grow_row::<T, A, C>(rows[1], e, grows, s, b);
                if padding >= HALF {
                    for c in 0..C - 1 {
                        rule.two_steps([a + c, b + c], [[u[c]], [v[c]]]);
                    }
                    rule.two_halves([a + C - 1, b + C - 1], A::join_halves(u[C - 1], v[C - 1]));
                } else {
                    rule.two_steps([a, b], [u, v]);
                }
            }
            for (at, u) in more.into_iter().zip([rows[2], rows[3]]) {
                if let Some(at) = at {
                    rule.steps(at, grow_row::<T, A, C>(u, e, grows, s, at));
                }
            }
            if let Some(at) = one {
                let at = at / LANES;
                rule.steps(at, grow_row::<T, A, 1>([A::load(&unit)], e, grows, s, at));
            }
        });
    }

    /// Moves a weight matrix (n_in × ld, of which n_out outputs are no padding) by Σ_r x_r u_rᵀ, with rows of u that lie so
    /// far apart.
    #[inline(always)]
    pub(crate) fn outer<A: Arch>(
        self,
        x: RowList<'_, T>,
        (u, ld): (&[T], usize),
        (n_in, n_out): (usize, usize),
        sums: &mut Sums<T>,
    ) {
        A::call(Outer { part: self, x, n_in, u, ld, n_out, sums });
    }
}

struct Along<'a, T> {
    part: Part<'a, T>,
    grad: Option<&'a [T]>,
}

impl<T: Scalar> Job for Along<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        const TOGETHER: usize = 4;
        let n = self.part.w.len() / LANES;
        let (grad, whole) = (self.grad.map(lanes), n / TOGETHER * TOGETHER);
        with_rule!(self.part, A, |rule| {
            for at in (0..whole).step_by(TOGETHER) {
                rule.steps(at, gradients::<T, A, TOGETHER>(grad, at));
            }
            for at in whole..n {
                rule.steps(at, gradients::<T, A, 1>(grad, at));
            }
        });
    }
}

/// C vectors of a gradient, or zero.
#[inline(always)]
fn gradients<T: Scalar, A: Arch, const C: usize>(grad: Option<&[Lanes<T>]>, at: usize) -> [A::V<T>; C] {
    let mut out = [A::zero(); C];
    if let Some(grad) = grad {
        let grad = &grad[at..at + C];
        for c in 0..C {
            out[c] = A::load(&grad[c]);
        }
    }
    out
}

struct OuterOne<'a, T> {
    part: Part<'a, T>,
    x: &'a [T],
    u: &'a [T],
    e: T,
    growth: Option<(&'a mut [T], T)>,
}

impl<T: Scalar> Job for OuterOne<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let OuterOne { part, x, u, e, growth } = self;
        let (u, e) = (lanes(u), A::splat(e));
        let (mut grows, s) = match growth {
            Some((grows, s)) => (Some(lanes_mut(grows)), A::splat(s)),
            None => (None, e),
        };
        with_rule!(part, A, |rule| {
            over_columns!(u.len(), col, C in [4 3 2 1], {
                let (x, mut own) = (x.iter().copied(), [A::zero::<T>(); C]);
                for c in 0..C {
                    own[c] = A::load(&u[col + c]);
                }
                if let Some(grows) = &mut grows {
                    outer_row::<T, A, _, C, true>(rule, x, own, e, (u.len(), col), grows, s);
                } else {
                    outer_row::<T, A, _, C, false>(rule, x, own, e, (u.len(), col), &mut [], s);
                }
            });
        });
    }
}

struct Outer<'a, T> {
    part: Part<'a, T>,
    x: RowList<'a, T>,
    n_in: usize,
    u: &'a [T],
    ld: usize,
    n_out: usize,
    sums: &'a mut Sums<T>,
}

impl<T: Scalar> Job for Outer<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Outer { part, x, n_in, u, ld, n_out, sums } = self;
        if const { many_registers::<T, A>() } {
            let columns = ld / LANES;
            if columns == 3 && n_out <= NARROW {
                return with_rule!(part, A, |rule| {
                    let mut j = 0;
                    while j < n_in {
                        let own = if n_in - j <= NARROW { n_in - j } else { INPUTS };
                        let sums = &mut sums.0[..own];
                        A::call(SumNarrow { x: (x, j), u, sums });
                        move_inputs::<T, A, _>(rule, sums, columns, j * columns, columns);
                        j += own;
                    }
                });
            }
            return with_rule!(part, A, |rule| {
                for j in (0..n_in).step_by(INPUTS) {
                    let sums = &mut sums.0[..INPUTS.min(n_in - j)];
                    for from in (0..columns).step_by(COLUMNS) {
                        let own = COLUMNS.min(columns - from);
                        over_columns!(own, col, C in [4 3 2 1], {
                            // registers of sixteen numbers, and one of eight where C is odd
                            let (x, u) = ((x, j), (u, columns, from));
                            if C > 1 {
                                A::call(SumInputs::<T, true> { x, u, sums, at: col, two: C == 4 });
                            }
                            if C % 2 == 1 {
                                A::call(SumInputs::<T, false> { x, u, sums, at: col + C - 1, two: false });
                            }
                        });
                        move_inputs::<T, A, _>(rule, sums, own, j * columns + from, columns);
                    }
                }
            });
        }
        if const { A::ROWS_IN_REGISTERS && size_of::<T>() == 4 } && ld / LANES == 3 && n_out <= NARROW {
            return with_rule!(part, A, |rule| {
                // inputs are summed by fours and move by threes, as below
                for first in (0..n_in).step_by(INPUTS) {
                    let (n, mut moved) = (INPUTS.min(n_in - first), 0);
                    for from in (0..n).step_by(4) {
                        A::call(SumFour { x: (x, first + from), u, sums: &mut sums.0.as_chunks_mut().0[from / 4] });
                        let summed = (from + 4).min(n);
                        let ready = if summed < n { summed / 3 * 3 } else { n };
                        move_inputs::<T, A, _>(rule, &sums.0[moved..ready], 3, 3 * (first + moved), 3);
                        moved = ready;
                    }
                }
            });
        }
        with_rule!(part, A, |rule| {
            // nine sums, three vectors and a number leave registers to spare; twelve sums would be kept in memory
            let mut j = 0;
            while j < n_in {
                let rows = (n_in - j).min(3);
                over_columns!(ld / LANES, col, C in [3 2 1], {
                    match rows {
                        3 => outer_tile::<T, A, _, 3, C>(rule, x, j, u, ld, col),
                        2 => outer_tile::<T, A, _, 2, C>(rule, x, j, u, ld, col),
                        _ => outer_tile::<T, A, _, 1, C>(rule, x, j, u, ld, col),
                    }
                });
                j += rows;
            }
        });
    }
}

/// Inputs that are summed together where there are many registers: a multiple of three, as [`outer_tile`] takes them.
const INPUTS: usize = 12;

/// Outputs that are a register of sixteen and a quarter of one, and as many inputs at most: the sums of such a matrix take
/// twenty-five registers.
const NARROW: usize = 20;

/// Vectors of outputs that are summed before their weights move.
const COLUMNS: usize = 16;

/// Room for sums of a gradient: those of some inputs by some vectors of outputs, so that weights move in the order in which
/// they lie.
#[derive(Debug, Clone)]
pub(crate) struct Sums<T>(Box<[[Lanes<T>; COLUMNS]; NARROW]>);

impl<T: Scalar> Sums<T> {
    pub(crate) fn new() -> Self {
        Sums(Box::new([[[T::ZERO; LANES]; COLUMNS]; NARROW]))
    }
}

/// Sums of x u over the rows, for as many inputs as there are `sums`, from an input on, and one register of outputs, or two, from a
/// column on, written to the sums' vectors from `at` on. Registers hold sixteen numbers, or eight. A function of its own: whatever
/// the rule, it is the same.
struct SumInputs<'a, T, const SIXTEEN: bool> {
    /// The rows, the first input.
    x: (RowList<'a, T>, usize),
    /// Numbers, vectors of a row, the first vector.
    u: (&'a [T], usize, usize),
    sums: &'a mut [[Lanes<T>; COLUMNS]],
    at: usize,
    two: bool,
}

impl<T: Scalar, const SIXTEEN: bool> Job for SumInputs<'_, T, SIXTEEN> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let SumInputs { x, u, sums, at, two } = self;
        macro_rules! of {
            ($($n:literal)+) => {
                match (sums.len(), SIXTEEN, two) {
                    $(
                        ($n, true, true) => sum_tile::<T, A, A::Sixteen<T>, $n, 2>(x, u, sums, at),
                        ($n, true, false) => sum_tile::<T, A, A::Sixteen<T>, $n, 1>(x, u, sums, at),
                        ($n, false, _) => sum_tile::<T, A, Vectors<A, T, 1>, $n, 1>(x, u, sums, at),
                    )+
                    _ => unreachable!("one to twelve inputs"),
                }
            };
        }
        of!(1 2 3 4 5 6 7 8 9 10 11 12);
    }
}

/// As [`SumInputs`], of R inputs by N registers.
#[inline(always)]
fn sum_tile<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const R: usize, const N: usize>(
    (x, j): (RowList<'_, T>, usize),
    (u, columns, col): (&[T], usize, usize),
    out: &mut [[Lanes<T>; COLUMNS]],
    at: usize,
) {
    let (col, width) = (col + at, N * W::VECTORS);
    let mut sums = [[W::splat(T::ZERO); N]; R];
    // bounds are checked here and not for every row
    assert!(col + width <= columns && j + R <= x.len());
    for (u, x) in lanes(u).chunks_exact(columns).zip(x.iter()) {
        let (u, x) = (&u[col..col + width], &x[j..j + R]);
        let mut own = [W::splat(T::ZERO); N];
        for c in 0..N {
            own[c] = W::load_from(&u[c * W::VECTORS..]);
        }
        for r in 0..R {
            let v = W::splat(x[r]);
            for c in 0..N {
                sums[r][c] = v.madd(own[c], sums[r][c]);
            }
        }
    }
    for r in 0..R {
        for c in 0..N {
            sums[r][c].store_to(&mut out[r][at + c * W::VECTORS..]);
        }
    }
}

/// As [`SumInputs`], for seventeen to [`NARROW`] outputs in three vectors: sixteen of them as there; the others of four inputs
/// at a time in one register, so that none of its lanes is empty.
struct SumNarrow<'a, T> {
    x: (RowList<'a, T>, usize),
    u: &'a [T],
    sums: &'a mut [[Lanes<T>; COLUMNS]],
}

impl<T: Scalar> Job for SumNarrow<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let SumNarrow { x, u, sums } = self;
        macro_rules! of {
            ($($fours:literal: $($n:literal)+;)+) => {
                match sums.len() {
                    $($($n => sum_narrow::<T, A, A::Sixteen<T>, $n, $fours>(x, u, sums),)+)+
                    _ => unreachable!("one to twenty inputs"),
                }
            };
        }
        of!(1: 1 2 3 4; 2: 5 6 7 8; 3: 9 10 11 12; 4: 13 14 15 16; 5: 17 18 19 20;);
    }
}

/// As [`SumNarrow`], of R inputs, which are that many fours.
#[inline(always)]
fn sum_narrow<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const R: usize, const FOURS: usize>(
    (x, j): (RowList<'_, T>, usize),
    u: &[T],
    out: &mut [[Lanes<T>; COLUMNS]],
) {
    let (mut sums, mut fours) = ([W::splat(T::ZERO); R], [W::splat(T::ZERO); FOURS]);
    // bounds are checked here and not for every row; after the last input there may be other numbers
    assert!(j + 4 * FOURS <= x.len());
    for (u, x) in lanes(u).as_chunks::<3>().0.iter().zip(x.iter()) {
        let x = &x[j..j + 4 * FOURS];
        let (own, last) = (W::load_from(&u[..2]), W::four_times(u[2].first_chunk().expect("four of eight")));
        for r in 0..R {
            sums[r] = W::splat(x[r]).madd(own, sums[r]);
        }
        let x = x.as_chunks::<4>().0;
        for q in 0..FOURS {
            fours[q] = W::each_four_times(&x[q]).madd(last, fours[q]);
        }
    }
    for r in 0..R {
        sums[r].store_to(&mut out[r][..2]);
    }
    for q in 0..FOURS {
        let mut tile = Tile::ZERO;
        fours[q].store(&mut tile);
        for (out, four) in out[4 * q..].iter_mut().zip(tile.numbers().as_chunks::<4>().0) {
            out[2] = [four[0], four[1], four[2], four[3], T::ZERO, T::ZERO, T::ZERO, T::ZERO];
        }
    }
}

/// As [`SumNarrow`], for four inputs, with registers of eight numbers: sixteen outputs in two of them, the others of two inputs at a
/// time in one.
struct SumFour<'a, T> {
    x: (RowList<'a, T>, usize),
    u: &'a [T],
    sums: &'a mut [[Lanes<T>; COLUMNS]; 4],
}

impl<T: Scalar> Job for SumFour<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let SumFour { x: (x, j), u, sums: out } = self;
        let (mut sums, mut halves) = ([[A::zero::<T>(); 2]; 4], [A::zero::<T>(); 2]);
        // bounds are checked here and not for every row; after the last input there may be other numbers
        assert!(j + 4 <= x.len());
        for (u, x) in lanes(u).as_chunks::<3>().0.iter().zip(x.iter()) {
            let (x, own) = (&x[j..j + 4], [A::load(&u[0]), A::load(&u[1])]);
            let last = A::load(&u[2]);
            let last = A::join_halves(last, last);
            for pair in 0..2 {
                let x = [A::splat(x[2 * pair]), A::splat(x[2 * pair + 1])];
                for k in 0..2 {
                    for c in 0..2 {
                        sums[2 * pair + k][c] = A::madd(x[k], own[c], sums[2 * pair + k][c]);
                    }
                }
                halves[pair] = A::madd(A::either_half(x[0], x[1]), last, halves[pair]);
            }
        }
        let [a, b, c, d] = out;
        for (out, sums) in [(&mut *a, sums[0]), (&mut *b, sums[1]), (&mut *c, sums[2]), (&mut *d, sums[3])] {
            A::store(sums[0], &mut out[0]);
            A::store(sums[1], &mut out[1]);
        }
        A::store_halves(halves[0], &mut a[2], &mut b[2]);
        A::store_halves(halves[1], &mut c[2], &mut d[2]);
    }
}

/// Moves the weights of some inputs by their gradients, `n` vectors each, from the vector `at` on: of three inputs two share
/// divisions, as in [`outer_tile`].
#[inline(always)]
fn move_inputs<T: Scalar, A: Arch, M: Rule<T, A>>(
    rule: &mut M,
    sums: &[[Lanes<T>; COLUMNS]],
    n: usize,
    at: usize,
    columns: usize,
) {
    for (i, three) in sums.chunks(3).enumerate() {
        let at = at + 3 * i * columns;
        if let [a, b, ..] = three {
            over_columns!(n, col, C in [3 2 1], {
                let at = at + col;
                rule.two_steps([at, at + columns], [vectors::<T, A, C>(a, col), vectors::<T, A, C>(b, col)]);
            });
        }
        if let [single] | [_, _, single] = three {
            let at = at + (three.len() - 1) * columns;
            over_columns!(n, col, C in [3 2 1], rule.steps(at + col, vectors::<T, A, C>(single, col)));
        }
    }
}

#[inline(always)]
fn vectors<T: Scalar, A: Arch, const C: usize>(from: &[Lanes<T>; COLUMNS], at: usize) -> [A::V<T>; C] {
    let (from, mut out) = (&from[at..at + C], [A::zero::<T>(); C]);
    for c in 0..C {
        out[c] = A::load(&from[c]);
    }
    out
}

/// Moves the weights to C vectors of outputs, from column `col` of `columns` on, by the gradient x (e·u)ᵀ of one row;
/// `grows` grows by s·x² (u²)ᵀ if `GROW`.
#[inline(always)]
fn outer_row<T: Scalar, A: Arch, M: Rule<T, A>, const C: usize, const GROW: bool>(
    rule: &mut M,
    x: impl Iterator<Item = T>,
    u: [A::V<T>; C],
    e: A::V<T>,
    (columns, col): (usize, usize),
    grows: &mut [Lanes<T>],
    s: A::V<T>,
) {
    let [scaled, square] = factors::<T, A, C>(u, e, s);
    // two inputs at a time, which can share divisions
    let (mut x, mut at) = (x, col);
    while let Some(first) = x.next() {
        let grad = weigh_row::<T, A, C, GROW>(first, scaled, square, C, at, grows);
        if let Some(second) = x.next() {
            let next = weigh_row::<T, A, C, GROW>(second, scaled, square, C, at + columns, grows);
            rule.two_steps([at, at + columns], [grad, next]);
        } else {
            rule.steps(at, grad);
        }
        at += 2 * columns;
    }
}

/// e·u and s·u².
#[inline(always)]
fn factors<T: Scalar, A: Arch, const C: usize>(u: [A::V<T>; C], e: A::V<T>, s: A::V<T>) -> [[A::V<T>; C]; 2] {
    let (mut scaled, mut square) = (u, u);
    for c in 0..C {
        scaled[c] = A::mul(e, u[c]);
        square[c] = A::mul(s, A::mul(u[c], u[c]));
    }
    [scaled, square]
}

/// As [`outer_row`], for all outputs. If the upper half of the last vector is padding (`short`), the lower halves of two
/// inputs move as one vector: what is padding takes no time.
#[inline(always)]
fn outer_inputs<T: Scalar, A: Arch, M: Rule<T, A>, const C: usize, const GROW: bool>(
    rule: &mut M,
    x: &[f32],
    u: [A::V<T>; C],
    short: bool,
    e: A::V<T>,
    grows: &mut [Lanes<T>],
    s: A::V<T>,
) {
    let (pairs, _) = x.as_chunks::<2>();
    let pairs = if short { pairs } else { &[] };
    let [scaled, square] = factors::<T, A, C>(u, e, s);
    let last = C - 1;
    let half = [A::join_halves(scaled[last], scaled[last]), A::join_halves(square[last], square[last])];
    let mut at = 0;
    for x in pairs {
        let (first, second, next) = (T::of_f32(x[0]), T::of_f32(x[1]), at + C);
        let grad = weigh_row::<T, A, C, GROW>(first, scaled, square, last, at, grows);
        let next_grad = weigh_row::<T, A, C, GROW>(second, scaled, square, last, next, grows);
        for c in 0..last {
            rule.two_steps([at + c, next + c], [[grad[c]], [next_grad[c]]]);
        }
        let (x, ends) = (A::join_halves(A::splat(first), A::splat(second)), [at + last, next + last]);
        if GROW {
            let grown = A::madd(A::mul(x, x), half[1], halves_of::<T, A>(grows, ends));
            store_halves::<T, A>(grown, grows, ends);
        }
        rule.two_halves(ends, A::mul(x, half[0]));
        at += 2 * C;
    }
    let x = x[2 * pairs.len()..].iter().map(|&x| T::of_f32(x));
    outer_row::<T, A, M, C, GROW>(rule, x, u, e, (C, at), grows, s);
}

/// x·u of the first `n` vectors; `grows`, from `at` on, grows by x²·square if `GROW`.
#[inline(always)]
fn weigh_row<T: Scalar, A: Arch, const C: usize, const GROW: bool>(
    x: T,
    mut u: [A::V<T>; C],
    square: [A::V<T>; C],
    n: usize,
    at: usize,
    grows: &mut [Lanes<T>],
) -> [A::V<T>; C] {
    if GROW {
        let (grows, x) = (&mut grows[at..at + n], A::splat(x * x));
        for c in 0..n {
            A::store(A::madd(x, square[c], A::load(&grows[c])), &mut grows[c]);
        }
    }
    let x = A::splat(x);
    for c in 0..n {
        u[c] = A::mul(x, u[c]);
    }
    u
}

/// e·u; `grows`, unless empty, grows by s·u² from `at` on.
#[inline(always)]
fn grow_row<T: Scalar, A: Arch, const C: usize>(
    mut u: [A::V<T>; C],
    e: A::V<T>,
    grows: &mut [Lanes<T>],
    s: A::V<T>,
    at: usize,
) -> [A::V<T>; C] {
    if let Some(grows) = grows.get_mut(at..at + C) {
        for c in 0..C {
            A::store(A::madd(s, A::mul(u[c], u[c]), A::load(&grows[c])), &mut grows[c]);
        }
    }
    for c in 0..C {
        u[c] = A::mul(e, u[c]);
    }
    u
}

/// Sums R inputs (from input `j`) by C vectors of outputs of the gradient, and moves their weights.
#[inline(always)]
fn outer_tile<T: Scalar, A: Arch, M: Rule<T, A>, const R: usize, const C: usize>(
    rule: &mut M,
    x: RowList<'_, T>,
    j: usize,
    u: &[T],
    ld: usize,
    col: usize,
) {
    let columns = ld / LANES;
    let mut sums = [[A::zero::<T>(); C]; R];
    // bounds are checked here and not for every row
    assert!(col + C <= columns && j + R <= x.len());
    for (u, x) in lanes(u).chunks_exact(columns).zip(x.iter()) {
        let (u, x) = (&u[col..col + C], &x[j..j + R]);
        let mut uk = [A::zero::<T>(); C];
        for c in 0..C {
            uk[c] = A::load(&u[c]);
        }
        for r in 0..R {
            let v = A::splat(x[r]);
            for c in 0..C {
                sums[r][c] = A::madd(v, uk[c], sums[r][c]);
            }
        }
    }
    let mut r = 0;
    while r + 1 < R {
        let at = (j + r) * columns + col;
        rule.two_steps([at, at + columns], [sums[r], sums[r + 1]]);
        r += 2;
    }
    if r < R {
        rule.steps((j + r) * columns + col, sums[r]);
    }
}

/// What moves the weights: given the gradients of the vectors of weights from a place on.
trait Rule<T: Scalar, A: Arch> {
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]);

    /// As [`Rule::steps`], from two places on.
    #[inline(always)]
    fn two_steps<const C: usize>(&mut self, at: [usize; 2], grad: [[A::V<T>; C]; 2]) {
        self.steps(at[0], grad[0]);
        self.steps(at[1], grad[1]);
    }

    /// Moves the lower halves of two vectors, the lower place first; their gradients lie side by side.
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>);
}

/// The lower halves of two vectors of a list.
#[inline(always)]
fn halves_of<T: Scalar, A: Arch>(list: &[Lanes<T>], at: [usize; 2]) -> A::V<T> {
    A::join_halves(A::load(&list[at[0]]), A::load(&list[at[1]]))
}

/// Writes over the lower halves of two vectors of a list, the lower place first.
#[inline(always)]
fn store_halves<T: Scalar, A: Arch>(v: A::V<T>, list: &mut [Lanes<T>], at: [usize; 2]) {
    let (low, high) = list.split_at_mut(at[1]);
    A::store_halves(v, &mut low[at[0]], &mut high[0]);
}

struct Sgd<'a, T: Scalar, A: Arch> {
    w: &'a mut [Lanes<T>],
    initial: &'a [Lanes<T>],
    eta: A::V<T>,
    pull: A::V<T>,
}

impl<T: Scalar, A: Arch> Rule<T, A> for Sgd<'_, T, A> {
    #[inline(always)]
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) {
        let (w, initial) = (&mut self.w[at..at + C], &self.initial[at..at + C]);
        for c in 0..C {
            let weight = A::load(&w[c]);
            let g = A::madd(self.pull, A::sub(weight, A::load(&initial[c])), grad[c]);
            A::store(A::sub(weight, A::mul(self.eta, g)), &mut w[c]);
        }
    }

    #[inline(always)]
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>) {
        let weight = halves_of::<T, A>(self.w, at);
        let g = A::madd(self.pull, A::sub(weight, halves_of::<T, A>(self.initial, at)), grad);
        store_halves::<T, A>(A::sub(weight, A::mul(self.eta, g)), self.w, at);
    }
}

/// Adam with the penalty towards 0.
struct Adam<'a, T: Scalar, A: Arch> {
    w: &'a mut [Lanes<T>],
    first: &'a mut [Lanes<T>],
    second: &'a mut [Lanes<T>],
    step: A::V<T>,
    eps: A::V<T>,
    l2: A::V<T>,
}

impl<'a, T: Scalar, A: Arch> Adam<'a, T, A> {
    #[inline(always)]
    fn new(w: &'a mut [T], moments: (&'a mut [T], &'a mut [T]), step: T, eps: T, l2: T) -> Self {
        let w = lanes_mut(w);
        let n = w.len();
        let (first, second) = (&mut lanes_mut(moments.0)[..n], &mut lanes_mut(moments.1)[..n]);
        Adam { w, first, second, step: A::splat(step), eps: A::splat(eps), l2: A::splat(l2) }
    }

    /// Moves the moments from a place on by the whole gradient: `grad`, and the penalty's l2·(W − C). Returns Σg and
    /// √Σg² + eps.
    #[inline(always)]
    fn moments<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C], towards: [A::V<T>; C]) -> [[A::V<T>; C]; 2] {
        let (b1, b2) = (A::splat(T::of(BETA1)), A::splat(T::of(BETA2)));
        let w = &self.w[at..at + C];
        let (first, second) = (&mut self.first[at..at + C], &mut self.second[at..at + C]);
        let (mut mu, mut root) = (grad, grad);
        for c in 0..C {
            let g = A::madd(self.l2, A::sub(A::load(&w[c]), towards[c]), grad[c]);
            mu[c] = A::madd(b1, A::load(&first[c]), g);
            let nu = A::madd(g, g, A::mul(b2, A::load(&second[c])));
            A::store(mu[c], &mut first[c]);
            A::store(nu, &mut second[c]);
            root[c] = A::add(A::sqrt(nu), self.eps);
        }
        [mu, root]
    }

    /// As `moments` and `move_one`, for the lower halves of two vectors.
    #[inline(always)]
    fn move_halves(&mut self, at: [usize; 2], grad: A::V<T>, towards: A::V<T>) {
        let weight = halves_of::<T, A>(self.w, at);
        let g = A::madd(self.l2, A::sub(weight, towards), grad);
        let mu = A::madd(A::splat(T::of(BETA1)), halves_of::<T, A>(self.first, at), g);
        let nu = A::madd(g, g, A::mul(A::splat(T::of(BETA2)), halves_of::<T, A>(self.second, at)));
        let moved = A::sub(weight, A::div(A::mul(self.step, mu), A::add(A::sqrt(nu), self.eps)));
        store_halves::<T, A>(mu, self.first, at);
        store_halves::<T, A>(nu, self.second, at);
        store_halves::<T, A>(moved, self.w, at);
    }

    /// Moves the weights from a place on.
    #[inline(always)]
    fn move_one<const C: usize>(&mut self, at: usize, [mu, root]: [[A::V<T>; C]; 2]) {
        let w = &mut self.w[at..at + C];
        let mut c = 0;
        while c + 1 < C {
            let own = [A::load(&w[c]), A::load(&w[c + 1])];
            let moved = share_division::<T, A>(self.step, own, [mu[c], mu[c + 1]], [root[c], root[c + 1]]);
            A::store(moved[0], &mut w[c]);
            A::store(moved[1], &mut w[c + 1]);
            c += 2;
        }
        if c < C {
            A::store(A::sub(A::load(&w[c]), A::div(A::mul(self.step, mu[c]), root[c])), &mut w[c]);
        }
    }

    /// Moves the weights from two places on, the lower one first.
    #[inline(always)]
    fn move_two<const C: usize>(&mut self, at: [usize; 2], a: [[A::V<T>; C]; 2], b: [[A::V<T>; C]; 2]) {
        let (low, high) = self.w.split_at_mut(at[1]);
        let (low, high) = (&mut low[at[0]..at[0] + C], &mut high[..C]);
        for c in 0..C {
            let own = [A::load(&low[c]), A::load(&high[c])];
            let moved = share_division::<T, A>(self.step, own, [a[0][c], b[0][c]], [a[1][c], b[1][c]]);
            A::store(moved[0], &mut low[c]);
            A::store(moved[1], &mut high[c]);
        }
    }
}

/// Two weights less step·μ/a and step·μ′/b, which are step·μ·b/(a·b) and step·μ′·a/(a·b): a division takes longer than all
/// that replaces it. a and b lie between 1e-8 and the root of the largest number, so that a·b is in range.
#[inline(always)]
fn share_division<T: Scalar, A: Arch>(
    step: A::V<T>,
    w: [A::V<T>; 2],
    mu: [A::V<T>; 2],
    root: [A::V<T>; 2],
) -> [A::V<T>; 2] {
    let both = A::div(step, A::mul(root[0], root[1]));
    [A::nmadd(mu[0], A::mul(both, root[1]), w[0]), A::nmadd(mu[1], A::mul(both, root[0]), w[1])]
}

impl<T: Scalar, A: Arch> Rule<T, A> for Adam<'_, T, A> {
    #[inline(always)]
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) {
        let moments = self.moments(at, grad, [A::zero(); C]);
        self.move_one(at, moments);
    }

    #[inline(always)]
    fn two_steps<const C: usize>(&mut self, at: [usize; 2], grad: [[A::V<T>; C]; 2]) {
        let a = self.moments(at[0], grad[0], [A::zero(); C]);
        let b = self.moments(at[1], grad[1], [A::zero(); C]);
        self.move_two(at, a, b);
    }

    #[inline(always)]
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>) {
        self.move_halves(at, grad, A::zero());
    }
}

/// Adam with the penalty towards W⁽⁰⁾.
struct AdamTowards<'a, T: Scalar, A: Arch> {
    adam: Adam<'a, T, A>,
    initial: &'a [Lanes<T>],
}

impl<T: Scalar, A: Arch> AdamTowards<'_, T, A> {
    #[inline(always)]
    fn moments<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) -> [[A::V<T>; C]; 2] {
        let initial = &self.initial[at..at + C];
        let mut towards = [A::zero(); C];
        for c in 0..C {
            towards[c] = A::load(&initial[c]);
        }
        self.adam.moments(at, grad, towards)
    }
}

impl<T: Scalar, A: Arch> Rule<T, A> for AdamTowards<'_, T, A> {
    #[inline(always)]
    fn steps<const C: usize>(&mut self, at: usize, grad: [A::V<T>; C]) {
        let moments = self.moments(at, grad);
        self.adam.move_one(at, moments);
    }

    #[inline(always)]
    fn two_steps<const C: usize>(&mut self, at: [usize; 2], grad: [[A::V<T>; C]; 2]) {
        let (a, b) = (self.moments(at[0], grad[0]), self.moments(at[1], grad[1]));
        self.adam.move_two(at, a, b);
    }

    #[inline(always)]
    fn two_halves(&mut self, at: [usize; 2], grad: A::V<T>) {
        let towards = halves_of::<T, A>(self.initial, at);
        self.adam.move_halves(at, grad, towards);
    }
}
