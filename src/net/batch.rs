//! A step on a batch of rows, in two halves: [`Batch::forth`] gives the outputs of all rows; whoever knows the loss
//! turns them into slopes; [`Batch::back`] moves the weights along Σ_r slope_r·∇f(x_r).
//!
//! Rows pass in tiles of sixteen (`tile.rs`). δ and h come back as rows, whose products move the weights (`walk.rs`);
//! the gradients of vectors of parameters (bias, gain, offset, a single output's weights) are summed lane by lane.

use std::ops::Range;

use super::optim::{Step, Stepper};
use super::plan::BatchEntrance;
use super::tile::Tiles;
use super::walk::{Outer, walk};
use super::{Net, Number, Params};
use crate::linalg::product::{from_tiles, rows, to_tiles};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::{Job, ROWS, Tile, add, madd, mul, splat, total};

/// Memory for the rows of a batch and what their pass leaves.
#[derive(Debug, Clone)]
pub(crate) struct Batch<T> {
    /// Rows.
    n: usize,
    n_in: usize,
    n_outputs: usize,
    inputs: Vec<T>,
    /// Each block that has any rows, and which these are, in order.
    blocks: Vec<(usize, Range<usize>)>,
    outputs: Vec<T>,
    slopes: Vec<T>,
    tiles: Vec<Tiles<T>>,
    /// The slopes of a tile, a tile per output.
    tile_slopes: Vec<Vec<Tile<T>>>,
    layers: Vec<LayerRows<T>>,
    /// s·h_{L−1} of each row, where there are several outputs.
    last: Vec<T>,
    /// The gradient of the vectors of parameters, in the shape of all but W_1.
    grad: Vec<T>,
    scratch: Vec<T>,
}

/// One hidden layer, row after row of `ld` numbers.
#[derive(Debug, Clone, Default)]
struct LayerRows<T> {
    /// z_l where rows enter one after the other, then δz_l.
    delta: Vec<T>,
    /// h_l; empty in the last layer.
    h: Vec<T>,
}

impl<T: Number> Batch<T> {
    /// No rows yet.
    pub(crate) fn new(net: &Net) -> Self {
        Batch {
            n: 0,
            n_in: net.n_in,
            n_outputs: net.n_outputs,
            inputs: Vec::new(),
            blocks: Vec::new(),
            outputs: Vec::new(),
            slopes: Vec::new(),
            tiles: Vec::new(),
            tile_slopes: Vec::new(),
            layers: vec![LayerRows { delta: Vec::new(), h: Vec::new() }; net.layers.len()],
            last: Vec::new(),
            grad: vec![T::ZERO; net.rest_len()],
            scratch: Vec::new(),
        }
    }

    /// Makes room for `n` rows, given the block of each, in rising order. Their inputs are to be written by
    /// [`Batch::input_mut`].
    pub(crate) fn begin(&mut self, net: &Net, n: usize, blocks: impl Iterator<Item = usize>) {
        self.n = n;
        self.blocks.clear();
        for (row, block) in blocks.enumerate() {
            match self.blocks.last_mut() {
                Some((known, rows)) if *known == block => rows.end += 1,
                _ => self.blocks.push((block, row..row + 1)),
            }
        }
        let n_tiles = n.div_ceil(ROWS);
        self.inputs.resize(n * self.n_in, T::ZERO);
        self.outputs.resize(n * self.n_outputs, T::ZERO);
        self.slopes.resize(n * self.n_outputs, T::ZERO);
        if self.tiles.len() < n_tiles {
            self.tiles.resize_with(n_tiles, || Tiles::new(net));
            self.tile_slopes.resize(n_tiles, vec![[T::ZERO; ROWS]; self.n_outputs]);
        }
        let hidden = self.layers.len();
        for (l, layer) in self.layers.iter_mut().enumerate() {
            layer.delta.resize(n * net.ld, T::ZERO);
            layer.h.resize(if l + 1 < hidden { n * net.ld } else { 0 }, T::ZERO);
        }
        self.last.resize(if self.n_outputs > 1 { n * net.last_ld() } else { 0 }, T::ZERO);
    }

