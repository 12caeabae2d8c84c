//! Forward and backward pass of many rows at once: a vector lane holds a row, up to sixteen rows side by side, and
//! weights are broadcast.
//!
//! The same passes as in `tangent.rs`, turned round: there a vector runs over the units of one row, which suits single
//! rows; here it runs over rows, so that sums over units (layer norm, width) need no sum across lanes and widths need
//! no padding. Everything between the products stays in the first cache. Rows enter and leave by transposition.
//!
//! Every pass is generic in R, the registers that hold one number of each row: sixteen for a full tile, eight where no
//! more rows are left.

use super::Net;
use super::shallow::Unit;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{
    Arch, Job, LANES, RowList, Rows, Scattered, Tile, Vectors, fours, many_registers, pieces, turn_back,
};
use crate::linalg::turn::{turn_all, turn_in, turn_rows};

/// Rows side by side.
pub(crate) const ROWS: usize = 2 * LANES;

/// The passes of up to [`ROWS`] rows.
#[derive(Debug, Clone)]
pub(crate) struct Wide<T> {
    pub(super) input: Vec<Tile<T>>,
    pub(super) layers: Vec<WideLayer<T>>,
    /// Inputs of a layer, squared.
    squares: Vec<Tile<T>>,
    /// Σ c·x of each unit.
    pub(super) product: Vec<Tile<T>>,
    pub(super) f: Tile<T>,
    /// Of the rows of a batch: e, and s·e.
    pub(super) residuals: [Tile<T>; 2],
    /// s·W_L, set by [`Net::wide_begin`].
    pub(super) output: Vec<T>,
    /// Set by [`Net::shallow_begin_score`].
    pub(super) units: Vec<Unit<T>>,
}

/// One hidden layer; one tile per unit.
#[derive(Debug, Clone)]
pub(super) struct WideLayer<T> {
    /// z before, h after [`Net::wide_pass`].
    pub(super) h: Vec<Tile<T>>,
    /// Σ z over the units, then what `shallow.rs` makes of Σ δ̂; unused without layer norm.
    pub(super) sum: Tile<T>,
    /// What `shallow.rs` makes of Σ δ̂·x̂.
    pub(super) sum_both: Tile<T>,
    /// x̂; unused without layer norm.
    pub(super) normal: Vec<Tile<T>>,
    pub(super) inv_std: Tile<T>,
    pub(super) delta_y: Vec<Tile<T>>,
    /// Unused without layer norm, where it equals δy.
    pub(super) delta_z: Vec<Tile<T>>,
}

impl<T: Scalar> WideLayer<T> {
    pub(super) fn delta_z(&self) -> &[Tile<T>] {
        if self.delta_z.is_empty() { &self.delta_y } else { &self.delta_z }
    }
}

impl<T: Scalar> Wide<T> {
    /// Room for the passes of a network.
    pub(crate) fn new(net: &Net) -> Self {
        let m = net.config.width;
        let tiles = |n: usize| vec![Tile::ZERO; n];
        let normed = if net.config.layer_norm { m } else { 0 };
        let layer = WideLayer {
            h: tiles(m),
            sum: Tile::ZERO,
            sum_both: Tile::ZERO,
            normal: tiles(normed),
            inv_std: Tile::ZERO,
            delta_y: tiles(m),
            delta_z: tiles(normed),
        };
        Wide {
            input: tiles(if net.is_tall() { 0 } else { net.n_in }),
            layers: vec![layer; net.layers.len()],
            squares: tiles(if net.is_tall() { m } else { net.n_in.max(m) }),
            product: tiles(m),
            f: Tile::ZERO,
            residuals: [Tile::ZERO; 2],
            output: vec![T::ZERO; m],
            units: Vec::new(),
        }
    }

    /// Takes contexts (row-major) as inputs, a row for each lane; false, and nothing done, where they are numbers of another
    /// type, or too short.
    #[inline(always)]
    pub(crate) fn set_all_rows<A: Arch, R: Rows<T, A::V<T>>>(&mut self, net: &Net, rows: &[f32], dim: usize) -> bool {
        !net.config.duplicate_input && turn_all::<T, A, R>(rows, &mut self.input[..dim])
    }

