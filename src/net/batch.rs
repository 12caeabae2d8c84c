//! One step on a batch of rows: the gradient of (1/B) Σ_r ½(f(x_r) − y_r)², and the move along it.
//!
//! z_1 = W_1 x by a product per block of W_1, over rows, or in tiles with a row per lane where there is one block that the
//! first cache holds; then all rows, whatever their block, pass through the rest of the network in tiles (`wide.rs`, or
//! `shallow.rs` for one hidden layer), or, in networks like the paper's, two by two (`pairs.rs`); δz comes back as rows, and Σ_r x_r δz_rᵀ moves the weights tile by tile
//! (`outer_batch.rs`). The gradients of the vectors (output layer, gain, offset, biases) are summed lane by lane. A few rows that would
//! leave their tile nearly empty pass one by one (`single.rs`).

use std::ops::Range;

use super::optim::{Step, Stepper};
use super::pairs::Pairs;
use super::single::SingleRows;
use super::sums::Sums;
use super::wide::{Wide, rows_to_units, units_to_rows};
use super::{Net, Params, ROWS};
use crate::linalg::dense::multiply;
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::memory::{Ahead, Numbers};
use crate::linalg::simd::{Arch, Job, LANES, Lanes, RowList, Rows, Tile, Vectors};

/// As many rows pass one by one at most: a tile takes as long however few it holds.
const SINGLES: usize = 3;

/// The rows of a batch and what their pass leaves.
#[derive(Debug, Clone)]
pub(crate) struct Batch<T> {
    n: usize,
    /// Where each row of z and h begins.
    starts: Vec<usize>,
    /// Rows at the end that pass one by one.
    singles: usize,
    /// Of the rows of each tile: rewards, and weights in the loss, which are 0 in lanes without a row.
    rewards: Vec<Tile<T>>,
    weights: Vec<Tile<T>>,
    layers: Vec<BatchLayer<T>>,
    /// Lane sums of e·s·h_{L−1} per unit, and of e.
    output: Vec<Tile<T>>,
    output_bias: Tile<T>,
    /// The gradient of the vectors of parameters, in the shape of all but W_1.
    grad: Numbers<T>,
    sums: Sums<T>,
    /// One for each tile, or one for all.
    wide: Vec<Wide<T>>,
    /// The inputs of the tile that begins: one room for all, as the first cache has not much left.
    input: Vec<Tile<T>>,
    /// What the tiles share where the passes are those of `shallow.rs`.
    outputs: Vec<[T; 2]>,
    /// Where rows pass in pairs; then there are no tiles.
    pairs: Option<Pairs<T>>,
}

/// One hidden layer.
#[derive(Debug, Clone)]
struct BatchLayer<T> {
    /// z_l, then δz_l, rows × ld; of whole pairs of rows.
    z: Numbers<T>,
    /// h_l, rows × ld; empty in the last layer.
    h: Numbers<T>,
    /// Lane sums per unit; empty where the layer has no such parameters.
    bias: Vec<Tile<T>>,
    gain: Vec<Tile<T>>,
    offset: Vec<Tile<T>>,
}

