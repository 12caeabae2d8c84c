//! Forward and backward pass of many rows at once: a vector lane holds a row, up to sixteen rows side by side, and
//! weights are broadcast.
//!
//! The same passes as in `tangent.rs`, turned round: there a vector runs over the units of one row, which suits single
//! rows; here it runs over rows, so that sums over units (layer norm, width) need no sum across lanes and widths need
//! no padding. Everything between the products stays in the first cache. Rows enter and leave by transposition.
//!
//! Every pass is generic in N, the vectors per row of lanes: 2 for a full tile, 1 for up to eight rows.

use super::Net;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, LANES, Lanes, lanes, lanes_mut};

/// Rows side by side.
pub(crate) const ROWS: usize = 2 * LANES;

/// One number of each row, on the borders of cache lines: a vector that lies across one is two accesses.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Tile<T>(pub(super) [Lanes<T>; 2]);

/// One number of each of 8·N rows, in registers.
pub(super) type Reg<A, T, const N: usize> = [<A as Arch>::V<T>; N];

/// The passes of up to [`ROWS`] rows.
#[derive(Debug, Clone)]
pub(crate) struct Wide<T> {
    input: Vec<Tile<T>>,
    pub(super) layers: Vec<WideLayer<T>>,
    /// Inputs of a layer, squared.
    squares: Vec<Tile<T>>,
    /// Σ c·x of each unit.
    pub(super) product: Vec<Tile<T>>,
    f: Tile<T>,
    /// s·W_L, set by [`Net::wide_begin`].
    output: Vec<T>,
}

/// One hidden layer; one tile per unit.
#[derive(Debug, Clone)]
pub(super) struct WideLayer<T> {
    /// z before, h after [`Net::wide_pass`].
    pub(super) h: Vec<Tile<T>>,
    /// Σ z over the units; unused without layer norm.
    pub(super) sum: Tile<T>,
    /// x̂; unused without layer norm.
    pub(super) normal: Vec<Tile<T>>,
    inv_std: Tile<T>,
    pub(super) delta_y: Vec<Tile<T>>,
    /// Unused without layer norm, where it equals δy.
    delta_z: Vec<Tile<T>>,
}

impl<T: Scalar> WideLayer<T> {
    pub(super) fn delta_z(&self) -> &[Tile<T>] {
        if self.delta_z.is_empty() { &self.delta_y } else { &self.delta_z }
    }
}

pub(super) fn zero_tile<T: Scalar>() -> Tile<T> {
    Tile([[T::ZERO; LANES]; 2])
}

impl<T: Scalar> Wide<T> {
    /// Room for the passes of a network.
    pub(crate) fn new(net: &Net) -> Self {
        let m = net.config.width;
        let tiles = |n: usize| vec![zero_tile(); n];
        let normed = if net.config.layer_norm { m } else { 0 };
        let layer = WideLayer {
            h: tiles(m),
            sum: zero_tile(),
            normal: tiles(normed),
            inv_std: zero_tile(),
            delta_y: tiles(m),
            delta_z: tiles(normed),
        };
        Wide {
            input: tiles(if net.is_tall() { 0 } else { net.n_in }),
            layers: vec![layer; net.layers.len()],
            squares: tiles(if net.is_tall() { m } else { net.n_in.max(m) }),
            product: tiles(m),
            f: zero_tile(),
            output: vec![T::ZERO; m],
        }
    }

    /// Takes up to 8·N contexts, which come with their places, as inputs; lanes without a row repeat the last one.
    #[inline(always)]
    pub(crate) fn set_rows<A: Arch, const N: usize>(&mut self, net: &Net, rows: &[(&[f32], usize)]) {
        let (last, _) = rows[rows.len() - 1];
        for half in 0..N {
            let mut own = [last; LANES];
            for (own, row) in own.iter_mut().zip(rows.iter().skip(half * LANES)) {
                *own = row.0;
            }
            transpose_in::<T, A>(&own, &mut self.input, half);
        }
        if net.config.duplicate_input {
            let factor = splat::<T, A, N>(T::of(0.5f64.sqrt()));
            let (a, b) = self.input.split_at_mut(last.len());
            for (a, b) in a.iter_mut().zip(b) {
                let x = mul::<T, A, N>(load::<T, A, N>(a), factor);
                store::<T, A, N>(x, a);
                store::<T, A, N>(x, b);
            }
        }
    }

