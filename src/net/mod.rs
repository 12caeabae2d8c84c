//! The network of equation (1), any depth L ≥ 2 and width m:
//!
//! f_W(u) = √m · W_L σ(W_{L−1} σ(… σ(W_1 u) …)),  σ(z) = max(z, 0)
//!
//! with, as settings, layer normalisation in the hidden layers (the paper's experiments), biases and no √m (the
//! released code). Forward and backward pass stand side by side in `tangent.rs`.
//!
//! **The gradient is never built.** In each layer ∇_{W_l} f = δ_l h_{l−1}ᵀ: a [`Tangents`] keeps only the factors
//! u = δ_l and v = h_{l−1} of every parameter group, for a batch of rows. Everything the algorithms need follows:
//!
//! * the width: Σ g²/Λ = (u²)ᵀ(1/Λ_l)(v²) per group, one matrix product on squared inputs (`wide.rs`);
//! * the step and the diagonal of Λ: Σ_rows e·v uᵀ, one matrix product;
//! * ⟨∇f(x), ∇f(y)⟩ = Σ (u·u′)(v·v′), for the exact Λ over many parameters.
//!
//! With disjoint encoding the input is (0, …, x, …, 0): only the block of the action in W_1 is read or changed, so W_1
//! is kept as one d × m matrix per block. Weights are stored input-major and padded to whole vectors with zeros that
//! stay zero.

mod archive;
mod batch;
mod factors;
mod init;
mod inputs;
pub(crate) mod optim;
mod outer;
mod outer_batch;
mod pairs;
mod rule;
mod shallow;
mod single;
mod sums;
mod tall;
mod tangent;
mod tensors;
mod wide;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub(crate) use batch::{Batch, BatchStep};
pub(crate) use factors::{FactorRows, Growth};
pub(crate) use inputs::Gathered;
pub use optim::{Optimiser, Schedule, Towards};
pub(crate) use single::Round;
pub(crate) use tall::{TALL_ROWS, Tall};
pub use tangent::Tangents;
pub use tensors::Tensors;
pub(crate) use wide::{ROWS, Wide};

use crate::data::Layout;
use crate::error::{Error, at_least};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::memory::Numbers;
use crate::linalg::simd::{Arch, LANES, lanes, lanes_mut};

/// The factor in front of the output layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputScale {
    /// √m, equation (1).
    SqrtWidth,
    /// 1, the released code.
    One,
}

/// How W⁽⁰⁾ is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Algorithm 1, line 1: W_l = [W̄ 0; 0 W̄] with entries N(0, 4/m), W_L = [w, −w] with N(0, 2/m).
    Block,
    /// The released code: uniform in ±√(3 / fan_in), biases 0.
    Uniform,
}

/// Settings of the network.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `depth` | 2 | L, layers of weights | ≥ 2 |
/// | `width` | 20 | m, units of each hidden layer | ≥ 1; even for [`Init::Block`] |
/// | `layer_norm` | true | normalise the hidden layers, with gain and offset | |
/// | `biases` | false | a bias per unit and one at the output | |
/// | `output_scale` | √m | factor of the output layer | |
/// | `init` | block | how W⁽⁰⁾ is drawn | |
/// | `duplicate_input` | false | feed [x, x]/√2 (Assumption 4.1), so that f = 0 at the start | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetConfig {
    /// L, the number of weight matrices.
    pub depth: usize,
    /// m, the units of each hidden layer.
    pub width: usize,
    /// Layer normalisation (gain, offset, ε = 1e-5) before each ReLU.
    pub layer_norm: bool,
    /// Biases in every layer.
    pub biases: bool,
    /// The factor in front of the output layer.
    pub output_scale: OutputScale,
    /// How W⁽⁰⁾ is drawn.
    pub init: Init,
    /// Feed [x, x]/√2 instead of x (Assumption 4.1).
    pub duplicate_input: bool,
}

impl Default for NetConfig {
    fn default() -> Self {
        NetConfig {
            depth: 2,
            width: 20,
            layer_norm: true,
            biases: false,
            output_scale: OutputScale::SqrtWidth,
            init: Init::Block,
            duplicate_input: false,
        }
    }
}