impl<T: Scalar> Batch<T> {
    /// Room for `rows` rows.
    pub(crate) fn new(net: &Net, rows: usize) -> Self {
        let in_pairs = net.is_in_pairs::<T>();
        let tiles = |used: bool| vec![Tile::ZERO; if used && !in_pairs { net.config.width } else { 0 }];
        let last = net.layers.len() - 1;
        let layers = net.layers.iter().enumerate().map(|(l, layer)| BatchLayer {
            z: Numbers::zeros(rows.next_multiple_of(2) * net.ld),
            h: Numbers::zeros(if l < last { rows * net.ld } else { 0 }),
            bias: tiles(layer.bias.is_some()),
            gain: tiles(layer.gain.is_some()),
            offset: tiles(layer.offset.is_some()),
        });
        let n_tiles = if in_pairs { 0 } else { rows.div_ceil(ROWS) };
        let few = !in_pairs && (1..=SINGLES).contains(&(rows % ROWS)) && net.is_small() && net.is_in_lanes();
        let singles = if few { rows % ROWS } else { 0 };
        let together = net.is_shallow() && net.is_in_lanes();
        let mut weights = vec![Tile::ZERO; n_tiles];
        for row in 0..if in_pairs { 0 } else { rows } {
            weights[row / ROWS].0.as_flattened_mut()[row % ROWS] = T::of(1.0 / rows as f64);
        }
        Batch {
            n: rows,
            starts: (0..rows).map(|row| row * net.ld).collect(),
            singles,
            rewards: vec![Tile::ZERO; n_tiles],
            weights,
            layers: layers.collect(),
            output: tiles(true),
            output_bias: Tile::ZERO,
            grad: Numbers::zeros(net.rest_len),
            sums: Sums::new(net.ld),
            wide: vec![Wide::new(net); if together { (rows - singles).div_ceil(ROWS).max(1) } else { 1 }],
            input: vec![Tile::ZERO; if net.is_in_lanes() { net.n_in } else { 0 }],
            outputs: vec![[T::ZERO; 2]; net.config.width],
            pairs: in_pairs.then(|| Pairs::new(net, rows)),
        }
    }

    /// Sets the rewards of the rows.
    #[inline(always)]
    pub(crate) fn set_rewards(&mut self, mut rewards: impl Iterator<Item = f64>) {
        if let Some(pairs) = &mut self.pairs {
            return pairs.set_rewards(rewards);
        }
        for tile in &mut self.rewards {
            // a row of the tile without a reward keeps none that counts
            for (own, reward) in tile.0.as_flattened_mut().iter_mut().zip(&mut rewards) {
                *own = T::of(reward);
            }
        }
    }

    /// The rows that pass in tiles, and how many tiles these are.
    fn in_tiles(&self) -> (usize, usize) {
        let n = self.n - self.singles;
        (n, n.div_ceil(ROWS))
    }

    /// How often a step asks for a portion of the rows that come next: before each product, with the rows as they pass (five times a
    /// tile), and twice while the weights move.
    pub(crate) fn pauses(&self) -> usize {
        3 + self.pairs.as_ref().map_or(5 * self.in_tiles().1, Pairs::pauses)
    }

    fn clear_sums(&mut self) {
        for layer in &mut self.layers {
            for sums in [&mut layer.bias, &mut layer.gain, &mut layer.offset] {
                sums.fill(Tile::ZERO);
            }
        }
        self.output.fill(Tile::ZERO);
        self.output_bias = Tile::ZERO;
    }
}

/// One step on a batch, whose rewards are set: a function of its own, whoever asks for it.
pub(crate) struct BatchStep<'a, T> {
    pub(crate) net: &'a Net,
    pub(crate) weights: &'a mut Params<T>,
    pub(crate) stepper: &'a mut Stepper<T>,
    /// The round, from 1.
    pub(crate) t: usize,
    /// The rows, sorted by block.
    pub(crate) inputs: RowList<'a, T>,
    /// Each block that has any rows, and which these are.
    pub(crate) blocks: &'a [(usize, Range<usize>)],
    pub(crate) batch: &'a mut Batch<T>,
    /// Rows of the next batch, a portion of which is asked for now and then on the way, [`Batch::pauses`] times.
    pub(crate) ahead: Ahead<'a>,
}

impl<T: Scalar> Job for BatchStep<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let BatchStep { net, weights, stepper, t, inputs, blocks, batch, mut ahead } = self;
        net.batch_gradient::<T, A>(weights, inputs, blocks, batch, &mut ahead);
        net.batch_move::<T, A>(inputs, blocks, batch, stepper.begin(t, weights), &mut ahead);
    }
}

