#![no_main]
//! A flat table.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| neuralcb_fuzz::read(bytes, "csv"));