/// Numbers in the shape of the parameters: weights, gradients, moments, the diagonal of Λ.
#[derive(Debug, Clone, PartialEq)]
pub struct Params<T> {
    /// W_1, one d × m matrix per block.
    pub(crate) first: Numbers<T>,
    /// Everything else.
    pub(crate) rest: Numbers<T>,
}

impl<T: Scalar> Params<T> {
    /// The same shape, filled with one value.
    pub(crate) fn filled(&self, v: T) -> Self {
        Params { first: Numbers::filled(v, self.first.len()), rest: Numbers::filled(v, self.rest.len()) }
    }

    /// Σ (self − other)².
    pub fn distance_squared(&self, other: &Self) -> f64 {
        let sum = |a: &[T], b: &[T]| a.iter().zip(b).map(|(a, b)| (a.wide() - b.wide()).powi(2)).sum::<f64>();
        sum(&self.first, &other.first) + sum(&self.rest, &other.rest)
    }
}

/// Where the parameters of one hidden layer lie in `rest` (the weights of layer 1 lie in `first`).
#[derive(Debug, Clone)]
struct Layer {
    n_in: usize,
    weight: usize,
    bias: Option<usize>,
    gain: Option<usize>,
    offset: Option<usize>,
}

/// The shape of a network: sizes and places, no numbers.
#[derive(Debug, Clone)]
pub struct Net {
    config: NetConfig,
    /// Inputs per block, after duplication.
    n_in: usize,
    n_blocks: usize,
    /// m rounded up to whole vectors.
    ld: usize,
    layers: Vec<Layer>,
    output: usize,
    output_bias: Option<usize>,
    /// s, the factor of the output layer.
    output_scale: f64,
    /// 1/m.
    inv_width: f64,
    rest_len: usize,
    groups: Vec<Group>,
    /// Where vectors of parameters (output layer, gain, offset, biases) lie side by side in `rest`.
    vectors: Vec<Range<usize>>,
}

impl Net {
    /// Checks the settings and lays out the parameters for contexts of that layout.
    pub fn new(config: NetConfig, layout: Layout) -> Result<Self, Error> {
        at_least("depth", 2, "at least 2", config.depth)?;
        at_least("width", 1, "at least 1", config.width)?;
        let n_in = if config.duplicate_input { 2 * layout.dim } else { layout.dim };
        if config.init == Init::Block && !config.width.is_multiple_of(2) {
            return Err(Error::Param {
                name: "width",
                range: "even for the paper's block initialisation",
                got: config.width as f64,
            });
        }
        let ld = config.width.next_multiple_of(LANES);
        let mut len = 0;
        let mut place = |n: usize| {
            len += n;
            len - n
        };
        let layers: Vec<Layer> = (1..config.depth)
            .map(|l| Layer {
                n_in: if l == 1 { n_in } else { config.width },
                weight: if l == 1 { 0 } else { place(config.width * ld) },
                bias: config.biases.then(|| place(ld)),
                gain: config.layer_norm.then(|| place(ld)),
                offset: config.layer_norm.then(|| place(ld)),
            })
            .collect();
        let output = place(ld);
        let output_bias = config.biases.then(|| place(LANES));
        let groups = groups(config.width, &layers, output, output_bias);
        let vectors = vectors(&layers, config.width * ld, len);
        let width = config.width as f64;
        Ok(Net {
            n_in,
            n_blocks: layout.n_blocks(),
            ld,
            layers,
            output,
            output_bias,
            output_scale: if config.output_scale == OutputScale::SqrtWidth { width.sqrt() } else { 1.0 },
            inv_width: 1.0 / width,
            rest_len: len,
            groups,
            vectors,
            config,
        })
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

    /// p, the number of parameters, without padding.
    pub fn n_params(&self) -> usize {
        self.groups.iter().map(|g| g.n_out * g.n_in.unwrap_or(1) * if g.first { self.n_blocks } else { 1 }).sum()
    }

    /// Numbers of W_1 per block, with padding.
    pub(crate) fn first_len(&self) -> usize {
        self.n_in * self.ld
    }

    /// Numbers outside W_1, with padding.
    pub(crate) fn rest_len(&self) -> usize {
        self.rest_len
    }

    /// A zero in the shape of the parameters.
    pub fn zeros<T: Scalar>(&self) -> Params<T> {
        Params { first: Numbers::zeros(self.n_blocks * self.first_len()), rest: Numbers::zeros(self.rest_len) }
    }

    /// The part of a first-layer array that belongs to `block`.
    pub(crate) fn block<'a, T>(&self, first: &'a [T], block: usize) -> &'a [T] {
        &first[block * self.first_len()..(block + 1) * self.first_len()]
    }

    /// The part of a first-layer array that belongs to `block`, to change.
    pub(crate) fn block_mut<'a, T>(&self, first: &'a mut [T], block: usize) -> &'a mut [T] {
        &mut first[block * self.first_len()..(block + 1) * self.first_len()]
    }

    fn output_scale<T: Scalar>(&self) -> T {
        T::of(self.output_scale)
    }

    /// Writes the network's input for context `x`: x itself, or [x, x]/√2.
    #[inline]
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

    /// As [`Net::write_input`], inside a job.
    #[inline(always)]
    pub(crate) fn write_input_in<T: Scalar, A: Arch>(&self, x: &[f32], out: &mut [T]) {
        let d = x.len();
        if self.config.duplicate_input || d < LANES {
            return self.write_input(x, out);
        }
        let out = &mut out[..d];
        let mut at = 0;
        while at < d {
            // the last vector overlaps the one before
            at = at.min(d - LANES);
            let v = A::load_f32(&lanes(&x[at..at + LANES])[0]);
            A::store(v, &mut lanes_mut(&mut out[at..at + LANES])[0]);
            at += LANES;
        }
    }
}

