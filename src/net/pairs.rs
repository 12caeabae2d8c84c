//! The gradient of a batch for networks like the paper's (one block, one hidden layer with layer norm, seventeen to twenty units,
//! no biases), in f32: rows pass two by two, with their units in lanes. Sixteen units of a row fill two vectors, and the
//! others of two rows share one, so that no lane is empty; neither inputs nor δz have to be turned.
//!
//! What would be a sum over the units of each row is moved to where there is one for the whole batch. The mean of
//! z = W_1 x is that of W_1 over its outputs, times x: with W̃ = W_1 less that mean, once a step, z̃ = W̃ x is centred already.
//! On the way back Σ_r x_r mean(δz_r) is the mean of the gradient Σ_r x_r δz_rᵀ over its outputs, and taken from there
//! ([`centre_sums`]). Of the units with y > 0 alone, with inv = 1/√(var + ε), x̂ = inv·z̃ and y = gain·x̂ + offset,
//!
//! ```text
//! q = Σ_i s·W_L,i·gain_i·x̂_i        f = q + Σ_i s·W_L,i·offset_i        e = (f − reward)/B
//! δz_i = inv·e·(s·W_L,i·gain_i [y_i > 0] − x̂_i·q/m)                    less its mean
//! B_i = Σ_r e [y_i > 0]    C_i = Σ_r e [y_i > 0]·x̂_i
//! ∂offset = s·W_L·B        ∂gain = s·W_L·C        ∂W_L = s·(gain·C + offset·B)
//! ```

use super::sums::{Four, NARROW};
use super::tangent::LAYER_NORM_EPS;
use super::{Net, Params};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::memory::{Ahead, Numbers};
use crate::linalg::simd::{Arch, HALF, Job, LANES, Lanes, RowList, Rows, Vectors, lanes, lanes_mut, many_registers};

/// Pairs of eight rows.
const PAIRS: usize = LANES / 2;

/// Vectors of a row: sixteen units in two, the others in half of the third.
const COLUMNS: usize = 3;

/// A row's units, or an input's outputs: sixteen, and the others.
type Row<T> = [Lanes<T>; COLUMNS];

impl Net {
    /// Whether a batch of numbers of type T passes in pairs.
    pub(super) fn is_in_pairs<T>(&self) -> bool {
        size_of::<T>() == 4 && self.is_narrow() && self.is_shallow() && self.is_in_lanes()
    }

    /// Whether the units of a row are sixteen and up to four others.
    pub(super) fn is_narrow(&self) -> bool {
        self.ld == COLUMNS * LANES && self.config.width <= NARROW
    }
}

/// Two rows. The others of both lie side by side in the first until δz is known.
type Pair<T> = [Row<T>; 2];

/// The lane of the i-th of eight rows, or inputs, two of which are a pair, among the numbers that each has one of.
#[inline(always)]
const fn lane(i: usize) -> usize {
    i / 2 + i % 2 * HALF
}

/// Numbers of which each of eight rows has one.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct Eight<T> {
    /// Of each pair, folded: z̃², then the parts of q; the parts of f − q.
    parts: [[Lanes<T>; PAIRS]; 2],
    rewards: Lanes<T>,
    /// Weights in the loss; 0 where there is no row.
    shares: Lanes<T>,
    inv_std: Lanes<T>,
    e: Lanes<T>,
    /// e·inv, and that times −q/m.
    scaled_e: Lanes<T>,
    minus_q: Lanes<T>,
}

/// The rows of a batch that pass in pairs, and what their pass leaves.
#[derive(Debug, Clone)]
pub(super) struct Pairs<T> {
    eights: Vec<Eight<T>>,
    /// W̃: of each input sixteen outputs, then the others twice.
    centred: Numbers<T>,
}

impl<T: Scalar> Pairs<T> {
    /// Room for `rows` rows.
    pub(super) fn new(net: &Net, rows: usize) -> Self {
        let none = [T::ZERO; LANES];
        let eight = |first: usize| {
            let mut shares = none;
            (0..LANES.min(rows - first)).for_each(|row| shares[lane(row)] = T::of(1.0 / rows as f64));
            Eight {
                parts: [[none; PAIRS]; 2],
                rewards: none,
                shares,
                inv_std: none,
                e: none,
                scaled_e: none,
                minus_q: none,
            }
        };
        Pairs {
            eights: (0..rows).step_by(LANES).map(eight).collect(),
            centred: Numbers::zeros(net.n_in * COLUMNS * LANES),
        }
    }

