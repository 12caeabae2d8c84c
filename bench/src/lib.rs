//! How fast neuralcb is, against what the machine allows.
//!
//! A time alone says little: machines differ, and shared ones differ from minute to minute. Each [`Job`] therefore
//! comes with the number of operations its result cannot be had without ([`Counts`]), and the machine's rates are
//! measured in the same run ([`neuralcb::machine`]); time ÷ limit is what is reported.
//!
//! * [`JOBS`] is the table of jobs, [`measure`](fn@measure) times some of them, [`export`](fn@export) writes their
//!   inputs and results as `.npy` arrays, so that other programs can be timed on the same work and compared in
//!   their results;
//! * [`tasks`] makes the same work at any size, for `cargo bench` and for the count of instructions.
//!
//! Everything is timed through the library's public interface, with fixed seeds.

mod counts;
mod data;
mod error;
mod export;
mod jobs;
mod measure;
pub mod npy;
pub mod practical;
mod probes;
mod scaling;
mod task;
pub mod tasks;

pub use counts::{Counts, Shape, Trunk};
pub use data::Rounds;
pub use error::Error;
pub use export::{check_folder, export};
pub use jobs::{JOBS, Job, job};
pub use measure::{Measured, Report, measure, stages};
pub use probes::{PROBES, Probe, run_probe};
pub use task::{Again, Scoring, Task, Training};
