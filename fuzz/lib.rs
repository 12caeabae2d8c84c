//! The entry points of the targets, shared with the test `hostile` of `neuralcb-logs`.
//!
//! `cargo +nightly fuzz run csv -- -max_total_time=60`; seeds are in `seeds/`:
//! `cargo +nightly fuzz run dsjson seeds/dsjson`.

#[path = "../logs/tests/common/reading.rs"]
mod reading;

/// Reads bytes as a file of this ending; an error is as good as success.
pub fn read(bytes: &[u8], ending: &str) {
    let _ = reading::read(bytes, ending).map_err(|error| error.to_string());
}
