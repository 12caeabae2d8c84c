//! The practitioner's path from outside: a log, its diagnosis, a policy, its decisions, its value, the choice among
//! many.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

#[path = "../../logs/tests/common/mod.rs"]
mod common;

fn neuralcb(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_neuralcb")).current_dir(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs, expects success, and returns what was printed.
fn done(folder: &Path, args: &str) -> String {
    let args: Vec<&str> = args.split_whitespace().collect();
    let output = neuralcb(folder, &args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Runs, expects the exit code, and returns what was said.
fn refused(folder: &Path, code: i32, args: &str) -> String {
    let args: Vec<&str> = args.split_whitespace().collect();
    let output = neuralcb(folder, &args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    text(&output.stderr).trim().to_owned()
}

#[test]
fn from_a_log_to_a_policy_and_its_value() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for (preset, first, second) in [("paper", "a.csv", "b.parquet"), ("released-code", "c.parquet", "d.csv")] {
        done(
            f,
            &format!(
                "simulate cosine --n 3000 --seed 1 --preset {preset} --behaviour epsilon-greedy:0.5 --out {first}"
            ),
        );
        done(
            f,
            &format!(
                "simulate cosine --n 2000 --seed 1 --preset {preset} --behaviour epsilon-greedy:0.5 --out {second}"
            ),
        );
        assert!(done(f, &format!("diagnose {first}")).contains("rounds         3000"));
        done(f, &format!("train {first} --out p.safetensors --preset practical"));
        done(f, &format!("score p.safetensors {second} --out decisions.csv --explain"));
        let rows = fs::read_to_string(f.join("decisions.csv")).unwrap();
        assert_eq!(rows.lines().count(), 2001);
        assert!(rows.starts_with("line,action,mean:0,width:0,bound:0,mean:1,"));
        let report: Value = serde_json::from_str(&done(f, &format!("evaluate p.safetensors {second} --json"))).unwrap();
        assert_eq!(report["n"], 2000);
        for key in ["ess", "mean_weight", "max_weight", "behaviour", "estimates", "verdict", "warnings"] {
            assert!(!report[key].is_null(), "{key}");
        }
        assert!(report["behaviour"]["value"].is_f64());
        let names: Vec<&str> =
            report["estimates"].as_array().unwrap().iter().map(|e| e["estimator"].as_str().unwrap()).collect();
        assert_eq!(names.join(" "), "dm ips ips-clip snips dr dr-clip sndr switch-dr dros sg-ips sg-dr cressie-read");
        assert_eq!(report["estimates"][3]["intervals"]["normal"].as_array().unwrap().len(), 2);
        assert!(done(f, &format!("evaluate p.safetensors {second}")).contains("95 % interval"));
    }
}

#[test]
fn beta_is_turned_at_scoring_and_bounds_follow_it() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate cosine --n 500 --preset released-code --out log.csv");
    done(f, "train log.csv --out p.safetensors --algorithm lin-lcb --beta 0.5");
    for (beta, flag) in [(0.5, ""), (2.0, "--beta 2"), (0.0, "--beta 0")] {
        done(f, &format!("score p.safetensors log.csv --out d.jsonl --explain {flag}"));
        for line in fs::read_to_string(f.join("d.jsonl")).unwrap().lines().take(50) {
            let row: Value = serde_json::from_str(line).unwrap();
            let bounds = row["actions"].as_object().unwrap().iter().map(|(name, e)| {
                let number = |key: &str| e[key].as_f64().unwrap();
                assert!((number("bound") - (number("mean") - beta * number("width"))).abs() < 1e-12);
                (name.clone(), number("bound"))
            });
            let best = bounds.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            assert_eq!(row["action"], best.0.as_str());
        }
    }
}

#[test]
fn evaluating_on_the_training_log_and_without_propensities_is_said_loudly() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate cosine --n 600 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out p.safetensors --algorithm lin-lcb");
    let codes = |args: &str| -> Vec<String> {
        let report: Value = serde_json::from_str(&done(f, args)).unwrap();
        report["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(codes("evaluate p.safetensors log.csv --json").contains(&"same-log".to_owned()));
    let log = fs::read_to_string(f.join("log.csv")).unwrap();
    let without: String = log
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [&cells[..2], &cells[3..]].concat().join(",") + "\n"
        })
        .collect();
    fs::write(f.join("blind.csv"), without).unwrap();
    for how in ["empirical", "logistic"] {
        let codes = codes(&format!("evaluate p.safetensors blind.csv --json --estimate-propensities {how}"));
        assert!(codes.contains(&"estimated-propensities".to_owned()), "{codes:?}");
    }
}

#[test]
fn tune_prefers_what_the_log_shows_and_names_the_references() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate cosine --n 1000 --preset released-code --behaviour epsilon-greedy:0.7 --out log.csv");
    let tune = "tune log.csv --out p.safetensors --algorithms constant,clone,lin-lcb,tab-lcb --hold-out random";
    let report: Value = serde_json::from_str(&done(f, &format!("{tune} --json --scratch kept --jobs 1"))).unwrap();
    // what was kept while it ran is gone with the end, and makes no difference; nor do threads
    assert!(!f.join("kept").exists());
    assert_eq!(serde_json::from_str::<Value>(&done(f, &format!("{tune} --json --jobs 2"))).unwrap(), report);
    let candidates = report["candidates"].as_array().unwrap();
    for reference in ["constant", "clone", "lin-lcb", "tab-lcb"] {
        assert!(candidates.iter().any(|c| c["algorithm"] == reference), "{reference}");
    }
    assert!(done(f, tune).contains("of 12 candidates: the best ten, and the best of each algorithm"));
    let lower: Vec<f64> = candidates.iter().map(|c| c["lower"].as_f64().unwrap()).collect();
    assert!(lower.is_sorted_by(|a, b| a >= b));
    assert_eq!(report["beats_the_log"], report["winner"]["over_log"]["lower"].as_f64().unwrap() > 0.0);
    for claim in ["value", "over_log", "over_clone"] {
        assert!(report["certificate"][claim]["lower"].is_f64(), "{claim}");
    }
    // the file says the same again
    let shown: Value = serde_json::from_str(&done(f, "show p.safetensors --json")).unwrap();
    assert_eq!(shown["certified"]["certificate"], report["certificate"]);
    let shown = done(f, "show p.safetensors");
    assert!(shown.contains("with 95 % confidence") && shown.contains("what the certificate takes for granted"));
    // rewards that are noise: nothing can be shown to beat the log
    let mut noise = "action,reward,propensity,x\n".to_owned();
    for t in 0..600u64 {
        let hash = (t * 2_654_435_761) % 4_294_967_296;
        noise.push_str(&format!("{},{},0.5,{}\n", hash >> 16 & 1, hash >> 20 & 1, hash >> 8 & 255));
    }
    fs::write(f.join("noise.csv"), noise).unwrap();
    let nothing = "nothing is shown to beat the policy that made the log";
    let few = "--algorithms constant,lin-lcb";
    assert!(done(f, &format!("tune noise.csv --out q.safetensors {few}")).contains(nothing));
    assert!(done(f, "show q.safetensors").starts_with("clone"));
    assert!(refused(f, 1, &format!("tune noise.csv --out q.safetensors --strict {few}")).contains(nothing));
    let refuse = format!("tune noise.csv --out r.safetensors --if-not-better refuse {few}");
    assert!(refused(f, 1, &refuse).contains("no file was written"));
    assert!(!f.join("r.safetensors").exists());
}

