//! The passes of `wide.rs` after the products, for networks of one hidden layer with layer norm and without biases, as in the
//! paper's experiments: what one loop over the units leaves for the next is kept to what that needs.
//!
//! With δ̂_i = gain_i·δy_i and inv = 1/√(var + ε),
//!
//! ```text
//! δz_i = inv·(δ̂_i − mean(δ̂) − x̂_i·mean(δ̂·x̂))
//! width² = inv²·Σ_i (δz_i/inv)²·Σ_j c_ji x_j² + Σ_i δy_i²·(c_offset,i + c_gain,i·x̂_i²) + s²·Σ_i c_output,i·h_i²
//! ```
//!
//! where δy_i is s·W_L,i or 0: what a unit multiplies by it is multiplied once for all rows ([`Unit`]), and of the units with y > 0 alone
//! f = Σ_i δ̂_i·x̂_i + Σ_i δy_i·offset_i.

use super::wide::WideLayer;
use super::{Net, ROWS, Wide};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, Rows, Tile, Vectors};

/// What the score of all rows needs of a unit; o is s·W_L.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit<T> {
    gain: T,
    offset: T,
    /// o·gain and o·offset.
    o_gain: T,
    o_offset: T,
    /// o²·c_gain, o²·c_offset and s²·c_output.
    c_gain: T,
    c_offset: T,
    c_output: T,
}

impl Net {
    /// Whether the passes of this file can be used.
    pub(crate) fn is_shallow(&self) -> bool {
        self.layers.len() == 1 && self.config.layer_norm && !self.config.biases
    }

    /// Before [`Net::shallow_score`] of rows for which the weights of the squared gradient in the width are `c`, in the shape of all parameters
    /// but W_1.
    #[inline(always)]
    pub(crate) fn shallow_begin_score<T: Scalar>(&self, rest: &[T], c: &[T], wide: &mut Wide<T>) {
        let ([gain, offset], [c_gain, c_offset]) = (self.norm(rest), self.norm(c));
        let scale = self.output_scale::<T>();
        wide.units.clear();
        wide.units.extend((0..self.config.width).map(|i| {
            let o = scale * rest[self.output + i];
            Unit {
                gain: gain[i],
                offset: offset[i],
                o_gain: o * gain[i],
                o_offset: o * offset[i],
                c_gain: o * o * c_gain[i],
                c_offset: o * o * c_offset[i],
                c_output: scale * scale * c[self.output + i],
            }
        }));
    }

