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
    /// adds the gradients of gain, offset and output to `sums`, lane by lane. z_1 is centred.
    #[inline(always)]
    pub(super) fn shallow_train<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        rest: &[T],
        (rewards, weights): (&Tile<T>, &Tile<T>),
        wide: &mut Wide<T>,
        sums: [&mut [Tile<T>]; 3],
        rows: &mut [T],
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
