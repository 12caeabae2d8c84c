//! Single rows where the network has one hidden layer and a row of its units fits the registers: a round of S-mode, with
//! forward and backward pass, the growth of Λ and the step in one function, and the few rows of a batch that fill no tile.
//!
//! The operations are those of `tangent.rs`, `factors.rs` and `outer.rs`, which go through memory and serve any depth and
//! width. With twenty units it is not the operations that take the time but the way from each result to the next; so
//! nothing is stored on the way, and z_1 is summed in two halves.

use super::optim::Step;
use super::tangent::LAYER_NORM_EPS;
use super::{Growth, Net, Params};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, LANES, Lanes, RowList, lanes, lanes_mut};

/// One number of each unit, in registers.
type Row<A, T, const C: usize> = [<A as Arch>::V<T>; C];

/// One observed round.
pub(crate) struct Round<'a> {
    pub(crate) x: &'a [f32],
    /// The block of W_1 that x meets.
    pub(crate) block: usize,
    pub(crate) reward: f64,
}

impl Net {
    /// Whether a row of units fits the registers, so that [`Net::single_step`] can be used, with an instruction set that
    /// [has them](Arch::ROWS_IN_REGISTERS).
    pub(crate) fn is_small(&self) -> bool {
        self.layers.len() == 1 && self.ld <= 4 * LANES && !self.config.duplicate_input
    }

    /// A step of S-mode on one round; `growth` grows by s·(∇f)² at the weights before the step.
    #[inline(always)]
    pub(crate) fn single_step<T: Scalar, A: Arch>(
        &self,
        round: Round<'_>,
        step: Step<'_, T>,
        growth: Option<Growth<'_, T>>,
    ) {
        if const { !A::ROWS_IN_REGISTERS } {
            unreachable!("these instructions have no registers for it");
        }
        match self.ld / LANES {
            1 => A::call(SingleStep::<T, 1> { net: self, round, step, growth }),
            2 => A::call(SingleStep::<T, 2> { net: self, round, step, growth }),
            3 => A::call(SingleStep::<T, 3> { net: self, round, step, growth }),
            _ => A::call(SingleStep::<T, 4> { net: self, round, step, growth }),
        }
    }
}

struct SingleStep<'a, T, const C: usize> {
    net: &'a Net,
    round: Round<'a>,
    step: Step<'a, T>,
    growth: Option<Growth<'a, T>>,
}

impl<T: Scalar, const C: usize> Job for SingleStep<'_, T, C> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let SingleStep { net, round: Round { x, block, reward }, mut step, mut growth } = self;
        let weights = step.weights();
        let z = product::<T, A, C, f32>(x, net.block(&weights.first, block), T::of_f32);
        let Pass { f, delta_z, vectors } = net.single_pass::<T, A, C>(&weights.rest, z);
        let e = f - T::of(reward);
        step.first(net.blocks(0..block)).still::<A>();
        step.first(net.blocks(block + 1..net.n_blocks)).still::<A>();
        // W_1 first: the next round begins with it, while the vectors are still on their way
        let padding = C * LANES - net.config.width;
        let grows = growth.as_mut().map(|growth| (&mut *growth.first, growth.s));
        step.first(net.blocks(block..block + 1)).outer_in::<A, C>(x, delta_z, padding, e, grows);
        let grows = growth.map(|growth| (growth.rest, growth.s));
        let one = net.output_bias;
        step.rest(0..net.rest_len).vectors_in::<A, C>(net.single_places(), vectors, padding, one, e, grows);
    }
}

/// A few rows of a batch, with one block.
pub(super) struct SingleRows<'a, T> {
    pub(super) inputs: RowList<'a, T>,
    pub(super) rewards: &'a [T],
    /// Their weights in the loss.
    pub(super) shares: &'a [T],
    /// For e·δz of each, `ld` apart.
    pub(super) delta_z: &'a mut [T],
    /// In the shape of all parameters but W_1.
    pub(super) grad: &'a mut [T],
}

impl Net {
    /// The rows' shares in the gradient of a batch, with e = share·(f − reward): e·δz of each row, and Σ e·∇f of all
    /// parameters but W_1, which is added to `grad`. For networks that are [small](Net::is_small).
    #[inline(always)]
    pub(super) fn single_rows<T: Scalar, A: Arch>(&self, weights: &Params<T>, rows: SingleRows<'_, T>) {
        match self.ld / LANES {
            1 => A::call(RowsOf::<T, 1> { net: self, weights, rows }),
            2 => A::call(RowsOf::<T, 2> { net: self, weights, rows }),
            3 => A::call(RowsOf::<T, 3> { net: self, weights, rows }),
            _ => A::call(RowsOf::<T, 4> { net: self, weights, rows }),
        }
    }
}