    /// f, and √(Σ c·g²) over all parameters for each row, after [`Net::shallow_begin_score`]. z_1 is centred, and the part of W_1
    /// (`product`) in place.
    #[inline(always)]
    pub(crate) fn shallow_score<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, wide: &mut Wide<T>) -> [T; ROWS] {
        let m = self.config.width;
        let Wide { layers, f, product, units, .. } = wide;
        let own = &mut layers[0];
        let inv_std = R::load(&own.inv_std);
        let (normal, back) = (&own.normal[..m], &mut own.delta_z[..m]);
        let zero = R::splat(T::ZERO);
        let (mut sum, mut sum_both, mut offsets) = (zero, zero, zero);
        let (mut vectors, mut last) = (zero, zero);
        for ((unit, normal), back) in units.iter().zip(normal).zip(&mut *back) {
            let scaled = R::load(normal).mul(inv_std);
            let h = R::splat(unit.gain).madd(scaled, R::splat(unit.offset)).positive();
            let delta_normal = h.where_positive(R::splat(unit.o_gain));
            sum = sum.add(delta_normal);
            sum_both = delta_normal.madd(scaled, sum_both);
            offsets = offsets.add(h.where_positive(R::splat(unit.o_offset)));
            last = h.mul(h).madd(R::splat(unit.c_output), last);
            let c = scaled.mul(scaled).madd(R::splat(unit.c_gain), R::splat(unit.c_offset));
            vectors = vectors.add(h.where_positive(c));
            delta_normal.store(back);
        }
        sum_both.add(offsets).store(f);
        let minus_inv_m = R::splat(T::of(-self.inv_width));
        let (mean, mean_both) = (sum.mul(minus_inv_m), sum_both.mul(minus_inv_m).mul(inv_std));
        // four sums, which need not wait for each other
        let mut weights = [zero; 4];
        let (normal, back, product) = (normal.as_chunks::<4>(), back.as_chunks::<4>(), product[..m].as_chunks::<4>());
        for ((normal, back), product) in normal.0.iter().zip(back.0).zip(product.0) {
            for k in 0..4 {
                let u = R::load(&normal[k]).madd(mean_both, R::load(&back[k]).add(mean));
                weights[k] = u.mul(u).madd(R::load(&product[k]), weights[k]);
            }
        }
        for ((normal, back), product) in normal.1.iter().zip(back.1).zip(product.1) {
            let u = R::load(normal).madd(mean_both, R::load(back).add(mean));
            weights[0] = u.mul(u).madd(R::load(product), weights[0]);
        }
        let weights = weights[0].add(weights[1]).add(weights[2].add(weights[3]));
        let mut out = Tile::ZERO;
        weights.madd(inv_std.mul(inv_std), last.add(vectors)).sqrt().store(&mut out);
        out.numbers()
    }

    /// What the passes of all tiles of a batch share: s·W_L of each unit, and that times its gain.
    #[inline(always)]
    pub(super) fn shallow_begin<T: Scalar>(&self, rest: &[T], outputs: &mut [[T; 2]]) {
        let ([gain, _], scale) = (self.norm(rest), self.output_scale::<T>());
        for ((out, &w), &gain) in outputs.iter_mut().zip(&rest[self.output..]).zip(gain) {
            *out = [scale * w, scale * w * gain];
        }
    }

    /// For a step on the rows with e = weight·(f − reward): x̂, h, and what the way back needs of each row. z_1 is centred;
    /// `outputs` are those of [`Net::shallow_begin`].
    #[inline(always)]
    pub(super) fn shallow_forth<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        rest: &[T],
        outputs: &[[T; 2]],
        (rewards, weights): (&Tile<T>, &Tile<T>),
        wide: &mut Wide<T>,
    ) {
        let scales = [self.output_scale(), T::of(-self.inv_width)];
        let forth = Forth { norm: self.norm(rest), outputs, rewards, weights, scales, wide };
        if R::VECTORS == 2 {
            A::call(Pass::<_, true>(forth));
        } else {
            A::call(Pass::<_, false>(forth));
        }
    }

    /// After [`Net::shallow_forth`] of tiles, of which the first `full` have more than eight rows: e·∂f/∂z of each row, in place of h;
    /// the gradients of gain, offset and output are added to `sums`, lane by lane, or are these if it is the first time (`set`).
    #[inline(always)]
    pub(super) fn shallow_back<T: Scalar, A: Arch>(
        &self,
        rest: &[T],
        outputs: &[[T; 2]],
        wide: &mut [Wide<T>],
        full: usize,
        sums: [&mut [Tile<T>]; 3],
        mut set: bool,
    ) {
        let ([gain, _], [by_gain, by_offset, by_output]) = (self.norm(rest), sums);
        let (full, last) = wide.split_at_mut(full);
        let (threes, ones) = full.as_chunks_mut();
        for wide in threes {
            let sums = [&mut *by_gain, by_offset, by_output];
            A::call(Pass::<_, true>(Back::<T, 3> { gain, outputs, wide, sums, set }));
            set = false;
        }
        for wide in ones.as_chunks_mut().0 {
            let sums = [&mut *by_gain, by_offset, by_output];
            A::call(Pass::<_, true>(Back::<T, 1> { gain, outputs, wide, sums, set }));
            set = false;
        }
        for wide in last.as_chunks_mut().0 {
            let sums = [&mut *by_gain, by_offset, by_output];
            A::call(Pass::<_, false>(Back::<T, 1> { gain, outputs, wide, sums, set }));
            set = false;
        }
    }

    /// Gain and offset of the first layer, in an array of all parameters but W_1.
    #[inline(always)]
    fn norm<'a, T>(&self, rest: &'a [T]) -> [&'a [T]; 2] {
        self.norm_places().map(|at| &rest[at..at + self.config.width])
    }

    /// Where they lie.
    #[inline(always)]
    pub(super) fn norm_places(&self) -> [usize; 2] {
        let layer = &self.layers[0];
        [layer.gain.expect("a layer norm"), layer.offset.expect("a layer norm")]
    }
}