    /// Sets the rewards of the rows.
    #[inline(always)]
    pub(super) fn set_rewards(&mut self, mut rewards: impl Iterator<Item = f64>) {
        for eight in &mut self.eights {
            for (row, reward) in (0..LANES).zip(&mut rewards) {
                eight.rewards[lane(row)] = T::of(reward);
            }
        }
    }

    /// How often [`Net::pairs_gradient`] asks for a portion of the rows that come next.
    pub(super) fn pauses(&self) -> usize {
        3 * self.eights.len()
    }
}

impl Net {
    /// e·δz of each row, not yet centred, into `delta_z`, which has room for whole pairs, and the gradient of all parameters but W_1 into `grad`.
    #[inline(always)]
    pub(super) fn pairs_gradient<T: Scalar, A: Arch>(
        &self,
        weights: &Params<T>,
        inputs: RowList<'_, T>,
        pairs: &mut Pairs<T>,
        (delta_z, grad): (&mut [T], &mut [T]),
        ahead: &mut Ahead<'_>,
    ) {
        let (eights, centred) = (&mut pairs.eights, lanes_mut(&mut pairs.centred).as_chunks_mut().0);
        let pairs = lanes_mut(delta_z).as_chunks_mut().0.as_chunks_mut().0;
        A::call(Centre { net: self, weights: &weights.first, centred });
        A::call(Project { centred, inputs, pairs, eights, ahead });
        A::call(Forth { net: self, rest: &weights.rest, pairs, eights, ahead });
        A::call(Back { net: self, rest: &weights.rest, pairs, eights, grad, ahead });
    }

    /// One for each of the units after the sixteenth, in both halves, and zero in their padding.
    #[inline(always)]
    fn real_others<T: Scalar, A: Arch>(&self) -> A::V<T> {
        let padding = COLUMNS * LANES - self.config.width;
        let real = A::load(&lanes(&T::ONES_AND_ZEROS[padding..padding + LANES])[0]);
        A::join_halves(real, real)
    }
}

/// Four numbers in each half, whose sum is that over a row's units: of two rows, whose sixteen are folded to eight.
#[inline(always)]
fn fold<T: Scalar, A: Arch>([a, b]: [A::V<T>; 2], others: A::V<T>) -> A::V<T> {
    A::add(A::add(A::join_halves(a, b), A::join_uppers(a, b)), others)
}

/// The sums over the units of eight rows, given what [`fold`] leaves of each pair.
#[inline(always)]
fn sum_parts<T: Scalar, A: Arch>([a, b, c, d]: &[Lanes<T>; PAIRS]) -> A::V<T> {
    A::sum_fours([A::load(a), A::load(b), A::load(c), A::load(d)])
}

/// The sixteen of both rows of a pair, and the others: numbers of each row's own.
#[inline(always)]
fn by_row<T: Scalar, A: Arch>(own: &Lanes<T>, pair: usize) -> ([A::Sixteen<T>; 2], A::V<T>) {
    let [a, b] = [own[pair], own[pair + HALF]];
    ([A::Sixteen::splat(a), A::Sixteen::splat(b)], A::either_half(A::splat(a), A::splat(b)))
}

/// Means over the outputs of up to eight inputs, given what [`fold`] leaves of each two.
#[inline(always)]
fn means<T: Scalar, A: Arch>(net: &Net, folded: [A::V<T>; PAIRS]) -> Lanes<T> {
    let mut means = [T::ZERO; LANES];
    A::store(A::mul(A::sum_fours(folded), A::splat(T::of(net.inv_width))), &mut means);
    means
}

/// W̃ of all inputs.
struct Centre<'a, T> {
    net: &'a Net,
    weights: &'a [T],
    centred: &'a mut [Row<T>],
}

impl<T: Scalar> Job for Centre<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Centre { net, weights, centred } = self;
        let (weights, real) = (lanes(weights).as_chunks::<COLUMNS>().0, net.real_others::<T, A>());
        for (weights, centred) in weights.chunks(LANES).zip(centred.chunks_mut(LANES)) {
            let mut folded = [A::zero::<T>(); PAIRS];
            for (folded, two) in folded.iter_mut().zip(weights.chunks(2)) {
                let (a, b) = (&two[0], &two[two.len() - 1]);
                let sixteen = [A::Sixteen::<T>::load_from(a).folded(), A::Sixteen::<T>::load_from(b).folded()];
                *folded = fold::<T, A>(sixteen, A::join_halves(A::load(&a[2]), A::load(&b[2])));
            }
            let means = means::<T, A>(net, folded);
            for (i, (from, to)) in weights.iter().zip(centred).enumerate() {
                let (mean, others) = (means[lane(i)], A::load(&from[2]));
                A::Sixteen::<T>::load_from(from).sub(A::Sixteen::splat(mean)).store_to(to);
                A::store(A::nmadd(A::splat(mean), real, A::join_halves(others, others)), &mut to[2]);
            }
        }
    }
}

