//! Forward and backward pass for a batch of rows, and what follows from the factors of the gradient.
//!
//! Shapes: rows × ld, where ld is m rounded up to whole vectors. Per hidden layer l:
//!
//! ```text
//! z_l = W_l h_{l−1} (+ b_l)                    δz_l = ∂f/∂z_l
//! x̂_l = (z_l − mean) / √(var + 1e-5)           δx̂ = gain·δy;  δz = (δx̂ − mean(δx̂) − x̂·mean(δx̂·x̂)) / √(var + 1e-5)
//! y_l = gain·x̂_l + offset                      δy_l = δh_l · 1[y_l > 0]
//! h_l = max(y_l, 0)                            δh_l = W_{l+1}ᵀ δz_{l+1},  δh_{L−1} = s·W_L
//! ```

use super::{Factor, Group, Net, Params};
use crate::linalg::dense::{dot, multiply};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, LANES, dispatch, lanes, map};

pub(super) const LAYER_NORM_EPS: f64 = 1e-5;

/// The factors of ∇f for a batch of rows, and f itself.
#[derive(Debug, Clone)]
pub struct Tangents<T> {
    pub(super) rows: usize,
    ld: usize,
    n_in: usize,
    /// The inputs, rows × n_in.
    pub(super) input: Vec<T>,
    pub(super) layers: Vec<LayerTangents<T>>,
    /// s·h_{L−1}.
    output: Vec<T>,
    f: Vec<T>,
    /// (1, 0, …, 0): the factors where there is no other.
    unit: [T; LANES],
    /// 1 for the m real units, 0 for the padding.
    real: Vec<T>,
}

/// Arrays of one hidden layer, rows × ld each.
#[derive(Debug, Clone)]
pub(super) struct LayerTangents<T> {
    /// x̂_l; unused without layer norm.
    normal: Vec<T>,
    /// 1/√(var + ε) per row; unused without layer norm.
    inv_std: Vec<T>,
    pub(super) h: Vec<T>,
    delta_y: Vec<T>,
    /// δy_l·x̂_l; unused without layer norm.
    delta_gain: Vec<T>,
    delta_z: Vec<T>,
    /// W_lᵀ with rows padded to ld; unused for the first layer.
    transposed: Vec<T>,
}

impl<T: Scalar> Tangents<T> {
    /// Room for up to `rows` rows at a time.
    pub fn new(net: &Net, rows: usize) -> Self {
        let array = || vec![T::ZERO; rows * net.ld];
        let normed = |used: bool| if used { array() } else { Vec::new() };
        let layer_norm = net.config.layer_norm;
        let layers = (0..net.layers.len())
            .map(|l| LayerTangents {
                normal: normed(layer_norm),
                inv_std: vec![T::ZERO; rows],
                h: array(),
                delta_y: array(),
                delta_gain: normed(layer_norm),
                delta_z: normed(layer_norm),
                transposed: if l == 0 { Vec::new() } else { vec![T::ZERO; net.config.width * net.ld] },
            })
            .collect();
        Tangents {
            rows,
            ld: net.ld,
            n_in: net.n_in,
            input: vec![T::ZERO; rows * net.n_in],
            layers,
            output: array(),
            f: vec![T::ZERO; rows],
            unit: std::array::from_fn(|i| if i == 0 { T::ONE } else { T::ZERO }),
            real: (0..net.ld).map(|i| if i < net.config.width { T::ONE } else { T::ZERO }).collect(),
        }
    }

    /// f of each row.
    pub fn f(&self) -> &[T] {
        &self.f[..self.rows]
    }

    /// The array of a factor u (rows × ld); `None` stands for ones.
    #[inline(always)]
    pub(super) fn factor(&self, factor: Factor) -> Option<&[T]> {
        match factor {
            // without layer norm y and z are the same
            Factor::DeltaZ(l) if self.layers[l].delta_z.is_empty() => Some(&self.layers[l].delta_y),
            Factor::DeltaZ(l) => Some(&self.layers[l].delta_z),
            Factor::DeltaGain(l) => Some(&self.layers[l].delta_gain),
            Factor::DeltaY(l) => Some(&self.layers[l].delta_y),
            Factor::Output => Some(&self.output),
            Factor::One => None,
        }
    }

    /// The factor u of the first row, with padding.
    #[inline(always)]
    pub(super) fn first_u(&self, factor: Factor) -> &[T] {
        self.factor(factor).map_or(&self.unit, |u| &u[..self.ld])
    }