/// A pass of sixteen rows, or of eight: a function of its own, whose registers are not those of the whole step.
struct Pass<P, const SIXTEEN: bool>(P);

struct Forth<'a, T> {
    /// Gain and offset.
    norm: [&'a [T]; 2],
    outputs: &'a [[T; 2]],
    rewards: &'a Tile<T>,
    weights: &'a Tile<T>,
    /// s and −1/m.
    scales: [T; 2],
    wide: &'a mut Wide<T>,
}

impl<T: Scalar, const SIXTEEN: bool> Job for Pass<Forth<'_, T>, SIXTEEN> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        if SIXTEEN { self.0.run::<A, A::Sixteen<T>>() } else { self.0.run::<A, Vectors<A, T, 1>>() }
    }
}

impl<T: Scalar> Forth<'_, T> {
    #[inline(always)]
    fn run<A: Arch, R: Rows<T, A::V<T>>>(self) {
        let Forth { norm: [gain, offset], outputs, rewards, weights, scales: [scale, minus_inv_m], wide } = self;
        let Wide { layers, residuals, .. } = wide;
        let WideLayer { normal, h, inv_std, sum, sum_both, .. } = &mut layers[0];
        let inv_std = R::load(inv_std);
        let zero = R::splat(T::ZERO);
        let (mut f, mut all, mut both) = (zero, zero, zero);
        let units = normal.iter_mut().zip(h).zip(gain).zip(offset).zip(outputs);
        for ((((normal, h), &gain), &offset), &[output, output_gain]) in units {
            let scaled = R::load(normal).mul(inv_std);
            let y = R::splat(gain).madd(scaled, R::splat(offset)).positive();
            let delta_normal = y.where_positive(R::splat(output_gain));
            f = R::splat(output).madd(y, f);
            all = all.add(delta_normal);
            both = delta_normal.madd(scaled, both);
            scaled.store(normal);
            y.store(h);
        }
        let e = f.sub(R::load(rewards)).mul(R::load(weights));
        let minus = e.mul(R::splat(minus_inv_m));
        e.store(&mut residuals[0]);
        e.mul(R::splat(scale)).store(&mut residuals[1]);
        all.mul(minus).store(sum);
        both.mul(minus).store(sum_both);
    }
}

/// The way back of N tiles, unit by unit: sums over their rows stay in registers.
struct Back<'a, T, const N: usize> {
    gain: &'a [T],
    outputs: &'a [[T; 2]],
    wide: &'a mut [Wide<T>; N],
    /// Of gain, offset and output; they begin here if `set`.
    sums: [&'a mut [Tile<T>]; 3],
    set: bool,
}

impl<T: Scalar, const N: usize, const SIXTEEN: bool> Job for Pass<Back<'_, T, N>, SIXTEEN> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        if SIXTEEN { self.0.run::<A, A::Sixteen<T>>() } else { self.0.run::<A, Vectors<A, T, 1>>() }
    }
}