    /// f of each row.
    pub(crate) fn f(&self) -> [T; ROWS] {
        self.f.0.as_flattened().try_into().expect("two vectors")
    }
}

/// Writes eight rows into one half of the tiles, one tile per number of a row.
#[inline(always)]
fn transpose_in<T: Scalar, A: Arch>(rows: &[&[f32]; LANES], tiles: &mut [Tile<T>], half: usize) {
    let d = rows[0].len();
    if d < LANES {
        for (lane, row) in rows.iter().enumerate() {
            for (tile, &x) in tiles.iter_mut().zip(*row) {
                tile.0[half][lane] = T::of_f32(x);
            }
        }
        return;
    }
    let mut own = [rows[0]; LANES];
    for r in 0..LANES {
        own[r] = &rows[r][..d]; // all of one length: what follows needs no check
    }
    let mut at = 0;
    while at < d {
        // the last stretch overlaps the one before
        at = at.min(d - LANES);
        let mut block = [A::zero::<T>(); LANES];
        for r in 0..LANES {
            block[r] = A::load_f32(&lanes(&own[r][at..at + LANES])[0]);
        }
        let block = A::transpose(block);
        for (v, tile) in block.into_iter().zip(&mut tiles[at..at + LANES]) {
            A::store(v, &mut tile.0[half]);
        }
        at += LANES;
    }
}

/// Reads rows (row-major, `ld` apart, up to 8·N of them) into one tile per unit, and returns the sum over the units.
/// Lanes without a row are zero.
#[inline(always)]
pub(super) fn rows_to_units<T: Scalar, A: Arch, const N: usize>(
    rows: &[T],
    ld: usize,
    units: &mut [Tile<T>],
) -> Reg<A, T, N> {
    let (columns, n) = (ld / LANES, rows.len() / ld);
    let rows = lanes(rows);
    let mut sum = splat::<T, A, N>(T::ZERO);
    for (column, units) in units.chunks_mut(LANES).enumerate() {
        for half in 0..N {
            let mut block = [A::zero::<T>(); LANES];
            for r in 0..LANES.min(n - half * LANES) {
                block[r] = A::load(&rows[(half * LANES + r) * columns + column]);
            }
            let block = A::transpose(block);
            for (v, unit) in block.into_iter().zip(units.iter_mut()) {
                sum[half] = A::add(sum[half], v);
                A::store(v, &mut unit.0[half]);
            }
        }
    }
    sum
}

/// Writes one tile per unit as rows (row-major, `ld` apart, as many as fit); units beyond the last are zero.
#[inline(always)]
pub(super) fn units_to_rows<T: Scalar, A: Arch, const N: usize>(units: &[Tile<T>], rows: &mut [T], ld: usize) {
    let (columns, n) = (ld / LANES, rows.len() / ld);
    let rows = lanes_mut(rows);
    for (column, units) in units.chunks(LANES).enumerate() {
        for half in 0..N {
            let mut block = [A::zero::<T>(); LANES];
            for (v, unit) in block.iter_mut().zip(units) {
                *v = A::load(&unit.0[half]);
            }
            let block = A::transpose(block);
            for r in 0..LANES.min(n - half * LANES) {
                A::store(block[r], &mut rows[(half * LANES + r) * columns + column]);
            }
        }
    }
}

