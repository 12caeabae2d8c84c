#![no_main]
//! JSON lines, of a round each.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| neuralcb_fuzz::read(bytes, "jsonl"));