/// Takes from the sums of a gradient their means over the outputs.
#[inline(always)]
pub(super) fn centre_sums<T: Scalar, A: Arch>(net: &Net, fours: &mut [Four<T>]) {
    let real = net.real_others::<T, A>();
    for two in fours.chunks_mut(2) {
        let mut folded = [A::zero::<T>(); PAIRS];
        for (folded, four) in folded.as_chunks_mut::<2>().0.iter_mut().zip(&*two) {
            for p in 0..2 {
                let (a, b) = (&four.sixteen[2 * p], &four.sixteen[2 * p + 1]);
                let sixteen = [A::Sixteen::<T>::load_from(a).folded(), A::Sixteen::<T>::load_from(b).folded()];
                folded[p] = fold::<T, A>(sixteen, A::load(&four.others[p]));
            }
        }
        let means = means::<T, A>(net, folded);
        for (f, four) in two.iter_mut().enumerate() {
            for p in 0..2 {
                let (sixteen, others) = by_row::<T, A>(&means, 2 * f + p);
                for i in 0..2 {
                    let own = &mut four.sixteen[2 * p + i];
                    A::Sixteen::<T>::load_from(own).sub(sixteen[i]).store_to(own);
                }
                A::store(A::nmadd(others, real, A::load(&four.others[p])), &mut four.others[p]);
            }
        }
    }
}

/// z̃ of all rows: a function that needs all registers for its sums.
struct Project<'a, 'b, T> {
    centred: &'a [Row<T>],
    inputs: RowList<'a, T>,
    pairs: &'a mut [Pair<T>],
    eights: &'a mut [Eight<T>],
    ahead: &'a mut Ahead<'b>,
}

impl<T: Scalar> Job for Project<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Project { centred, inputs, pairs, eights, ahead } = self;
        for (g, (pairs, eight)) in pairs.chunks_mut(PAIRS).zip(eights).enumerate() {
            ahead.ask();
            let inputs = inputs.rows(g * LANES..inputs.n().min((g + 1) * LANES));
            // as many sums as there are registers for
            if pairs.len() < PAIRS {
                for first in 0..pairs.len() {
                    project::<T, A, 1>(centred, inputs, first, pairs, eight);
                }
            } else if const { many_registers::<T, A>() } {
                project::<T, A, 4>(centred, inputs, 0, pairs, eight);
            } else {
                project::<T, A, 2>(centred, inputs, 0, pairs, eight);
                project::<T, A, 2>(centred, inputs, 2, pairs, eight);
            }
        }
    }
}

/// z̃ of K pairs of eight rows, from a pair on, and its squares, folded. A row without a second is a pair with itself.
#[inline(always)]
fn project<T: Scalar, A: Arch, const K: usize>(
    centred: &[Row<T>],
    inputs: RowList<'_, T>,
    first: usize,
    pairs: &mut [Pair<T>],
    eight: &mut Eight<T>,
) {
    let (n, last) = (centred.len(), inputs.n() - 1);
    let mut x = [[&inputs.row(0)[..n]; 2]; K];
    for k in 0..K {
        let row = 2 * (first + k);
        x[k] = [&inputs.row(row)[..n], &inputs.row((row + 1).min(last))[..n]];
    }
    let (mut sixteen, mut others) = ([[A::Sixteen::splat(T::ZERO); 2]; K], [A::zero::<T>(); K]);
    for (j, w) in centred.iter().enumerate() {
        let (own, both) = (A::Sixteen::load_from(w), A::load(&w[2]));
        for k in 0..K {
            let [a, b] = [x[k][0][j], x[k][1][j]];
            sixteen[k][0] = A::Sixteen::splat(a).madd(own, sixteen[k][0]);
            sixteen[k][1] = A::Sixteen::splat(b).madd(own, sixteen[k][1]);
            others[k] = A::madd(A::either_half(A::splat(a), A::splat(b)), both, others[k]);
        }
    }
    for k in 0..K {
        let mut folded = [A::zero::<T>(); 2];
        for i in 0..2 {
            folded[i] = sixteen[k][i].mul(sixteen[k][i]).folded();
        }
        A::store(fold::<T, A>(folded, A::mul(others[k], others[k])), &mut eight.parts[0][first + k]);
        let [a, b] = &mut pairs[first + k];
        sixteen[k][0].store_to(a);
        sixteen[k][1].store_to(b);
        A::store(others[k], &mut a[2]);
    }
}