#[inline(always)]
pub(super) fn load<T: Scalar, A: Arch, const N: usize>(tile: &Tile<T>) -> Reg<A, T, N> {
    let mut out = [A::zero::<T>(); N];
    for k in 0..N {
        out[k] = A::load(&tile.0[k]);
    }
    out
}

#[inline(always)]
pub(super) fn store<T: Scalar, A: Arch, const N: usize>(v: Reg<A, T, N>, tile: &mut Tile<T>) {
    for k in 0..N {
        A::store(v[k], &mut tile.0[k]);
    }
}

#[inline(always)]
pub(super) fn splat<T: Scalar, A: Arch, const N: usize>(v: T) -> Reg<A, T, N> {
    [A::splat(v); N]
}

/// Operations of [`Arch`] on N vectors.
macro_rules! each {
    ($($name:ident($($arg:ident),+))*) => {$(
        #[inline(always)]
        pub(super) fn $name<T: Scalar, A: Arch, const N: usize>($($arg: Reg<A, T, N>),+) -> Reg<A, T, N> {
            let mut out = [A::zero::<T>(); N];
            for k in 0..N {
                out[k] = A::$name($($arg[k]),+);
            }
            out
        }
    )*};
}
each! {
    add(a, b) sub(a, b) mul(a, b) div(a, b) sqrt(a) madd(a, b, c) positive(a) where_positive(condition, a)
}

/// z_o = Σ_i w[i·ld + o]·x_i, or w[o·ld + i] if `TRANSPOSED`; returns Σ_o z_o.
#[inline(always)]
fn product<T: Scalar, A: Arch, const N: usize, const TRANSPOSED: bool>(
    x: &[Tile<T>],
    w: &[T],
    ld: usize,
    z: &mut [Tile<T>],
) -> Reg<A, T, N> {
    let mut sum = zero_tile();
    A::call(Product::<T, N, TRANSPOSED> { x, w, ld, z, sum: &mut sum });
    load::<T, A, N>(&sum)
}

struct Product<'a, T, const N: usize, const TRANSPOSED: bool> {
    x: &'a [Tile<T>],
    w: &'a [T],
    ld: usize,
    z: &'a mut [Tile<T>],
    sum: &'a mut Tile<T>,
}

impl<T: Scalar, const N: usize, const TRANSPOSED: bool> Job for Product<'_, T, N, TRANSPOSED> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        /// Outputs at a time: twelve sums, two inputs and a weight nearly fill the sixteen registers.
        const MOST: usize = 6;
        let Product { x, w, ld, z, .. } = self;
        let mut sum = splat::<T, A, N>(T::ZERO);
        let mut start = 0;
        while start < z.len() {
            // none of the last two blocks has too few sums to hide the latency of an addition
            let size = match z.len() - start {
                left @ ..=MOST => left,
                left if left < 2 * MOST => left.div_ceil(2),
                _ => MOST,
            };
            sum = match size {
                6 => product_block::<T, A, N, 6, TRANSPOSED>(x, w, ld, start, z, sum),
                5 => product_block::<T, A, N, 5, TRANSPOSED>(x, w, ld, start, z, sum),
                4 => product_block::<T, A, N, 4, TRANSPOSED>(x, w, ld, start, z, sum),
                3 => product_block::<T, A, N, 3, TRANSPOSED>(x, w, ld, start, z, sum),
                2 => product_block::<T, A, N, 2, TRANSPOSED>(x, w, ld, start, z, sum),
                _ => product_block::<T, A, N, 1, TRANSPOSED>(x, w, ld, start, z, sum),
            };
            start += size;
        }
        store::<T, A, N>(sum, self.sum);
    }
}

