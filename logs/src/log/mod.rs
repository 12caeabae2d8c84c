//! Logs of decisions, from a file to checked rounds.
//!
//! A reader turns a file into [`Block`]s: some rounds at a time, as columns of raw values. What a model sees is made of
//! them afterwards, by the [`Preparation`] that a policy keeps.

mod block;
mod error;
mod infer;
mod open;
mod options;
mod pass;
mod plan;
mod preparation;
mod rounds;
mod schema;
mod separated;
mod sources;
mod table;

pub use block::{Block, Categories, Offered, Place, Values};
pub use error::{LogError, Problem};
pub use open::Log;
pub use options::{Format, LogOptions, Missing, Need, Roles, Want};
pub use pass::{BLOCK, Blocks, Skipped};
pub use preparation::{
    ActionSummary, LogSummary, Preparation, PreparationConfig, PropensitySummary, StoredError, Unseen,
};
pub use schema::{Feature, Ignored, Kind, Schema};