struct RowsOf<'a, T, const C: usize> {
    net: &'a Net,
    weights: &'a Params<T>,
    rows: SingleRows<'a, T>,
}

impl<T: Scalar, const C: usize> Job for RowsOf<'_, T, C> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let RowsOf { net, weights, rows: SingleRows { inputs, rewards, shares, delta_z, grad } } = self;
        let mut sums = [[A::zero::<T>(); C]; 4];
        let mut sum_e = T::ZERO;
        let targets = rewards.iter().zip(shares);
        for ((x, (&reward, &share)), out) in inputs.iter().zip(targets).zip(delta_z.chunks_exact_mut(net.ld)) {
            let z = product::<T, A, C, T>(&x[..net.n_in], &weights.first, |x| x);
            let Pass { f, delta_z, vectors } = net.single_pass::<T, A, C>(&weights.rest, z);
            let residual = (f - reward) * share;
            let (e, out) = (A::splat(residual), &mut lanes_mut(out)[..C]);
            for c in 0..C {
                A::store(A::mul(e, delta_z[c]), &mut out[c]);
                for k in 0..4 {
                    sums[k][c] = A::madd(e, vectors[k][c], sums[k][c]);
                }
            }
            sum_e += residual;
        }
        let places = net.single_places();
        for k in 0..4 {
            if let Some(at) = places[k] {
                let grad = &mut lanes_mut(&mut grad[at..at + C * LANES])[..C];
                for c in 0..C {
                    A::store(A::add(A::load(&grad[c]), sums[k][c]), &mut grad[c]);
                }
            }
        }
        if let Some(at) = net.output_bias {
            grad[at] += sum_e;
        }
    }
}

/// What the pass of one row leaves.
struct Pass<A: Arch, T: Scalar, const C: usize> {
    f: T,
    delta_z: Row<A, T, C>,
    /// ∂f of what lies at [`Net::single_places`].
    vectors: [Row<A, T, C>; 4],
}

impl Net {
    /// Where gain, offset, biases and output lie.
    #[inline(always)]
    fn single_places(&self) -> [Option<usize>; 4] {
        let layer = &self.layers[0];
        [layer.gain, layer.offset, layer.bias, Some(self.output)]
    }

