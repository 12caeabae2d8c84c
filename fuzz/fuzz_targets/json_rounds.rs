#![no_main]
//! JSON lines with the actions of each round: the parser, line by line, and the whole reader.

use neuralcb_logs::log::json_rounds;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = json_rounds::parse(line).map_err(|problem| problem.to_string());
    }
    neuralcb_fuzz::read(bytes, "jsonl");
});
