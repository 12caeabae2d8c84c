//! Logs of decisions, from a file to checked rounds.
//!
//! A reader turns a file into [`Block`]s: some rounds at a time, as columns of raw values. What a model sees is made of
//! them afterwards, by the preparation that a policy keeps.

mod block;
pub mod dsjson;
mod json;
mod json_round;
pub mod json_rounds;
pub mod obd;

pub use block::{Block, Categories, Offered, Place, Values};
pub use json::MAX_LINE;
pub use json_round::{JsonAction, JsonRound, RowProblem, Value};
