//! `neuralcb diagnose` from outside.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn neuralcb(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_neuralcb")).current_dir(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)))
}

#[test]
fn a_simulated_log_is_fit_and_one_action_alone_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let simulate = ["simulate", "quadratic", "--n", "400", "--behaviour", "uniform", "--out", "log.csv"];
    assert_eq!(neuralcb(folder.path(), &simulate).status.code(), Some(0));
    let output = neuralcb(folder.path(), &["diagnose", "log.csv", "--json", "--write-schema", "schema.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let report = json(&output);
    assert_eq!((report["rows"].as_u64(), report["unwise"].as_bool()), (Some(400), Some(false)));
    assert!((report["propensities"]["mean_weight"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    assert!((report["ess"].as_f64().unwrap() - 400.0).abs() < 1e-6);
    let again = neuralcb(folder.path(), &["diagnose", "log.csv", "--json", "--schema", "schema.toml"]);
    assert_eq!(json(&again)["actions"], report["actions"]);

    let same: String = (0..200).map(|t| format!("red,{},{t}\n", t % 2)).collect();
    fs::write(folder.path().join("same.csv"), format!("action,reward,x\n{same}")).unwrap();
    let output = neuralcb(folder.path(), &["diagnose", "same.csv"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    assert!(table.contains("unwise [one-action]: every round chose `red`"), "{table}");
    assert!(table.contains("warning [index-feature]"), "{table}");
    assert!(said.contains("training on this log would be unwise"), "{said}");
}

#[test]
fn a_bad_row_fails_unless_it_may_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..150).map(|t| format!("{},{},0.5,{}\n", t % 2, (t / 2) % 2, (t * 7) % 31)).collect();
    fs::write(folder.path().join("log.csv"), format!("action,reward,propensity,x\n{rows}1,1,7,0\n")).unwrap();
    let output = neuralcb(folder.path(), &["diagnose", "log.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("line 152: column `propensity` must be"), "{}", text(&output.stderr));
    let output = neuralcb(folder.path(), &["diagnose", "log.csv", "--max-bad-rows", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = json(&output);
    assert_eq!((report["rows"].as_u64(), report["skipped"]["bad_rows"].as_u64()), (Some(150), Some(1)));
}

/// The smallest propensity is 1e-6 and the effective sample size 2.08 of 10,000.
#[test]
fn the_open_bandit_logs_are_told_apart() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("NEURALCB_SHARED").map_or(here.join("../../shared"), Into::into);
    let obd = shared.join("data/obd");
    if !obd.is_dir() {
        println!("skipped: the Open Bandit Dataset is not in `{}`", obd.display());
        return;
    }
    let output = neuralcb(&obd, &["diagnose", "bts/women", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = json(&output);
    assert!((report["ess"].as_f64().unwrap() - 2.0778226924836782).abs() < 1e-9);
    assert_eq!(report["propensities"]["smallest"].as_f64(), Some(1e-6));
    assert_eq!(report["warnings"][0]["code"], "tiny-ess");

    let output = neuralcb(&obd, &["diagnose", "random/men"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("position") && table.contains("effective      10000 of 10000 rounds"), "{table}");

    let output = neuralcb(&obd, &["diagnose", "random"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("holds several campaigns (all, men, women)"), "{}", text(&output.stderr));
}
