#![no_main]
//! A flat table separated by tabs.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| neuralcb_fuzz::read(bytes, "tsv"));
