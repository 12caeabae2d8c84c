//! The page of a running server in a real Chromium: what it shows while there is traffic, and how it answers clicks.
//!
//! Where no Chromium is found the test says so and does nothing; `CHROMIUM` names one that is elsewhere.
#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

#[allow(dead_code)] // of it only the search for the program
#[path = "../../experiments/tests/browser/mod.rs"]
mod browser;
mod devtools;
mod server;
use devtools::Page;
use server::{Server, done};

const TOKENS: &str = "rank aaaaaaaaaaaaaaaaaaaa\nread bbbbbbbbbbbbbbbbbbbb\n";

/// Text of all cells in a column of a table.
fn column(page: &mut Page, table: &str, cell: usize) -> Value {
    page.value(&format!(
        "[...document.querySelectorAll('#{table} tr')].slice(1).map(row => row.cells[{cell}].textContent)"
    ))
}

#[test]
fn the_page_shows_what_happens_and_answers_clicks() {
    let Some(chromium) = browser::find() else {
        eprintln!("skipped: no chromium in PATH; install it or name one in CHROMIUM");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate quadratic --n 300 --seed 1 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out policy.safetensors --algorithm lin-lcb --beta 0.5");
    done(f, "train log.csv --out rival.safetensors --algorithm constant");
    fs::write(f.join("tokens"), TOKENS).unwrap();
    let server = Server::start(
        f,
        "policy.safetensors --policy rival=rival.safetensors --data data --explore epsilon=0.3 --token-file tokens",
    );
    let traffic = |n: usize, skip: usize| {
        let about = format!("simulate quadratic --n {n} --skip {skip} --seed 1 --preset released-code --delay 20ms");
        done(f, &format!("{about} --client {} --token aaaaaaaaaaaaaaaaaaaa", server.url()))
    };
    traffic(300, 0);

    let mut page = Page::open(&chromium, f);
    page.dress(1200, 900, false);
    page.ask("Page.navigate", json!({"url": server.url()}));
    // A token is asked for, and refused where it is wrong. What the browser says of 401 is not the page's complaint.
    page.wait("!document.getElementById('login').hidden && document.getElementById('problem').textContent");
    page.click("document.getElementById('token')", 0.5);
    page.ask("Input.insertText", json!({"text": "bbbbbbbbbbbbbbbbbbbb"}));
    page.click("document.querySelector('#login button')", 0.5);
    page.wait("!document.getElementById('main').hidden");
    page.complaints.retain(|complaint| !complaint.contains("status of 401"));
    let cards = page.value("document.getElementById('cards').textContent");
    assert!(cards.as_str().unwrap().contains("300decisions"), "{cards}");
    assert!(cards.as_str().unwrap().contains("median reward lag"), "{cards}");

    // Champion and challenger, with their sequences around what is estimated.
    assert_eq!(column(&mut page, "values", 0), json!(["champion", "rival"]));
    let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    let [estimate, low, high] = [1, 2, 3].map(|cell| number(&column(&mut page, "values", cell)[0]));
    assert!(low <= estimate && estimate <= high, "{low} {estimate} {high}");
    assert!(number(&column(&mut page, "values", 5)[0]) > 10.0);
    assert_eq!(page.value("document.querySelectorAll('#values .track i').length"), 2);
    // What comes later is seen without a click.
    traffic(200, 300);
    page.wait("document.getElementById('cards').textContent.includes('500decisions')");
    page.wait("document.querySelectorAll('#chart rect').length > 1");
    let sum: f64 = column(&mut page, "actions", 1).as_array().unwrap().iter().map(number).sum();
    assert_eq!(sum, 500.0);

    // An event is picked, its actions are shown and stay while others come.
    page.click("document.querySelectorAll('#recent button')[3]", 0.5);
    page.wait("document.getElementById('hold').textContent === 'go on'");
    let picked = page.value("document.querySelectorAll('#recent button')[3].textContent");
    assert_eq!(
        page.value("document.getElementById('oneName').textContent"),
        format!("Actions of {}", picked.as_str().unwrap())
    );
    let actions = column(&mut page, "one", 0).as_array().unwrap().len();
    assert_eq!(actions, 30);
    let one = |page: &mut Page, cell: usize| -> Vec<f64> {
        column(page, "one", cell).as_array().unwrap().iter().map(number).collect()
    };
    let (means, widths, bounds) = (one(&mut page, 1), one(&mut page, 2), one(&mut page, 3));
    let off = |beta: f64, bounds: &[f64]| {
        (0..30).map(|i| (means[i] - beta * widths[i] - bounds[i]).abs() / (1.0 + bounds[i].abs())).fold(0.0, f64::max)
    };
    assert!(off(0.5, &bounds) < 1e-2, "{means:?} {widths:?} {bounds:?}");
    // The dial: at its right end β is 5.
    page.click("document.getElementById('beta')", 0.999);
    page.wait("document.getElementById('betaShown').textContent === '5'");
    let bounds = one(&mut page, 3);
    assert!(off(5.0, &bounds) < 1e-2, "{means:?} {widths:?} {bounds:?}");
    let best = (0..30).max_by(|&a, &b| bounds[a].total_cmp(&bounds[b])).unwrap();
    assert!(column(&mut page, "one", 0)[best].as_str().unwrap().contains("choice"));
    traffic(50, 500);
    page.wait("document.getElementById('cards').textContent.includes('550decisions')");
    assert_eq!(page.value("document.querySelectorAll('#recent button')[3].textContent"), picked, "it is held");
    page.click("document.getElementById('own')", 0.5);
    page.wait("document.getElementById('betaShown').textContent.includes('0.5')");
    assert!(off(0.5, &one(&mut page, 3)) < 1e-2);
    page.click("document.getElementById('hold')", 0.5);
    page.wait(&format!("document.querySelectorAll('#recent button')[3].textContent !== {picked}"));

    // On a phone nothing scrolls sideways but tables in their boxes, and all can be touched; dark is dark.
    for (width, dark) in [(360, false), (360, true), (1200, true)] {
        page.dress(width, 900, dark);
        page.wait(&format!("innerWidth === {width}"));
        assert_eq!(page.value("document.documentElement.scrollWidth <= innerWidth"), true, "{width}");
        let light = page.value("getComputedStyle(document.body).color").as_str().unwrap().contains("255");
        assert_eq!(light, dark);
        picture(&mut page, &format!("{width}-{}", if dark { "dark" } else { "light" }));
    }
    // The server goes, and the page says so.
    assert!(page.complaints.is_empty(), "{:#?}", page.complaints);
    drop(server);
    page.wait("document.getElementById('problem').textContent");
}

/// Pictures to look at, where NEURALCB_PICTURES names a folder.
fn picture(page: &mut Page, name: &str) {
    let Some(folder) = std::env::var_os("NEURALCB_PICTURES").map(PathBuf::from) else { return };
    let taken = page.ask("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
    let coded = folder.join(format!("{name}.base64"));
    fs::write(&coded, taken["data"].as_str().unwrap()).unwrap();
    let decoded = Command::new("base64").arg("-d").arg(&coded).output().unwrap().stdout;
    fs::write(folder.join(format!("{name}.png")), decoded).unwrap();
    fs::remove_file(coded).unwrap();
}