/// One number of each unit: the sixteen, and the others twice.
struct Units<A: Arch, T: Scalar> {
    sixteen: A::Sixteen<T>,
    others: Vectors<A, T, 1>,
}

impl<A: Arch, T: Scalar> Units<A, T> {
    /// From a place of the parameters on.
    #[inline(always)]
    fn load(rest: &[T], at: usize) -> Self {
        let from: &Row<T> = lanes(&rest[at..at + COLUMNS * LANES]).try_into().expect("three vectors");
        let others = A::load(&from[2]);
        Units { sixteen: A::Sixteen::load_from(from), others: Vectors([A::join_halves(others, others)]) }
    }

    #[inline(always)]
    fn splat(v: T) -> Self {
        Units { sixteen: A::Sixteen::splat(v), others: Vectors::splat(v) }
    }

    #[inline(always)]
    fn mul(&self, b: &Self) -> Self {
        Units { sixteen: self.sixteen.mul(b.sixteen), others: self.others.mul(b.others) }
    }

    #[inline(always)]
    fn madd(&self, b: &Self, c: &Self) -> Self {
        Units { sixteen: self.sixteen.madd(b.sixteen, c.sixteen), others: self.others.madd(b.others, c.others) }
    }

    /// Stores to a place of the parameters; the others are those of the lower half.
    #[inline(always)]
    fn store(&self, rest: &mut [T], at: usize) {
        let to: &mut Row<T> = lanes_mut(&mut rest[at..at + COLUMNS * LANES]).try_into().expect("three vectors");
        self.sixteen.store_to(to);
        let mut both = [T::ZERO; LANES];
        A::store(self.others.0[0], &mut both);
        to[2][..HALF].copy_from_slice(&both[..HALF]);
    }
}

/// 1/√(var + ε), x̂ in place of z̃, and what the way back needs of each row.
struct Forth<'a, 'b, T> {
    net: &'a Net,
    rest: &'a [T],
    pairs: &'a mut [Pair<T>],
    eights: &'a mut [Eight<T>],
    ahead: &'a mut Ahead<'b>,
}

impl<T: Scalar> Job for Forth<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Forth { net, rest, pairs, eights, ahead } = self;
        let (inv_m, eps) = (A::splat(T::of(net.inv_width)), A::splat(T::of(LAYER_NORM_EPS)));
        for eight in &mut *eights {
            let variance_and_eps = A::madd(sum_parts::<T, A>(&eight.parts[0]), inv_m, eps);
            A::store(A::div(A::splat(T::ONE), A::sqrt(variance_and_eps)), &mut eight.inv_std);
        }
        let [at_gain, at_offset] = net.norm_places();
        let (gain, offset) = (Units::<A, T>::load(rest, at_gain), Units::load(rest, at_offset));
        let output = Units::load(rest, net.output).mul(&Units::splat(net.output_scale()));
        let (slope, level) = (output.mul(&gain), output.mul(&offset));
        let sixteen = [gain.sixteen, offset.sixteen, slope.sixteen, level.sixteen];
        let others = [gain.others, offset.others, slope.others, level.others];
        for (pairs, eight) in pairs.chunks_mut(PAIRS).zip(eights) {
            ahead.ask();
            for (p, [a, b]) in pairs.iter_mut().enumerate() {
                let (inv_std, both) = by_row::<T, A>(&eight.inv_std, p);
                let of_both = forth(&mut a[2..], Vectors::<A, T, 1>([both]), others);
                let of_a = forth(&mut a[..2], inv_std[0], sixteen);
                let of_b = forth(&mut b[..2], inv_std[1], sixteen);
                for i in 0..2 {
                    let part = fold::<T, A>([of_a[i].folded(), of_b[i].folded()], of_both[i].folded());
                    A::store(part, &mut eight.parts[i][p]);
                }
            }
            let (q, level) = (sum_parts::<T, A>(&eight.parts[0]), sum_parts::<T, A>(&eight.parts[1]));
            let residual = A::sub(A::add(q, level), A::load(&eight.rewards));
            let e = A::mul(residual, A::load(&eight.shares));
            let scaled_e = A::mul(e, A::load(&eight.inv_std));
            A::store(e, &mut eight.e);
            A::store(scaled_e, &mut eight.scaled_e);
            A::store(A::mul(scaled_e, A::mul(q, A::splat(T::of(-net.inv_width)))), &mut eight.minus_q);
        }
    }
}

