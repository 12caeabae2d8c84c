//! Numbers in bulk: the only room that names the linear-algebra crate or the processor. It knows numbers only.
//!
//! * [`scalar`]: the two number types, f32 for the network's work and f64 for its proof;
//! * [`vectors`]: plain loops over arrays, compiled for the processor at hand;
//! * [`product`]: products of many rows with a matrix of weights;
//! * [`exp`], [`acos`]: eˣ and arccos without a call;
//! * [`machine`]: what the processor can do at most;
//! * [`scatter`]: λI + Σ x xᵀ of vectors that come one at a time;
//! * [`cholesky`]: positive definite matrices in f64: factor, update by rank one, extend;
//! * [`symmetric`]: large symmetric matrices in blocks: product, factor, solve;
//! * [`whiten`]: uᵀA⁻¹u of many rows, in f64 or f32.

pub(crate) mod acos;
pub(crate) mod cholesky;
pub(crate) mod exp;
pub mod machine;
pub(crate) mod product;
pub(crate) mod scalar;
pub(crate) mod scatter;
pub(crate) mod symmetric;
pub(crate) mod vectors;
pub(crate) mod whiten;
