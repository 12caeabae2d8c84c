//! Manners of the command line: a demonstration, completions, a manual, colours, how much is said, names misspelt.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn neuralcb(folder: &Path, args: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuralcb"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(environment.iter().copied());
    command.current_dir(folder).args(args.split_whitespace()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs, expects success, and returns what was printed and what was said.
fn done(folder: &Path, args: &str) -> (String, String) {
    let output = neuralcb(folder, args, &[]);
    assert_eq!(output.status.code(), Some(0), "{args}: {}", text(&output.stderr));
    (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
}

#[test]
fn the_demonstration_goes_the_whole_way_and_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let (said, _) = done(folder.path(), "demo --out there");
    for command in ["simulate", "diagnose", "tune", "evaluate", "score"] {
        assert!(said.contains(&format!("$ neuralcb {command} ")), "{command}: {said}");
    }
    assert!(said.contains("with 95 % confidence"), "{said}");
    assert!(said.contains("neuralcb tune YOUR-LOG.csv"), "{said}");
    let lines = |name: &str| fs::read_to_string(folder.path().join("there").join(name)).unwrap().lines().count();
    assert_eq!((lines("log.csv"), lines("past.csv"), lines("later.csv")), (7001, 5001, 2001));
    assert_eq!(lines("decisions.csv"), 2001);
    assert!(folder.path().join("there/policy.safetensors").is_file());
}

#[test]
fn completions_know_commands_and_names() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (script, said) = done(folder.path(), &format!("completions {shell}"));
        assert!(script.contains("diagnose") && script.contains("if-not-better"), "{shell}");
        assert!(said.is_empty());
    }
    // these two complete the values of options
    for shell in ["bash", "fish"] {
        assert!(done(folder.path(), &format!("completions {shell}")).0.contains("neural-lin-lcb"), "{shell}");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    done(folder.path(), "manual man");
    let help = done(folder.path(), "--help").0;
    let commands = help.lines().skip_while(|l| !l.starts_with("Commands:")).skip(1).take_while(|l| !l.is_empty());
    // a description that goes on in a second line is indented further
    let commands = commands.filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    let names: Vec<&str> = commands.filter_map(|l| l.split_whitespace().next()).filter(|&n| n != "help").collect();
    assert!(names.len() >= 17, "{names:?}");
    for name in names {
        let page = fs::read_to_string(folder.path().join(format!("man/neuralcb-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    assert!(folder.path().join("man/neuralcb-data-fetch.1").is_file());
}

#[test]
fn the_reference_for_the_docs_has_every_command_with_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let (page, _) = done(folder.path(), "manual --markdown");
    for part in ["## `neuralcb data fetch`", "| `--if-not-better <", "`neural-lin-lcb`", "Default: `0.95`"] {
        assert!(page.contains(part), "{part}");
    }
    let open = page.lines().find(|line| line.starts_with('|') && !line.ends_with('|'));
    assert_eq!(open, None, "a row of a table is broken");
}

#[test]
fn colours_are_for_terminals_and_respect_no_color() {
    let folder = tempfile::tempdir().unwrap();
    for (environment, coloured) in [
        (&[][..], false),
        (&[("CLICOLOR_FORCE", "1")][..], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")][..], false),
    ] {
        for args in ["show nothing.safetensors", "train log.csv"] {
            let output = neuralcb(folder.path(), args, environment);
            assert_eq!(output.status.code(), Some(2));
            let said = text(&output.stderr);
            assert_eq!(said.contains("\u{1b}["), coloured, "{environment:?}: {said:?}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn quiet_says_nothing_and_verbose_says_what_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let simulate = "simulate cosine --n 300 --preset released-code --out log.csv";
    assert!(done(f, simulate).1.contains("300 rounds"));
    assert_eq!(done(f, &format!("--quiet {simulate}")).1, "");
    assert_eq!(done(f, &format!("{simulate} -q")).1, "");
    let train = "train log.csv --algorithm lin-lcb --out p.safetensors";
    assert!(!done(f, train).1.contains("s  training"));
    assert!(done(f, &format!("{train} --verbose")).1.contains("s  training"));
    // warnings and errors are said in any case
    let refused = neuralcb(f, "train nothing.csv --out p.safetensors --quiet", &[]);
    assert!(text(&refused.stderr).starts_with("error: "));
    assert_eq!(neuralcb(f, &format!("{train} -q -v"), &[]).status.code(), Some(2));
}

#[test]
fn a_misspelt_name_is_met_with_the_nearest_one() {
    let folder = tempfile::tempdir().unwrap();
    for (args, meant) in [
        ("tune log.csv --out p --mdoe S", "'--mode'"),
        ("diagnos log.csv", "'diagnose'"),
        ("train log.csv --out p --algorithm neuralbc", "'neuralcb'"),
        ("train log.csv --out p --preset practicle", "'practical'"),
        ("simulate quadratik --n 10 --out x.csv", "'quadratic'"),
        ("reproduce fig1 --datasets musroom", "'mushroom'"),
        ("data fetch mnits", "'mnist'"),
        ("evaluate p log.csv --estimators snps", "'snips'"),
        ("evaluate p log.csv --intervals bootstap", "'bootstrap'"),
        ("train log.csv --out p --format parket", "'parquet'"),
    ] {
        let output = neuralcb(folder.path(), args, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(said.contains(&format!("exists: {meant}")), "{args}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    // capitals are no misspelling
    assert_eq!(neuralcb(folder.path(), "simulate Cosine --n 10 --out x.csv", &[]).status.code(), Some(0));
}