/// The outputs start..start + B.
#[inline(always)]
fn product_block<T: Scalar, A: Arch, const N: usize, const B: usize, const TRANSPOSED: bool>(
    x: &[Tile<T>],
    w: &[T],
    ld: usize,
    start: usize,
    z: &mut [Tile<T>],
    mut sum: Reg<A, T, N>,
) -> Reg<A, T, N> {
    let mut sums = [[A::zero::<T>(); N]; B];
    if TRANSPOSED {
        let w = &w[start * ld..];
        for (i, x) in x.iter().enumerate() {
            let x = load::<T, A, N>(x);
            let w = &w[i..i + (B - 1) * ld + 1];
            for b in 0..B {
                add_product::<T, A, N>(w[b * ld], x, &mut sums[b]);
            }
        }
    } else {
        // chunks of one length, so that the bounds are checked once and not for every input
        assert!(start + B <= ld && x.len() <= w.len() / ld);
        for (x, w) in x.iter().zip(w.chunks_exact(ld)) {
            let x = load::<T, A, N>(x);
            let w = &w[start..start + B];
            for b in 0..B {
                add_product::<T, A, N>(w[b], x, &mut sums[b]);
            }
        }
    }
    for (own, z) in sums.into_iter().zip(&mut z[start..start + B]) {
        sum = add::<T, A, N>(sum, own);
        store::<T, A, N>(own, z);
    }
    sum
}

#[inline(always)]
fn add_product<T: Scalar, A: Arch, const N: usize>(w: T, x: Reg<A, T, N>, sum: &mut Reg<A, T, N>) {
    let w = A::splat(w);
    for k in 0..N {
        sum[k] = A::madd(w, x[k], sum[k]);
    }
}

impl Net {
    /// Prepares what the passes of many tiles share.
    pub(crate) fn wide_begin<T: Scalar>(&self, rest: &[T], wide: &mut Wide<T>) {
        let scale = self.output_scale::<T>();
        let output = &rest[self.output..self.output + self.config.width];
        wide.output.iter_mut().zip(output).for_each(|(out, &w)| *out = scale * w);
    }

    /// z_1 = W_1 x of the rows that were set, whose inputs lie in the block `first`.
    #[inline(always)]
    pub(crate) fn wide_project<T: Scalar, A: Arch, const N: usize>(&self, first: &[T], wide: &mut Wide<T>) {
        let Wide { input, layers, .. } = wide;
        let sum = product::<T, A, N, false>(input, first, self.ld, &mut layers[0].h);
        store::<T, A, N>(sum, &mut layers[0].sum);
    }

    /// Forward and backward pass from z_1 on: f, and the factors of ∇f.
    #[inline(always)]
    pub(crate) fn wide_pass<T: Scalar, A: Arch, const N: usize>(&self, rest: &[T], wide: &mut Wide<T>) {
        let sums = self.wide_forward::<T, A, N>(rest, wide);
        self.wide_backward::<T, A, N>(rest, sums, wide);
    }

    /// As [`Net::wide_pass`], but the factors δ are those of ∇ Σ_r e_r f_r with e = weight·(f − reward), which is
    /// returned.
    #[inline(always)]
    pub(super) fn wide_train<T: Scalar, A: Arch, const N: usize>(
        &self,
        rest: &[T],
        rewards: &Tile<T>,
        weights: &Tile<T>,
        wide: &mut Wide<T>,
    ) -> Reg<A, T, N> {
        let sums = self.wide_forward::<T, A, N>(rest, wide);
        let residual = sub::<T, A, N>(load::<T, A, N>(&wide.f), load::<T, A, N>(rewards));
        let e = mul::<T, A, N>(residual, load::<T, A, N>(weights));
        // every δ is linear in that of the last layer
        for delta in &mut wide.layers.last_mut().expect("at least one hidden layer").delta_y {
            store::<T, A, N>(mul::<T, A, N>(e, load::<T, A, N>(delta)), delta);
        }
        let sums = [mul::<T, A, N>(e, sums[0]), mul::<T, A, N>(e, sums[1])];
        self.wide_backward::<T, A, N>(rest, sums, wide);
        e
    }

