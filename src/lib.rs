//! neuralcb
#![deny(unsafe_code)]
pub mod bandit;
mod data;
mod error;
#[allow(unsafe_code)]
mod linalg;
pub mod model;
pub mod net;
pub mod policy;
mod seed;

pub use data::{Contexts, Eligible, Encoding, Layout, LoggedData, Pair, Round};
pub use error::{Column, Error};
pub use linalg::scalar::Scalar;
pub use model::{Estimates, Learner, ModelConfig, RewardModel};
pub use seed::{Seed, Stream};