impl Net {
    /// The gradient of the batch's loss. What it leaves in `batch` is for [`Net::batch_move`].
    #[inline(always)]
    fn batch_gradient<T: Scalar, A: Arch>(
        &self,
        weights: &Params<T>,
        inputs: RowList<'_, T>,
        blocks: &[(usize, Range<usize>)],
        batch: &mut Batch<T>,
        ahead: &mut Ahead<'_>,
    ) {
        let (ld, (n, n_tiles)) = (self.ld, batch.in_tiles());
        ahead.ask();
        if let Some(pairs) = &mut batch.pairs {
            let into = (&mut batch.layers[0].z[..], &mut batch.grad[..]);
            return self.pairs_gradient::<T, A>(weights, inputs, pairs, into, ahead);
        }
        if !self.is_in_lanes() {
            for (block, rows) in blocks {
                let (x, w) = (inputs.rows(rows.clone()), self.block(&weights.first, *block));
                let z = &mut batch.layers[0].z[rows.start * ld..rows.end * ld];
                multiply::<T, A>(x.side_by_side(), x.len(), self.n_in, w, ld, z);
            }
        }
        batch.grad.fill(T::ZERO);
        if self.is_shallow() {
            self.shallow_begin(&weights.rest, &mut batch.outputs);
        } else {
            batch.clear_sums();
            self.wide_begin(&weights.rest, &mut batch.wide[0]);
        }
        if batch.singles > 0 {
            self.batch_singles::<T, A>(weights, inputs, batch);
        }
        // tiles that have each their own memory all begin before the first one ends: it need not wait for its root and division
        let together = batch.wide.len();
        for first in (0..n_tiles).step_by(together) {
            let tiles = first..(first + together).min(n_tiles);
            for tile in tiles.clone() {
                ahead.ask();
                if n - tile * ROWS > LANES {
                    self.batch_begin::<T, A, A::Sixteen<T>>(weights, inputs, tile, batch, ahead);
                } else {
                    self.batch_begin::<T, A, Vectors<A, T, 1>>(weights, inputs, tile, batch, ahead);
                }
                ahead.ask();
            }
            if self.is_shallow() {
                self.batch_end_shallow::<T, A>(&weights.rest, tiles, batch, ahead);
                continue;
            }
            for tile in tiles {
                ahead.ask();
                if n - tile * ROWS > LANES {
                    self.batch_end::<T, A, A::Sixteen<T>>(weights, tile, batch);
                } else {
                    self.batch_end::<T, A, Vectors<A, T, 1>>(weights, tile, batch);
                }
                ahead.ask();
            }
        }
    }

    /// The rows that pass one by one.
    #[inline(always)]
    fn batch_singles<T: Scalar, A: Arch>(&self, weights: &Params<T>, inputs: RowList<'_, T>, batch: &mut Batch<T>) {
        let first = batch.n - batch.singles;
        let Batch { rewards, weights: shares, layers, grad, .. } = batch;
        let rows = SingleRows {
            inputs: inputs.rows(first..batch.n),
            rewards: &rewards[first / ROWS].0.as_flattened()[..batch.singles],
            shares: &shares[first / ROWS].0.as_flattened()[..batch.singles],
            delta_z: &mut layers[0].z[first * self.ld..],
            grad,
        };
        self.single_rows::<T, A>(weights, rows);
    }

