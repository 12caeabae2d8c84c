//! Numbers in bulk: the only room that names the linear-algebra crate or the processor.
//!
//! * [`scalar`]: the two number types, f32 for the network's work and f64 for its proof;
//! * [`simd`]: run-time choice of the processor's vector instructions;
//! * [`dense`]: the small fused products the network is made of;
//! * [`exp`]: eˣ for whole slices;
//! * [`machine`]: what the processor can do at most;
//! * [`cholesky`]: positive definite matrices in f64: factor, update by rank one, extend, whiten.

pub(crate) mod cholesky;
pub(crate) mod dense;
pub(crate) mod exp;
pub mod machine;
pub(crate) mod scalar;
pub(crate) mod simd;