#[test]
fn the_gate_answers_with_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate cosine --n 3000 --seed 1 --behaviour uniform --out past.csv");
    done(f, "simulate cosine --n 2000 --seed 1 --behaviour uniform --out later.csv");
    done(f, "train past.csv --out new.safetensors --algorithm lin-lcb");
    done(f, "train past.csv --out old.safetensors --algorithm uniform");
    let said = refused(f, 1, "gate old.safetensors later.csv --against old.safetensors --reward-range -20,20");
    assert!(said.contains("no: the new policy is not shown to earn more than the old one"), "{said}");
    let output = neuralcb(f, &["gate", "new.safetensors", "later.csv", "--against", "old.safetensors", "--json"]);
    let report: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    let promote = report["promote"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!promote)));
    assert_eq!(promote, report["over_old"]["lower"].as_f64().unwrap() > 0.0);
    assert!(refused(f, 2, "gate none.safetensors later.csv --against old.safetensors").contains("none.safetensors"));
}

#[test]
fn wrong_input_ends_in_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    fs::write(f.join("bad.csv"), "action,reward,propensity,x\n0,1,0.5,1.0\n1,oops,0.5,2.0\n").unwrap();
    let said = refused(f, 2, "train bad.csv --out p.safetensors");
    assert!(said.contains("bad.csv") && said.contains("line 3") && said.contains("oops"), "{said}");
    assert_eq!(said.lines().count(), 1);
    // that the result cannot be written is known before the log is read
    for work in ["train", "tune"] {
        assert!(refused(f, 2, &format!("{work} bad.csv --out none/p.safetensors")).contains("none/p.safetensors"));
    }
    fs::write(f.join("few.csv"), "action,reward,propensity,x\n0,1,0.5,1.0\n").unwrap();
    assert!(refused(f, 2, "tune few.csv --out p.safetensors").contains("tuning needs at least 100"));
    assert!(refused(f, 2, "score nothing.safetensors few.csv --out d.csv").contains("nothing.safetensors"));
    assert!(refused(f, 2, "evaluate few.csv").contains("give a policy file and a log"));
    assert!(refused(f, 2, "evaluate few.csv --policy-column P").contains('P'));
    let mut names: Vec<String> =
        fs::read_dir(f).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["bad.csv", "few.csv"]);
}

