//! The seeds of the fuzzer, and whatever it once found, through the same targets.

#[allow(unreachable_pub)]
#[path = "../../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a target may take for one input; the fuzzer allows 5 s with its sanitizer.
const PATIENCE: Duration = Duration::from_secs(20);

fn stored(kind: &str, target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").join(kind).join(target);
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn seeds_and_what_did_harm_do_none() {
    for (name, target) in targets::TARGETS {
        let (seeds, crashers, made) = (stored("seeds", name), stored("crashers", name), targets::made_seeds(name));
        assert!(seeds.len() + made.len() > 0, "{name} has no seed");
        let read = |path: &PathBuf| (path.display().to_string(), fs::read(path).unwrap());
        let stored = seeds.iter().chain(&crashers).map(read);
        let made = made.into_iter().enumerate().map(|(i, bytes)| (format!("{name}, made {i}"), bytes));
        for (label, bytes) in stored.chain(made) {
            let started = Instant::now();
            target(&bytes);
            assert!(started.elapsed() < PATIENCE, "{label} took {:?}", started.elapsed());
            // cut short at some places, and with one byte changed
            for i in 1..8 {
                let at = bytes.len() * i / 8;
                target(&bytes[..at]);
                let mut changed = bytes.clone();
                changed.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << i);
                target(&changed);
            }
        }
    }
}
