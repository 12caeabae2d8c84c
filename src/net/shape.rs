//! The shape of a network: sizes, and where each parameter lies. No numbers.

use std::ops::Range;

use super::layer::Parameters;
use super::{Init, NetConfig, OutputScale, Outputs};
use crate::data::{Encoding, Layout};
use crate::error::{Error, at_least};
use crate::linalg::scalar::Scalar;
use crate::linalg::vectors::LANES;

/// Numbers in the shape of the parameters: weights, gradients, moments, the diagonal of Λ.
#[derive(Debug, Clone, PartialEq)]
pub struct Params<T> {
    /// W_1, one d × m matrix per block.
    pub(crate) first: Vec<T>,
    /// Everything else.
    pub(crate) rest: Vec<T>,
}

impl<T: Scalar> Params<T> {
    /// The same shape, filled with one value.
    pub(crate) fn filled(&self, v: T) -> Self {
        Params { first: vec![v; self.first.len()], rest: vec![v; self.rest.len()] }
    }

    /// Σ (self − other)².
    pub fn distance_squared(&self, other: &Self) -> f64 {
        let sum = |a: &[T], b: &[T]| a.iter().zip(b).map(|(a, b)| (a.to_f64() - b.to_f64()).powi(2)).sum::<f64>();
        sum(&self.first, &other.first) + sum(&self.rest, &other.rest)
    }
}

/// Where the parameters of one hidden layer lie in `rest` (the weights of layer 1 lie in `first`).
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) n_in: usize,
    pub(super) weight: usize,
    pub(super) bias: Option<usize>,
    pub(super) gain: Option<usize>,
    pub(super) offset: Option<usize>,
}

/// The shape of a network: sizes and places, no numbers.
#[derive(Debug, Clone)]
pub struct Net {
    pub(super) config: NetConfig,
    /// Inputs of one block, after duplication.
    pub(super) n_in: usize,
    pub(super) n_blocks: usize,
    /// K, or 1.
    pub(super) n_outputs: usize,
    /// m rounded up to whole vectors.
    pub(super) ld: usize,
    pub(super) layers: Vec<Layer>,
    /// W_L: a row of `last_ld` numbers for each output.
    pub(super) output: usize,
    pub(super) output_bias: Option<usize>,
    /// s, the factor of the output layer.
    scale: f64,
    rest_len: usize,
    pub(super) groups: Vec<Group>,
    /// Where vectors of parameters lie side by side in `rest`, between the weight matrices.
    pub(super) vectors: Vec<Range<usize>>,
}

impl Net {
    /// Checks the settings and lays out the parameters for contexts of that layout.
    pub fn new(config: NetConfig, layout: Layout) -> Result<Self, Error> {
        let shared = config.outputs == Outputs::PerAction;
        if shared && layout.encoding == Encoding::PerAction {
            return Err(Error::Param {
                name: "outputs",
                range: "`one` where every action has its own vector",
                got: layout.n_actions as f64,
            });
        }
        let n_blocks = if shared { 1 } else { layout.n_blocks() };
        at_least("depth", 1 + usize::from(n_blocks > 1), "at least 2 (1 without blocks)", config.depth)?;
        at_least("width", 1, "at least 1", config.width)?;
        let n_in = if config.duplicate_input { 2 * layout.dim } else { layout.dim };
        if config.init == Init::Block && !config.width.is_multiple_of(2) {
            return Err(Error::Param {
                name: "width",
                range: "even for the paper's block initialisation",
                got: config.width as f64,
            });
        }
        let (ld, m) = (config.width.next_multiple_of(LANES), config.width);
        let mut len = 0;
        let mut place = |n: usize| {
            len += n;
            len - n
        };
        let layers: Vec<Layer> = (1..config.depth)
            .map(|l| Layer {
                n_in: if l == 1 { n_in } else { m },
                weight: if l == 1 { 0 } else { place(m * ld) },
                bias: config.biases.then(|| place(ld)),
                gain: config.layer_norm.then(|| place(ld)),
                offset: config.layer_norm.then(|| place(ld)),
            })
            .collect();
        let n_outputs = if shared { layout.n_actions } else { 1 };
        let last_ld = if layers.is_empty() { n_in.next_multiple_of(LANES) } else { ld };
        let output = place(n_outputs * last_ld);
        let output_bias = config.biases.then(|| place(n_outputs.next_multiple_of(LANES)));
        let mut net = Net {
            scale: if config.output_scale == OutputScale::SqrtWidth { (m as f64).sqrt() } else { 1.0 },
            config,
            n_in,
            n_blocks,
            n_outputs,
            ld,
            layers,
            output,
            output_bias,
            rest_len: len,
            groups: Vec::new(),
            vectors: Vec::new(),
        };
        net.groups = net.list_groups();
        net.vectors = net.list_vectors();
        Ok(net)
    }

