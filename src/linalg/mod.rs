//! Numbers in bulk: the only room that names the linear-algebra crate or the processor.
//!
//! * [`scalar`]: the two number types, f32 for the network's work and f64 for its proof;
//! * [`simd`]: run-time choice of the processor's vector instructions, and where numbers lie in memory;
//! * [`dense`]: the small fused products the network is made of;
//! * [`tiles`]: the same with a row per lane, for wide inputs;
//! * [`gemm`]: products of ordinary matrices;
//! * [`acos`]: arccos without a call;
//! * [`exp`]: eˣ for whole slices;
//! * [`machine`]: what the processor can do at most;
//! * [`panels`]: products with many rows at once, a lane per row;
//! * [`scatter`]: λI + Σ x xᵀ of vectors that come one at a time;
//! * [`cholesky`]: positive definite matrices in f64: factor, update by rank one, extend;
//! * [`symmetric`]: large symmetric matrices in tiles: product, factor, solve;
//! * [`turn`]: rows become columns;
//! * [`whiten`]: uᵀA⁻¹u of many rows, in f64 or f32.

pub(crate) mod acos;
pub(crate) mod cholesky;
pub(crate) mod dense;
pub(crate) mod exp;
pub(crate) mod gemm;
pub mod machine;
pub(crate) mod panels;
pub(crate) mod scalar;
pub(crate) mod scatter;
pub(crate) mod simd;
pub(crate) mod symmetric;
pub(crate) mod tiles;
pub(crate) mod turn;
pub(crate) mod whiten;
