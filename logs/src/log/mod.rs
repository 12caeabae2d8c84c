//! Logs of decisions, from a file to checked rounds.
//!
//! A reader turns a file into [`Block`]s: some rounds at a time, as columns of raw values. What a model sees is made of
//! them afterwards, by the [`Preparation`] that a policy keeps.

mod ahead;
mod block;
mod columnar;
mod dialect;
pub mod dsjson;
mod error;
mod extent;
mod fields;
mod infer;
pub mod json;
mod json_lines;
mod json_round;
pub mod json_rounds;
mod json_rows;
pub mod obd;
mod one_by_one;
mod open;
mod options;
mod parquet_guard;
mod partition;
mod pass;
mod pieces;
mod plan;
mod preparation;
mod read_log;
mod rounds;
mod schema;
mod separated;
mod some_rounds;
mod sources;
mod summed;
mod table;
mod thrift;
mod write_parquet;

pub use block::{Block, Categories, Offered, Place, Values};
pub use error::{LogError, Problem};
pub use json::{Json, MAX_LINE};
pub use json_round::{JsonAction, JsonRound, RowProblem, Value};
pub use one_by_one::OneByOne;
pub use open::Log;
pub use options::{Format, LogOptions, Missing, Need, Roles, Want};
pub use pass::{BLOCK, Blocks, Skipped};
pub use preparation::{
    ActionSummary, Grouped, LogSummary, Preparation, PreparationConfig, PropensitySummary, StoredError, Unseen,
};
pub use read_log::{ReadBlocks, ReadLog, sha256_of_values};
pub use schema::{Feature, Ignored, Kind, Schema};
pub use some_rounds::SomeRounds;
pub use write_parquet::{ParquetLog, write_parquet};
