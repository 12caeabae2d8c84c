//! Mean and width of many rows at once: a vector lane holds a row, sixteen rows side by side, and weights are broadcast.
//!
//! The same passes as in `tangent.rs`, turned round: there a vector runs over the units of one row, which suits single
//! rows and gradients; here it runs over rows, so that sums over units (layer norm, width) need no sum across lanes and
//! widths need no padding. Everything between the products stays in the first cache.

use super::Net;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, LANES, Lanes};

/// Rows side by side.
pub(crate) const ROWS: usize = 2 * LANES;

/// One number of each row.
type Tile<T> = [Lanes<T>; 2];

/// The passes of up to [`ROWS`] rows.
#[derive(Debug, Clone)]
pub(crate) struct Wide<T> {
    input: Vec<Tile<T>>,
    layers: Vec<WideLayer<T>>,
    product: Vec<Tile<T>>,
    f: Tile<T>,
}

/// One hidden layer; one tile per unit.
#[derive(Debug, Clone)]
struct WideLayer<T> {
    h: Vec<Tile<T>>,
    /// x̂; unused without layer norm.
    normal: Vec<Tile<T>>,
    inv_std: Tile<T>,
    delta_y: Vec<Tile<T>>,
    /// Unused without layer norm, where it equals δy.
    delta_z: Vec<Tile<T>>,
}

impl<T: Scalar> WideLayer<T> {
    fn delta_z(&self) -> &[Tile<T>] {
        if self.delta_z.is_empty() { &self.delta_y } else { &self.delta_z }
    }
}

impl<T: Scalar> Wide<T> {
    /// Room for the passes of a network.
    pub(crate) fn new(net: &Net) -> Self {
        let zero = [[T::ZERO; LANES]; 2];
        let m = net.config.width;
        let normed = if net.config.layer_norm { m } else { 0 };
        let layer = WideLayer {
            h: vec![zero; m],
            normal: vec![zero; normed],
            inv_std: zero,
            delta_y: vec![zero; m],
            delta_z: vec![zero; normed],
        };
        let layers = vec![layer; net.layers.len()];
        Wide { input: vec![zero; net.n_in], layers, product: vec![zero; m], f: zero }
    }

    /// Takes up to [`ROWS`] contexts; lanes without a row are zero.
    pub(crate) fn set_rows<'a>(&mut self, net: &Net, rows: impl ExactSizeIterator<Item = &'a [f32]>) {
        if rows.len() < ROWS {
            self.input.fill([[T::ZERO; LANES]; 2]);
        }
        for (r, x) in rows.enumerate() {
            let (half, lane) = (r / LANES, r % LANES);
            if net.config.duplicate_input {
                let factor = T::of(0.5f64.sqrt());
                let (a, b) = self.input.split_at_mut(x.len());
                for ((a, b), &x) in a.iter_mut().zip(b).zip(x) {
                    a[half][lane] = T::of_f32(x) * factor;
                    b[half][lane] = a[half][lane];
                }
            } else {
                for (input, &x) in self.input.iter_mut().zip(x) {
                    input[half][lane] = T::of_f32(x);
                }
            }
        }
    }

    /// f of each row.
    pub(crate) fn f(&self) -> &[T] {
        self.f.as_flattened()
    }
}

/// Two vectors of an instruction set.
type Two<A, T> = [<A as Arch>::V<T>; 2];

#[inline(always)]
fn load<T: Scalar, A: Arch>(tile: &Tile<T>) -> Two<A, T> {
    [A::load(&tile[0]), A::load(&tile[1])]
}

#[inline(always)]
fn store<T: Scalar, A: Arch>(v: Two<A, T>, tile: &mut Tile<T>) {
    A::store(v[0], &mut tile[0]);
    A::store(v[1], &mut tile[1]);
}

/// Applies an operation of [`Arch`] to both halves.
macro_rules! both {
    ($arch:ident, $op:ident, $($arg:expr),+) => {
        [$arch::$op($($arg[0]),+), $arch::$op($($arg[1]),+)]
    };
}

#[inline(always)]
fn splat<T: Scalar, A: Arch>(v: T) -> Two<A, T> {
    [A::splat(v), A::splat(v)]
}

/// z_o = Σ_i w[i·step_in + o·step_out]·x_i, of x² if `SQUARE`.
#[inline(always)]
fn product<T: Scalar, A: Arch, const SQUARE: bool>(
    x: &[Tile<T>],
    w: &[T],
    (step_in, step_out): (usize, usize),
    z: &mut [Tile<T>],
) {
    /// Outputs at a time: twelve sums, two inputs and a weight fill the sixteen registers.
    const MOST: usize = 6;
    let n = z.len();
    let blocks = n.div_ceil(MOST);
    for block in 0..blocks {
        // blocks of nearly equal size, so that none has too few sums to hide the latency of an addition
        let (start, end) = (block * n / blocks, (block + 1) * n / blocks);
        let (w, z) = (&w[start * step_out..], &mut z[start..end]);
        match end - start {
            6 => product_block::<T, A, SQUARE, 6>(x, w, step_in, step_out, z),
            5 => product_block::<T, A, SQUARE, 5>(x, w, step_in, step_out, z),
            4 => product_block::<T, A, SQUARE, 4>(x, w, step_in, step_out, z),
            3 => product_block::<T, A, SQUARE, 3>(x, w, step_in, step_out, z),
            2 => product_block::<T, A, SQUARE, 2>(x, w, step_in, step_out, z),
            _ => product_block::<T, A, SQUARE, 1>(x, w, step_in, step_out, z),
        }
    }
}