    /// The factor v of the first row: the input of weights, 1 for a vector of parameters.
    #[inline(always)]
    pub(super) fn first_v(&self, group: &Group) -> &[T] {
        match (group.n_in, group.u) {
            (None, _) => &self.unit[..1],
            (Some(n_in), Factor::DeltaZ(l)) if l > 0 => &self.layers[l - 1].h[..n_in],
            (Some(n_in), _) => &self.input[..n_in],
        }
    }

    /// The factor u of one row of a group, without padding.
    fn u(&self, group: &Group, row: usize) -> Vec<f64> {
        match self.factor(group.u) {
            Some(u) => u[row * self.ld..][..group.n_out].iter().map(|v| v.wide()).collect(),
            None => vec![1.0],
        }
    }

    /// The factor v of one row of a group of weights: the input of its layer.
    fn v(&self, group: &Group, row: usize) -> Option<Vec<f64>> {
        let n_in = group.n_in?;
        let (input, stride) = match group.u {
            Factor::DeltaZ(0) => (&self.input, self.n_in),
            Factor::DeltaZ(l) => (&self.layers[l - 1].h, self.ld),
            _ => unreachable!("only weights have inputs"),
        };
        Some(input[row * stride..][..n_in].iter().map(|v| v.wide()).collect())
    }

    /// ‖∇f‖² of one row.
    pub fn norm_squared(&self, net: &Net, row: usize) -> f64 {
        let square = |v: Vec<f64>| v.iter().map(|v| v * v).sum::<f64>();
        net.groups.iter().map(|g| square(self.u(g, row)) * self.v(g, row).map_or(1.0, square)).sum()
    }

    /// The whole gradient ∇f of one row, whose input lies in `block`, group after group without padding:
    /// weights input-major, W_1 with all its blocks.
    pub fn expand(&self, net: &Net, block: usize, row: usize, out: &mut [f64]) {
        let mut at = 0;
        for group in &net.groups {
            let u = self.u(group, row);
            let v = self.v(group, row).unwrap_or_else(|| vec![1.0]);
            let size = u.len() * v.len();
            let total = if group.first { size * net.n_blocks } else { size };
            let whole = &mut out[at..at + total];
            whole.fill(0.0);
            let own = if group.first { &mut whole[block * size..(block + 1) * size] } else { whole };
            for (row, v) in own.chunks_exact_mut(u.len()).zip(&v) {
                for (out, u) in row.iter_mut().zip(&u) {
                    *out = u * v;
                }
            }
            at += total;
        }
    }

    /// ∇f of one row, whose input lies in `block`, in the shape of the parameters.
    pub fn gradient(&self, net: &Net, block: usize, row: usize) -> Params<T> {
        let mut out = net.zeros();
        for group in &net.groups {
            let u = self.u(group, row);
            let v = self.v(group, row).unwrap_or_else(|| vec![1.0]);
            let into = if group.first { net.block_mut(&mut out.first, block) } else { &mut out.rest[group.at..] };
            for (j, v) in v.iter().enumerate() {
                for (i, u) in u.iter().enumerate() {
                    into[j * net.ld + i] = T::of(u * v);
                }
            }
        }
        out
    }

    /// The factors of one row, kept for [`Net::gram`]: u and, for weights, v of each group.
    pub(crate) fn factors(&self, net: &Net, row: usize) -> Vec<(Vec<f64>, Option<Vec<f64>>)> {
        net.groups.iter().map(|g| (self.u(g, row), self.v(g, row))).collect()
    }
}

impl Net {
    /// f and the factors of ∇f for rows whose inputs (rows × n_in) all lie in `block`.
    pub fn tangents<T: Scalar>(&self, params: &Params<T>, block: usize, input: &[T], out: &mut Tangents<T>) {
        T::both_passes(self, params, block, input, out);
    }

    /// As [`Net::tangents`].
    pub(crate) fn both_passes<T: Scalar>(&self, params: &Params<T>, block: usize, input: &[T], out: &mut Tangents<T>) {
        let first = self.block(&params.first, block);
        dispatch(Backward { net: self, first, rest: &params.rest, input, out });
    }

    /// f and the factors of ∇f for one context whose input lies in `block`, inside a job.
    #[inline(always)]
    pub(crate) fn tangents_of<T: Scalar, A: Arch>(
        &self,
        params: &Params<T>,
        block: usize,
        x: &[f32],
        out: &mut Tangents<T>,
    ) {
        self.write_input_in::<T, A>(x, self.input_mut(out, 1));
        self.project::<T, A>(self.block(&params.first, block), out);
        self.pass::<T, A>(&params.rest, out);
    }

    /// As [`Net::tangents`], inside a job.
    #[inline(always)]
    fn tangents_in<T: Scalar, A: Arch>(&self, first: &[T], rest: &[T], input: &[T], out: &mut Tangents<T>) {
        let rows = input.len() / self.n_in;
        out.rows = rows;
        out.input[..input.len()].copy_from_slice(input);
        self.project::<T, A>(first, out);
        self.pass::<T, A>(rest, out);
    }

