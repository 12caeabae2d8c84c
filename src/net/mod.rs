//! The network of equation (1), any depth L and width m:
//!
//! f_W(u) = √m · W_L σ(W_{L−1} σ(… σ(W_1 u) …)),  σ(z) = max(z, 0)
//!
//! with, as settings, layer normalisation in the hidden layers (the paper's experiments), biases and no √m (the
//! released code), and an output per action on a shared trunk. It knows no bandits: rows go in, numbers and slopes come
//! out.
//!
//! **Which pass does which job** (decided in `plan.rs`; every pass does the same steps):
//!
//! | job | pass | file |
//! |---|---|---|
//! | f and ∇f of one row: a round of S-mode, theory, tests | units in lanes | `single.rs` |
//! | a step on a batch | sixteen rows in lanes | `tile.rs`, from `batch.rs` |
//! | mean and width of many rows | sixteen rows in lanes | `tile.rs`, from `score.rs` |
//! | W_1 x of a batch with several blocks, and of sparse rows | a row after the other | `linalg/product.rs` |
//!
//! What a layer does between two products, forth and back, stands once in `layer.rs`; activations in `activation.rs`;
//! how a gradient meets the weights in `walk.rs`; optimisers in `optim.rs`; losses in `loss.rs`.
//!
//! **The gradient is never built.** In each layer ∇_{W_l} f = δ_l h_{l−1}ᵀ: a pass keeps only the factors u = δ_l and
//! v = h_{l−1} of every parameter group. Everything the algorithms need follows:
//!
//! * the width: Σ g²/Λ = (u²)ᵀ(1/Λ_l)(v²) per group, one matrix product on squared inputs;
//! * the step and the diagonal of Λ: Σ_rows v uᵀ, one matrix product;
//! * ⟨∇f(x), ∇f(y)⟩ = Σ (u·u′)(v·v′), for the exact Λ over many parameters (`factors.rs`).
//!
//! With disjoint encoding the input is (0, …, x, …, 0): only the block of the action in W_1 is read or changed, so W_1
//! is kept as one d × m matrix per block. Weights are stored input-major and padded to whole vectors with zeros that
//! stay zero.

mod activation;
mod archive;
mod batch;
mod config;
mod factors;
mod init;
mod layer;
pub(crate) mod loss;
mod number;
mod optim;
mod plan;
mod score;
mod shape;
mod single;
mod tensors;
#[cfg(test)]
mod tests;
mod tile;
mod walk;

pub(crate) use batch::Batch;
pub use config::{Activation, Init, NetConfig, OutputScale, Outputs};
pub(crate) use factors::FactorRows;
pub use number::Number;
pub(crate) use optim::Stepper;
pub use optim::{Optimiser, Schedule, Towards};
pub(crate) use score::{Coefficients, Outputs as OutputsOf, Score, Spread, Work};
pub use shape::{Net, Params};
pub use single::Tangents;
pub use tensors::Tensors;
pub(crate) use walk::{Growth, Observe};
