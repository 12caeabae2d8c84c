//! The door: contexts and logs, checked once when they are made; inside, nothing checks again.
//!
//! Contexts come in two shapes:
//!
//! * **per action** (the paper's text): every action a of a round has its own vector x_a ∈ R^d;
//! * **shared, disjoint encoding** (the paper's classification data): one x ∈ R^d per round, and
//!   x^(a) = (0, …, x, …, 0) ∈ R^{dK} for action a. Those zeros are never built: a model sees x and the block a.
//!
//! In both shapes a round may offer only some of the K actions (its eligible set). A context together with one of
//! its actions is a [`Pair`]; pairs are numbered round by round, in the order of the eligible actions.

mod contexts;
mod log;
mod prepare;
mod rows;

pub use contexts::{Contexts, Eligible, Encoding, Layout, Pair};
pub use log::{LoggedData, Round};
pub use prepare::{Standardiser, unit_norm};
pub(crate) use rows::{RowGroup, Rows, row_groups};