impl<T: Scalar, const N: usize> Back<'_, T, N> {
    #[inline(always)]
    fn run<A: Arch, R: Rows<T, A::V<T>>>(self) {
        let Back { gain, outputs, wide, sums: [by_gain, by_offset, by_output], set } = self;
        let m = gain.len();
        // all slices of one length, so that no unit is checked
        let (outputs, by_gain) = (&outputs[..m], &mut by_gain[..m]);
        let (by_offset, by_output) = (&mut by_offset[..m], &mut by_output[..m]);
        let mut tiles = wide.each_mut().map(|wide| {
            let Wide { layers, residuals, .. } = wide;
            let WideLayer { normal, h, inv_std, sum, sum_both, .. } = &mut layers[0];
            let by_row = [&residuals[0], &residuals[1], sum, sum_both, inv_std];
            (&normal[..m], &mut h[..m], by_row)
        });
        for i in 0..m {
            let (gain, output) = (R::splat(gain[i]), R::splat(outputs[i][0]));
            let mut sums = [R::splat(T::ZERO); 3];
            if !set {
                sums = [R::load(&by_gain[i]), R::load(&by_offset[i]), R::load(&by_output[i])];
            }
            for (normal, h_then_delta, [e, scaled_e, mean, mean_both, inv_std]) in &mut tiles {
                let (normal, h) = (R::load(&normal[i]), R::load(&h_then_delta[i]));
                let delta = h.where_positive(output.mul(R::load(e)));
                sums[0] = delta.madd(normal, sums[0]);
                sums[1] = sums[1].add(delta);
                sums[2] = h.madd(R::load(scaled_e), sums[2]);
                let centred = normal.madd(R::load(mean_both), gain.madd(delta, R::load(mean)));
                centred.mul(R::load(inv_std)).store(&mut h_then_delta[i]);
            }
            sums[0].store(&mut by_gain[i]);
            sums[1].store(&mut by_offset[i]);
            sums[2].store(&mut by_output[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Init, NetConfig, Params};
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::linalg::simd::{LANES, Portable, dispatch};
    use crate::seed::Seed;
    use rand::RngExt;

    /// f and widths of some rows, by the passes of this file or by those for any network.
    struct Score<'a, T> {
        net: &'a Net,
        weights: &'a Params<T>,
        c: &'a Params<T>,
        rows: &'a [Vec<f32>],
        shallow: bool,
    }

    impl<T: Scalar> Score<'_, T> {
        #[inline(always)]
        fn tile<A: Arch, R: Rows<T, A::V<T>>>(self) -> [[T; ROWS]; 2] {
            let Score { net, weights, c, rows, shallow } = self;
            let mut wide = Wide::new(net);
            net.wide_begin(&weights.rest, &mut wide);
            net.shallow_begin_score(&weights.rest, &c.rest, &mut wide);
            wide.set_rows::<A, R>(net, &std::array::from_fn(|r| &rows[r % rows.len()][..]));
            if shallow {
                net.wide_centre::<T, A, R>(&weights.first, &mut wide);
            } else {
                net.wide_project::<T, A, R>(&weights.first, &mut wide);
            }
            net.wide_product::<T, A, R, true>(&c.first, &mut wide);
            let widths = if shallow {
                net.shallow_score::<T, A, R>(&mut wide)
            } else {
                net.wide_pass::<T, A, R>(&weights.rest, &mut wide);
                net.wide_contract::<T, A, R, true>(&c.rest, &mut wide)
            };
            [wide.f(), widths]
        }
    }

    impl<T: Scalar> Job for Score<'_, T> {
        type Out = [[T; ROWS]; 2];
        #[inline(always)]
        fn run<A: Arch>(self) -> [[T; ROWS]; 2] {
            if self.rows.len() > LANES { self.tile::<A, A::Sixteen<T>>() } else { self.tile::<A, Vectors<A, T, 1>>() }
        }
    }

    fn passes_agree<T: Scalar>(tolerance: f64) {
        let mut rng = Seed::new(7).stream("test");
        for (width, dim) in [(2, 5), (7, 4), (20, 20), (33, 6)] {
            let config = NetConfig { width, init: Init::Uniform, ..NetConfig::default() };
            let net = Net::new(config, Layout { dim, n_actions: 2, encoding: Encoding::PerAction }).unwrap();
            assert!(net.is_shallow());
            let (weights, mut c): (Params<T>, Params<T>) = (net.init(&mut rng), net.init(&mut rng));
            c.first.iter_mut().chain(c.rest.iter_mut()).for_each(|c| *c = *c * *c);
            for n in [1, 8, 11, 16] {
                let rows: Vec<Vec<f32>> =
                    (0..n).map(|_| (0..dim).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
                let score = |shallow: bool| Score { net: &net, weights: &weights, c: &c, rows: &rows, shallow };
                let general = dispatch(score(false));
                for got in [dispatch(score(true)), score(true).run::<Portable>()] {
                    for (got, want) in got.as_flattened().iter().zip(general.as_flattened()).take(n) {
                        let (got, want) = (got.wide(), want.wide());
                        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{width} {n}: {got}, {want}");
                    }
                }
            }
        }
    }

    /// Some ten operations on numbers of order one to ten: a hundred eps.
    #[test]
    fn mean_and_width_are_those_of_the_passes_for_any_network() {
        passes_agree::<f64>(100.0 * f64::EPSILON);
        passes_agree::<f32>(100.0 * f64::from(f32::EPSILON));
    }
}