    /// The inputs of a row, to be written.
    pub(crate) fn input_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.inputs[row * self.n_in..(row + 1) * self.n_in]
    }

    /// The outputs of all rows, row after row, and their slopes, to be written.
    pub(crate) fn outputs_and_slopes(&mut self) -> (&[T], &mut [T]) {
        (&self.outputs, &mut self.slopes)
    }

    /// Fills the outputs.
    pub(crate) fn forth(&mut self, net: &Net, weights: &Params<T>) {
        self.forth_by(net.batch_entrance(), net, weights);
    }

    pub(super) fn forth_by(&mut self, entrance: BatchEntrance, net: &Net, weights: &Params<T>) {
        T::batch_forth(Forth { batch: self, entrance, net, weights });
    }

    /// Moves the weights: step `t` (from 1), `rate` times as large as the optimiser's own.
    pub(crate) fn back(&mut self, net: &Net, weights: &mut Params<T>, stepper: &mut Stepper<T>, t: usize, rate: f64) {
        T::batch_back(Back { batch: self, net, weights, stepper, t, rate });
    }
}

/// [`Batch::forth`].
pub(crate) struct Forth<'a, T> {
    batch: &'a mut Batch<T>,
    entrance: BatchEntrance,
    net: &'a Net,
    weights: &'a Params<T>,
}

impl<T: Scalar> Job for Forth<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Forth { batch, entrance, net, weights } = self;
        if entrance == BatchEntrance::Rows {
            let z = &mut batch.layers[0].delta;
            for (block, own) in &batch.blocks {
                let x = &batch.inputs[own.start * net.n_in..own.end * net.n_in];
                let w = net.block(&weights.first, *block);
                rows(x, net.n_in, w, net.ld, &mut z[own.start * net.ld..own.end * net.ld]);
            }
        }
        for (number, tile) in batch.tiles[..batch.n.div_ceil(ROWS)].iter_mut().enumerate() {
            let own = number * ROWS..batch.n.min((number + 1) * ROWS);
            if entrance == BatchEntrance::Rows {
                let z = &batch.layers[0].delta[own.start * net.ld..own.end * net.ld];
                to_tiles(z, net.ld, &mut tile.layers[0].h);
            } else {
                to_tiles(&batch.inputs[own.start * net.n_in..own.end * net.n_in], net.n_in, &mut tile.input);
                tile.project(net, &weights.first);
            }
            tile.forth(net, &weights.rest);
            let k = net.n_outputs;
            from_tiles(&tile.f, &mut batch.outputs[own.start * k..own.end * k], k);
        }
    }
}

/// [`Batch::back`].
pub(crate) struct Back<'a, T> {
    batch: &'a mut Batch<T>,
    net: &'a Net,
    weights: &'a mut Params<T>,
    stepper: &'a mut Stepper<T>,
    t: usize,
    rate: f64,
}

impl<T: Scalar> Job for Back<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Back { batch, net, weights, stepper, t, rate } = self;
        let n_tiles = batch.n.div_ceil(ROWS);
        for number in 0..n_tiles {
            batch.tile_back(net, &weights.rest, number);
        }
        batch.sum_vectors(net, n_tiles);
        batch.walk(net, stepper.begin(t, rate, weights));
    }
}

impl<T: Scalar> Batch<T> {
    /// δ of a tile, and as rows what the products of the step need.
    #[inline(always)]
    fn tile_back(&mut self, net: &Net, rest: &[T], number: usize) {
        let (tile, slopes) = (&mut self.tiles[number], &mut self.tile_slopes[number]);
        let (own, k, ld) = (number * ROWS..self.n.min((number + 1) * ROWS), net.n_outputs, net.ld);
        to_tiles(&self.slopes[own.start * k..own.end * k], k, slopes);
        // lanes without a row repeat the last one: they must not count
        for slope in slopes.iter_mut() {
            slope[own.len()..].fill(T::ZERO);
        }
        tile.back(net, rest, slopes);
        for (rows, layer) in self.layers.iter_mut().zip(&tile.layers) {
            from_tiles(layer.delta_z(), &mut rows.delta[own.start * ld..own.end * ld], ld);
            if !rows.h.is_empty() {
                from_tiles(&layer.h, &mut rows.h[own.start * ld..own.end * ld], ld);
            }
        }
        if k > 1 {
            let ld = net.last_ld();
            from_tiles(tile.last(), &mut self.last[own.start * ld..own.end * ld], ld);
        }
    }

