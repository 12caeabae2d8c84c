//! Policies: pessimism applied to a reward model, what a run returns, and the behaviour policies that make logs.
//!
//! The one decision rule is [`pessimistic`]: argmax_a mean(x_a) − β·width(x_a). β = 0 is the greedy twin.

mod behaviour;
mod imitation;
mod linucb;
mod pessimism;
mod propensity;
mod returned;

pub use behaviour::{Behaviour, BehaviourConfig};
pub use imitation::{Imitation, ImitationConfig};
pub use linucb::{LinUcb, LinUcbConfig};
pub use pessimism::{Choices, Rounding, pessimistic};
pub use propensity::{PropensityConfig, estimate_propensities};
pub use returned::{LearnedPolicy, Returned, Votes, learn};