    /// Forward and backward pass from W_1 x on.
    #[inline(always)]
    fn single_pass<T: Scalar, A: Arch, const C: usize>(&self, rest: &[T], mut z: Row<A, T, C>) -> Pass<A, T, C> {
        let layer = &self.layers[0];
        if let Some(at) = layer.bias {
            let bias = row::<T, A, C>(rest, at);
            for c in 0..C {
                z[c] = A::add(z[c], bias[c]);
            }
        }
        let scale = self.output_scale::<T>();
        let weight = row::<T, A, C>(rest, self.output);
        let (mut h, mut output, mut delta_y) = (z, z, z);
        let (mut delta_gain, mut delta_z) = (z, z);
        let mut f = A::zero::<T>();
        if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
            let (gain, offset) = (row::<T, A, C>(rest, gain), row::<T, A, C>(rest, offset));
            let (normal, inv_std) = self.normal::<T, A, C>(z);
            let (mut sum, mut sum_both) = (A::zero::<T>(), A::zero::<T>());
            for c in 0..C {
                let y = A::madd(gain[c], normal[c], offset[c]);
                h[c] = A::where_positive(y, y);
                delta_y[c] = A::where_positive(y, A::mul(A::splat(scale), weight[c]));
                delta_gain[c] = A::mul(delta_y[c], normal[c]);
                f = A::madd(h[c], weight[c], f);
                sum = A::madd(delta_y[c], gain[c], sum);
                sum_both = A::madd(delta_gain[c], gain[c], sum_both);
            }
            let minus_inv_m = T::of(-self.inv_width);
            let mean = A::splat(A::total(sum) * minus_inv_m);
            let mean_both = A::splat(A::total(sum_both) * minus_inv_m);
            let inv_std = A::splat(inv_std);
            let last_inv_std = A::mul(inv_std, self.real_units::<T, A, C>());
            for c in 0..C {
                let centred = A::madd(normal[c], mean_both, A::madd(gain[c], delta_y[c], mean));
                delta_z[c] = A::mul(if c + 1 < C { inv_std } else { last_inv_std }, centred);
            }
        } else {
            for c in 0..C {
                h[c] = A::where_positive(z[c], z[c]);
                delta_y[c] = A::where_positive(z[c], A::mul(A::splat(scale), weight[c]));
                f = A::madd(h[c], weight[c], f);
            }
            delta_z = delta_y;
        }
        let f = scale * A::total(f) + self.output_bias.map_or(T::ZERO, |at| rest[at]);
        for c in 0..C {
            output[c] = A::mul(A::splat(scale), h[c]);
        }
        Pass { f, delta_z, vectors: [delta_gain, delta_y, delta_z, output] }
    }

    /// x̂ and 1/√(var + ε).
    ///
    /// Mean and variance are those of d = z − z_1, from Σd and Σd², which do not wait for each other: the variance is
    /// Σd²/m − (Σd/m)², and as z_1 is one of the numbers, Σd²/m is at most m times as large: no more than log₂ m bits are
    /// lost in the difference, which cannot become negative.
    #[inline(always)]
    fn normal<T: Scalar, A: Arch, const C: usize>(&self, z: Row<A, T, C>) -> (Row<A, T, C>, T) {
        let inv_m = T::of(self.inv_width);
        let (shift, real) = (A::splat(A::first(z[0])), self.real_units::<T, A, C>());
        let mut d = z;
        for c in 0..C {
            d[c] = A::sub(z[c], shift);
        }
        d[C - 1] = A::mul(d[C - 1], real);
        let (mut sum, mut squares) = (d[0], A::mul(d[0], d[0]));
        for c in 1..C {
            sum = A::add(sum, d[c]);
            squares = A::madd(d[c], d[c], squares);
        }
        let mean = A::total(sum) * inv_m;
        let variance_and_eps = (A::total(squares) * inv_m + T::of(LAYER_NORM_EPS)) - mean * mean;
        let inv_std = T::ONE / variance_and_eps.root();
        let mean = A::splat(mean);
        for c in 0..C {
            let mean = if c + 1 < C { mean } else { A::mul(mean, real) };
            d[c] = A::mul(A::sub(d[c], mean), A::splat(inv_std));
        }
        (d, inv_std)
    }

    /// One for each unit of the last vector of a row, zero in its padding.
    #[inline(always)]
    fn real_units<T: Scalar, A: Arch, const C: usize>(&self) -> A::V<T> {
        let padding = C * LANES - self.config.width;
        A::load(&lanes(&T::ONES_AND_ZEROS[padding..padding + LANES])[0])
    }
}

#[inline(always)]
fn row<T: Scalar, A: Arch, const C: usize>(rest: &[T], at: usize) -> Row<A, T, C> {
    let from = &lanes(&rest[at..at + C * LANES])[..C];
    let mut row = [A::zero::<T>(); C];
    for c in 0..C {
        row[c] = A::load(&from[c]);
    }
    row
}

/// W x, inputs of even and of odd place summed apart.
#[inline(always)]
fn product<T: Scalar, A: Arch, const C: usize, X: Copy>(x: &[X], w: &[T], of: impl Fn(X) -> T) -> Row<A, T, C> {
    let w: &[[Lanes<T>; C]] = lanes(w).as_chunks().0;
    let ((x, last_x), (w, last_w)) = (x.as_chunks::<2>(), w.as_chunks::<2>());
    let (mut even, mut odd) = ([A::zero::<T>(); C], [A::zero::<T>(); C]);
    for (x, w) in x.iter().zip(w) {
        let (first, second) = (A::splat(of(x[0])), A::splat(of(x[1])));
        for c in 0..C {
            even[c] = A::madd(first, A::load(&w[0][c]), even[c]);
            odd[c] = A::madd(second, A::load(&w[1][c]), odd[c]);
        }
    }
    for (&x, w) in last_x.iter().zip(last_w) {
        for c in 0..C {
            even[c] = A::madd(A::splat(of(x)), A::load(&w[c]), even[c]);
        }
    }
    for c in 0..C {
        even[c] = A::add(even[c], odd[c]);
    }
    even
}

