//! The passes of `wide.rs` after the products, for networks of one hidden layer with layer norm and without biases, as in the
//! paper's experiments: what one loop over the units leaves for the next is kept to what that needs.
//!
//! With δ̂_i = gain_i·δy_i and inv = 1/√(var + ε),
//!
//! ```text
//! δz_i = inv·(δ̂_i − mean(δ̂) − x̂_i·mean(δ̂·x̂))
//! width² = inv²·Σ_i (δz_i/inv)²·Σ_j c_ji x_j² + Σ_i δy_i²·(c_offset,i + c_gain,i·x̂_i²) + s²·Σ_i c_output,i·h_i²
//! ```

use super::{Net, ROWS, Wide};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Rows, Tile, turn_back};

impl Net {
    /// Whether the passes of this file can be used.
    pub(crate) fn is_shallow(&self) -> bool {
        self.layers.len() == 1 && self.config.layer_norm && !self.config.biases
    }

    /// f, and √(Σ c·g²) over all parameters for each row, where `c` has the shape of all but W_1. z_1 is centred, and the part
    /// of W_1 (`product`) in place.
    #[inline(always)]
    pub(crate) fn shallow_score<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        rest: &[T],
        c: &[T],
        wide: &mut Wide<T>,
    ) -> [T; ROWS] {
        let m = self.config.width;
        let Wide { layers, f, output, product, .. } = wide;
        let own = &mut layers[0];
        let inv_std = R::load(&own.inv_std);
        let [gain, offset] = self.norm(rest);
        let [c_gain, c_offset] = self.norm(c);
        let (output, c_output) = (&output[..m], &c[self.output..self.output + m]);
        let (normal, back) = (&mut own.normal[..m], &mut own.delta_z[..m]);
        let zero = R::splat(T::ZERO);
        let (mut mean, mut sum, mut sum_both) = (zero, zero, zero);
        let (mut vectors, mut last) = (zero, zero);
        for i in 0..m {
            let scaled = R::load(&normal[i]).mul(inv_std);
            let (gain, output) = (R::splat(gain[i]), R::splat(output[i]));
            let h = gain.madd(scaled, R::splat(offset[i])).positive();
            let delta = h.where_positive(output);
            let delta_normal = delta.mul(gain);
            mean = output.madd(h, mean);
            sum = sum.add(delta_normal);
            sum_both = delta_normal.madd(scaled, sum_both);
            last = h.mul(h).madd(R::splat(c_output[i]), last);
            let c = scaled.mul(scaled).madd(R::splat(c_gain[i]), R::splat(c_offset[i]));
            vectors = delta.mul(delta).madd(c, vectors);
            scaled.store(&mut normal[i]);
            delta_normal.store(&mut back[i]);
        }
        mean.store(f);
        let minus_inv_m = R::splat(T::of(-self.inv_width));
        let (mean, mean_both) = (sum.mul(minus_inv_m), sum_both.mul(minus_inv_m));
        let (normal, back, product) = (&*normal, &*back, &product[..m]);
        let mut weights = zero;
        for i in 0..m {
            let u = R::load(&normal[i]).madd(mean_both, R::load(&back[i]).add(mean));
            weights = u.mul(u).madd(R::load(&product[i]), weights);
        }
        let scale = self.output_scale::<T>();
        let all = last.madd(R::splat(scale * scale), vectors);
        let mut out = Tile::ZERO;
        weights.madd(inv_std.mul(inv_std), all).sqrt().store(&mut out);
        out.numbers()
    }

    /// For a step on the rows with e = weight·(f − reward): writes Σ_r e_r ∂f/∂z as rows (`ld` apart, as many as fit) and
    /// adds the gradients of gain, offset and output to `sums`, lane by lane. z_1 is centred. Calls `meanwhile` once.
    #[inline(always)]
    pub(super) fn shallow_train<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        rest: &[T],
        (rewards, weights): (&Tile<T>, &Tile<T>),
        wide: &mut Wide<T>,
        sums: [&mut [Tile<T>]; 3],
        rows: &mut [T],
        meanwhile: &mut impl FnMut(),
    ) {
        let (m, n) = (self.config.width, rows.len() / self.ld);
        let own = &mut wide.layers[0];
        let inv_std = R::load(&own.inv_std);
        let [gain, offset] = self.norm(rest);
        let (output, normal, h) = (&wide.output[..m], &mut own.normal[..m], &mut own.h[..m]);
        let zero = R::splat(T::ZERO);
        let (mut f, mut sum, mut sum_both) = (zero, zero, zero);
        for i in 0..m {
            let scaled = R::load(&normal[i]).mul(inv_std);
            let (gain, output) = (R::splat(gain[i]), R::splat(output[i]));
            let y = gain.madd(scaled, R::splat(offset[i])).positive();
            let delta_normal = y.where_positive(output).mul(gain);
            f = output.madd(y, f);
            sum = sum.add(delta_normal);
            sum_both = delta_normal.madd(scaled, sum_both);
            scaled.store(&mut normal[i]);
            y.store(&mut h[i]);
        }
        meanwhile();
        let e = f.sub(R::load(rewards)).mul(R::load(weights));
        let minus = e.mul(R::splat(T::of(-self.inv_width)));
        let (mean, mean_both) = (sum.mul(minus), sum_both.mul(minus));
        let mut units = Units {
            normal: &*normal,
            h: &*h,
            vectors: [gain, output],
            sums,
            by_row: [e, e.mul(R::splat(self.output_scale())), mean, mean_both, inv_std],
        };
        let mut from = 0;
        while from < m {
            let mut four = [zero; 4];
            if from + 4 <= m {
                for k in 0..4 {
                    four[k] = units.back::<A>(from + k);
                }
            } else {
                for i in from..m {
                    four[i - from] = units.back::<A>(i);
                }
            }
            turn_back(four, &mut rows[from..], self.ld, n);
            from += 4;
        }
    }

    /// Gain and offset of the first layer, in an array of all parameters but W_1.
    #[inline(always)]
    fn norm<'a, T>(&self, rest: &'a [T]) -> [&'a [T]; 2] {
        let (layer, m) = (&self.layers[0], self.config.width);
        [layer.gain, layer.offset].map(|at| &rest[at.expect("a layer norm")..][..m])
    }
}