#[inline(always)]
fn product_block<T: Scalar, A: Arch, const SQUARE: bool, const B: usize>(
    x: &[Tile<T>],
    w: &[T],
    step_in: usize,
    step_out: usize,
    z: &mut [Tile<T>],
) {
    let mut sums = [[A::zero::<T>(); 2]; B];
    for (i, x) in x.iter().enumerate() {
        let mut x = load::<T, A>(x);
        if SQUARE {
            x = both!(A, mul, x, x);
        }
        let w = &w[i * step_in..i * step_in + (B - 1) * step_out + 1];
        for b in 0..B {
            let w = A::splat(w[b * step_out]);
            sums[b] = [A::madd(w, x[0], sums[b][0]), A::madd(w, x[1], sums[b][1])];
        }
    }
    for b in 0..B {
        store::<T, A>(sums[b], &mut z[b]);
    }
}

impl Net {
    /// Forward and backward pass of the rows that were set, whose inputs lie in the block `first` of W_1.
    #[inline(always)]
    pub(crate) fn wide_pass<T: Scalar, A: Arch>(&self, first: &[T], rest: &[T], wide: &mut Wide<T>) {
        self.wide_forward::<T, A>(first, rest, wide);
        self.wide_backward::<T, A>(rest, wide);
    }

    #[inline(always)]
    fn wide_forward<T: Scalar, A: Arch>(&self, first: &[T], rest: &[T], wide: &mut Wide<T>) {
        let m = self.config.width;
        let inv_m = splat::<T, A>(T::of(1.0 / m as f64));
        let eps = splat::<T, A>(T::of(super::tangent::LAYER_NORM_EPS));
        for l in 0..self.layers.len() {
            let layer = &self.layers[l];
            let (before, own) = wide.layers.split_at_mut(l);
            let own = &mut own[0];
            match before.last() {
                None => product::<T, A, false>(&wide.input, first, (self.ld, 1), &mut own.h),
                Some(before) => product::<T, A, false>(&before.h, &rest[layer.weight..], (self.ld, 1), &mut own.h),
            }
            if let Some(at) = layer.bias {
                for (h, &bias) in own.h.iter_mut().zip(&rest[at..at + m]) {
                    let bias = splat::<T, A>(bias);
                    store::<T, A>(both!(A, add, load::<T, A>(h), bias), h);
                }
            }
            if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
                let mut sum = splat::<T, A>(T::ZERO);
                for h in &own.h {
                    sum = both!(A, add, sum, load::<T, A>(h));
                }
                let mean = both!(A, mul, sum, inv_m);
                let mut squares = splat::<T, A>(T::ZERO);
                for (h, normal) in own.h.iter().zip(&mut own.normal) {
                    let centred = both!(A, sub, load::<T, A>(h), mean);
                    squares = both!(A, madd, centred, centred, squares);
                    store::<T, A>(centred, normal);
                }
                let std = both!(A, madd, squares, inv_m, eps);
                let inv_std = both!(A, div, splat::<T, A>(T::ONE), both!(A, sqrt, std));
                store::<T, A>(inv_std, &mut own.inv_std);
                let (gain, offset) = (&rest[gain..gain + m], &rest[offset..offset + m]);
                for (((h, normal), &gain), &offset) in own.h.iter_mut().zip(&mut own.normal).zip(gain).zip(offset) {
                    let scaled = both!(A, mul, load::<T, A>(normal), inv_std);
                    store::<T, A>(scaled, normal);
                    let y = both!(A, madd, splat::<T, A>(gain), scaled, splat::<T, A>(offset));
                    store::<T, A>(both!(A, where_positive, y, y), h);
                }
            } else {
                for h in &mut own.h {
                    let y = load::<T, A>(h);
                    store::<T, A>(both!(A, where_positive, y, y), h);
                }
            }
        }
        let last = &wide.layers[self.layers.len() - 1];
        let mut sum = splat::<T, A>(T::ZERO);
        for (h, &w) in last.h.iter().zip(&rest[self.output..self.output + m]) {
            sum = both!(A, madd, splat::<T, A>(w), load::<T, A>(h), sum);
        }
        let bias = splat::<T, A>(self.output_bias.map_or(T::ZERO, |at| rest[at]));
        store::<T, A>(both!(A, madd, sum, splat::<T, A>(self.output_scale()), bias), &mut wide.f);
    }

    #[inline(always)]
    fn wide_backward<T: Scalar, A: Arch>(&self, rest: &[T], wide: &mut Wide<T>) {
        let m = self.config.width;
        let minus_inv_m = splat::<T, A>(T::of(-1.0 / m as f64));
        for l in (0..self.layers.len()).rev() {
            let (own, after) = wide.layers.split_at_mut(l + 1);
            let own = &mut own[l];
            if let Some(next) = after.first() {
                let weight = &rest[self.layers[l + 1].weight..];
                product::<T, A, false>(next.delta_z(), weight, (1, self.ld), &mut own.delta_y);
                for (delta, h) in own.delta_y.iter_mut().zip(&own.h) {
                    let masked = both!(A, where_positive, load::<T, A>(h), load::<T, A>(delta));
                    store::<T, A>(masked, delta);
                }
            } else {
                let scale = self.output_scale::<T>();
                for ((delta, h), &w) in own.delta_y.iter_mut().zip(&own.h).zip(&rest[self.output..self.output + m]) {
                    let masked = both!(A, where_positive, load::<T, A>(h), splat::<T, A>(scale * w));
                    store::<T, A>(masked, delta);
                }
            }
            let Some(gain) = self.layers[l].gain else { continue };
            let gain = &rest[gain..gain + m];
            let (mut sum, mut sum_both) = (splat::<T, A>(T::ZERO), splat::<T, A>(T::ZERO));
            for ((delta, normal), &gain) in own.delta_y.iter().zip(&own.normal).zip(gain) {
                let scaled = both!(A, mul, load::<T, A>(delta), splat::<T, A>(gain));
                sum = both!(A, add, sum, scaled);
                sum_both = both!(A, madd, scaled, load::<T, A>(normal), sum_both);
            }
            let (mean, mean_both) = (both!(A, mul, sum, minus_inv_m), both!(A, mul, sum_both, minus_inv_m));
            let inv_std = load::<T, A>(&own.inv_std);
            for (((delta_z, delta), normal), &gain) in
                own.delta_z.iter_mut().zip(&own.delta_y).zip(&own.normal).zip(gain)
            {
                let centred = both!(A, madd, splat::<T, A>(gain), load::<T, A>(delta), mean);
                let centred = both!(A, madd, load::<T, A>(normal), mean_both, centred);
                store::<T, A>(both!(A, mul, inv_std, centred), delta_z);
            }
        }
    }

    /// Σ over all parameters of c·g (or c·g² if `SQUARE`) for each row: with c = 1/Λ the width, with c = θ
    /// the mean of a linear model on ∇f.
    #[inline(always)]
    pub(crate) fn wide_contract<T: Scalar, A: Arch, const SQUARE: bool>(
        &self,
        first: &[T],
        rest: &[T],
        wide: &mut Wide<T>,
    ) -> [T; ROWS] {
        let m = self.config.width;
        let Wide { input, layers, product: buffer, .. } = wide;
        let mut sum = splat::<T, A>(self.output_bias.map_or(T::ZERO, |at| rest[at]));
        for l in 0..self.layers.len() {
            let layer = &self.layers[l];
            match l {
                0 => product::<T, A, SQUARE>(input, first, (self.ld, 1), buffer),
                _ => product::<T, A, SQUARE>(&layers[l - 1].h, &rest[layer.weight..], (self.ld, 1), buffer),
            }
            let own = &layers[l];
            for (u, c) in own.delta_z().iter().zip(buffer.iter()) {
                sum = add_term::<T, A, SQUARE>(load::<T, A>(u), load::<T, A>(c), sum);
            }
            if let Some(at) = layer.bias {
                for (u, &c) in own.delta_z().iter().zip(&rest[at..at + m]) {
                    sum = add_term::<T, A, SQUARE>(load::<T, A>(u), splat::<T, A>(c), sum);
                }
            }
            if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
                let (gain, offset) = (&rest[gain..gain + m], &rest[offset..offset + m]);
                for (((u, normal), &gain), &offset) in own.delta_y.iter().zip(&own.normal).zip(gain).zip(offset) {
                    let u = load::<T, A>(u);
                    sum = add_term::<T, A, SQUARE>(u, splat::<T, A>(offset), sum);
                    sum = add_term::<T, A, SQUARE>(both!(A, mul, u, load::<T, A>(normal)), splat::<T, A>(gain), sum);
                }
            }
        }
        let scale = self.output_scale::<T>();
        let last = &layers[self.layers.len() - 1];
        for (h, &c) in last.h.iter().zip(&rest[self.output..self.output + m]) {
            let c = splat::<T, A>(if SQUARE { scale * scale * c } else { scale * c });
            sum = add_term::<T, A, SQUARE>(load::<T, A>(h), c, sum);
        }
        let mut out = [T::ZERO; ROWS];
        let (low, high) = out.split_at_mut(LANES);
        A::store(sum[0], low.try_into().expect("eight lanes"));
        A::store(sum[1], high.try_into().expect("eight lanes"));
        out
    }
}

/// sum + c·u, or sum + c·u².
#[inline(always)]
fn add_term<T: Scalar, A: Arch, const SQUARE: bool>(u: Two<A, T>, c: Two<A, T>, sum: Two<A, T>) -> Two<A, T> {
    if SQUARE { both!(A, madd, both!(A, mul, u, u), c, sum) } else { both!(A, madd, u, c, sum) }
}