    /// Takes contexts as inputs, a row for each lane.
    #[inline(always)]
    pub(crate) fn set_rows<A: Arch, R: Rows<T, A::V<T>>>(&mut self, net: &Net, rows: &[&[f32]; ROWS]) {
        contexts_to_inputs::<T, A, R>(net, rows, &mut self.input);
    }

    /// Takes inputs, as many rows as R holds at most; lanes without a row repeat the first one.
    #[inline(always)]
    pub(super) fn set_inputs<A: Arch, R: Rows<T, A::V<T>>>(&mut self, inputs: RowList<'_, T>) {
        let rows = Scattered::new(inputs);
        let (whole, last) = self.input.as_chunks_mut::<4>();
        let n = whole.len();
        for (at, tiles) in whole.iter_mut().enumerate() {
            turn_in::<T, A, R>(rows.fours(4 * at), tiles);
        }
        if !last.is_empty() {
            turn_in::<T, A, R>(rows.fours(4 * n), last);
        }
    }

    /// f of each row.
    pub(crate) fn f(&self) -> [T; ROWS] {
        self.f.numbers()
    }
}

/// Writes the inputs of contexts, a row for each lane, one tile per input.
#[inline(always)]
pub(super) fn contexts_to_inputs<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
    net: &Net,
    rows: &[&[f32]; ROWS],
    input: &mut [Tile<T>],
) {
    turn_rows::<T, A, R>(rows, input);
    if net.config.duplicate_input {
        let factor = R::splat(T::of(0.5f64.sqrt()));
        let (a, b) = input.split_at_mut(rows[0].len());
        for (a, b) in a.iter_mut().zip(b) {
            let x = R::mul(R::load(a), factor);
            R::store(x, a);
            R::store(x, b);
        }
    }
}

/// Reads rows (row-major, `ld` apart, a multiple of four, as many as R holds at most) into one tile per unit, and returns the
/// sum over the units. Lanes without a row repeat the first one.
#[inline(always)]
pub(super) fn rows_to_units<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
    rows: &[T],
    ld: usize,
    units: &mut [Tile<T>],
) -> R {
    let n = (rows.len() / ld).min(LANES * R::VECTORS);
    let mut sum = R::splat(T::ZERO);
    for (at, units) in units.chunks_mut(4).enumerate() {
        let own = &rows[4 * at..];
        // a full tile by itself: its rows are then counted by the compiler
        let z = R::turn(if n == ROWS { fours(own, ld, ROWS) } else { fours(own, ld, n) });
        for k in 0..units.len() {
            sum = sum.add(z[k]);
            z[k].store(&mut units[k]);
        }
    }
    sum
}

/// Writes one tile per unit as rows (row-major, `ld` apart, as many as fit). Up to the next four, units beyond the last are
/// zero; further padding is left as it is.
#[inline(always)]
pub(super) fn units_to_rows<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(units: &[Tile<T>], rows: &mut [T], ld: usize) {
    let (n, (fours, last)) = (rows.len() / ld, units.as_chunks());
    for (at, [a, b, c, d]) in fours.iter().enumerate() {
        turn_back([R::load(a), R::load(b), R::load(c), R::load(d)], &mut rows[4 * at..], ld, n);
    }
    if !last.is_empty() {
        let mut four = [R::splat(T::ZERO); 4];
        for (v, unit) in four.iter_mut().zip(last) {
            *v = R::load(unit);
        }
        turn_back(four, &mut rows[4 * fours.len()..], ld, n);
    }
}

/// z_o = Σ_i w[i·ld + o]·x_i, or w[o·ld + i] if `TRANSPOSED`; returns Σ_o z_o.
#[inline(always)]
fn product<T: Scalar, A: Arch, R: Rows<T, A::V<T>>, const TRANSPOSED: bool>(
    x: &[Tile<T>],
    w: &[T],
    ld: usize,
    z: &mut [Tile<T>],
) -> R {
    let mut sum = Tile::ZERO;
    let all = Product { x, w, ld, z, sum: &mut sum };
    if R::VECTORS == 2 {
        A::call(ProductOf::<T, true, TRANSPOSED>(all));
    } else {
        A::call(ProductOf::<T, false, TRANSPOSED>(all));
    }
    R::load(&sum)
}

struct Product<'a, T> {
    x: &'a [Tile<T>],
    w: &'a [T],
    ld: usize,
    z: &'a mut [Tile<T>],
    sum: &'a mut Tile<T>,
}

