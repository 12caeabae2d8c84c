#![no_main]
//! A Parquet file.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| neuralcb_fuzz::read(bytes, "parquet"));
