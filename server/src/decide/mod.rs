//! One decision: what was asked, what a policy thinks of it, and what is played.

mod explore;
mod judge;
mod request;

pub use explore::{Exploration, Explore, draw};
pub use judge::{Judged, Model};
pub use request::{Action, RankRequest};
pub(crate) use request::{event_id, round_of};

use thiserror::Error;

/// Why there is no decision.
#[derive(Debug, Error)]
pub enum DecideError {
    /// The request cannot be used. The message names culprit and cure.
    #[error("{0}")]
    Request(String),
    /// The policy file cannot be used.
    #[error(transparent)]
    Policy(#[from] neuralcb_logs::policy::PolicyError),
    /// A policy that cannot explore like that.
    #[error("policy `{name}` has no bounds, so `--explore softmax` does not apply: use `--explore epsilon=E`")]
    NoBounds {
        /// The policy.
        name: String,
    },
}

impl DecideError {
    /// A refused request.
    pub fn request(message: impl std::fmt::Display) -> DecideError {
        DecideError::Request(message.to_string())
    }
}