/// The product for sixteen rows or for eight.
struct ProductOf<'a, T, const SIXTEEN: bool, const TRANSPOSED: bool>(Product<'a, T>);

impl<T: Scalar, const SIXTEEN: bool, const TRANSPOSED: bool> Job for ProductOf<'_, T, SIXTEEN, TRANSPOSED> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        if SIXTEEN {
            self.0.run::<A, A::Sixteen<T>, TRANSPOSED>();
        } else {
            self.0.run::<A, Vectors<A, T, 1>, TRANSPOSED>();
        }
    }
}

impl<T: Scalar> Product<'_, T> {
    #[inline(always)]
    fn run<A: Arch, R: Rows<T, A::V<T>>, const TRANSPOSED: bool>(mut self) {
        // outputs of even and of odd place are summed apart, whatever the blocks, so that neither sum waits for long
        let mut sums = [R::splat(T::ZERO); 2];
        let (mut start, n) = (0, self.z.len());
        // of thirty-two registers an input takes one, and a weight is broadcast from memory by the multiplication itself; of sixteen
        // twelve sums, two inputs and a weight take nearly all
        if const { R::VECTORS == 2 && many_registers::<T, A>() } {
            while n - start >= 20 {
                sums = self.block::<A, R, 20, TRANSPOSED>(start, sums);
                start += 20;
            }
            while n - start >= 12 {
                sums = self.block::<A, R, 12, TRANSPOSED>(start, sums);
                start += 12;
            }
        }
        while start < n {
            // none of the last two blocks has too few sums to hide the latency of an addition
            let size = match n - start {
                left @ ..=6 => left,
                left if left < 12 => left.div_ceil(2),
                _ => 6,
            };
            sums = match size {
                6 => self.block::<A, R, 6, TRANSPOSED>(start, sums),
                5 => self.block::<A, R, 5, TRANSPOSED>(start, sums),
                4 => self.block::<A, R, 4, TRANSPOSED>(start, sums),
                3 => self.block::<A, R, 3, TRANSPOSED>(start, sums),
                2 => self.block::<A, R, 2, TRANSPOSED>(start, sums),
                _ => self.block::<A, R, 1, TRANSPOSED>(start, sums),
            };
            start += size;
        }
        sums[0].add(sums[1]).store(self.sum);
    }

    /// The outputs start..start + B, also added in turn to `next`, beginning with its first.
    #[inline(always)]
    fn block<A: Arch, R: Rows<T, A::V<T>>, const B: usize, const TRANSPOSED: bool>(
        &mut self,
        start: usize,
        mut next: [R; 2],
    ) -> [R; 2] {
        let sums = sums::<T, A, R, B, TRANSPOSED>(self.x, self.w, self.ld, start);
        let z = &mut self.z[start..start + B];
        for b in 0..B {
            next = [next[1], next[0].add(sums[b])];
            sums[b].store(&mut z[b]);
        }
        next
    }
}

/// The outputs start..start + B of a product, in registers.
#[inline(always)]
fn sums<T: Scalar, A: Arch, R: Rows<T, A::V<T>>, const B: usize, const TRANSPOSED: bool>(
    x: &[Tile<T>],
    w: &[T],
    ld: usize,
    start: usize,
) -> [R; B] {
    let mut sums = [R::splat(T::ZERO); B];
    if TRANSPOSED {
        let w = &w[start * ld..];
        for (i, x) in x.iter().enumerate() {
            let x = R::load(x);
            let w = &w[i..i + (B - 1) * ld + 1];
            for b in 0..B {
                sums[b] = R::splat(w[b * ld]).madd(x, sums[b]);
            }
        }
    } else {
        for (x, w) in x.iter().zip(pieces::<B, T>(w, ld, start, x.len())) {
            let x = R::load(x);
            for b in 0..B {
                sums[b] = R::splat(w[b]).madd(x, sums[b]);
            }
        }
    }
    sums
}

/// The product, less its mean over the outputs, where B outputs are all and fit the registers: `z` gets z − mean, and `sum` the
/// sum of its squares, in the order of [`Net::wide_centre_layer`].
struct Centred<'a, T, const B: usize> {
    all: Product<'a, T>,
    inv_m: T,
}