    /// The settings.
    pub fn config(&self) -> &NetConfig {
        &self.config
    }

    /// Inputs of one block, after duplication.
    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// m, the width.
    pub fn width(&self) -> usize {
        self.config.width
    }

    /// Blocks of W_1.
    pub(crate) fn n_blocks(&self) -> usize {
        self.n_blocks
    }

    /// Outputs for an input: K on a shared trunk, else 1.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// p, the number of parameters, without padding.
    pub fn n_params(&self) -> usize {
        self.groups.iter().map(|g| g.n_out * g.n_in.unwrap_or(1) * if g.first { self.n_blocks } else { 1 }).sum()
    }

    /// Where the input and the output of an action lie: the block of W_1, the row of W_L.
    pub(crate) fn place(&self, action: usize) -> (usize, usize) {
        (if self.n_blocks > 1 { action } else { 0 }, if self.n_outputs > 1 { action } else { 0 })
    }

    /// Inputs of the output layer: the units of the last hidden layer, or the context itself.
    pub(super) fn last_in(&self) -> usize {
        if self.layers.is_empty() { self.n_in } else { self.config.width }
    }

    /// The same in whole vectors.
    pub(super) fn last_ld(&self) -> usize {
        self.last_in().next_multiple_of(LANES)
    }

    /// Numbers of W_1 per block, with padding; none without a hidden layer.
    pub(crate) fn first_len(&self) -> usize {
        if self.layers.is_empty() { 0 } else { self.n_in * self.ld }
    }

    /// Numbers outside W_1, with padding.
    pub(crate) fn rest_len(&self) -> usize {
        self.rest_len
    }

    /// A zero in the shape of the parameters.
    pub fn zeros<T: Scalar>(&self) -> Params<T> {
        Params { first: vec![T::ZERO; self.n_blocks * self.first_len()], rest: vec![T::ZERO; self.rest_len] }
    }

    /// Where a block lies in a first-layer array.
    pub(super) fn blocks(&self, blocks: Range<usize>) -> Range<usize> {
        blocks.start * self.first_len()..blocks.end * self.first_len()
    }

