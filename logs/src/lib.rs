//! Everything of neuralcb that touches a file: logs of decisions, policy tables, data sets, and writing that is never
//! half done.

pub mod atomic;
mod auto;
pub mod card;
pub mod datasets;
pub mod detail;
pub mod diagnose;
mod error;
pub mod evaluate;
mod faults;
pub mod gate;
mod hex;
mod lambda_0;
pub mod log;
mod memory;
pub mod policy;
pub mod score;
mod simulated;
mod table;
pub mod train;
mod training;
pub mod tune;

pub use atomic::{OutDir, check_distinct, check_writable};
pub use auto::Choice;
pub use error::FileError;
pub use simulated::write_log;
pub use table::read_policy_table;
pub use training::Training;