    /// z_1 of a tile; x̂_1 before it is scaled where the passes are those of `shallow.rs`.
    #[inline(always)]
    fn batch_begin<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        weights: &Params<T>,
        inputs: RowList<'_, T>,
        tile: usize,
        batch: &mut Batch<T>,
        ahead: &mut Ahead<'_>,
    ) {
        let rows = tile * ROWS..batch.in_tiles().0.min((tile + 1) * ROWS);
        let Batch { layers, wide, input, .. } = batch;
        let at = tile % wide.len();
        let wide = &mut wide[at];
        std::mem::swap(&mut wide.input, input);
        if self.is_in_lanes() {
            wide.set_inputs::<A, R>(inputs.rows(rows));
        } else {
            let own = &layers[0].z[rows.start * self.ld..rows.end * self.ld];
            let sum = rows_to_units::<T, A, R>(own, self.ld, &mut wide.layers[0].h);
            R::store(sum, &mut wide.layers[0].sum);
        }
        ahead.ask();
        match (self.is_shallow(), self.is_in_lanes()) {
            (true, true) => self.wide_centre::<T, A, R>(&weights.first, wide),
            (true, false) => self.wide_normalise::<T, A, R>(wide),
            (false, true) => self.wide_project::<T, A, R>(&weights.first, wide),
            (false, false) => {}
        }
        std::mem::swap(&mut wide.input, input);
    }

    /// The rest of some tiles' passes, and their share of the gradient, by the passes of `shallow.rs`.
    #[inline(always)]
    fn batch_end_shallow<T: Scalar, A: Arch>(
        &self,
        rest: &[T],
        tiles: Range<usize>,
        batch: &mut Batch<T>,
        ahead: &mut Ahead<'_>,
    ) {
        let (n, ld) = (batch.in_tiles().0, self.ld);
        let Batch { rewards, weights, layers, output, wide, outputs, .. } = batch;
        let (wide, BatchLayer { z, gain, offset, .. }) = (&mut wide[..tiles.len()], &mut layers[0]);
        let is_full = |tile: usize| n - tile * ROWS > LANES;
        for (tile, wide) in tiles.clone().zip(&mut *wide) {
            let targets = (&rewards[tile], &weights[tile]);
            if is_full(tile) {
                self.shallow_forth::<T, A, A::Sixteen<T>>(rest, outputs, targets, wide);
            } else {
                self.shallow_forth::<T, A, Vectors<A, T, 1>>(rest, outputs, targets, wide);
            }
            ahead.ask();
        }
        let full = tiles.clone().filter(|&tile| is_full(tile)).count();
        self.shallow_back::<T, A>(rest, outputs, wide, full, [gain, offset, output], tiles.start == 0);
        for (tile, wide) in tiles.zip(wide) {
            let (rows, units) = (&mut z[tile * ROWS * ld..n.min((tile + 1) * ROWS) * ld], &wide.layers[0].h);
            if is_full(tile) {
                units_to_rows::<T, A, A::Sixteen<T>>(units, rows, ld);
            } else {
                units_to_rows::<T, A, Vectors<A, T, 1>>(units, rows, ld);
            }
            ahead.ask();
        }
    }

    /// The rest of a tile's passes, and its share of the gradient.
    #[inline(always)]
    fn batch_end<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(
        &self,
        weights: &Params<T>,
        tile: usize,
        batch: &mut Batch<T>,
    ) {
        let rows = tile * ROWS..batch.in_tiles().0.min((tile + 1) * ROWS);
        let Batch { rewards, weights: shares, layers, output, output_bias, wide, .. } = batch;
        let (at, rest) = (tile % wide.len(), &weights.rest[..]);
        let (wide, y, weight) = (&mut wide[at], &rewards[tile], &shares[tile]);
        let own = rows.start * self.ld..rows.end * self.ld;
        let e = self.wide_train::<T, A, R>(rest, y, weight, wide);

        for (layer, wide) in layers.iter_mut().zip(&wide.layers) {
            units_to_rows::<T, A, R>(wide.delta_z(), &mut layer.z[own.clone()], self.ld);
            if !layer.h.is_empty() {
                units_to_rows::<T, A, R>(&wide.h, &mut layer.h[own.clone()], self.ld);
            }
            for (sum, delta) in layer.bias.iter_mut().zip(wide.delta_z()) {
                add_to::<T, A, R>(R::load(delta), sum);
            }
            for (((gain, offset), delta), normal) in
                layer.gain.iter_mut().zip(&mut layer.offset).zip(&wide.delta_y).zip(&wide.normal)
            {
                let delta = R::load(delta);
                add_to::<T, A, R>(delta, offset);
                let own = R::madd(delta, R::load(normal), R::load(gain));
                R::store(own, gain);
            }
        }
        let last = &wide.layers[wide.layers.len() - 1];
        let scaled = R::mul(e, R::splat(self.output_scale()));
        for (sum, h) in output.iter_mut().zip(&last.h) {
            let own = R::madd(scaled, R::load(h), R::load(sum));
            R::store(own, sum);
        }
        add_to::<T, A, R>(e, output_bias);
    }

    /// Moves all weights along the gradient that [`Net::batch_gradient`] left.
    #[inline(always)]
    fn batch_move<T: Scalar, A: Arch>(
        &self,
        inputs: RowList<'_, T>,
        blocks: &[(usize, Range<usize>)],
        batch: &mut Batch<T>,
        mut step: Step<'_, T>,
        ahead: &mut Ahead<'_>,
    ) {
        ahead.ask();
        let (ld, Batch { starts, layers, output, output_bias, grad, sums, pairs, .. }) = (self.ld, batch);
        let mut next = 0;
        for &(block, ref rows) in blocks {
            step.first(self.blocks(next..block)).still::<A>();
            let x = inputs.rows(rows.clone());
            let u = &layers[0].z[rows.start * ld..rows.end * ld];
            let part = step.first(self.blocks(block..block + 1));
            part.outer::<A>(self, x, self.n_in, u, sums, pairs.is_some());
            next = block + 1;
        }
        step.first(self.blocks(next..self.n_blocks)).still::<A>();
        ahead.ask();

        for (l, layer) in self.layers.iter().enumerate() {
            if l > 0 {
                let part = step.rest(layer.weight..layer.weight + layer.n_in * ld);
                let x = RowList::new(&layers[l - 1].h, ld, starts);
                part.outer::<A>(self, x, layer.n_in, &layers[l].z, sums, false);
            }
            let own = &layers[l];
            for (at, sums) in [(layer.bias, &own.bias), (layer.gain, &own.gain), (layer.offset, &own.offset)] {
                if let Some(at) = at {
                    totals::<T, A>(sums, &mut grad[at..at + ld]);
                }
            }
        }
        totals::<T, A>(output, &mut grad[self.output..self.output + ld]);
        if let Some(at) = self.output_bias {
            totals::<T, A>(&[*output_bias], &mut grad[at..at + LANES]);
        }
        for run in &self.vectors {
            step.rest(run.clone()).along::<A>(&grad[run.clone()]);
        }
    }

    /// Whether rows of a batch meet W_1 with a row per lane.
    pub(super) fn is_in_lanes(&self) -> bool {
        self.n_blocks == 1 && !self.is_tall()
    }

    /// Where some blocks lie in a first-layer array.
    pub(super) fn blocks(&self, blocks: Range<usize>) -> Range<usize> {
        blocks.start * self.first_len()..blocks.end * self.first_len()
    }
}