    /// z_1 = W_1 x of all rows, whose inputs are in place and lie in the block `first`.
    #[inline(always)]
    fn project<T: Scalar, A: Arch>(&self, first: &[T], out: &mut Tangents<T>) {
        let input = &out.input[..out.rows * self.n_in];
        let z = &mut out.layers[0].h[..out.rows * self.ld];
        multiply::<T, A>(input, self.n_in, self.n_in, first, self.ld, z);
    }

    /// Everything after [`Net::project`], forward and backward, for all rows.
    #[inline(always)]
    fn pass<T: Scalar, A: Arch>(&self, rest: &[T], out: &mut Tangents<T>) {
        match self.ld / LANES {
            1 => A::call(Pass::<T, 1> { net: self, rest, out }),
            2 => A::call(Pass::<T, 2> { net: self, rest, out }),
            3 => A::call(Pass::<T, 3> { net: self, rest, out }),
            _ => A::call(Pass::<T, 0> { net: self, rest, out }),
        }
    }

    /// ld; known to the compiler where C, the vectors of a row, is not 0.
    #[inline(always)]
    fn row_len<const C: usize>(&self) -> usize {
        if C > 0 { C * LANES } else { self.ld }
    }

    /// Fills x̂, h and f; z_1 is in place.
    #[inline(always)]
    fn forward<T: Scalar, A: Arch, const C: usize>(&self, rest: &[T], out: &mut Tangents<T>) {
        let (ld, rows) = (self.row_len::<C>(), out.rows);
        for l in 0..self.layers.len() {
            let layer = &self.layers[l];
            let (before, own) = out.layers.split_at_mut(l);
            let own = &mut own[0];
            let h = &mut own.h[..rows * ld];
            if l > 0 {
                let weight = &rest[layer.weight..][..layer.n_in * ld];
                multiply::<T, A>(&before[l - 1].h[..rows * ld], ld, layer.n_in, weight, ld, h);
            }
            if let Some(at) = layer.bias {
                let bias = lanes(&rest[at..at + ld]);
                for r in 0..rows {
                    map!(A, &mut h[r * ld..(r + 1) * ld], |i, z| A::add(z, A::load(&bias[i])));
                }
            }
            if let (Some(gain), Some(offset)) = (layer.gain, layer.offset) {
                let (gain, offset) = (lanes(&rest[gain..gain + ld]), lanes(&rest[offset..offset + ld]));
                for r in 0..rows {
                    let h = &mut h[r * ld..(r + 1) * ld];
                    let normal = &mut own.normal[r * ld..(r + 1) * ld];
                    own.inv_std[r] = self.normalise::<T, A>(h, normal, &out.real[..ld]);
                    let normal = lanes(normal);
                    map!(A, h, |i, _| {
                        let y = A::madd(A::load(&gain[i]), A::load(&normal[i]), A::load(&offset[i]));
                        A::where_positive(y, y)
                    });
                }
            } else {
                map!(A, &mut *h, |_, y| A::where_positive(y, y));
            }
        }
        let last = &out.layers[self.layers.len() - 1].h[..rows * ld];
        let (scale, weight) = (self.output_scale::<T>(), &rest[self.output..self.output + ld]);
        let bias = self.output_bias.map_or(T::ZERO, |at| rest[at]);
        for r in 0..rows {
            out.f[r] = scale * dot::<T, A>(&last[r * ld..(r + 1) * ld], weight) + bias;
        }
        let (scale, last) = (A::splat(scale), lanes(last));
        map!(A, &mut out.output[..rows * ld], |i, _| A::mul(scale, A::load(&last[i])));
    }

    /// x̂ = (z − mean)/√(var + ε) over the m real units, zero in the padding; returns 1/√(var + ε).
    #[inline(always)]
    fn normalise<T: Scalar, A: Arch>(&self, z: &[T], normal: &mut [T], real: &[T]) -> T {
        let inv_m = T::of(self.inv_width);
        let (z, real) = (lanes(z), lanes(real));
        let mut sum = A::zero::<T>(); // the padding of z is zero
        for z in z {
            sum = A::add(sum, A::load(z));
        }
        let mean = A::splat(A::total(sum) * inv_m);
        let mut squares = A::zero::<T>();
        map!(A, &mut *normal, |i, _| {
            let centred = A::mul(A::load(&real[i]), A::sub(A::load(&z[i]), mean));
            squares = A::madd(centred, centred, squares);
            centred
        });
        let inv_std = T::ONE / (A::total(squares) * inv_m + T::of(LAYER_NORM_EPS)).root();
        let factor = A::splat(inv_std);
        map!(A, &mut *normal, |_, v| A::mul(v, factor));
        inv_std
    }

