#![no_main]
//! A policy file.

use std::path::Path;

use neuralcb_logs::policy::Policy;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(policy) = Policy::from_bytes(bytes, Path::new("fuzzed")) {
        assert!(Policy::from_bytes(&policy.to_bytes(), Path::new("again")).is_ok());
    }
});
