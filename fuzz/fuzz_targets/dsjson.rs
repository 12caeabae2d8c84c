#![no_main]
//! Vowpal Wabbit's dsjson: the parser, line by line, and the whole reader.

use neuralcb_logs::log::dsjson;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = dsjson::parse(line).map_err(|problem| problem.to_string());
    }
    neuralcb_fuzz::read(bytes, "dsjson");
});