    /// The part of a first-layer array that belongs to `block`.
    pub(crate) fn block<'a, T>(&self, first: &'a [T], block: usize) -> &'a [T] {
        &first[self.blocks(block..block + 1)]
    }

    /// The part of a first-layer array that belongs to `block`, to change.
    pub(crate) fn block_mut<'a, T>(&self, first: &'a mut [T], block: usize) -> &'a mut [T] {
        &mut first[self.blocks(block..block + 1)]
    }

    /// s, the factor of the output layer.
    pub(super) fn output_scale<T: Scalar>(&self) -> T {
        T::of(self.scale)
    }

    /// W_L.
    pub(super) fn output_weights<'a, T>(&self, rest: &'a [T]) -> &'a [T] {
        &rest[self.output..self.output + self.n_outputs * self.last_ld()]
    }

    /// The weights of hidden layer l > 0.
    pub(super) fn weights<'a, T>(&self, rest: &'a [T], l: usize) -> &'a [T] {
        &rest[self.layers[l].weight..][..self.layers[l].n_in * self.ld]
    }

    /// The other parameters of hidden layer l.
    #[inline(always)]
    pub(super) fn parameters<'a, T: Scalar>(&self, rest: &'a [T], l: usize) -> Parameters<'a, T> {
        let (layer, ld) = (&self.layers[l], self.ld);
        let vector = |at: usize| &rest[at..at + ld];
        Parameters {
            activation: self.config.activation,
            bias: layer.bias.map(vector),
            norm: layer.gain.zip(layer.offset).map(|(gain, offset)| [vector(gain), vector(offset)]),
            inv_width: T::of(1.0 / self.config.width as f64),
        }
    }

    /// Writes the network's input for context `x`: x itself, or [x, x]/√2.
    #[inline(always)]
    pub fn write_input<T: Scalar>(&self, x: &[f32], out: &mut [T]) {
        if self.config.duplicate_input {
            let half = T::of(0.5f64.sqrt());
            let (a, b) = out.split_at_mut(x.len());
            for ((x, a), b) in x.iter().zip(a).zip(b) {
                *a = T::of_f32(*x) * half;
                *b = *a;
            }
        } else {
            for (x, out) in x.iter().zip(out) {
                *out = T::of_f32(*x);
            }
        }
    }

    /// The parameter groups in their fixed order.
    fn list_groups(&self) -> Vec<Group> {
        let m = self.config.width;
        let mut groups = Vec::new();
        let rows = (self.n_outputs > 1).then_some(self.n_outputs);
        let mut own = |at: Option<usize>, n_in, n_out, u, v| {
            groups.extend(at.map(|at| Group { first: false, at, n_in, n_out, u, v }));
        };
        own(Some(self.output), rows, self.last_in(), U::Output, V::Outputs);
        own(self.output_bias, None, self.n_outputs, U::Outputs, V::One);
        for (l, layer) in self.layers.iter().enumerate() {
            own(layer.bias, None, m, U::DeltaZ(l), V::One);
            own(layer.gain, None, m, U::DeltaGain(l), V::One);
            own(layer.offset, None, m, U::DeltaY(l), V::One);
        }
        for (l, layer) in self.layers.iter().enumerate() {
            let (n_in, n_out, at) = (Some(layer.n_in), m, layer.weight);
            groups.push(Group { first: l == 0, at, n_in, n_out, u: U::DeltaZ(l), v: V::Input(l) });
        }
        groups
    }

    /// The stretches of `rest` between weight matrices.
    fn list_vectors(&self) -> Vec<Range<usize>> {
        let mut matrices: Vec<Range<usize>> =
            self.layers.iter().skip(1).map(|l| l.weight..l.weight + l.n_in * self.ld).collect();
        if self.n_outputs > 1 {
            matrices.push(self.output..self.output + self.n_outputs * self.last_ld());
        }
        matrices.push(self.rest_len..self.rest_len);
        let mut start = 0;
        let mut runs = Vec::new();
        for matrix in matrices {
            runs.push(start..matrix.start);
            start = matrix.end;
        }
        runs.retain(|run| !run.is_empty());
        runs
    }
}

/// One group of parameters, and the factors of its gradient: v uᵀ, a row of u for each number of v.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// Whether it lies in `first` (W_1) or in `rest`.
    pub(super) first: bool,
    /// Where it begins in `rest`.
    pub(super) at: usize,
    /// Numbers of v; `None` for a vector of parameters, whose v is a single number.
    pub(super) n_in: Option<usize>,
    /// Numbers of u, without padding.
    pub(super) n_out: usize,
    pub(super) u: U,
    pub(super) v: V,
}

/// Which numbers of a pass are the factor u of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum U {
    /// δz_l, before the normalisation.
    DeltaZ(usize),
    /// δy_l·x̂_l.
    DeltaGain(usize),
    /// δy_l, after the normalisation.
    DeltaY(usize),
    /// s·h_{L−1}.
    Output,
    /// The slope at the outputs.
    Outputs,
}

/// Which numbers are the factor v.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum V {
    /// 1.
    One,
    /// h_{l−1}, the input of layer l.
    Input(usize),
    /// The slope at the outputs.
    Outputs,
}