    /// All h, f, and δy of the last layer with its two sums.
    #[inline(always)]
    fn wide_forward<T: Scalar, A: Arch, const N: usize>(&self, rest: &[T], wide: &mut Wide<T>) -> [Reg<A, T, N>; 2] {
        for l in 0..self.layers.len() - 1 {
            self.wide_hidden::<T, A, N>(l, rest, wide);
        }
        self.wide_last::<T, A, N>(rest, wide)
    }

    /// All other δ.
    #[inline(always)]
    fn wide_backward<T: Scalar, A: Arch, const N: usize>(
        &self,
        rest: &[T],
        mut sums: [Reg<A, T, N>; 2],
        wide: &mut Wide<T>,
    ) {
        for l in (0..self.layers.len()).rev() {
            self.wide_delta::<T, A, N>(l, rest, sums, wide);
            if l > 0 {
                sums = self.wide_back::<T, A, N>(l - 1, rest, wide);
            }
        }
    }

    /// z_l → x̂_l (centred and scaled where there is a layer norm), in place in `normal`; returns 1/√(var + ε).
    #[inline(always)]
    fn wide_normalise<T: Scalar, A: Arch, const N: usize>(&self, own: &mut WideLayer<T>) -> Reg<A, T, N> {
        let inv_m = splat::<T, A, N>(T::of(self.inv_width));
        let eps = splat::<T, A, N>(T::of(super::tangent::LAYER_NORM_EPS));
        let mean = mul::<T, A, N>(load::<T, A, N>(&own.sum), inv_m);
        // two sums, so that neither waits for its own last addition
        let (mut even, mut odd) = (splat::<T, A, N>(T::ZERO), splat::<T, A, N>(T::ZERO));
        let ((h, last), (normal, last_normal)) = (own.h.as_chunks(), own.normal.as_chunks_mut());
        for ([h, next], [normal, next_normal]) in h.iter().zip(normal) {
            even = centre::<T, A, N>(h, mean, normal, even);
            odd = centre::<T, A, N>(next, mean, next_normal, odd);
        }
        for (h, normal) in last.iter().zip(last_normal) {
            even = centre::<T, A, N>(h, mean, normal, even);
        }
        let variance = madd::<T, A, N>(add::<T, A, N>(even, odd), inv_m, eps);
        let inv_std = div::<T, A, N>(splat::<T, A, N>(T::ONE), sqrt::<T, A, N>(variance));
        store::<T, A, N>(inv_std, &mut own.inv_std);
        inv_std
    }

    /// Adds the biases of layer l to z_l, and its sum over the units.
    #[inline(always)]
    fn wide_bias<T: Scalar, A: Arch, const N: usize>(&self, at: usize, rest: &[T], own: &mut WideLayer<T>) {
        let mut sum = splat::<T, A, N>(T::ZERO);
        for (h, &bias) in own.h.iter_mut().zip(&rest[at..at + self.config.width]) {
            let z = add::<T, A, N>(load::<T, A, N>(h), splat::<T, A, N>(bias));
            sum = add::<T, A, N>(sum, z);
            store::<T, A, N>(z, h);
        }
        store::<T, A, N>(sum, &mut own.sum);
    }