#[cfg(test)]
mod tests {
    use super::super::optim::Stepper;
    use super::super::{Init, NetConfig, Optimiser, OutputScale, Schedule, Tangents, Towards};
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::linalg::machine::instructions;
    use crate::linalg::simd::{Neon, Portable, dispatch};
    use crate::seed::Seed;
    use rand::RngExt;

    /// Weights, their optimiser and a diagonal, on the way through a few rounds.
    struct Course<T> {
        net: Net,
        weights: Params<T>,
        stepper: Stepper<T>,
        lambda: Params<T>,
        t: usize,
    }

    struct Next<'a, T>(&'a mut Course<T>, Round<'a>, bool);

    impl<T: Scalar> Job for Next<'_, T> {
        type Out = ();
        #[inline(always)]
        fn run<A: Arch>(self) {
            let Next(Course { net, weights, stepper, lambda, t }, round, in_registers) = self;
            *t += 1;
            let first = net.block_mut(&mut lambda.first, round.block);
            let growth = (*t != 2).then_some(Growth { first, rest: &mut lambda.rest, s: T::of(0.25) });
            if in_registers && A::ROWS_IN_REGISTERS {
                return net.single_step::<T, A>(round, stepper.begin(*t, weights), growth);
            }
            let mut one = Tangents::new(net, 1);
            net.tangents_of::<T, A>(weights, round.block, round.x, &mut one);
            let e = one.f()[0] - T::of(round.reward);
            net.step_one::<T, A>(&one, round.block, e, stepper.begin(*t, weights), growth);
        }
    }

    /// The same rounds through memory and in registers: every width up to four vectors, every kind of network and
    /// optimiser, with the best instructions and with arrays.
    #[test]
    fn a_round_in_registers_is_that_through_memory() {
        rounds_agree::<f64>(1e-20);
        // where a gradient is small, Adam makes more of its rounding
        rounds_agree::<f32>(1e-7);
    }

    /// Squares of distances below `most`.
    fn rounds_agree<T: Scalar>(most: f64) {
        let optimisers = [
            Optimiser::Adam { lr: 0.01, l2: 0.1, towards: Towards::Zero },
            Optimiser::Adam { lr: 0.01, l2: 0.1, towards: Towards::Initial },
            Optimiser::Sgd { schedule: Schedule::InverseRoot(0.01) },
        ];
        let mut rng = Seed::new(3).stream("test");
        for (case, width) in [2, 8, 10, 16, 20, 24, 26, 32].into_iter().enumerate() {
            for (layer_norm, biases) in [(true, false), (true, true), (false, false), (false, true)] {
                let config = NetConfig {
                    width,
                    layer_norm,
                    biases,
                    output_scale: if biases { OutputScale::One } else { OutputScale::SqrtWidth },
                    init: Init::Block,
                    ..NetConfig::default()
                };
                let layout = Layout { dim: 3 + case, n_actions: 3, encoding: Encoding::Disjoint };
                let net = Net::new(config, layout).unwrap();
                assert!(net.is_small());
                let weights: Params<T> = net.init(&mut rng);
                let stepper = Stepper::new(optimisers[case % 3], &net, &weights, 0.1).unwrap();
                let lambda = weights.filled(T::of(0.1));
                let start = || Course {
                    net: net.clone(),
                    weights: weights.clone(),
                    stepper: stepper.clone(),
                    lambda: lambda.clone(),
                    t: 0,
                };
                let (mut memory, mut registers, mut plain) = (start(), start(), start());
                for t in 0..6 {
                    let x: Vec<f32> = (0..layout.dim).map(|_| rng.random_range(-1.0..1.0)).collect();
                    let reward = rng.random_range(-1.0..1.0);
                    let round = || Round { x: &x, block: t % 3, reward };
                    dispatch(Next(&mut memory, round(), false));
                    dispatch(Next(&mut registers, round(), true));
                    Next(&mut plain, round(), true).run::<Neon>();
                }
                if instructions() != Portable::NAME {
                    assert!(
                        registers.weights == plain.weights && registers.lambda == plain.lambda,
                        "not the same bits"
                    );
                }
                for course in [registers, plain] {
                    let far = course.weights.distance_squared(&memory.weights);
                    let lambda_far = course.lambda.distance_squared(&memory.lambda);
                    assert!(far < most && lambda_far < most, "{width} {layer_norm} {biases}: {far}, {lambda_far}");
                    assert!(course.weights.distance_squared(&weights) > 1e-5, "nothing has moved");
                }
            }
        }
    }
}
