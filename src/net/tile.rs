//! The pass of up to sixteen rows, forth and back, at any depth: a row per lane, an array per unit. It serves batches
//! and scoring. Sums over units need no sum across lanes, and widths need no padding.
//!
//! Same steps as `single.rs`; [`Tiles::contract`] makes widths out of what they leave.

use super::Net;
use super::layer::{Kept, RowsInLanes, back, forth};
use crate::linalg::product::{tiles, tiles_transposed};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{ROWS, Tile, add, madd, mul, one_by_one, scale_add, splat};

/// The pass of some rows.
#[derive(Debug, Clone)]
pub(super) struct Tiles<T> {
    /// The inputs; empty where the first product is made elsewhere.
    pub(super) input: Vec<Tile<T>>,
    pub(super) layers: Vec<TileLayer<T>>,
    /// The outputs, before the way back.
    pub(super) f: Vec<Tile<T>>,
    /// Inputs of a layer, squared, and what they are multiplied to.
    squares: Vec<Tile<T>>,
    pub(super) product: Vec<Tile<T>>,
}

/// One hidden layer; one tile per unit.
#[derive(Debug, Clone)]
pub(super) struct TileLayer<T> {
    /// z, then h.
    pub(super) h: Vec<Tile<T>>,
    slope: Vec<Tile<T>>,
    /// x̂; empty without layer norm.
    pub(super) normal: Vec<Tile<T>>,
    inv_std: Tile<T>,
    /// δh, then δy.
    pub(super) delta_y: Vec<Tile<T>>,
    /// Empty without layer norm, where it equals δy.
    delta_z: Vec<Tile<T>>,
}

impl<T: Scalar> TileLayer<T> {
    pub(super) fn delta_z(&self) -> &[Tile<T>] {
        if self.delta_z.is_empty() { &self.delta_y } else { &self.delta_z }
    }

    #[allow(clippy::type_complexity)]
    fn kept(&mut self) -> (Kept<'_, T, ROWS>, &mut [Tile<T>], &mut [Tile<T>], &mut [Tile<T>]) {
        let kept = Kept { normal: &mut self.normal, inv_std: &mut self.inv_std, slope: &mut self.slope };
        (kept, &mut self.h, &mut self.delta_y, &mut self.delta_z)
    }
}

impl<T: Scalar> Tiles<T> {
    /// Room for the passes of a network.
    pub(super) fn new(net: &Net) -> Self {
        let m = net.config.width;
        let tiles = |n: usize| vec![[T::ZERO; ROWS]; n];
        let normed = if net.config.layer_norm { m } else { 0 };
        let layer = TileLayer {
            h: tiles(m),
            slope: tiles(m),
            normal: tiles(normed),
            inv_std: [T::ZERO; ROWS],
            delta_y: tiles(m),
            delta_z: tiles(normed),
        };
        Tiles {
            input: tiles(net.n_in),
            layers: vec![layer; net.layers.len()],
            f: tiles(net.n_outputs),
            squares: tiles(net.n_in.max(m)),
            product: tiles(m),
        }
    }

    /// h_{L−1}, or the input where there is no hidden layer.
    pub(super) fn last(&self) -> &[Tile<T>] {
        self.layers.last().map_or(&self.input, |layer| &layer.h)
    }

    /// z_1 = W_1 x, from the inputs in place.
    #[inline(always)]
    pub(super) fn project(&mut self, net: &Net, first: &[T]) {
        if let Some(layer) = self.layers.first_mut() {
            tiles(&self.input, first, net.ld, &mut layer.h);
        }
    }

    /// From z_1 to the outputs.
    #[inline(always)]
    pub(super) fn forth(&mut self, net: &Net, rest: &[T]) {
        for l in 0..self.layers.len() {
            let (before, own) = self.layers.split_at_mut(l);
            let (kept, h, ..) = own[0].kept();
            if let Some(before) = before.last() {
                tiles(&before.h, net.weights(rest, l), net.ld, h);
            }
            forth(RowsInLanes, net.parameters(rest, l), h, kept);
        }
        let mut f = std::mem::take(&mut self.f);
        tiles_transposed(self.last(), net.output_weights(rest), net.last_ld(), &mut f);
        let scale = splat(net.output_scale::<T>());
        one_by_one!((k, f) in f.iter_mut().enumerate() => {
            *f = madd(*f, scale, splat(net.output_bias.map_or(T::ZERO, |at| rest[at + k])));
        });
        self.f = f;
    }