    /// Fills δy, δz and δgain from the output back to the first layer.
    #[inline(always)]
    fn backward<T: Scalar, A: Arch, const C: usize>(&self, rest: &[T], out: &mut Tangents<T>) {
        let (ld, rows, m) = (self.row_len::<C>(), out.rows, self.config.width);
        let inv_m = T::of(self.inv_width);
        let real = lanes(&out.real[..ld]);
        for l in (0..self.layers.len()).rev() {
            let (own, after) = out.layers.split_at_mut(l + 1);
            let own = &mut own[l];
            let (h, delta_y) = (&own.h[..rows * ld], &mut own.delta_y[..rows * ld]);
            // δh, then δy
            if let Some(next) = after.first_mut() {
                let weight = &rest[self.layers[l + 1].weight..][..m * ld];
                transpose(weight, ld, m, &mut next.transposed);
                let delta_z = if next.delta_z.is_empty() { &next.delta_y } else { &next.delta_z };
                multiply::<T, A>(&delta_z[..rows * ld], ld, m, &next.transposed, ld, delta_y);
                let h = lanes(h);
                map!(A, &mut *delta_y, |i, delta| A::where_positive(A::load(&h[i]), delta));
            } else {
                let scale = A::splat(self.output_scale::<T>());
                let weight = lanes(&rest[self.output..self.output + ld]);
                for r in 0..rows {
                    let h = lanes(&h[r * ld..(r + 1) * ld]);
                    map!(A, &mut delta_y[r * ld..(r + 1) * ld], |i, _| {
                        A::where_positive(A::load(&h[i]), A::mul(scale, A::load(&weight[i])))
                    });
                }
            }
            // δz
            let Some(gain) = self.layers[l].gain else { continue };
            let gain = lanes(&rest[gain..gain + ld]);
            for r in 0..rows {
                let row = r * ld..(r + 1) * ld;
                let (delta_y, normal) = (lanes(&delta_y[row.clone()]), lanes(&own.normal[row.clone()]));
                let (mut sum, mut sum_both) = (A::zero::<T>(), A::zero::<T>());
                map!(A, &mut own.delta_gain[row.clone()], |i, _| {
                    let (delta, gain) = (A::load(&delta_y[i]), A::load(&gain[i]));
                    let delta_gain = A::mul(delta, A::load(&normal[i]));
                    sum = A::madd(delta, gain, sum);
                    sum_both = A::madd(delta_gain, gain, sum_both);
                    delta_gain
                });
                let inv_std = A::splat(own.inv_std[r]);
                let mean = A::splat(-A::total(sum) * inv_m);
                let mean_both = A::splat(-A::total(sum_both) * inv_m);
                map!(A, &mut own.delta_z[row], |i, _| {
                    let centred = A::madd(A::load(&gain[i]), A::load(&delta_y[i]), mean);
                    let delta = A::mul(inv_std, A::madd(A::load(&normal[i]), mean_both, centred));
                    A::mul(A::load(&real[i]), delta)
                });
            }
        }
    }

    /// Sets the number of rows and gives their inputs, to be filled before [`Net::project`].
    fn input_mut<'a, T: Scalar>(&self, tangents: &'a mut Tangents<T>, rows: usize) -> &'a mut [T] {
        tangents.rows = rows;
        &mut tangents.input[..rows * self.n_in]
    }
}

/// Forward and backward pass after the first product.
struct Pass<'a, T, const C: usize> {
    net: &'a Net,
    rest: &'a [T],
    out: &'a mut Tangents<T>,
}

impl<T: Scalar, const C: usize> Job for Pass<'_, T, C> {
    type Out = ();
    #[inline(always)]
    fn run<A: Arch>(self) {
        self.net.forward::<T, A, C>(self.rest, self.out);
        self.net.backward::<T, A, C>(self.rest, self.out);
    }
}

struct Backward<'a, T> {
    net: &'a Net,
    first: &'a [T],
    rest: &'a [T],
    input: &'a [T],
    out: &'a mut Tangents<T>,
}

impl<T: Scalar> Job for Backward<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run<A: Arch>(self) {
        self.net.tangents_in::<T, A>(self.first, self.rest, self.input, self.out);
    }
}

/// Wᵀ of an input-major weight (n × ld, n real outputs).
#[inline(always)]
fn transpose<T: Scalar>(w: &[T], ld: usize, n: usize, out: &mut [T]) {
    for i in 0..n {
        for j in 0..n {
            out[i * ld + j] = w[j * ld + i];
        }
    }
}
