#![no_main]
//! One program for all targets: `NEURALCB_FUZZ=csv target/…/fuzz CORPUS`. See `fuzz/run`.

#[path = "targets.rs"]
mod targets;

use std::sync::OnceLock;

fn chosen() -> fn(&[u8]) {
    let name = std::env::var("NEURALCB_FUZZ").unwrap_or_default();
    let found = targets::TARGETS.iter().find(|(known, _)| *known == name);
    let Some((_, target)) = found else {
        let known: Vec<&str> = targets::TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("NEURALCB_FUZZ must be one of {}, got `{name}`", known.join(", "));
        std::process::exit(2);
    };
    if let Some(folder) = std::env::var_os("NEURALCB_SEEDS") {
        for (i, seed) in targets::made_seeds(&name).iter().enumerate() {
            let path = std::path::Path::new(&folder).join(format!("made-{i}"));
            std::fs::write(path, seed).expect("the folder of seeds can be written");
        }
    }
    *target
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    TARGET.get_or_init(chosen)(bytes);
});
