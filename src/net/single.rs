//! The pass of one row, forth and back, at any depth: units in lanes. It serves rounds of S-mode, the theory, and as
//! the reference of the pass in tiles.
//!
//! What it leaves are the factors of ∇f: of every parameter group v uᵀ ([`Tangents`]).

use super::layer::{Kept, UnitsInLanes, back, forth};
use super::shape::{Group, U, V};
use super::{Net, Params};
use crate::linalg::product::one_row;
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{LANES, add_scaled, dot, lanes, lanes_mut, mul};

/// f of one row, and the factors of ∇f.
#[derive(Debug, Clone)]
pub struct Tangents<T> {
    /// The network's input, padded with zeros.
    pub(super) input: Vec<T>,
    n_in: usize,
    layers: Vec<LayerTangents<T>>,
    /// s·h_{L−1}.
    output: Vec<T>,
    /// The slope at the outputs, padded with zeros: 1 at the output whose gradient is meant.
    slopes: Vec<T>,
    f: Vec<T>,
    one: [T; 1],
}

/// Vectors of one hidden layer, `ld` numbers each.
#[derive(Debug, Clone)]
struct LayerTangents<T> {
    h: Vec<T>,
    slope: Vec<T>,
    delta_y: Vec<T>,
    /// x̂, δy·x̂ and δz; empty without layer norm, where δz = δy.
    normal: Vec<T>,
    delta_gain: Vec<T>,
    delta_z: Vec<T>,
    inv_std: [T; LANES],
}

impl<T: Scalar> LayerTangents<T> {
    fn delta_z(&self) -> &[T] {
        if self.delta_z.is_empty() { &self.delta_y } else { &self.delta_z }
    }
}

impl<T: Scalar> Tangents<T> {
    /// Room for the passes of a network.
    pub fn new(net: &Net) -> Self {
        let vector = || vec![T::ZERO; net.ld];
        let normed = || if net.config.layer_norm { vector() } else { Vec::new() };
        let layer = LayerTangents {
            h: vector(),
            slope: vector(),
            delta_y: vector(),
            normal: normed(),
            delta_gain: normed(),
            delta_z: normed(),
            inv_std: [T::ZERO; LANES],
        };
        let mut slopes = vec![T::ZERO; net.n_outputs.next_multiple_of(LANES)];
        slopes[0] = T::ONE;
        Tangents {
            input: vec![T::ZERO; net.n_in.next_multiple_of(LANES)],
            n_in: net.n_in,
            layers: vec![layer; net.layers.len()],
            output: vec![T::ZERO; net.last_ld()],
            slopes,
            f: vec![T::ZERO; net.n_outputs],
            one: [T::ONE],
        }
    }

    /// f: one number per output.
    pub fn f(&self) -> &[T] {
        &self.f
    }

    /// The factor u of a group, with padding.
    #[inline(always)]
    pub(super) fn u(&self, group: &Group) -> &[T] {
        match group.u {
            U::DeltaZ(l) => self.layers[l].delta_z(),
            U::DeltaGain(l) => &self.layers[l].delta_gain,
            U::DeltaY(l) => &self.layers[l].delta_y,
            U::Output => &self.output,
            U::Outputs => &self.slopes,
        }
    }

    /// The factor v of a group.
    #[inline(always)]
    pub(super) fn v(&self, group: &Group) -> &[T] {
        match (group.v, group.n_in) {
            (V::Input(0), _) => &self.input[..self.n_in],
            (V::Input(l), Some(n_in)) => &self.layers[l - 1].h[..n_in],
            (V::Outputs, Some(n_in)) => &self.slopes[..n_in],
            // a vector of parameters, or a single output, whose slope is 1 too
            _ => &self.one,
        }
    }

    /// ‖∇f‖².
    pub fn norm_squared(&self, net: &Net) -> f64 {
        let square = |v: &[T]| v.iter().map(|v| v.to_f64().powi(2)).sum::<f64>();
        net.groups.iter().map(|g| square(&self.u(g)[..g.n_out]) * square(self.v(g))).sum()
    }

    /// The whole gradient ∇f, whose input lies in `block`, group after group without padding: weights input-major, W_1
    /// with all its blocks.
    pub fn expand(&self, net: &Net, block: usize, out: &mut [f64]) {
        let mut at = 0;
        for group in &net.groups {
            let (u, v) = (&self.u(group)[..group.n_out], self.v(group));
            let size = u.len() * v.len();
            let total = if group.first { size * net.n_blocks } else { size };
            let whole = &mut out[at..at + total];
            whole.fill(0.0);
            let own = if group.first { &mut whole[block * size..(block + 1) * size] } else { whole };
            for (row, v) in own.chunks_exact_mut(u.len()).zip(v) {
                for (out, u) in row.iter_mut().zip(u) {
                    *out = u.to_f64() * v.to_f64();
                }
            }
            at += total;
        }
    }

