//! Settings of the network.

use serde::{Deserialize, Serialize};

pub use super::activation::Activation;

/// What the network has an output for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outputs {
    /// One output per context vector, as in the paper. With one context per round every action has its own block of
    /// W_1.
    One,
    /// One output per action on a shared trunk, for one context per round.
    PerAction,
}

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
    /// He et al. (2015): N(0, 2 / fan_in), biases 0. Without a hidden layer all weights are 0.
    He,
}

/// Settings of the network.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `depth` | 2 | L, layers of weights | ≥ 1; ≥ 2 unless `outputs` is per action or every action has its own vector |
/// | `width` | 20 | m, units of each hidden layer | ≥ 1; even for [`Init::Block`] |
/// | `layer_norm` | true | normalise the hidden layers, with gain and offset | |
/// | `biases` | false | a bias per unit and one per output | |
/// | `activation` | relu | σ of the hidden layers | relu, silu |
/// | `outputs` | one | one output per context vector, or one per action on a shared trunk | |
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
    /// Layer normalisation (gain, offset, ε = 1e-5) before each activation.
    pub layer_norm: bool,
    /// Biases in every layer.
    pub biases: bool,
    /// σ.
    pub activation: Activation,
    /// What there is an output for.
    pub outputs: Outputs,
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
            activation: Activation::Relu,
            outputs: Outputs::One,
            output_scale: OutputScale::SqrtWidth,
            init: Init::Block,
            duplicate_input: false,
        }
    }
}