/// The stretches of `rest` between the weight matrices of the hidden layers, each `weight_len` long.
fn vectors(layers: &[Layer], weight_len: usize, rest_len: usize) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for layer in &layers[1..] {
        runs.push(start..layer.weight);
        start = layer.weight + weight_len;
    }
    runs.push(start..rest_len);
    runs.retain(|run| !run.is_empty());
    runs
}

/// The parameter groups in their fixed order; in each, the gradient of f is v uᵀ, or u where there is no input.
fn groups(m: usize, layers: &[Layer], output: usize, output_bias: Option<usize>) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut own = |at: Option<usize>, n_out, u| {
        groups.extend(at.map(|at| Group { first: false, at, n_in: None, n_out, u }));
    };
    own(Some(output), m, Factor::Output);
    own(output_bias, 1, Factor::One);
    for (l, layer) in layers.iter().enumerate() {
        own(layer.bias, m, Factor::DeltaZ(l));
        own(layer.gain, m, Factor::DeltaGain(l));
        own(layer.offset, m, Factor::DeltaY(l));
    }
    for (l, layer) in layers.iter().enumerate() {
        groups.push(Group { first: l == 0, at: layer.weight, n_in: Some(layer.n_in), n_out: m, u: Factor::DeltaZ(l) });
    }
    groups
}

/// One group of parameters and the factors of its gradient.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// Whether it lies in `first` (W_1) or in `rest`.
    first: bool,
    /// Where it begins in `rest`.
    at: usize,
    /// Inputs of a weight matrix; `None` for a vector of parameters.
    n_in: Option<usize>,
    /// Outputs, without padding.
    n_out: usize,
    /// The factor u.
    u: Factor,
}

/// Which array of the tangents is the factor u of a group. The factor v of layer l's weights is its input h_{l−1}.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Factor {
    /// ∂f/∂z_l, before the normalisation.
    DeltaZ(usize),
    /// ∂f/∂gain_l = ∂f/∂y_l · x̂_l.
    DeltaGain(usize),
    /// ∂f/∂y_l, after the normalisation.
    DeltaY(usize),
    /// ∂f/∂W_L = s · h_{L−1}.
    Output,
    /// ∂f/∂b_L = 1.
    One,
}