    /// ∇f, whose input lies in `block`, in the shape of the parameters.
    pub fn gradient(&self, net: &Net, block: usize) -> Params<T> {
        let mut out = net.zeros();
        for group in &net.groups {
            let (u, v) = (self.u(group), self.v(group));
            let into = if group.first { net.block_mut(&mut out.first, block) } else { &mut out.rest[group.at..] };
            for (row, v) in into.chunks_exact_mut(u.len()).zip(v) {
                row.iter_mut().zip(&u[..group.n_out]).for_each(|(out, u)| *out = *u * *v);
            }
        }
        out
    }

    /// Sets the output whose gradient is meant.
    #[inline(always)]
    fn set_output(&mut self, output: usize) {
        self.slopes.fill(T::ZERO);
        self.slopes[output] = T::ONE;
    }
}

impl Net {
    /// f and the factors of ∇f, for an input that lies in `block`; on a shared trunk of the first output.
    pub fn tangents<T: super::Number>(&self, params: &Params<T>, block: usize, input: &[T], out: &mut Tangents<T>) {
        self.tangents_at(params, (block, 0), input, out);
    }

    /// As [`Net::tangents`], of the output at a [place](Net::place).
    pub(crate) fn tangents_at<T: super::Number>(
        &self,
        params: &Params<T>,
        place: (usize, usize),
        input: &[T],
        out: &mut Tangents<T>,
    ) {
        out.input[..self.n_in].copy_from_slice(input);
        T::both_passes(self, params, place, out);
    }

    /// As [`Net::tangents_at`], of a context.
    pub(crate) fn tangents_of<T: super::Number>(
        &self,
        params: &Params<T>,
        place: (usize, usize),
        x: &[f32],
        out: &mut Tangents<T>,
    ) {
        self.write_input(x, &mut out.input[..self.n_in]);
        T::both_passes(self, params, place, out);
    }

    /// The whole pass of the input in place.
    #[inline(always)]
    pub(super) fn single_pass<T: Scalar>(
        &self,
        params: &Params<T>,
        (block, output): (usize, usize),
        out: &mut Tangents<T>,
    ) {
        if self.n_outputs > 1 {
            out.set_output(output);
        }
        self.single_forth(self.block(&params.first, block), &params.rest, out);
        self.single_back(&params.rest, out);
    }

    #[inline(always)]
    fn single_forth<T: Scalar>(&self, first: &[T], rest: &[T], out: &mut Tangents<T>) {
        for l in 0..self.layers.len() {
            let (before, own) = out.layers.split_at_mut(l);
            let own = &mut own[0];
            let h = lanes_mut(&mut own.h);
            match before.last() {
                None => one_row(&out.input[..self.n_in], first, self.ld, h),
                Some(before) => one_row(&before.h[..self.config.width], self.weights(rest, l), self.ld, h),
            }
            let kept = Kept {
                normal: lanes_mut(&mut own.normal),
                inv_std: &mut own.inv_std,
                slope: lanes_mut(&mut own.slope),
            };
            forth(UnitsInLanes(self.config.width), self.parameters(rest, l), h, kept);
        }
        let (scale, ld) = (self.output_scale::<T>(), self.last_ld());
        let last = out.layers.last().map_or(&out.input, |layer| &layer.h);
        for (k, (f, w)) in out.f.iter_mut().zip(self.output_weights(rest).chunks_exact(ld)).enumerate() {
            *f = scale * dot(last, w) + self.output_bias.map_or(T::ZERO, |at| rest[at + k]);
        }
        for (out, h) in lanes_mut(&mut out.output).iter_mut().zip(lanes(last)) {
            *out = mul(*h, [scale; LANES]);
        }
    }

    #[inline(always)]
    fn single_back<T: Scalar>(&self, rest: &[T], out: &mut Tangents<T>) {
        let (scale, ld) = (self.output_scale::<T>(), self.last_ld());
        if let Some(last) = out.layers.last_mut() {
            last.delta_y.fill(T::ZERO);
            for (slope, w) in out.slopes.iter().zip(self.output_weights(rest).chunks_exact(ld)) {
                if *slope != T::ZERO {
                    add_scaled(scale * *slope, w, &mut last.delta_y);
                }
            }
        }
        for l in (0..self.layers.len()).rev() {
            let (before, own) = out.layers.split_at_mut(l);
            let own = &mut own[0];
            let kept = Kept {
                normal: lanes_mut(&mut own.normal),
                inv_std: &mut own.inv_std,
                slope: lanes_mut(&mut own.slope),
            };
            let (delta, delta_z) = (lanes_mut(&mut own.delta_y), lanes_mut(&mut own.delta_z));
            back(UnitsInLanes(self.config.width), self.parameters(rest, l), kept, delta, delta_z);
            let layer = lanes(&own.delta_y).iter().zip(lanes(&own.normal));
            for (gain, (delta, normal)) in lanes_mut(&mut own.delta_gain).iter_mut().zip(layer) {
                *gain = mul(*delta, *normal);
            }
            if let Some(before) = before.last_mut() {
                let weights = self.weights(rest, l).chunks_exact(self.ld);
                for (delta, w) in before.delta_y.iter_mut().zip(weights) {
                    *delta = dot(w, own.delta_z());
                }
            }
        }
    }
}