    /// The gradient of the vectors of parameters, over all tiles.
    #[inline(always)]
    fn sum_vectors(&mut self, net: &Net, n_tiles: usize) {
        let Batch { tiles, tile_slopes, grad, .. } = self;
        let (tiles, slopes) = (&tiles[..n_tiles], &tile_slopes[..n_tiles]);
        for (l, places) in net.layers.iter().enumerate() {
            for i in 0..net.config.width {
                let (mut bias, mut gain, mut offset) = ([T::ZERO; ROWS], [T::ZERO; ROWS], [T::ZERO; ROWS]);
                for tile in tiles {
                    let layer = &tile.layers[l];
                    if places.bias.is_some() {
                        bias = add(bias, layer.delta_z()[i]);
                    }
                    if places.gain.is_some() {
                        gain = madd(layer.delta_y[i], layer.normal[i], gain);
                        offset = add(offset, layer.delta_y[i]);
                    }
                }
                for (at, sum) in [(places.bias, bias), (places.gain, gain), (places.offset, offset)] {
                    if let Some(at) = at {
                        grad[at + i] = total(sum);
                    }
                }
            }
        }
        if net.n_outputs == 1 {
            let scale = splat(net.output_scale::<T>());
            for i in 0..net.last_in() {
                let mut sum = [T::ZERO; ROWS];
                for (tile, slopes) in tiles.iter().zip(slopes) {
                    sum = madd(mul(scale, slopes[0]), tile.last()[i], sum);
                }
                grad[net.output + i] = total(sum);
            }
        }
        if let Some(at) = net.output_bias {
            for k in 0..net.n_outputs {
                let sum = slopes.iter().fold([T::ZERO; ROWS], |sum, slopes| add(sum, slopes[k]));
                grad[at + k] = total(sum);
            }
        }
    }

    /// Moves all weights.
    #[inline(always)]
    fn walk(&mut self, net: &Net, mut step: Step<'_, T>) {
        let Batch { inputs, blocks, slopes, layers, last, grad, scratch, .. } = self;
        let (ld, mut next) = (net.ld, 0);
        if let Some(layer) = layers.first() {
            for &(block, ref rows) in blocks.iter() {
                step.first(net.blocks(next..block)).along_zero();
                let v = &inputs[rows.start * net.n_in..rows.end * net.n_in];
                let u = &layer.delta[rows.start * ld..rows.end * ld];
                let part = step.first(net.blocks(block..block + 1));
                walk(part, Outer { v, stride: net.n_in, n_in: net.n_in, u, ld }, T::ONE, None, scratch);
                next = block + 1;
            }
            step.first(net.blocks(next..net.n_blocks)).along_zero();
        }
        for (l, layer) in net.layers.iter().enumerate().skip(1) {
            let part = step.rest(layer.weight..layer.weight + layer.n_in * ld);
            let outer = Outer { v: &layers[l - 1].h, stride: ld, n_in: layer.n_in, u: &layers[l].delta, ld };
            walk(part, outer, T::ONE, None, scratch);
        }
        if net.n_outputs > 1 {
            let (ld, k) = (net.last_ld(), net.n_outputs);
            let part = step.rest(net.output..net.output + k * ld);
            walk(part, Outer { v: slopes, stride: k, n_in: k, u: last, ld }, net.output_scale(), None, scratch);
        }
        for run in &net.vectors {
            step.rest(run.clone()).along(&grad[run.clone()]);
        }
    }
}
