//! No kernel may need more instructions than recorded, whatever the clock says.
//!
//! Each kernel runs in a process of its own under callgrind, N times and 2N times; the difference is the kernel without
//! its set-up. More than 5 % away from the record in either direction fails: slower is a fault, faster a new record.
//! Counts belong to one compiler, the AVX2 path, and the library as it is in a release and in tests (see Cargo.toml)
//! but for incremental compilation, which inlines less; elsewhere the test says so and skips.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use neuralcb_bench::{PROBES, Probe};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

const TOLERANCE: f64 = 0.05;
const RECORD: &str = "CARGO_INCREMENTAL=0 NEURALCB_RECORD=1 cargo test -p neuralcb-bench --test instructions";

#[derive(Serialize, Deserialize)]
struct Record {
    rustc: String,
    /// Instructions of one unit.
    instructions: BTreeMap<String, f64>,
}

fn record_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

/// What a program says, if it is there.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
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
    } else if said("valgrind", &["--version"]).is_none() {
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
fn no_kernel_needs_more_instructions_than_recorded() {
    if let Some(why) = obstacle() {
        println!("skipped: {why}");
        return;
    }
    let rustc = said("rustc", &["--version"]).unwrap_or_default();
    let recording = std::env::var_os("NEURALCB_RECORD").is_some();
    let recorded = fs::read_to_string(record_path()).ok().map(|text| serde_json::from_str::<Record>(&text).unwrap());
    let recorded = recorded.unwrap_or(Record { rustc: String::new(), instructions: BTreeMap::new() });
    if !recording && recorded.rustc != rustc {
        println!("skipped: recorded with `{}`, this is `{rustc}`", recorded.rustc);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let counted: Vec<f64> = PROBES.par_iter().map(|probe| per_unit(probe, folder.path())).collect();
    let mut instructions = BTreeMap::new();
    let mut away = Vec::new();
    for (probe, got) in PROBES.iter().zip(counted) {
        // a kernel that is not recorded is infinitely far away
        let want = recorded.instructions.get(probe.name).copied().unwrap_or(0.0);
        println!("{:<22} {got:>14.1} instructions per {}, recorded {want:.1}", probe.name, probe.unit);
        if (got - want).abs() > TOLERANCE * want {
            away.push(format!("{}: {got:.1} instructions per {}, recorded {want:.1}", probe.name, probe.unit));
        }
        instructions.insert(probe.name.to_owned(), (got * 10.0).round() / 10.0);
    }
    if recording {
        let record = serde_json::to_string_pretty(&Record { rustc, instructions }).unwrap() + "\n";
        fs::write(record_path(), record).unwrap();
        return;
    }
    assert!(away.is_empty(), "more than 5 % away:\n{}\nif that is intended, record anew: {RECORD}", away.join("\n"));
}
