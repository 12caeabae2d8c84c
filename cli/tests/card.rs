//! The cards of `diagnose`, `evaluate`, `tune` and `gate` in a real Chromium: wide and on a phone, light and dark.
//!
//! Where no Chromium is found that part says so and does nothing; `CHROMIUM` names one that is elsewhere.

#[path = "../../experiments/tests/browser/mod.rs"]
mod browser;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A column that no page may run, and one whose name is long.
const HOSTILE: &str = "<script>alerted=1</script>";
const LONG: &str = "a_column_whose_name_somebody_made_longer_than_any_page_of_a_phone_is_wide";

/// Runs before everything else in the page: nothing that goes wrong stays unseen.
const HOOKS: &str = "<script>window.seen = [];\
    addEventListener('error', (event) => seen.push(event.message));\
    addEventListener('securitypolicyviolation', (event) => seen.push(`policy: ${event.violatedDirective}`));\
    for (const level of ['error', 'warn']) console[level] = (...said) => seen.push(said.join(' '));</script>";

fn neuralcb(folder: &Path, args: &[&str], codes: &[i32]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_neuralcb")).current_dir(folder).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(codes.contains(&output.status.code().unwrap()), "{args:?}: {said}");
    output.stdout
}

/// A log of k actions: the last is good for the young and bad for the old.
fn log(n: usize, k: u64, propensities: bool) -> String {
    let mut state = 7u64;
    let mut draw = |of: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % of
    };
    let mut text = format!("action,reward,{}{HOSTILE},{LONG},x\n", if propensities { "propensity," } else { "" });
    for _ in 0..n {
        let (action, old, number, x) = (draw(k), draw(2), draw(1_000_000), draw(1000) as f64 / 1000.0);
        let chance = if action + 1 == k { if old == 1 { 10 } else { 90 } } else { 50 };
        let reward = u8::from(draw(100) < chance);
        let p = if propensities { format!("{},", 1.0 / k as f64) } else { String::new() };
        let who = if old == 1 { "old & <b>wise</b>" } else { "young" };
        writeln!(text, "item {action},{reward},{p}{who},{number},{x}").unwrap();
    }
    text
}

/// All cards, by name.
fn cards(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    fs::write(folder.join("log.csv"), log(1200, 3, true)).unwrap();
    fs::write(folder.join("later.csv"), log(900, 3, true)).unwrap();
    fs::write(folder.join("many.csv"), log(1500, 100, false)).unwrap();
    let run = |args: &[&str], codes: &[i32]| neuralcb(folder, args, codes);
    let segments = ["--segment", HOSTILE, "--segment", LONG];
    let with = |args: &[&'static str]| [args, &segments].concat();
    run(&["train", "log.csv", "--algorithm", "constant", "--constant", "item 2", "--out", "new.safetensors"], &[0]);
    run(&["train", "log.csv", "--algorithm", "lin-lcb", "--out", "old.safetensors"], &[0]);
    run(&with(&["diagnose", "log.csv", "--report", "diagnose.html"]), &[0, 1]);
    run(&with(&["diagnose", "many.csv", "--report", "many.html"]), &[0, 1]);
    run(&with(&["evaluate", "old.safetensors", "later.csv", "--report", "evaluate.html"]), &[0]);
    run(&with(&["evaluate", "new.safetensors", "many.csv", "--report", "blind.html", "--folds", "0"]), &[0]);
    let gate = ["gate", "new.safetensors", "later.csv", "--against", "old.safetensors", "--report", "gate.html"];
    run(&with(&gate), &[0, 1]);
    let tune = ["tune", "log.csv", "--out", "p.safetensors", "--beta", "0,1", "--lr", "0.001", "--report", "tune.html"];
    run(&with(&tune), &[0]);
    ["diagnose", "many", "evaluate", "blind", "gate", "tune"]
        .map(|name| (name, folder.join(format!("{name}.html"))))
        .into()
}

/// Visits a card at a width and returns what its test found. The card allows no script; the test's own is let in.
fn found(chromium: &Path, card: &Path, width: u32, dark: bool) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let page = fs::read_to_string(card).unwrap();
    let page = page.replacen("default-src 'none'; ", "default-src 'none'; script-src 'unsafe-inline'; ", 1);
    let page = page.replacen("<title>", &format!("{HOOKS}<title>"), 1);
    let test = include_str!("card.js");
    let page = page.replacen("</body>", &format!("<script type=\"module\">{test}</script></body>"), 1);
    fs::write(dir.path().join("card.html"), page).unwrap();
    let around = format!(
        "<!doctype html><body style=\"margin:0\"><pre id=\"found\" hidden></pre>\
         <script>onmessage = (event) => {{ document.getElementById('found').textContent = event.data; }};</script>\
         <iframe src=\"card.html\" style=\"width:{width}px;height:900px;border:0\"></iframe>"
    );
    let path = dir.path().join("around.html");
    fs::write(&path, around).unwrap();
    let scheme = format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 });
    let visit = browser::visit(chromium, dir.path(), &path, &["--dump-dom", "--window-size=1400,900", &scheme]);
    let json = visit.dom.split_once("<pre id=\"found\" hidden=\"\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let json = json.map(|(json, _)| json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
    serde_json::from_str(&json.filter(|json| !json.is_empty()).unwrap_or_else(|| panic!("no end: {}", visit.log)))
        .unwrap()
}