    /// From the slopes at the outputs, a tile per output, to δz_1.
    #[inline(always)]
    pub(super) fn back(&mut self, net: &Net, rest: &[T], slopes: &[Tile<T>]) {
        let Some(last) = self.layers.last_mut() else { return };
        tiles(slopes, net.output_weights(rest), net.last_ld(), &mut last.delta_y);
        let scale = splat(net.output_scale::<T>());
        one_by_one!(delta in &mut last.delta_y => *delta = mul(*delta, scale));
        self.back_through(net, rest);
    }

    /// As [`Tiles::back`], of ∇f of one output.
    #[inline(always)]
    pub(super) fn back_from(&mut self, net: &Net, rest: &[T], output: usize) {
        let Some(last) = self.layers.last_mut() else { return };
        let (w, scale) = (&net.output_weights(rest)[output * net.last_ld()..], net.output_scale::<T>());
        one_by_one!((delta, w) in last.delta_y.iter_mut().zip(w) => *delta = splat(*w * scale));
        self.back_through(net, rest);
    }

    #[inline(always)]
    fn back_through(&mut self, net: &Net, rest: &[T]) {
        for l in (0..self.layers.len()).rev() {
            let (before, own) = self.layers.split_at_mut(l);
            let (kept, _, delta_y, delta_z) = own[0].kept();
            back(RowsInLanes, net.parameters(rest, l), kept, delta_y, delta_z);
            if let Some(before) = before.last_mut() {
                tiles_transposed(own[0].delta_z(), net.weights(rest, l), net.ld, &mut before.delta_y);
            }
        }
    }

    /// The product of a layer's inputs with coefficients in the shape of its weights, into `product`; of their squares
    /// if `SQUARE`.
    #[inline(always)]
    pub(super) fn multiply<const SQUARE: bool>(&mut self, net: &Net, l: usize, coefficients: &[T]) {
        let inputs = if l == 0 { &self.input } else { &self.layers[l - 1].h };
        if SQUARE {
            let squares = &mut self.squares[..inputs.len()];
            one_by_one!((square, x) in squares.iter_mut().zip(inputs) => *square = mul(*x, *x));
            tiles(squares, coefficients, net.ld, &mut self.product);
        } else {
            tiles(inputs, coefficients, net.ld, &mut self.product);
        }
    }

    /// Σ c·∂f over all parameters, or Σ c·(∂f)² if `SQUARE`, of each row, for coefficients c in the shape of the
    /// parameters; those of W_1 have been multiplied ([`Tiles::multiply`]). `output` is the one whose gradient is
    /// meant.
    #[inline(always)]
    pub(super) fn contract<const SQUARE: bool>(&mut self, net: &Net, rest: &[T], output: usize) -> Tile<T> {
        let power = |v: Tile<T>| if SQUARE { mul(v, v) } else { v };
        let mut sum = [T::ZERO; ROWS];
        for l in 0..self.layers.len() {
            if l > 0 {
                self.multiply::<SQUARE>(net, l, net.weights(rest, l));
            }
            let (layer, places, m) = (&self.layers[l], &net.layers[l], net.config.width);
            let products = self.product.iter().zip(layer.delta_z());
            let mut weights = [T::ZERO; ROWS];
            if let Some(at) = places.bias {
                for ((product, delta), c) in products.zip(&rest[at..at + m]) {
                    weights = madd(add(*product, splat(*c)), power(*delta), weights);
                }
            } else {
                for (product, delta) in products {
                    weights = madd(*product, power(*delta), weights);
                }
            }
            sum = add(sum, weights);
            if let (Some(gain), Some(offset)) = (places.gain, places.offset) {
                let coefficients = rest[gain..gain + m].iter().zip(&rest[offset..offset + m]);
                let (mut gains, mut offsets) = ([T::ZERO; ROWS], [T::ZERO; ROWS]);
                for ((gain, offset), (delta, normal)) in coefficients.zip(layer.delta_y.iter().zip(&layer.normal)) {
                    gains = scale_add(*gain, &power(mul(*delta, *normal)), gains);
                    offsets = scale_add(*offset, &power(*delta), offsets);
                }
                sum = add(sum, add(gains, offsets));
            }
        }
        let at = net.output + output * net.last_ld();
        let mut last = [T::ZERO; ROWS];
        for (h, c) in self.last().iter().zip(&rest[at..]) {
            last = scale_add(*c, &power(*h), last);
        }
        sum = madd(last, power(splat(net.output_scale::<T>())), sum);
        if let Some(at) = net.output_bias {
            sum = madd(splat(rest[at + output]), splat(T::ONE), sum);
        }
        sum
    }
}
