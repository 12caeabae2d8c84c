//! Policies that decide live, and the log that they learn from again.
//!
//! * [`decide`]: one decision: the request, the policy's opinion, exploration.
//! * [`journal`]: the decision log, segments of records that are on the disk before a request is answered.
//! * [`service`]: rank, reward, activate, models, statistics, without HTTP.
//! * [`http`]: the same over HTTP, with its limits and rights.
//! * [`join`](mod@join): decisions with their rewards, as a log to learn from.
//!
//! Few dependencies, kept for good reasons: hyper and tokio speak HTTP, rustls TLS. A dozen routes need no framework,
//! the counters no registry, the lines of JSON on standard error no subscriber, the document of the API no generator:
//! each is a short file here, and a test holds the document against the server.

mod clock;
pub mod decide;
pub mod http;
pub mod join;
pub mod journal;
mod metrics;
mod open_files;
mod run;
mod say;
pub mod service;

pub use run::{RunConfig, RunError, run};
pub use say::say;