#[test]
fn cards_are_whole_safe_and_readable() {
    let folder = tempfile::tempdir().unwrap();
    let cards = cards(folder.path());
    for (name, card) in &cards {
        let page = fs::read_to_string(card).unwrap();
        assert!(page.contains("default-src 'none'") && !page.contains("<script"), "{name}");
        assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("NaN"), "{name}");
        assert!(page.len() < 400_000, "{name}: {} bytes", page.len());
    }
    let Some(chromium) = browser::find() else {
        eprintln!("skipped: no chromium in PATH; install it or name one in CHROMIUM");
        return;
    };
    for (i, (name, card)) in cards.iter().enumerate() {
        // each card twice: wide and narrow, one of them dark
        for (width, dark) in [(1200, i % 2 == 0), (360, i % 2 == 1)] {
            let found = found(&chromium, card, width, dark);
            let checks = found["checks"].as_array().unwrap();
            let failed: Vec<&Value> = checks.iter().filter(|check| check["ok"] != true).collect();
            assert!(failed.is_empty() && checks.len() > 12, "{name}, {width} wide: {failed:#?}");
            assert_eq!((found["width"].as_u64(), found["dark"].as_bool()), (Some(u64::from(width)), Some(dark)));
            assert_eq!(
                (&found["errors"], &found["requests"]),
                (&serde_json::json!([]), &serde_json::json!([])),
                "{name}"
            );
        }
    }
}

#[test]
fn json_holds_what_the_card_shows() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log.csv"), log(600, 3, true)).unwrap();
    let run = |args: &[&str], codes: &[i32]| neuralcb(folder.path(), args, codes);
    run(&["train", "log.csv", "--algorithm", "constant", "--constant", "item 2", "--out", "p.safetensors"], &[0]);
    let json = run(&["evaluate", "p.safetensors", "log.csv", "--json", "--segment", HOSTILE], &[0]);
    let json: Value = serde_json::from_slice(&json).unwrap();
    let segments = json["detail"]["segments"][0]["segments"].as_array().unwrap();
    let gains: Vec<(&str, Option<bool>)> =
        segments.iter().map(|s| (s["name"].as_str().unwrap(), s["gains"].as_bool())).collect();
    assert!(gains.contains(&("young", Some(true))) && gains.contains(&("old & <b>wise</b>", Some(false))), "{gains:?}");
    assert_eq!(json["detail"]["actions"][0]["name"], "item 2");
    assert_eq!(json["weights"]["tail"]["k"], Value::Null); // every weight above 0 is 3
    assert_eq!(json["about"]["log"]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn a_column_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log.csv"), log(200, 3, true)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_neuralcb"))
        .current_dir(folder.path())
        .args(["diagnose", "log.csv", "--segment", "country"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no column `country`") && said.contains(LONG), "{said}");
}