/// Of some units of a row: x̂ in place of z̃; returns their parts of q and of f − q.
#[inline(always)]
fn forth<T, V, R: Rows<T, V>>(normal: &mut [Lanes<T>], inv_std: R, [gain, offset, slope, level]: [R; 4]) -> [R; 2] {
    let scaled = R::load_from(normal).mul(inv_std);
    let y = gain.madd(scaled, offset);
    scaled.store_to(normal);
    [y.where_positive(slope).mul(scaled), y.where_positive(level)]
}

/// e·δz of all rows but for its mean in place of x̂, and the gradient of gain, offset and output.
struct Back<'a, 'b, T> {
    net: &'a Net,
    rest: &'a [T],
    pairs: &'a mut [Pair<T>],
    eights: &'a [Eight<T>],
    grad: &'a mut [T],
    ahead: &'a mut Ahead<'b>,
}

impl<T: Scalar> Job for Back<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Back { net, rest, pairs, eights, grad, ahead } = self;
        let [at_gain, at_offset] = net.norm_places();
        let (gain, offset) = (Units::<A, T>::load(rest, at_gain), Units::load(rest, at_offset));
        let scale = Units::splat(net.output_scale());
        let output = Units::load(rest, net.output).mul(&scale);
        let slope = output.mul(&gain);
        let sixteen = [gain.sixteen, offset.sixteen, slope.sixteen];
        let others = [gain.others, offset.others, slope.others];
        let (mut sum, mut sum_others) = ([A::Sixteen::splat(T::ZERO); 2], [Vectors::<A, T, 1>::splat(T::ZERO); 2]);
        for (pairs, eight) in pairs.chunks_mut(PAIRS).zip(eights) {
            ahead.ask();
            for (p, [a, b]) in pairs.iter_mut().enumerate() {
                let (e, e_both) = by_row::<T, A>(&eight.e, p);
                let (scaled_e, scaled_both) = by_row::<T, A>(&eight.scaled_e, p);
                let (minus_q, minus_both) = by_row::<T, A>(&eight.minus_q, p);
                let by_row = [Vectors([e_both]), Vectors([scaled_both]), Vectors([minus_both])];
                let of_both = back(&a[2..], by_row, others, &mut sum_others);
                back(&a[..2], [e[0], scaled_e[0], minus_q[0]], sixteen, &mut sum).store_to(a);
                back(&b[..2], [e[1], scaled_e[1], minus_q[1]], sixteen, &mut sum).store_to(b);
                A::store_halves(of_both.0[0], &mut a[2], &mut b[2]);
            }
        }
        let mut sums =
            [Units { sixteen: sum[0], others: sum_others[0] }, Units { sixteen: sum[1], others: sum_others[1] }];
        for sum in &mut sums {
            let both = sum.others.0[0];
            sum.others = Vectors([A::add(both, A::join_uppers(both, both))]);
        }
        let [by_offset, by_gain] = sums;
        output.mul(&by_offset).store(grad, at_offset);
        output.mul(&by_gain).store(grad, at_gain);
        gain.madd(&by_gain, &offset.mul(&by_offset)).mul(&scale).store(grad, net.output);
    }
}

/// Of some units of a row, given x̂: e·δz but for its mean; e [y > 0] and that times x̂ are added to `sums`.
#[inline(always)]
fn back<T, V, R: Rows<T, V>>(
    normal: &[Lanes<T>],
    [e, scaled_e, minus_q]: [R; 3],
    [gain, offset, slope]: [R; 3],
    sums: &mut [R; 2],
) -> R {
    let normal = R::load_from(normal);
    let y = gain.madd(normal, offset);
    let own = y.where_positive(e);
    sums[0] = sums[0].add(own);
    sums[1] = own.madd(normal, sums[1]);
    y.where_positive(scaled_e).madd(slope, normal.mul(minus_q))
}