    /// h_l of a layer before the last, and z_{l+1}.
    #[inline(always)]
    fn wide_hidden<T: Scalar, A: Arch, const N: usize>(&self, l: usize, rest: &[T], wide: &mut Wide<T>) {
        let (m, layer) = (self.config.width, &self.layers[l]);
        let (own, next) = wide.layers.split_at_mut(l + 1);
        let own = &mut own[l];
        if let Some(at) = layer.bias {
            self.wide_bias::<T, A, N>(at, rest, own);
        }
        if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
            let inv_std = self.wide_normalise::<T, A, N>(own);
            let (gain, offset) = (&rest[gain..gain + m], &rest[offset..offset + m]);
            for (((h, normal), &gain), &offset) in own.h.iter_mut().zip(&mut own.normal).zip(gain).zip(offset) {
                let scaled = mul::<T, A, N>(load::<T, A, N>(normal), inv_std);
                store::<T, A, N>(scaled, normal);
                let y = madd::<T, A, N>(splat::<T, A, N>(gain), scaled, splat::<T, A, N>(offset));
                store::<T, A, N>(positive::<T, A, N>(y), h);
            }
        } else {
            for h in &mut own.h {
                store::<T, A, N>(positive::<T, A, N>(load::<T, A, N>(h)), h);
            }
        }
        let next = &mut next[0];
        let sum = product::<T, A, N, false>(&own.h, &rest[self.layers[l + 1].weight..], self.ld, &mut next.h);
        store::<T, A, N>(sum, &mut next.sum);
    }

    /// h of the last hidden layer, f, and δy; returns Σ δx̂ and Σ δx̂·x̂, which the layer norm's derivative needs.
    #[inline(always)]
    fn wide_last<T: Scalar, A: Arch, const N: usize>(&self, rest: &[T], wide: &mut Wide<T>) -> [Reg<A, T, N>; 2] {
        let (m, layer) = (self.config.width, &self.layers[self.layers.len() - 1]);
        let Wide { layers, f, output, .. } = wide;
        let own = layers.last_mut().expect("at least one hidden layer");
        let zero = splat::<T, A, N>(T::ZERO);
        let (mut mean, mut sum, mut sum_both) = (zero, zero, zero);
        if let Some(at) = layer.bias {
            self.wide_bias::<T, A, N>(at, rest, own);
        }
        let output = &output[..m];
        if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
            let inv_std = self.wide_normalise::<T, A, N>(own);
            let (h, delta_y) = (&mut own.h[..m], &mut own.delta_y[..m]);
            let (gain, offset, normal) = (&rest[gain..gain + m], &rest[offset..offset + m], &mut own.normal[..m]);
            for i in 0..m {
                let scaled = mul::<T, A, N>(load::<T, A, N>(&normal[i]), inv_std);
                let gain = splat::<T, A, N>(gain[i]);
                let y = positive::<T, A, N>(madd::<T, A, N>(gain, scaled, splat::<T, A, N>(offset[i])));
                let output = splat::<T, A, N>(output[i]);
                let delta = where_positive::<T, A, N>(y, output);
                let delta_normal = mul::<T, A, N>(delta, gain);
                mean = madd::<T, A, N>(output, y, mean);
                sum = add::<T, A, N>(sum, delta_normal);
                sum_both = madd::<T, A, N>(delta_normal, scaled, sum_both);
                store::<T, A, N>(scaled, &mut normal[i]);
                store::<T, A, N>(y, &mut h[i]);
                store::<T, A, N>(delta, &mut delta_y[i]);
            }
        } else {
            let (h, delta_y) = (&mut own.h[..m], &mut own.delta_y[..m]);
            for i in 0..m {
                let y = positive::<T, A, N>(load::<T, A, N>(&h[i]));
                let output = splat::<T, A, N>(output[i]);
                mean = madd::<T, A, N>(output, y, mean);
                store::<T, A, N>(y, &mut h[i]);
                store::<T, A, N>(where_positive::<T, A, N>(y, output), &mut delta_y[i]);
            }
        }
        let bias = splat::<T, A, N>(self.output_bias.map_or(T::ZERO, |at| rest[at]));
        store::<T, A, N>(add::<T, A, N>(mean, bias), f);
        [sum, sum_both]
    }

    /// δy_l of a layer before the last, from δz_{l+1}; returns the two sums as [`Net::wide_last`] does.
    #[inline(always)]
    fn wide_back<T: Scalar, A: Arch, const N: usize>(
        &self,
        l: usize,
        rest: &[T],
        wide: &mut Wide<T>,
    ) -> [Reg<A, T, N>; 2] {
        let m = self.config.width;
        let (own, after) = wide.layers.split_at_mut(l + 1);
        let own = &mut own[l];
        let weight = &rest[self.layers[l + 1].weight..];
        product::<T, A, N, true>(after[0].delta_z(), weight, self.ld, &mut own.delta_y);
        let (mut sum, mut sum_both) = (splat::<T, A, N>(T::ZERO), splat::<T, A, N>(T::ZERO));
        for i in 0..m {
            let delta = where_positive::<T, A, N>(load::<T, A, N>(&own.h[i]), load::<T, A, N>(&own.delta_y[i]));
            store::<T, A, N>(delta, &mut own.delta_y[i]);
            if let Some(gain) = self.layers[l].gain {
                let delta_normal = mul::<T, A, N>(delta, splat::<T, A, N>(rest[gain + i]));
                sum = add::<T, A, N>(sum, delta_normal);
                sum_both = madd::<T, A, N>(delta_normal, load::<T, A, N>(&own.normal[i]), sum_both);
            }
        }
        [sum, sum_both]
    }

    /// δz_l from δy_l where there is a layer norm.
    #[inline(always)]
    fn wide_delta<T: Scalar, A: Arch, const N: usize>(
        &self,
        l: usize,
        rest: &[T],
        sums: [Reg<A, T, N>; 2],
        wide: &mut Wide<T>,
    ) {
        let Some(gain) = self.layers[l].gain else { return };
        let (m, own) = (self.config.width, &mut wide.layers[l]);
        let minus_inv_m = splat::<T, A, N>(T::of(-self.inv_width));
        let inv_std = load::<T, A, N>(&own.inv_std);
        let mean = mul::<T, A, N>(sums[0], minus_inv_m);
        let mean_both = mul::<T, A, N>(sums[1], minus_inv_m);
        let (gain, delta_y) = (&rest[gain..gain + m], &own.delta_y[..m]);
        let (normal, delta_z) = (&own.normal[..m], &mut own.delta_z[..m]);
        for i in 0..m {
            let centred = madd::<T, A, N>(splat::<T, A, N>(gain[i]), load::<T, A, N>(&delta_y[i]), mean);
            let centred = madd::<T, A, N>(load::<T, A, N>(&normal[i]), mean_both, centred);
            store::<T, A, N>(mul::<T, A, N>(inv_std, centred), &mut delta_z[i]);
        }
    }

    /// Σ_j c_{ji} x_j (of x_j² if `SQUARE`) of each unit of the first layer, into `product`.
    #[inline(always)]
    pub(crate) fn wide_product<T: Scalar, A: Arch, const N: usize, const SQUARE: bool>(
        &self,
        first: &[T],
        wide: &mut Wide<T>,
    ) {
        let Wide { input, squares, product: out, .. } = wide;
        product::<T, A, N, false>(squared::<T, A, N, SQUARE>(input, squares), first, self.ld, out);
    }

    /// Σ over all parameters of c·g, or √(Σ c·g²) if `SQUARE`, for each row: with c = 1/Λ the width, with c = θ the mean
    /// of a linear model on ∇f. The part of W_1 comes in `product`.
    #[inline(always)]
    pub(crate) fn wide_contract<T: Scalar, A: Arch, const N: usize, const SQUARE: bool>(
        &self,
        rest: &[T],
        wide: &mut Wide<T>,
    ) -> [T; ROWS] {
        let m = self.config.width;
        let Wide { layers, product: buffer, squares, .. } = wide;
        let zero = splat::<T, A, N>(T::ZERO);
        let (mut weights, mut vectors, mut output) = (zero, zero, zero);
        for l in 0..self.layers.len() {
            let layer = &self.layers[l];
            if l > 0 {
                let input = squared::<T, A, N, SQUARE>(&layers[l - 1].h, squares);
                product::<T, A, N, false>(input, &rest[layer.weight..], self.ld, buffer);
            }
            let own = &layers[l];
            let (delta_z, delta_y, buffer) = (&own.delta_z()[..m], &own.delta_y[..m], &buffer[..m]);
            if let Some(at) = layer.bias {
                for (u, &c) in delta_z.iter().zip(&rest[at..at + m]) {
                    vectors = term::<T, A, N, SQUARE>(load::<T, A, N>(u), splat::<T, A, N>(c), vectors);
                }
            }
            if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
                let (gain, offset, normal) = (&rest[gain..gain + m], &rest[offset..offset + m], &own.normal[..m]);
                for i in 0..m {
                    let (u, c) = (load::<T, A, N>(&delta_z[i]), load::<T, A, N>(&buffer[i]));
                    weights = term::<T, A, N, SQUARE>(u, c, weights);
                    // δy²·(c_offset + c_gain·x̂²), or without squares
                    let x = load::<T, A, N>(&normal[i]);
                    let x = if SQUARE { mul::<T, A, N>(x, x) } else { x };
                    let c = madd::<T, A, N>(splat::<T, A, N>(gain[i]), x, splat::<T, A, N>(offset[i]));
                    vectors = term::<T, A, N, SQUARE>(load::<T, A, N>(&delta_y[i]), c, vectors);
                }
            } else {
                for i in 0..m {
                    let (u, c) = (load::<T, A, N>(&delta_z[i]), load::<T, A, N>(&buffer[i]));
                    weights = term::<T, A, N, SQUARE>(u, c, weights);
                }
            }
        }
        let scale = self.output_scale::<T>();
        let scale = splat::<T, A, N>(if SQUARE { scale * scale } else { scale });
        let last = &layers[self.layers.len() - 1];
        for (h, &c) in last.h.iter().zip(&rest[self.output..self.output + m]) {
            output = term::<T, A, N, SQUARE>(load::<T, A, N>(h), splat::<T, A, N>(c), output);
        }
        let bias = splat::<T, A, N>(self.output_bias.map_or(T::ZERO, |at| rest[at]));
        let sum = add::<T, A, N>(add::<T, A, N>(weights, vectors), bias);
        let sum = madd::<T, A, N>(output, scale, sum);
        let sum = if SQUARE { sqrt::<T, A, N>(sum) } else { sum };
        let mut out = zero_tile();
        store::<T, A, N>(sum, &mut out);
        out.0.as_flattened().try_into().expect("two vectors")
    }
}

