//! `neuralcb theory` from outside: what it writes, what it says, and how it refuses.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn neuralcb(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_neuralcb")).current_dir(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const TINY: [&str; 12] =
    ["theory", "cosine", "--n", "32", "--width", "8", "--reps", "1", "--test-contexts", "20", "--max-contexts", "1000"];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    TINY.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn theory_prints_the_quantities_and_writes_a_page_that_needs_nothing_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str, jobs: &str| {
        let output = neuralcb(folder.path(), &tiny(&["--figures", "a,b,c,d,f", "--out", out, "--jobs", jobs]));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let table = run("one", "1");
    for word in ["λ_0", "d̃", "κ", "β_n", "ι of Theorem 4.1", "bound of Theorem 4.1", "fitted exponent", "elliptical"]
    {
        assert!(table.contains(word), "{word} is missing: {table}");
    }
    assert!(table.contains("elliptical potential: broken in 0 of 32 rounds"), "{table}");
    let page = fs::read_to_string(folder.path().join("one/theory.html")).unwrap();
    assert_eq!(page.matches("<figure").count(), 5);
    assert_eq!(page.matches("<figcaption>").count(), 5);
    assert!(!page.contains("NaN") && !page.contains("src=") && !page.contains("<script"), "nothing is loaded");
    for letter in ["a", "b", "c", "d", "f"] {
        assert!(folder.path().join(format!("one/figures/theory-{letter}.svg")).exists());
    }
    assert_eq!(run("three", "3"), table, "threads change nothing");
    let csv = |out: &str| fs::read_to_string(folder.path().join(out).join("theory.csv")).unwrap();
    assert_eq!(csv("one"), csv("three"));
}

#[test]
fn schedules_of_the_theorem_or_by_hand_can_be_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let output = neuralcb(folder.path(), &tiny(&["--figures", "c", "--beta", "0.5", "--step", "theory"]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("β = 0.5, η of Theorem 4.1: fitted exponent"), "{}", text(&output.stdout));
}

#[test]
fn a_policy_can_be_trained_by_the_theorem_s_schedules() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let log = neuralcb(f, &["simulate", "cosine", "--n", "200", "--out", "log.csv"]);
    assert_eq!(log.status.code(), Some(0), "{}", text(&log.stderr));
    let train = |more: &[&str]| neuralcb(f, &[&["train", "log.csv", "--out", "p.safetensors"], more].concat());
    let output = train(&["--algorithm", "neuralcb", "--preset", "paper", "--beta", "theory", "--step", "theory"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let beta: f64 = said.split("β ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(beta > 10.0, "the theorem's pessimism is large: {beta}");
    let output = train(&["--algorithm", "lin-lcb", "--beta", "theory"]);
    assert!(text(&output.stderr).contains("`beta = theory` does not apply to lin-lcb"), "{}", text(&output.stderr));
}

#[test]
fn refusals_are_one_line_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for (more, want) in [
        (&["--beta", "often"][..], "must be `theory` or a number"),
        (&["--step", "0"][..], "`step` must be `theory` or a finite number > 0 (of beta, also 0), got 0"),
        (&["--delta", "2"][..], "`delta` must be in (0, 1), got 2"),
        (&["--figures", "z"][..], "must be one of a, b, c, d, e, f"),
    ] {
        let output = neuralcb(folder.path(), &tiny(more));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(want) && said.trim_end().lines().count() == 1, "{said}");
    }
    let few = neuralcb(folder.path(), &["theory", "cosine", "--n", "32", "--max-contexts", "100"]);
    assert!(text(&few.stderr).contains("contexts are too many"), "{}", text(&few.stderr));
}
