//! The gradient of a weight matrix, Σ_r x_r u_rᵀ over the rows of a batch, a few inputs at a time: as many sums as there are
//! registers for.

use crate::linalg::scalar::Scalar;
use crate::linalg::simd::memory::Numbers;
use crate::linalg::simd::{Arch, Job, LANES, Lanes, RowList, Rows, Vectors, lanes, many_registers};

/// Inputs that are summed before their weights move, in the order in which these lie, where there are many registers.
pub(super) const INPUTS: usize = 12;

/// Outputs that are a register of sixteen and a quarter of one, and as many inputs at most: the sums of such a matrix take
/// twenty-five registers.
pub(super) const NARROW: usize = 20;

/// Room for sums of a gradient.
#[derive(Debug, Clone)]
pub(crate) struct Sums<T> {
    /// Those of [`INPUTS`] inputs, as their weights lie.
    pub(super) inputs: Numbers<T>,
    /// Those of a matrix with few outputs.
    pub(super) fours: Box<[Four<T>; NARROW / 4]>,
}

impl<T: Scalar> Sums<T> {
    /// For matrices with so many outputs, or padding of such.
    pub(crate) fn new(ld: usize) -> Self {
        Sums { inputs: Numbers::zeros(INPUTS * ld), fours: Box::new([Four::ZERO; NARROW / 4]) }
    }
}

/// Sums of four inputs by seventeen to [`NARROW`] outputs: sixteen of each input, then the others of all four side by side.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Four<T> {
    pub(super) sixteen: [[Lanes<T>; 2]; 4],
    pub(super) others: [Lanes<T>; 2],
}

impl<T: Scalar> Four<T> {
    const ZERO: Four<T> = Four { sixteen: [[[T::ZERO; LANES]; 2]; 4], others: [[T::ZERO; LANES]; 2] };
}

/// Sums of x u over the rows, for `n` inputs from an input on, up to [`INPUTS`], with registers for twenty-four sums. A function of its own: whatever the rule, it is the same.
pub(super) struct SumInputs<'a, T> {
    /// The rows, the first input.
    pub(super) x: (RowList<'a, T>, usize),
    pub(super) n: usize,
    pub(super) u: &'a [T],
    /// Vectors of a row of u.
    pub(super) columns: usize,
    pub(super) sums: &'a mut [Lanes<T>],
}

impl<T: Scalar> Job for SumInputs<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(mut self) {
        let done = self.inputs::<A, INPUTS>(0);
        let done = self.inputs::<A, 4>(done);
        self.inputs::<A, 1>(done);
    }
}

impl<T: Scalar> SumInputs<'_, T> {
    /// The inputs after those that are done, R at a time, as long as there are so many. Returns how many are done then.
    #[inline(always)]
    fn inputs<A: Arch, const R: usize>(&mut self, mut done: usize) -> usize {
        let wide = A::Widest::<T>::VECTORS;
        while done + R <= self.n {
            let mut col = 0;
            while col + 2 * wide <= self.columns {
                self.tile::<A, A::Widest<T>, R, 2>(done, col);
                col += 2 * wide;
            }
            while col + wide <= self.columns {
                self.tile::<A, A::Widest<T>, R, 1>(done, col);
                col += wide;
            }
            while col < self.columns {
                self.tile::<A, Vectors<A, T, 1>, R, 1>(done, col);
                col += 1;
            }
            done += R;
        }
        done
    }

    /// R inputs by N registers of outputs.
    #[inline(always)]
    fn tile<A: Arch, W: Rows<T, A::V<T>>, const R: usize, const N: usize>(&mut self, done: usize, col: usize) {
        let ((x, first), columns, width) = (self.x, self.columns, N * W::VECTORS);
        let j = first + done;
        let mut sums = [[W::splat(T::ZERO); N]; R];
        // bounds are checked here and not for every row
        assert!(col + width <= columns && j + R <= x.len());
        for (u, x) in lanes(self.u).chunks_exact(columns).zip(x.iter()) {
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
        let out = &mut self.sums[done * columns..(done + R) * columns];
        for (r, out) in out.chunks_exact_mut(columns).enumerate() {
            for c in 0..N {
                sums[r][c].store_to(&mut out[col + c * W::VECTORS..]);
            }
        }
    }
}

