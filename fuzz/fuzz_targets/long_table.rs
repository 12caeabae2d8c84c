#![no_main]
//! A long table: the header is given, so that the rounds are fuzzed.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    neuralcb_fuzz::read(&[b"round,action,chosen,reward,propensity,x0,x1\n", bytes].concat(), "csv");
});
