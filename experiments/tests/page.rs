//! The report page in a real Chromium: what it draws, how it answers, and that it asks nobody for anything.
//!
//! Where no Chromium is found the tests say so and do nothing; `CHROMIUM` names one that is elsewhere.

mod browser;
mod sample;

use std::fs;
use std::path::{Path, PathBuf};

use neuralcb_experiments::report;
use serde::Deserialize;

/// Runs before everything else in the page: nothing that goes wrong stays unseen.
const HOOKS: &str = "<script>window.seen = [];\
    addEventListener('error', (event) => seen.push(event.message));\
    addEventListener('unhandledrejection', (event) => seen.push(String(event.reason)));\
    addEventListener('securitypolicyviolation', (event) => seen.push(`policy: ${event.violatedDirective}`));\
    for (const level of ['error', 'warn']) console[level] = (...said) => seen.push(said.join(' '));</script>";

#[derive(Deserialize)]
struct Found {
    checks: Vec<Check>,
    errors: Vec<String>,
    requests: Vec<String>,
    width: u32,
}

#[derive(Deserialize)]
struct Check {
    name: String,
    ok: bool,
    detail: String,
}

/// Chromium, or a line that says why there is no test.
fn chromium() -> Option<PathBuf> {
    let found = browser::find();
    if found.is_none() {
        eprintln!("skipped: no chromium in PATH; install it or name one in CHROMIUM");
    }
    found
}

/// The sample page with hooks before its script and a test behind it, and around it a page that shows it as wide as
/// asked: a window of Chromium's has a least width, a frame has none.
fn write_pages(dir: &Path, test: &str, width: u32) -> PathBuf {
    let page = report::html(&sample::report());
    let page = page.replacen("<title>", &format!("{HOOKS}<title>"), 1);
    let page = page.replacen("</body>", &format!("<script type=\"module\">{test}</script></body>"), 1);
    fs::write(dir.join("report.html"), page).unwrap();
    let around = format!(
        "<!doctype html><body style=\"margin:0\"><pre id=\"found\" hidden></pre>\
         <script>onmessage = (event) => {{ document.getElementById('found').textContent = event.data; }};</script>\
         <iframe src=\"report.html\" style=\"width:{width}px;height:900px;border:0\"></iframe>"
    );
    let path = dir.join("around.html");
    fs::write(&path, around).unwrap();
    path
}

/// Visits the page at a width and returns what its test found.
fn found(chromium: &Path, width: u32) -> Found {
    let dir = tempfile::tempdir().unwrap();
    let page = write_pages(dir.path(), include_str!("page.js"), width);
    let visit = browser::visit(chromium, dir.path(), &page, &["--dump-dom", "--window-size=1400,900"]);
    let said: Vec<&str> = visit.log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(said.is_empty(), "{said:#?}");
    let json = visit.dom.split_once("<pre id=\"found\" hidden=\"\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let json = json.map(|(json, _)| json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
    let json = json.filter(|json| !json.is_empty()).unwrap_or_else(|| panic!("the test did not end: {}", visit.log));
    serde_json::from_str(&json).unwrap()
}

fn assert_all_is_well(found: &Found) {
    let failed: Vec<String> = found
        .checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| format!("{}: {}", check.name, check.detail))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(found.checks.len() > 30, "{} checks", found.checks.len());
    assert!(found.errors.is_empty(), "{:#?}", found.errors);
    assert!(found.requests.is_empty(), "{:#?}", found.requests);
}

#[test]
fn the_page_answers_in_a_wide_window() {
    let Some(chromium) = chromium() else { return };
    let found = found(&chromium, 1300);
    assert_eq!(found.width, 1300);
    assert_all_is_well(&found);
}

#[test]
fn the_page_answers_on_a_phone() {
    let Some(chromium) = chromium() else { return };
    let found = found(&chromium, 360);
    assert_eq!(found.width, 360);
    assert_all_is_well(&found);
}

/// Not a check: pictures of the page for people to look at, in the folder that is printed.
#[test]
#[ignore = "makes pictures to look at"]
fn pictures_of_the_page() {
    let Some(chromium) = chromium() else { return };
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report-pictures");
    fs::create_dir_all(&dir).unwrap();
    let reading = "for (const plot of document.querySelectorAll('.plot')) \
                   plot.dispatchEvent(new KeyboardEvent('keydown', { key: 'End' }));";
    let dark = "--blink-settings=preferredColorScheme=0";
    for (name, width, test, options) in [
        ("light", 1300, "", [].as_slice()),
        ("dark", 1300, "", &[dark]),
        ("reading", 1300, reading, &[dark]),
        ("phone", 360, "", &[]),
        ("phone-reading", 360, reading, &[]),
    ] {
        let page = write_pages(&dir, test, width);
        let height = if width < 500 { 9000 } else { 4200 };
        let around = fs::read_to_string(&page).unwrap().replace("height:900px", &format!("height:{height}px"));
        fs::write(&page, around).unwrap();
        let size = format!("--window-size={width},{height}");
        let picture = format!("--screenshot={}", dir.join(format!("{name}.png")).display());
        let options: Vec<&str> = [size.as_str(), &picture].iter().chain(options).copied().collect();
        browser::visit(&chromium, &dir, &page, &options);
    }
    let page = dir.join("report.html");
    let paper = format!("--print-to-pdf={}", dir.join("print.pdf").display());
    browser::visit(&chromium, &dir, &page, &[&paper, "--no-pdf-header-footer", dark]);
    eprintln!("{}", dir.display());
}