/// As [`SumInputs`], of seventeen to [`NARROW`] outputs in three vectors, and as many inputs as the fours hold: sixteen outputs of an
/// input in a register, the others of four inputs in one, so that none of its lanes is empty.
pub(super) struct SumNarrow<'a, T> {
    pub(super) x: (RowList<'a, T>, usize),
    pub(super) u: &'a [T],
    pub(super) fours: &'a mut [Four<T>],
}

impl<T: Scalar> Job for SumNarrow<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let SumNarrow { x, u, fours } = self;
        if const { !many_registers::<T, A>() } {
            for (q, four) in fours.iter_mut().enumerate() {
                *four = sum_four::<T, A>((x.0, x.1 + 4 * q), u);
            }
            return;
        }
        match fours.len() {
            1 => sum_narrow::<T, A, A::Sixteen<T>, 1>(x, u, fours),
            2 => sum_narrow::<T, A, A::Sixteen<T>, 2>(x, u, fours),
            3 => sum_narrow::<T, A, A::Sixteen<T>, 3>(x, u, fours),
            4 => sum_narrow::<T, A, A::Sixteen<T>, 4>(x, u, fours),
            _ => sum_narrow::<T, A, A::Sixteen<T>, 5>(x, u, fours),
        }
    }
}

/// As [`SumNarrow`], of that many fours.
#[inline(always)]
fn sum_narrow<T: Scalar, A: Arch, W: Rows<T, A::V<T>>, const FOURS: usize>(
    (x, j): (RowList<'_, T>, usize),
    u: &[T],
    out: &mut [Four<T>],
) {
    let (mut sums, mut others) = ([[W::splat(T::ZERO); 4]; FOURS], [W::splat(T::ZERO); FOURS]);
    // bounds are checked here and not for every row; after the last input there may be other numbers
    assert!(j + 4 * FOURS <= x.len());
    for (u, x) in lanes(u).as_chunks::<3>().0.iter().zip(x.iter()) {
        let x = x[j..j + 4 * FOURS].as_chunks::<4>().0;
        let (own, last) = (W::load_from(&u[..2]), W::four_times(u[2].first_chunk().expect("four of eight")));
        for q in 0..FOURS {
            for k in 0..4 {
                sums[q][k] = W::splat(x[q][k]).madd(own, sums[q][k]);
            }
            others[q] = W::each_four_times(&x[q]).madd(last, others[q]);
        }
    }
    for q in 0..FOURS {
        for k in 0..4 {
            sums[q][k].store_to(&mut out[q].sixteen[k]);
        }
        others[q].store_to(&mut out[q].others);
    }
}

/// As [`SumNarrow`], for four inputs from `j` on, with registers of eight numbers: sixteen outputs in two of them, the others of two
/// inputs at a time in one.
#[inline(always)]
fn sum_four<T: Scalar, A: Arch>((x, j): (RowList<'_, T>, usize), u: &[T]) -> Four<T> {
    let (mut sums, mut others) = ([[A::zero::<T>(); 2]; 4], [A::zero::<T>(); 2]);
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
            others[pair] = A::madd(A::either_half(x[0], x[1]), last, others[pair]);
        }
    }
    let mut out = Four::ZERO;
    for k in 0..4 {
        A::store(sums[k][0], &mut out.sixteen[k][0]);
        A::store(sums[k][1], &mut out.sixteen[k][1]);
    }
    A::store(others[0], &mut out.others[0]);
    A::store(others[1], &mut out.others[1]);
    out
}
