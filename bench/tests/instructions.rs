//! No kernel may need many more instructions than recorded, whatever the clock says.
//!
//! What is called from a kernel and not compiled into it is compiled without the processor's vectors: nothing fails,
//! and all takes many times as long. That is what this test is for; a quarter more is allowed.
//!
//! Each kernel runs in a process of its own under callgrind, N times and 2N times; the difference is the kernel without
//! its set-up. Counts belong to the AVX2 path, and to the library as it is in a release and in tests (see Cargo.toml)
//! but for incremental compilation, which inlines less; elsewhere the test says so and skips.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use neuralcb_bench::{PROBES, Probe};
use rayon::prelude::*;

const ALLOWED: f64 = 1.25;
const RECORD: &str = "CARGO_INCREMENTAL=0 NEURALCB_RECORD=1 cargo test -p neuralcb-bench --test instructions";

fn record_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

/// Why nothing can be compared here.
fn obstacle() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let avx2 = false;
    if option_env!("CARGO_INCREMENTAL") != Some("0") {
        Some("counts are those of a build with CARGO_INCREMENTAL=0")
    } else if !avx2 {
        Some("this processor has no AVX2 with FMA")
    } else if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        Some("valgrind is not installed")
    } else {
        None
    }
}

/// Instructions of a process that does that many runs.
fn count(probe: &Probe, runs: usize, folder: &Path) -> u64 {
    let file = folder.join(format!("{}-{runs}", probe.name));
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .args([env!("CARGO_BIN_EXE_neuralcb-probe"), probe.name, &runs.to_string()])
        .env("NEURALCB_INSTRUCTIONS", "avx2")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", probe.name, String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(file).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("totals:")).expect("callgrind writes a total");
    total.trim().parse().unwrap()
}

/// Instructions of one unit.
fn per_unit(probe: &Probe, folder: &Path) -> f64 {
    let (once, twice) = (count(probe, probe.runs, folder), count(probe, 2 * probe.runs, folder));
    (twice - once) as f64 / (probe.runs * probe.units) as f64
}

#[test]
fn no_kernel_needs_many_more_instructions_than_recorded() {
    if let Some(why) = obstacle() {
        println!("skipped: {why}");
        return;
    }
    let recording = std::env::var_os("NEURALCB_RECORD").is_some();
    let recorded = fs::read_to_string(record_path()).unwrap_or_else(|_| "{}".to_owned());
    let recorded: BTreeMap<String, f64> = serde_json::from_str(&recorded).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let counted: Vec<f64> = PROBES.par_iter().map(|probe| per_unit(probe, folder.path())).collect();
    let mut instructions = BTreeMap::new();
    let mut more = Vec::new();
    for (probe, got) in PROBES.iter().zip(counted) {
        let want = recorded.get(probe.name).copied().unwrap_or(0.0);
        println!("{:<22} {got:>14.1} instructions per {}, recorded {want:.1}", probe.name, probe.unit);
        if got > ALLOWED * want {
            more.push(format!("{}: {got:.1} instructions per {}, recorded {want:.1}", probe.name, probe.unit));
        }
        instructions.insert(probe.name.to_owned(), (got * 10.0).round() / 10.0);
    }
    if recording {
        fs::write(record_path(), serde_json::to_string_pretty(&instructions).unwrap() + "\n").unwrap();
        return;
    }
    assert!(more.is_empty(), "more than a quarter above:\n{}\nif intended, record anew: {RECORD}", more.join("\n"));
}