#[inline(always)]
fn add_to<T: Scalar, A: Arch, R: Rows<T, A::V<T>>>(v: R, sum: &mut Tile<T>) {
    R::store(R::add(R::load(sum), v), sum);
}

/// Adds the sum over lanes of each tile, eight tiles at a time.
#[inline(always)]
fn totals<T: Scalar, A: Arch>(tiles: &[Tile<T>], out: &mut [T]) {
    for (tiles, out) in tiles.chunks(LANES).zip(out.chunks_exact_mut(LANES)) {
        let mut block = [A::zero::<T>(); LANES];
        for (v, tile) in block.iter_mut().zip(tiles) {
            *v = A::add(A::load(&tile.0[0]), A::load(&tile.0[1]));
        }
        let mut sum = A::zero();
        for v in A::transpose(block) {
            sum = A::add(sum, v);
        }
        let out: &mut Lanes<T> = out.try_into().expect("eight lanes");
        A::store(A::add(A::load(out), sum), out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Gathered, Init, NetConfig, Optimiser, Schedule, Tangents, Towards};
    use super::*;
    use crate::data::{Encoding, Layout};
    use crate::linalg::simd::{Neon, Portable, dispatch};
    use crate::seed::Seed;
    use rand::RngExt;

    struct OneStep<'a, T> {
        net: &'a Net,
        weights: &'a mut Params<T>,
        stepper: &'a mut Stepper<T>,
        batch: &'a mut Batch<T>,
        rows: &'a [(Vec<f32>, f64)],
        blocks: &'a [(usize, Range<usize>)],
    }

    impl<T: Scalar> Job for OneStep<'_, T> {
        type Out = ();
        #[inline(always)]
        fn run<A: Arch>(self) {
            let OneStep { net, weights, stepper, batch, rows, blocks } = self;
            let (len, mut list) = (rows[0].0.len().next_multiple_of(LANES), Vec::new());
            for (row, (x, _)) in rows.iter().enumerate() {
                list.extend_from_slice(x);
                list.resize((row + 1) * len, f32::NAN); // what lies behind a context is no matter
            }
            batch.set_rewards(rows.iter().map(|(_, reward)| *reward));
            let mut gathered = Gathered::new(net, rows.len());
            let starts: Vec<usize> = (0..rows.len()).map(|row| row * len).collect();
            let inputs = gathered.gather::<A>(net, RowList::new(&list, len, &starts));
            A::call(BatchStep { net, weights, stepper, t: 1, inputs, blocks, batch, ahead: Ahead::nothing() });
        }
    }

    /// (1/n) Σ_r e_r ∇f_r, row by row.
    fn gradient(
        net: &Net,
        weights: &Params<f64>,
        rows: &[(Vec<f32>, f64)],
        blocks: &[(usize, Range<usize>)],
    ) -> Params<f64> {
        let (mut one, mut input) = (Tangents::new(net, 1), vec![0.0; net.n_in]);
        let mut sum = weights.filled(0.0);
        for (block, rows_of_it) in blocks {
            for (x, reward) in &rows[rows_of_it.clone()] {
                net.write_input(x, &mut input);
                net.tangents(weights, *block, &input, &mut one);
                let e = (one.f()[0] - reward) / rows.len() as f64;
                let grad = one.gradient(net, *block, 0);
                sum.first.iter_mut().zip(grad.first.iter()).for_each(|(s, g)| *s += e * g);
                sum.rest.iter_mut().zip(grad.rest.iter()).for_each(|(s, g)| *s += e * g);
            }
        }
        sum
    }

    /// W − η (1/n) Σ_r e_r ∇f_r.
    fn expected(
        net: &Net,
        weights: &Params<f64>,
        rows: &[(Vec<f32>, f64)],
        blocks: &[(usize, Range<usize>)],
    ) -> Params<f64> {
        let (mut moved, grad) = (weights.clone(), gradient(net, weights, rows, blocks));
        moved.first.iter_mut().zip(grad.first.iter()).for_each(|(w, g)| *w -= ETA * g);
        moved.rest.iter_mut().zip(grad.rest.iter()).for_each(|(w, g)| *w -= ETA * g);
        moved
    }

    /// Three steps of Adam as it is written down (`optim.rs`), with l2 = 0.1 and lr = 0.01.
    fn expected_of_adam(
        net: &Net,
        start: &Params<f64>,
        rows: &[(Vec<f32>, f64)],
        blocks: &[(usize, Range<usize>)],
        towards: Towards,
    ) -> Params<f64> {
        let (mut weights, mut mu, mut nu) = (start.clone(), start.filled(0.0), start.filled(0.0));
        for t in 1..=3 {
            let grad = gradient(net, &weights, rows, blocks);
            let (first, second) = (1.0 - 0.9f64.powi(t), 1.0 - 0.999f64.powi(t));
            let step = |w: &mut [f64], c: &[f64], g: &[f64], mu: &mut [f64], nu: &mut [f64]| {
                for i in 0..w.len() {
                    let g = g[i] + 0.1 * (w[i] - if towards == Towards::Initial { c[i] } else { 0.0 });
                    mu[i] = 0.9 * mu[i] + 0.1 * g;
                    nu[i] = 0.999 * nu[i] + 0.001 * g * g;
                    w[i] -= 0.01 * (mu[i] / first) / ((nu[i] / second).sqrt() + 1e-8);
                }
            };
            step(&mut weights.first, &start.first, &grad.first, &mut mu.first, &mut nu.first);
            step(&mut weights.rest, &start.rest, &grad.rest, &mut mu.rest, &mut nu.rest);
        }
        weights
    }

    const ETA: f64 = 0.1;
    const SGD: Optimiser = Optimiser::Sgd { schedule: Schedule::Constant(ETA) };

    fn stepped<T: Scalar>(
        net: &Net,
        start: &Params<f64>,
        rows: &[(Vec<f32>, f64)],
        blocks: &[(usize, Range<usize>)],
        (optimiser, steps, best): (Optimiser, usize, bool),
    ) -> Params<f64> {
        let narrow = |v: &[f64]| Numbers::from(&v.iter().map(|&v| T::of(v)).collect::<Vec<T>>()[..]);
        let mut weights = Params { first: narrow(&start.first), rest: narrow(&start.rest) };
        let mut stepper = Stepper::new(optimiser, net, &weights, 0.1).unwrap();
        let mut batch = Batch::new(net, rows.len());
        for _ in 0..steps {
            let step = OneStep { net, weights: &mut weights, stepper: &mut stepper, batch: &mut batch, rows, blocks };
            if best { dispatch(step) } else { step.run::<Portable>() }
        }
        let wide = |v: &[T]| Numbers::from(&v.iter().map(|v| v.wide()).collect::<Vec<f64>>()[..]);
        Params { first: wide(&weights.first), rest: wide(&weights.rest) }
    }

    /// Widths and inputs that fill registers and that do not, rows that fill tiles and that do not, blocks, depths, with and
    /// without layer norm and biases; in f32, whose registers may be wider, and in f64, with the best instructions and the
    /// plain ones.
    #[test]
    fn a_step_on_a_batch_is_the_sum_of_its_rows() {
        let mut rng = Seed::new(5).stream("test");
        let sizes = [
            (2, 1, 3),
            (7, 3, 1),
            (10, 5, 9),
            (20, 20, 50),
            (20, 27, 17),
            (26, 20, 16),
            (104, 12, 8),
            (20, 300, 10),
            (50, 130, 7),
        ];
        for (width, dim, n) in sizes {
            for (depth, layer_norm, biases, duplicate_input) in
                [(2, true, false, false), (2, false, false, true), (3, true, true, false), (2, true, true, true)]
            {
                for encoding in [Encoding::PerAction, Encoding::Disjoint] {
                    let config = NetConfig {
                        depth,
                        width,
                        layer_norm,
                        biases,
                        duplicate_input,
                        init: Init::Uniform,
                        ..NetConfig::default()
                    };
                    let net = Net::new(config, Layout { dim, n_actions: 3, encoding }).unwrap();
                    let start: Params<f32> = net.init(&mut rng);
                    let wide = |v: &[f32]| Numbers::from(&v.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>()[..]);
                    let start = Params { first: wide(&start.first), rest: wide(&start.rest) };
                    let row =
                        |_| ((0..dim).map(|_| rng.random_range(-1.0..1.0)).collect(), rng.random_range(-1.0..1.0));
                    let rows: Vec<(Vec<f32>, f64)> = (0..n).map(row).collect();
                    let blocks =
                        if net.n_blocks == 1 || n < 3 { vec![(0, 0..n)] } else { vec![(0, 0..n / 2), (2, n / 2..n)] };
                    let want = expected(&net, &start, &rows, &blocks);
                    let moved = want.distance_squared(&start);
                    assert!(moved > 1e-8, "nothing has moved");
                    let name =
                        format!("{width} {dim} {n} {depth} {layer_norm} {biases} {duplicate_input} {encoding:?}");
                    for best in [true, false] {
                        let far = stepped::<f64>(&net, &start, &rows, &blocks, (SGD, 1, best)).distance_squared(&want);
                        assert!(far < 1e-24 * moved.max(1.0), "{name}, f64: {far}");
                        // rounding of weights of order one, not of the step, is what is left
                        let far = stepped::<f32>(&net, &start, &rows, &blocks, (SGD, 1, best)).distance_squared(&want);
                        assert!(far < 1e-9 * moved.max(1e-2), "{name}, f32: {far} of {moved}");
                    }
                }
            }
        }
    }

    /// Against Adam as it is written down. Networks of seventeen to twenty units have passes (`pairs.rs`), sums and moves of their own in
    /// f32: with inputs that are fours and that are not, rows that are pairs and eights and that are not. In wider ones two weights of a
    /// row share a division, and some have none to share it with.
    #[test]
    fn adam_moves_every_weight_by_its_own_moments() {
        let mut rng = Seed::new(9).stream("test");
        let narrow =
            [(18, 1, 3), (20, 3, 9), (20, 4, 16), (18, 20, 50), (20, 27, 17), (20, 43, 5), (17, 9, 1), (19, 6, 15)];
        let others = [(7, 5, 4), (16, 3, 9), (24, 13, 20), (32, 6, 7), (50, 30, 8), (100, 29, 12)];
        for (width, dim, n) in narrow.into_iter().chain(others) {
            for (encoding, towards) in [
                (Encoding::PerAction, Towards::Zero),
                (Encoding::PerAction, Towards::Initial),
                (Encoding::Disjoint, Towards::Zero),
                (Encoding::Disjoint, Towards::Initial),
            ] {
                let config = NetConfig { width, init: Init::Uniform, ..NetConfig::default() };
                let net = Net::new(config, Layout { dim, n_actions: 3, encoding }).unwrap();
                let start: Params<f64> = net.init(&mut rng);
                let row = |_| ((0..dim).map(|_| rng.random_range(-1.0..1.0)).collect(), rng.random_range(-1.0..1.0));
                let rows: Vec<(Vec<f32>, f64)> = (0..n).map(row).collect();
                let blocks =
                    if net.n_blocks == 1 || n < 3 { vec![(0, 0..n)] } else { vec![(0, 0..n / 2), (2, n / 2..n)] };
                let optimiser = Optimiser::Adam { lr: 0.01, l2: 0.1, towards };
                let want = expected_of_adam(&net, &start, &rows, &blocks, towards);
                assert!(want.distance_squared(&start) > 1e-4, "nothing has moved");
                for best in [true, false] {
                    let name = format!("{width} {dim} {n} {encoding:?} {towards:?} {best}");
                    let far =
                        stepped::<f64>(&net, &start, &rows, &blocks, (optimiser, 3, best)).distance_squared(&want);
                    assert!(far < 1e-14, "{name}, f64: {far}");
                    // three steps of 0.01 for each weight, if not for those whose gradient is lost in rounding
                    let far =
                        stepped::<f32>(&net, &start, &rows, &blocks, (optimiser, 3, best)).distance_squared(&want);
                    assert!(far < 1e-7, "{name}, f32: {far}");
                }
            }
        }
    }

    /// Weights after some steps, to the bit.
    struct Bits<'a>(&'a Net, &'a [(Vec<f32>, f64)], bool);

    impl Bits<'_> {
        fn after_steps(self) -> (Vec<u32>, Vec<u32>) {
            let Bits(net, rows, best) = self;
            let mut weights: Params<f32> = net.init(&mut Seed::new(2).stream("init"));
            let optimiser = Optimiser::Adam { lr: 0.01, l2: 0.1, towards: Towards::Zero };
            let mut stepper = Stepper::new(optimiser, net, &weights, 0.1).unwrap();
            let (mut batch, blocks) = (Batch::new(net, rows.len()), [(0, 0..rows.len())]);
            for _ in 0..5 {
                let (weights, stepper, batch) = (&mut weights, &mut stepper, &mut batch);
                let step = OneStep { net, weights, stepper, batch, rows, blocks: &blocks };
                if best { dispatch(step) } else { step.run::<Neon>() }
            }
            let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect();
            (bits(&weights.first), bits(&weights.rest))
        }
    }

    /// The order of every sum is that of the source, whatever the registers, and so is who shares a division with whom.
    #[test]
    fn steps_have_the_same_bits_with_every_fused_instruction_set() {
        if crate::linalg::machine::instructions() == Portable::NAME {
            return println!("skipped: no fused multiply-add here");
        }
        let mut rng = Seed::new(4).stream("test");
        for (width, dim, n) in [(20, 20, 50), (18, 7, 13), (24, 13, 20), (50, 30, 8), (100, 150, 12), (104, 29, 7)] {
            let config = NetConfig { width, ..NetConfig::default() };
            let net = Net::new(config, Layout { dim, n_actions: 2, encoding: Encoding::PerAction }).unwrap();
            assert!(net.is_in_pairs::<f32>() == (17..=20).contains(&width) && !net.is_in_pairs::<f64>());
            let row = |_| ((0..dim).map(|_| rng.random_range(-1.0..1.0)).collect(), rng.random_range(-1.0..1.0));
            let rows: Vec<(Vec<f32>, f64)> = (0..n).map(row).collect();
            let [best, plain] = [true, false].map(|best| Bits(&net, &rows, best).after_steps());
            assert!(best == plain, "{width} {dim} {n}: not the same bits");
        }
    }
}