/// z − mean, stored; returns sum + (z − mean)².
#[inline(always)]
fn centre<T: Scalar, A: Arch, const N: usize>(
    z: &Tile<T>,
    mean: Reg<A, T, N>,
    centred: &mut Tile<T>,
    sum: Reg<A, T, N>,
) -> Reg<A, T, N> {
    let own = sub::<T, A, N>(load::<T, A, N>(z), mean);
    store::<T, A, N>(own, centred);
    madd::<T, A, N>(own, own, sum)
}

/// The tiles, or their squares.
#[inline(always)]
fn squared<'a, T: Scalar, A: Arch, const N: usize, const SQUARE: bool>(
    tiles: &'a [Tile<T>],
    squares: &'a mut [Tile<T>],
) -> &'a [Tile<T>] {
    if !SQUARE {
        return tiles;
    }
    let squares = &mut squares[..tiles.len()];
    for (square, tile) in squares.iter_mut().zip(tiles) {
        let v = load::<T, A, N>(tile);
        store::<T, A, N>(mul::<T, A, N>(v, v), square);
    }
    squares
}

/// sum + c·u, or sum + c·u².
#[inline(always)]
fn term<T: Scalar, A: Arch, const N: usize, const SQUARE: bool>(
    u: Reg<A, T, N>,
    c: Reg<A, T, N>,
    sum: Reg<A, T, N>,
) -> Reg<A, T, N> {
    let u = if SQUARE { mul::<T, A, N>(u, u) } else { u };
    madd::<T, A, N>(u, c, sum)
}