/// The rule of the golden file: a policy that lives elsewhere, given by three columns.
#[test]
fn columns_of_the_open_bandit_log_give_the_golden_values() {
    let Some(data) = common::data_folder() else { return };
    let Ok(golden) = fs::read_to_string(data.join("../golden/obd_men.json")) else {
        println!("skipped: no golden file");
        return;
    };
    let golden: Value = serde_json::from_str(&golden).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let read = |policy: &str| -> Vec<(usize, usize, f64, f64)> {
        let path = data.join(format!("obd/{policy}/men/men.csv"));
        let mut reader = csv::Reader::from_path(path).unwrap();
        let headers = reader.headers().unwrap().clone();
        let column = |name: &str| headers.iter().position(|h| h == name).unwrap();
        let at = ["item_id", "position", "click", "propensity_score"].map(column);
        let row = |row: csv::StringRecord| {
            let number = |i: usize| row[at[i]].parse::<f64>().unwrap();
            (number(0) as usize, number(1) as usize, number(2), number(3))
        };
        reader.records().map(|r| row(r.unwrap())).collect()
    };
    let (random, bts) = (read("random"), read("bts"));
    let mut shown = [[0.0; 34]; 4];
    let (mut seen, mut clicks) = (shown, shown);
    bts.iter().for_each(|&(a, p, ..)| shown[p][a] += 1.0);
    for &(a, p, click, _) in &random {
        seen[p][a] += 1.0;
        clicks[p][a] += click;
    }
    let total = |p: usize| shown[p].iter().map(|c| c + 1.0).sum::<f64>();
    let pi = |a: usize, p: usize| (shown[p][a] + 1.0) / total(p);
    let q = |a: usize, p: usize| (clicks[p][a] + 1.0) / (seen[p][a] + 100.0);
    let v: Vec<f64> = (0..4).map(|p| (0..34).map(|a| pi(a, p) * q(a, p)).sum()).collect();
    let mut log = "action,reward,propensity,P,Q,V\n".to_owned();
    for &(a, p, click, mu) in &random {
        log.push_str(&format!("{a},{click},{mu},{},{},{}\n", pi(a, p), q(a, p), v[p]));
    }
    fs::write(folder.path().join("men.csv"), log).unwrap();
    let flags = "--policy-column P --q-column Q --v-column V --clip 2 --switch 2 --dros 1 --sg 0.1 --x-max 10 --reward-range 0,1 --json";
    let report: Value = serde_json::from_str(&done(folder.path(), &format!("evaluate men.csv {flags}"))).unwrap();
    let estimate =
        |name: &str| report["estimates"].as_array().unwrap().iter().find(|e| e["estimator"] == name).unwrap().clone();
    for (name, key) in [
        ("ips", "ipw"),
        ("ips-clip", "ipw_clip2"),
        ("snips", "snipw"),
        ("dm", "dm"),
        ("dr", "dr"),
        ("dr-clip", "dr_clip2"),
        ("sndr", "sndr"),
        ("switch-dr", "switch_dr_tau2"),
        ("dros", "dros_1"),
        ("sg-ips", "sgipw_0.1"),
        ("sg-dr", "sgdr_0.1"),
    ] {
        let (got, want) = (estimate(name)["value"].as_f64().unwrap(), golden["estimators"][key].as_f64().unwrap());
        assert!((got / want - 1.0).abs() < 1e-12, "{name}: {got} {want}");
    }
    for (name, interval, key) in [
        ("ips", "normal", "gaussian_95"),
        ("ips", "clopper-pearson", "clopper_pearson_95"),
        ("cressie-read", "cressie-read", "cressieread_95"),
        ("ips", "sequence", "cs_95"),
    ] {
        for side in 0..2 {
            let got = estimate(name)["intervals"][interval][side].as_f64().unwrap();
            let want = golden["vw_estimators"][key][side].as_f64().unwrap();
            assert!((got - want).abs() < 1e-9, "{interval}: {got} {want}");
        }
    }
}