/// What the way back through a unit needs.
struct Units<'a, T, R> {
    normal: &'a [Tile<T>],
    h: &'a [Tile<T>],
    /// Gain and s·W_L.
    vectors: [&'a [T]; 2],
    sums: [&'a mut [Tile<T>]; 3],
    /// e, s·e, −e·mean(δ̂), −e·mean(δ̂·x̂) and 1/√(var + ε).
    by_row: [R; 5],
}

impl<T: Scalar, R: Copy> Units<'_, T, R> {
    /// e·δz of unit i; its share of the gradients of the vectors goes into the sums.
    #[inline(always)]
    fn back<A: Arch>(&mut self, i: usize) -> R
    where
        R: Rows<T, A::V<T>>,
    {
        let ([gain, output], [e, scaled_e, mean, mean_both, inv_std]) = (self.vectors, self.by_row);
        let (normal, h) = (R::load(&self.normal[i]), R::load(&self.h[i]));
        let delta = h.where_positive(e.mul(R::splat(output[i])));
        let [gain_sum, offset_sum, output_sum] = &mut self.sums;
        delta.madd(normal, R::load(&gain_sum[i])).store(&mut gain_sum[i]);
        delta.add(R::load(&offset_sum[i])).store(&mut offset_sum[i]);
        scaled_e.madd(h, R::load(&output_sum[i])).store(&mut output_sum[i]);
        normal.madd(mean_both, R::splat(gain[i]).madd(delta, mean)).mul(inv_std)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Init, NetConfig, Params};
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::linalg::simd::{Job, LANES, Portable, Vectors, dispatch};
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
            wide.set_rows::<A, R>(net, &std::array::from_fn(|r| &rows[r % rows.len()][..]));
            if shallow {
                net.wide_centre::<T, A, R>(&weights.first, &mut wide);
            } else {
                net.wide_project::<T, A, R>(&weights.first, &mut wide);
            }
            net.wide_product::<T, A, R, true>(&c.first, &mut wide);
            let widths = if shallow {
                net.shallow_score::<T, A, R>(&weights.rest, &c.rest, &mut wide)
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
            c.first.iter_mut().chain(&mut c.rest).for_each(|c| *c = *c * *c);
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