impl<T: Scalar, const B: usize> Job for Centred<'_, T, B> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (Product { x, w, ld, z, sum }, zero) = (self.all, A::Sixteen::<T>::splat(T::ZERO));
        let own = sums::<T, A, A::Sixteen<T>, B, false>(x, w, ld, 0);
        let mut total = [zero; 2];
        for b in 0..B {
            total[b % 2] = total[b % 2].add(own[b]);
        }
        let mean = total[0].add(total[1]).mul(Rows::splat(self.inv_m));
        let (mut squares, z) = ([zero; 2], &mut z[..B]);
        for b in 0..B {
            let centred = own[b].sub(mean);
            squares[b % 2] = centred.madd(centred, squares[b % 2]);
            centred.store(&mut z[b]);
        }
        squares[0].add(squares[1]).store(sum);
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
    pub(crate) fn wide_project<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, first: &[T], wide: &mut Wide<T>) {
        let Wide { input, layers, .. } = wide;
        let sum = product::<T, A, R, false>(input, first, self.ld, &mut layers[0].h);
        R::store(sum, &mut layers[0].sum);
    }

    /// z_1 = W_1 x as [`Net::wide_project`], and of it x̂_1 before it is scaled, as [`Net::wide_normalise`], where there is a layer
    /// norm and no bias. Where all units fit the registers, z_1 itself is not stored.
    #[inline(always)]
    pub(crate) fn wide_centre<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, first: &[T], wide: &mut Wide<T>) {
        const UNITS: usize = 20;
        if const { R::VECTORS == 2 && many_registers::<T, A>() } && self.config.width == UNITS {
            let (own, inv_m) = (&mut wide.layers[0], T::of(self.inv_width));
            let all = Product { x: &wide.input, w: first, ld: self.ld, z: &mut own.normal, sum: &mut own.sum };
            A::call(Centred::<T, UNITS> { all, inv_m });
            let squares = R::load(&own.sum);
            self.wide_scale::<T, A, R>(squares, own);
            return;
        }
        self.wide_project::<T, A, R>(first, wide);
        self.wide_normalise::<T, A, R>(wide);
    }

    /// Forward and backward pass from z_1 on: f, and the factors of ∇f.
    #[inline(always)]
    pub(crate) fn wide_pass<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, rest: &[T], wide: &mut Wide<T>) {
        let sums = self.wide_forward::<T, A, R>(rest, wide);
        self.wide_backward::<T, A, R>(rest, sums, wide);
    }

    /// As [`Net::wide_pass`], but the factors δ are those of ∇ Σ_r e_r f_r with e = weight·(f − reward), which is
    /// returned.
    #[inline(always)]
    pub(super) fn wide_train<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        rest: &[T],
        rewards: &Tile<T>,
        weights: &Tile<T>,
        wide: &mut Wide<T>,
    ) -> R {
        let sums = self.wide_forward::<T, A, R>(rest, wide);
        let residual = R::sub(R::load(&wide.f), R::load(rewards));
        let e = R::mul(residual, R::load(weights));
        // every δ is linear in that of the last layer
        for delta in &mut wide.layers.last_mut().expect("at least one hidden layer").delta_y {
            R::store(R::mul(e, R::load(delta)), delta);
        }
        let sums = [R::mul(e, sums[0]), R::mul(e, sums[1])];
        self.wide_backward::<T, A, R>(rest, sums, wide);
        e
    }

    /// All h, f, and δy of the last layer with its two sums.
    #[inline(always)]
    fn wide_forward<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, rest: &[T], wide: &mut Wide<T>) -> [R; 2] {
        for l in 0..self.layers.len() - 1 {
            self.wide_hidden::<T, A, R>(l, rest, wide);
        }
        self.wide_last::<T, A, R>(rest, wide)
    }

    /// All other δ.
    #[inline(always)]
    fn wide_backward<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, rest: &[T], mut sums: [R; 2], wide: &mut Wide<T>) {
        for l in (0..self.layers.len()).rev() {
            self.wide_delta::<T, A, R>(l, rest, sums, wide);
            if l > 0 {
                sums = self.wide_back::<T, A, R>(l - 1, rest, wide);
            }
        }
    }

    /// x̂_1 from z_1 and its sum, as far as [`Net::wide_centre`] makes it.
    #[inline(always)]
    pub(crate) fn wide_normalise<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, wide: &mut Wide<T>) {
        self.wide_centre_layer::<T, A, R>(&mut wide.layers[0]);
    }

    /// z_l − mean, in `normal`: x̂_l before it is scaled; returns 1/√(var + ε).
    #[inline(always)]
    fn wide_centre_layer<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, own: &mut WideLayer<T>) -> R {
        let inv_m = R::splat(T::of(self.inv_width));
        let mean = R::mul(R::load(&own.sum), inv_m);
        // two sums, so that neither waits for its own last addition
        let (mut even, mut odd) = (R::splat(T::ZERO), R::splat(T::ZERO));
        let ((h, last), (normal, last_normal)) = (own.h.as_chunks(), own.normal.as_chunks_mut());
        for ([h, next], [normal, next_normal]) in h.iter().zip(normal) {
            even = centre::<T, A, R>(h, mean, normal, even);
            odd = centre::<T, A, R>(next, mean, next_normal, odd);
        }
        for (h, normal) in last.iter().zip(last_normal) {
            even = centre::<T, A, R>(h, mean, normal, even);
        }
        self.wide_scale::<T, A, R>(R::add(even, odd), own)
    }

    /// 1/√(var + ε) from the sum of squares, kept and returned.
    #[inline(always)]
    fn wide_scale<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, squares: R, own: &mut WideLayer<T>) -> R {
        let inv_m = R::splat(T::of(self.inv_width));
        let eps = R::splat(T::of(super::tangent::LAYER_NORM_EPS));
        let variance = R::madd(squares, inv_m, eps);
        let inv_std = R::div(R::splat(T::ONE), R::sqrt(variance));
        R::store(inv_std, &mut own.inv_std);
        inv_std
    }

    /// Adds the biases of layer l to z_l, and its sum over the units.
    #[inline(always)]
    fn wide_bias<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, at: usize, rest: &[T], own: &mut WideLayer<T>) {
        let mut sum = R::splat(T::ZERO);
        for (h, &bias) in own.h.iter_mut().zip(&rest[at..at + self.config.width]) {
            let z = R::add(R::load(h), R::splat(bias));
            sum = R::add(sum, z);
            R::store(z, h);
        }
        R::store(sum, &mut own.sum);
    }

    /// h_l of a layer before the last, and z_{l+1}.
    #[inline(always)]
    fn wide_hidden<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, l: usize, rest: &[T], wide: &mut Wide<T>) {
        let (m, layer) = (self.config.width, &self.layers[l]);
        let (own, next) = wide.layers.split_at_mut(l + 1);
        let own = &mut own[l];
        if let Some(at) = layer.bias {
            self.wide_bias::<T, A, R>(at, rest, own);
        }
        if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
            let inv_std = self.wide_centre_layer::<T, A, R>(own);
            let (gain, offset) = (&rest[gain..gain + m], &rest[offset..offset + m]);
            for (((h, normal), &gain), &offset) in own.h.iter_mut().zip(&mut own.normal).zip(gain).zip(offset) {
                let scaled = R::mul(R::load(normal), inv_std);
                R::store(scaled, normal);
                let y = R::madd(R::splat(gain), scaled, R::splat(offset));
                R::store(R::positive(y), h);
            }
        } else {
            for h in &mut own.h {
                R::store(R::positive(R::load(h)), h);
            }
        }
        let next = &mut next[0];
        let sum = product::<T, A, R, false>(&own.h, &rest[self.layers[l + 1].weight..], self.ld, &mut next.h);
        R::store(sum, &mut next.sum);
    }

    /// h of the last hidden layer, f, and δy; returns Σ δx̂ and Σ δx̂·x̂, which the layer norm's derivative needs.
    #[inline(always)]
    fn wide_last<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, rest: &[T], wide: &mut Wide<T>) -> [R; 2] {
        let (m, layer) = (self.config.width, &self.layers[self.layers.len() - 1]);
        let Wide { layers, f, output, .. } = wide;
        let own = layers.last_mut().expect("at least one hidden layer");
        let zero = R::splat(T::ZERO);
        let (mut mean, mut sum, mut sum_both) = (zero, zero, zero);
        if let Some(at) = layer.bias {
            self.wide_bias::<T, A, R>(at, rest, own);
        }
        let output = &output[..m];
        if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
            let inv_std = self.wide_centre_layer::<T, A, R>(own);
            let (h, delta_y) = (&mut own.h[..m], &mut own.delta_y[..m]);
            let (gain, offset, normal) = (&rest[gain..gain + m], &rest[offset..offset + m], &mut own.normal[..m]);
            for i in 0..m {
                let scaled = R::mul(R::load(&normal[i]), inv_std);
                let gain = R::splat(gain[i]);
                let y = R::positive(R::madd(gain, scaled, R::splat(offset[i])));
                let output = R::splat(output[i]);
                let delta = R::where_positive(y, output);
                let delta_normal = R::mul(delta, gain);
                mean = R::madd(output, y, mean);
                sum = R::add(sum, delta_normal);
                sum_both = R::madd(delta_normal, scaled, sum_both);
                R::store(scaled, &mut normal[i]);
                R::store(y, &mut h[i]);
                R::store(delta, &mut delta_y[i]);
            }
        } else {
            let (h, delta_y) = (&mut own.h[..m], &mut own.delta_y[..m]);
            for i in 0..m {
                let y = R::positive(R::load(&h[i]));
                let output = R::splat(output[i]);
                mean = R::madd(output, y, mean);
                R::store(y, &mut h[i]);
                R::store(R::where_positive(y, output), &mut delta_y[i]);
            }
        }
        let bias = R::splat(self.output_bias.map_or(T::ZERO, |at| rest[at]));
        R::store(R::add(mean, bias), f);
        [sum, sum_both]
    }

    /// δy_l of a layer before the last, from δz_{l+1}; returns the two sums as [`Net::wide_last`] does.
    #[inline(always)]
    fn wide_back<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(&self, l: usize, rest: &[T], wide: &mut Wide<T>) -> [R; 2] {
        let m = self.config.width;
        let (own, after) = wide.layers.split_at_mut(l + 1);
        let own = &mut own[l];
        let weight = &rest[self.layers[l + 1].weight..];
        product::<T, A, R, true>(after[0].delta_z(), weight, self.ld, &mut own.delta_y);
        let (mut sum, mut sum_both) = (R::splat(T::ZERO), R::splat(T::ZERO));
        for i in 0..m {
            let delta = R::where_positive(R::load(&own.h[i]), R::load(&own.delta_y[i]));
            R::store(delta, &mut own.delta_y[i]);
            if let Some(gain) = self.layers[l].gain {
                let delta_normal = R::mul(delta, R::splat(rest[gain + i]));
                sum = R::add(sum, delta_normal);
                sum_both = R::madd(delta_normal, R::load(&own.normal[i]), sum_both);
            }
        }
        [sum, sum_both]
    }

    /// δz_l from δy_l where there is a layer norm.
    #[inline(always)]
    fn wide_delta<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        l: usize,
        rest: &[T],
        sums: [R; 2],
        wide: &mut Wide<T>,
    ) {
        let Some(gain) = self.layers[l].gain else { return };
        let (m, own) = (self.config.width, &mut wide.layers[l]);
        let minus_inv_m = R::splat(T::of(-self.inv_width));
        let inv_std = R::load(&own.inv_std);
        let mean = R::mul(sums[0], minus_inv_m);
        let mean_both = R::mul(sums[1], minus_inv_m);
        let (gain, delta_y) = (&rest[gain..gain + m], &own.delta_y[..m]);
        let (normal, delta_z) = (&own.normal[..m], &mut own.delta_z[..m]);
        for i in 0..m {
            let centred = R::madd(R::splat(gain[i]), R::load(&delta_y[i]), mean);
            let centred = R::madd(R::load(&normal[i]), mean_both, centred);
            R::store(R::mul(inv_std, centred), &mut delta_z[i]);
        }
    }

    /// Σ_j c_{ji} x_j (of x_j² if `SQUARE`) of each unit of the first layer, into `product`.
    #[inline(always)]
    pub(crate) fn wide_product<T: Scalar, A: Arch, R: Rows<T, A::V<T>>, const SQUARE: bool>(
        &self,
        first: &[T],
        wide: &mut Wide<T>,
    ) {
        let Wide { input, squares, product: out, .. } = wide;
        product::<T, A, R, false>(squared::<T, A, R, SQUARE>(input, squares), first, self.ld, out);
    }

    /// Σ over all parameters of c·g, or √(Σ c·g²) if `SQUARE`, for each row: with c = 1/Λ the width, with c = θ the mean
    /// of a linear model on ∇f. The part of W_1 comes in `product`.
    #[inline(always)]
    pub(crate) fn wide_contract<T: Scalar, A: Arch, R: Rows<T, A::V<T>>, const SQUARE: bool>(
        &self,
        rest: &[T],
        wide: &mut Wide<T>,
    ) -> [T; ROWS] {
        let m = self.config.width;
        let Wide { layers, product: buffer, squares, .. } = wide;
        let zero = R::splat(T::ZERO);
        let (mut weights, mut vectors, mut output) = (zero, zero, zero);
        for l in 0..self.layers.len() {
            let layer = &self.layers[l];
            if l > 0 {
                let input = squared::<T, A, R, SQUARE>(&layers[l - 1].h, squares);
                product::<T, A, R, false>(input, &rest[layer.weight..], self.ld, buffer);
            }
            let own = &layers[l];
            let (delta_z, delta_y, buffer) = (&own.delta_z()[..m], &own.delta_y[..m], &buffer[..m]);
            if let Some(at) = layer.bias {
                for (u, &c) in delta_z.iter().zip(&rest[at..at + m]) {
                    vectors = term::<T, A, R, SQUARE>(R::load(u), R::splat(c), vectors);
                }
            }
            if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
                let (gain, offset, normal) = (&rest[gain..gain + m], &rest[offset..offset + m], &own.normal[..m]);
                for i in 0..m {
                    let (u, c) = (R::load(&delta_z[i]), R::load(&buffer[i]));
                    weights = term::<T, A, R, SQUARE>(u, c, weights);
                    // δy²·(c_offset + c_gain·x̂²), or without squares
                    let x = R::load(&normal[i]);
                    let x = if SQUARE { R::mul(x, x) } else { x };
                    let c = R::madd(R::splat(gain[i]), x, R::splat(offset[i]));
                    vectors = term::<T, A, R, SQUARE>(R::load(&delta_y[i]), c, vectors);
                }
            } else {
                for i in 0..m {
                    let (u, c) = (R::load(&delta_z[i]), R::load(&buffer[i]));
                    weights = term::<T, A, R, SQUARE>(u, c, weights);
                }
            }
        }
        let scale = self.output_scale::<T>();
        let scale = R::splat(if SQUARE { scale * scale } else { scale });
        let last = &layers[self.layers.len() - 1];
        for (h, &c) in last.h.iter().zip(&rest[self.output..self.output + m]) {
            output = term::<T, A, R, SQUARE>(R::load(h), R::splat(c), output);
        }
        let bias = R::splat(self.output_bias.map_or(T::ZERO, |at| rest[at]));
        let sum = R::add(R::add(weights, vectors), bias);
        let sum = R::madd(output, scale, sum);
        let sum = if SQUARE { R::sqrt(sum) } else { sum };
        let mut out = Tile::ZERO;
        sum.store(&mut out);
        out.numbers()
    }
}

/// z − mean, stored; returns sum + (z − mean)².
#[inline(always)]
fn centre<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(z: &Tile<T>, mean: R, centred: &mut Tile<T>, sum: R) -> R {
    let own = R::sub(R::load(z), mean);
    R::store(own, centred);
    R::madd(own, own, sum)
}

/// The tiles, or their squares.
#[inline(always)]
fn squared<'a, T: Scalar, A: Arch, R: Rows<T, A::V<T>>, const SQUARE: bool>(
    tiles: &'a [Tile<T>],
    squares: &'a mut [Tile<T>],
) -> &'a [Tile<T>] {
    if !SQUARE {
        return tiles;
    }
    let squares = &mut squares[..tiles.len()];
    for (square, tile) in squares.iter_mut().zip(tiles) {
        let v = R::load(tile);
        R::store(R::mul(v, v), square);
    }
    squares
}

/// sum + c·u, or sum + c·u².
#[inline(always)]
fn term<T: Scalar, A: Arch, R: Rows<T, A::V<T>>, const SQUARE: bool>(u: R, c: R, sum: R) -> R {
    let u = if SQUARE { R::mul(u, u) } else { u };
    R::madd(u, c, sum)
}
