//! The program from outside: what it writes, what it says, how it ends, and what it leaves behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the program in `folder`, so that nothing it leaves behind can be missed.
fn neuralcb(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_neuralcb")).current_dir(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs, and expects success.
fn done(folder: &Path, args: &[&str]) -> Output {
    let output = neuralcb(folder, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    output
}

/// Every file below the folder, with its bytes.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            out.insert(format!("{name}/"), Vec::new());
            out.extend(tree(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            out.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    out
}

const TINY: [&str; 11] =
    ["reproduce", "fig1", "--reps", "2", "--n", "50", "--test-contexts", "30", "--lr", "0.001", "--out"];

/// The paper's algorithms and one of each other kind: `auto` and `viper` fit many networks of these kinds.
const KINDS: [&str; 2] = [
    "--algorithms",
    "neuralcb,neural-greedy,neural-lin-lcb,neural-lin-greedy,lin-lcb,kern-lcb,choice,clone,constant,uniform,behaviour",
];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    TINY.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn reproduce_writes_every_file_and_prints_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let output = done(folder.path(), &tiny(&["deep/fig1"]));
    let names: Vec<String> = tree(folder.path()).into_keys().filter(|n| !n.ends_with('/')).collect();
    let mut want: Vec<String> =
        ["report.html", "results.csv", "runs.jsonl", "settings.json", "summary.csv", "timings.csv", "validation.csv"]
            .map(String::from)
            .into();
    for panel in ["fig1", "fig1-quadratic", "fig1-quadratic2", "fig1-cosine"] {
        for choice in ["", "-log-only"] {
            want.extend(["svg", "png"].map(|ending| format!("figures/{panel}{choice}.{ending}")));
        }
    }
    want.sort();
    assert_eq!(names, want.iter().map(|n| format!("deep/fig1/{n}")).collect::<Vec<_>>());
    for name in ["NeuraLCB", "NeuralGreedy", "NeuralLinLCB", "NeuralLinGreedy", "LinLCB", "KernLCB"] {
        assert!(text(&output.stdout).contains(name), "{name} is missing: {}", text(&output.stdout));
    }
    let talk = text(&output.stderr);
    assert!(talk.lines().count() == 1 && talk.starts_with("done in") && talk.contains("results.csv"), "{talk}");
}

/// Runs with the best instructions that the name allows.
fn with_instructions(name: &str, folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuralcb"));
    command.current_dir(folder).args(args).env("NEURALCB_INSTRUCTIONS", name).output().unwrap()
}

/// Both modes. Where the processor has neither AVX2 nor AVX-512 all three are the same.
#[test]
fn instructions_with_fused_multiply_add_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["avx-512", "avx2"] {
        let output = with_instructions(name, folder.path(), &tiny(&[&[name][..], &KINDS].concat()));
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
    }
    // Without the instruction a fused multiplication is a call of a function: a hundred times as slow.
    let few = ["portable", "--datasets", "quadratic", "--algorithms", "neuralcb,lin-lcb"];
    let output = with_instructions("portable", folder.path(), &tiny(&few));
    assert_eq!(output.status.code(), Some(0), "portable: {}", text(&output.stderr));
    let results = |name: &str| fs::read_to_string(folder.path().join(name).join("results.csv")).unwrap();
    assert_eq!(results("avx-512"), results("avx2"));
    assert!(results("portable").lines().count() > 1);
}

#[test]
fn unknown_instructions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = with_instructions("sse2", folder.path(), &tiny(&["out"]));
    let line = "error: unknown NEURALCB_INSTRUCTIONS `sse2`: use one of avx-512, avx2, portable\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), line));
    assert!(tree(folder.path()).is_empty());
}

#[test]
fn the_other_systems_of_table_1_run_in_the_experiments() {
    let folder = tempfile::tempdir().unwrap();
    let systems = "lin-greedy,tab-lcb,tab-greedy,relu-greedy,neural-retrain,uniform";
    let more = ["out", "--algorithms", systems, "--cell", "2", "--datasets", "quadratic", "--beta", "1"];
    let output = done(folder.path(), &tiny(&more));
    for name in ["LinGreedy", "TabLCB", "TabGreedy", "ReLU greedy", "retrained every round"] {
        assert!(text(&output.stdout).contains(name), "{name} is missing: {}", text(&output.stdout));
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    for preset in ["paper", "released-code"] {
        let run = |jobs: &str| {
            let out = format!("{preset}-{jobs}");
            let output =
                done(folder.path(), &tiny(&[&[&out, "--jobs", jobs, "--preset", preset][..], &KINDS].concat()));
            let mut files = tree(&folder.path().join(&out));
            // the clock and the order in which runs ended
            for name in ["timings.csv", "runs.jsonl", "report.html"] {
                assert!(files.remove(name).is_some());
            }
            (files, output.stdout)
        };
        let (one, two) = (run("1"), run("2"));
        for name in ["results.csv", "summary.csv"] {
            assert!(one.0[name].len() > 1000);
            assert!(one.0[name] == two.0[name], "{preset}: another {name} with two threads");
        }
        assert!(one == two, "{preset}: another figure or table with two threads");
    }
}

/// Expects exit code 2, one line that names culprit and range, nothing on standard output, and an untouched folder.
#[track_caller]
fn refused(folder: &Path, args: &[&str], culprit: &str, range: &[&str]) {
    let before = tree(folder);
    let output = neuralcb(folder, args);
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {talk}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
    assert_eq!(talk.lines().count(), 1, "{args:?}: {talk}");
    for part in [culprit].iter().chain(range) {
        assert!(talk.contains(part), "{args:?}: `{part}` is missing in: {talk}");
    }
    assert_eq!(tree(folder).into_keys().collect::<Vec<_>>(), before.keys().cloned().collect::<Vec<_>>(), "{args:?}");
    assert_eq!(tree(folder), before, "{args:?}");
}

#[test]
fn reproduce_refuses_wrong_input_in_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "keep me").unwrap();
    let datasets = ["quadratic", "quadratic2", "cosine"];
    let algorithms = ["neuralcb", "neural-greedy", "neural-lin-lcb", "neural-lin-greedy", "lin-lcb", "kern-lcb"];
    let cases: [(&[&str], &str, &[&str]); 20] = [
        (&["--net", "layer_norm"], "layer_norm", &["NAME=VALUE"]),
        (&["--net", "colour=red"], "colour", &["layer_norm", "width"]),
        (&["--split", "none"], "none", &["disjoint", "released-code"]),
        (&["--lambda", "0"], "`lambda`", &["> 0", "got 0"]),
        (&["--datasets", "mushroom"], "mushroom", &datasets),
        (&["--datasets", "cosine,mushroom"], "mushroom", &datasets),
        (&["--algorithms", "neural-ucb"], "neural-ucb", &algorithms),
        (&["--preset", "original"], "original", &["paper", "released-code"]),
        (&["--mode", "C"], "'C'", &["S, B"]),
        (&["--n", "0"], "`n`", &["at least 1", "got 0"]),
        (&["--reps", "0"], "`reps`", &["at least 1", "got 0"]),
        (&["--test-contexts", "0"], "`test contexts`", &["at least 1", "got 0"]),
        (&["--beta", "-1"], "`beta`", &[">= 0", "got -1"]),
        (&["--beta", "0.1,NaN"], "`beta`", &[">= 0", "got NaN"]),
        (&["--lr", "0"], "`lr`", &["> 0", "got 0"]),
        (&["--lr", "inf"], "`lr`", &["> 0", "got inf"]),
        (&["--jobs", "0"], "--jobs", &["0", "1.."]),
        (&["--sigma", "abc"], "abc", &["--sigma", "must be a number"]),
        (&["--sigma", "-1"], "`sigma`", &["> 0", "got -1"]),
        (&["--noise-std", "-0.1"], "`noise-std`", &[">= 0", "got -0.1"]),
    ];
    for (args, culprit, range) in cases {
        let all: Vec<&str> = ["reproduce", "fig1", "--quick", "--out", "new/out"].iter().chain(args).copied().collect();
        refused(folder.path(), &all, culprit, range);
    }
    let nowhere = ["reproduce", "fig2", "--quick", "--data-dir", "nowhere", "--out", "new"];
    refused(folder.path(), &nowhere, "mushroom", &["is missing in `nowhere`", "neuralcb data fetch mushroom"]);
    refused(folder.path(), &["report", "nowhere"], "nowhere", &["cannot read"]);
    refused(folder.path(), &["reproduce", "fig9", "--quick", "--out", "new"], "fig9", &["fig1"]);
    for out in ["file", "file/below", "file/below/deeper"] {
        refused(folder.path(), &["reproduce", "fig1", "--quick", "--out", out], "file", &[]);
    }
}

#[test]
fn simulate_refuses_wrong_input_in_one_line_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |p: &str, n: usize| format!("{p}\n").repeat(n);
    fs::write(folder.path().join("nan"), format!("{}NaN\n", lines("0", 29))).unwrap();
    fs::write(folder.path().join("short"), lines("0.5", 2)).unwrap();
    fs::write(folder.path().join("heavy"), lines("0.5", 30)).unwrap();
    let cases: [(&[&str], &str, &[&str]); 11] = [
        (&["cosine", "--n", "0"], "`n`", &["at least 1", "got 0"]),
        (&["cubic", "--n", "9"], "cubic", &["quadratic", "quadratic2", "cosine", "mushroom", "mnist"]),
        (&["cosine", "--n", "many"], "many", &["--n"]),
        (&["cosine", "--n", "9", "--preset", "other"], "other", &["paper", "released-code"]),
        (&["cosine", "--n", "9", "--behaviour", "epsilon-greedy:2"], "epsilon-greedy:2", &["[0, 1]"]),
        (&["cosine", "--n", "9", "--behaviour", "linucb:NaN"], "linucb:NaN", &["[0, 1]"]),
        (&["cosine", "--n", "9", "--behaviour", "greedy"], "greedy", &["uniform", "epsilon-greedy:E", "table:FILE"]),
        (&["cosine", "--n", "9", "--behaviour", "table:nan"], "line 30", &["[0, 1]", "NaN"]),
        (&["cosine", "--n", "9", "--behaviour", "table:short"], "policy table", &["expected 30", "got 2"]),
        (&["cosine", "--n", "9", "--behaviour", "table:heavy"], "sum of the policy table", &["got 15"]),
        (&["cosine", "--n", "9", "--behaviour", "table:nowhere"], "nowhere", &["cannot read"]),
    ];
    for (args, culprit, range) in cases {
        let all: Vec<&str> = ["simulate"].iter().chain(args).chain(&["--out", "log.csv"]).copied().collect();
        refused(folder.path(), &all, culprit, range);
    }
    refused(folder.path(), &["simulate", "cosine", "--n", "9", "--out", "no/log.csv"], "no/log.csv", &["cannot write"]);
}

#[test]
fn simulate_writes_the_same_bytes_for_the_same_seed() {
    let folder = tempfile::tempdir().unwrap();
    for preset in ["paper", "released-code"] {
        let run = |seed: &str, name: &str| {
            let args = ["simulate", "cosine", "--n", "20", "--preset", preset, "--seed", seed, "--out", name];
            let output = done(folder.path(), &args);
            assert_eq!(text(&output.stdout), "");
            assert!(text(&output.stderr).starts_with("20 rounds of cosine under epsilon-greedy:0.1"));
            fs::read(folder.path().join(name)).unwrap()
        };
        let first = run("1", "a.csv");
        assert!(first == run("1", "b.csv"), "{preset}: the same seed gives other bytes");
        assert!(first != run("2", "a.csv"), "{preset}: another seed gives the same bytes");
        let args = ["simulate", "cosine", "--n", "20", "--preset", preset, "--seed", "1", "--out", "-"];
        let output = done(folder.path(), &args);
        assert!(output.stdout == first, "{preset}: standard output differs from the file");
        assert_eq!(text(&output.stderr), "");
    }
    assert_eq!(tree(folder.path()).into_keys().collect::<Vec<_>>(), ["a.csv", "b.csv"]);
}

/// The cells of one line by name.
type Line = BTreeMap<String, String>;

fn simulated(behaviour: &str, preset: &str) -> Vec<Line> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("table"), format!("0.75\n0.25\n{}", "0\n".repeat(28))).unwrap();
    let args = ["simulate", "quadratic", "--n", "40", "--behaviour", behaviour, "--preset", preset, "--out", "log.csv"];
    done(folder.path(), &args);
    let mut reader = csv::Reader::from_path(folder.path().join("log.csv")).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[track_caller]
fn number(line: &Line, column: &str) -> f64 {
    line[column].parse().unwrap_or_else(|_| panic!("{column}: {}", line[column]))
}

#[test]
fn a_log_in_the_paper_s_form_has_one_chosen_line_per_round() {
    for behaviour in ["uniform", "epsilon-greedy:0.1", "linucb:0.5", "table:table"] {
        let lines = simulated(behaviour, "paper");
        assert_eq!(lines.len(), 40 * 30);
        for (t, round) in lines.chunks(30).enumerate() {
            let chosen: Vec<&Line> = round.iter().filter(|l| l["chosen"] == "1").collect();
            assert_eq!(chosen.len(), 1, "{behaviour}, round {t}");
            let p = number(chosen[0], "propensity");
            assert!(p > 0.0 && p <= 1.0 && number(chosen[0], "reward").is_finite(), "{behaviour}, round {t}: {p}");
            if behaviour == "table:table" {
                assert_eq!(p, [0.75, 0.25][number(chosen[0], "action") as usize]);
            }
            for (a, line) in round.iter().enumerate() {
                assert_eq!((line["round"].as_str(), line["action"].as_str()), (&*t.to_string(), &*a.to_string()));
                assert_eq!(line.len(), 5 + 20);
                let norm: f64 = (0..20).map(|j| number(line, &format!("x{j}")).powi(2)).sum();
                // twenty numbers rounded to f32
                assert!((norm - 1.0).abs() < 1e-6);
                if line["chosen"] != "1" {
                    assert_eq!((&*line["chosen"], &*line["reward"], &*line["propensity"]), ("0", "", ""));
                }
            }
        }
    }
}

#[test]
fn a_log_in_the_released_form_has_one_line_per_round() {
    for behaviour in ["uniform", "epsilon-greedy:0.1", "linucb:0.5", "table:table"] {
        let lines = simulated(behaviour, "released-code");
        assert_eq!(lines.len(), 40);
        for line in &lines {
            assert_eq!(line.len(), 3 + 20);
            let p = number(line, "propensity");
            assert!(p > 0.0 && p <= 1.0 && number(line, "action") < 30.0 && number(line, "reward").is_finite());
        }
    }
}

#[test]
fn bench_prints_machine_and_jobs_as_json_or_as_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["bench", "--json", "--jobs", "synthetic-s-step,linear-observe", "--repeats", "1"];
    let report: serde_json::Value = serde_json::from_slice(&done(folder.path(), &args).stdout).unwrap();
    for rate in ["fma_f32_gflops", "fma_f64_gflops", "sqrt_div_ns", "l2_gbs", "l3_gbs", "dram_gbs"] {
        assert!(report["machine"][rate].as_f64().unwrap() > 0.0, "{rate}");
    }
    assert!(["avx-512", "avx2", "neon", "portable"].contains(&report["instructions"].as_str().unwrap()));
    let jobs = report["jobs"].as_array().unwrap();
    assert_eq!(
        jobs.iter().map(|job| job["name"].as_str().unwrap()).collect::<Vec<_>>(),
        args[3].split(',').collect::<Vec<_>>()
    );
    for job in jobs {
        let number = |field: &str| job[field].as_f64().unwrap();
        assert!(number("seconds") > 0.0 && number("limit_seconds") > 0.0);
        assert!((number("ratio") - number("seconds") / number("limit_seconds")).abs() < 1e-6 * number("ratio"));
    }
    let table = done(folder.path(), &["bench", "--jobs", "linear-observe", "--repeats", "1"]);
    let lines: Vec<&str> = text(&table.stdout).lines().collect();
    assert!(lines[0].starts_with("one thread, ") && lines[2].starts_with("job "), "{lines:?}");
    assert!(lines[3].starts_with("linear-observe ") && lines.len() == 4, "{lines:?}");
    // the tests themselves may keep the machine busy
    assert!(text(&table.stderr).lines().all(|line| line.starts_with("warning: load ")));
    assert!(tree(folder.path()).is_empty());
}

#[test]
fn bench_exports_the_arrays_of_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["bench", "--jobs", "linear-observe", "--export", "deep/arrays"];
    let output = done(folder.path(), &args);
    assert_eq!(text(&output.stdout), "");
    let files = tree(&folder.path().join("deep/arrays/linear-observe"));
    assert_eq!(files.keys().collect::<Vec<_>>(), ["reward.npy", "theta.npy", "x.npy"]);
    let (x, theta) = (&files["x.npy"], &files["theta.npy"]);
    assert!(x.starts_with(b"\x93NUMPY") && x.len() == 128 + 10_000 * 20 * 4 && theta.len() == 128 + 20 * 8);
    done(folder.path(), &args);
    assert!(files == tree(&folder.path().join("deep/arrays/linear-observe")), "another export of the same job differs");

    fs::write(folder.path().join("deep/arrays/notes.txt"), "keep me").unwrap();
    refused(folder.path(), &args, "notes.txt", &["deep/arrays"]);
    refused(folder.path(), &["bench", "--jobs", "growth-s", "--export", "new"], "growth-s", &["no arrays"]);
}

#[test]
fn bench_refuses_wrong_input_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    refused(
        folder.path(),
        &["bench", "--jobs", "linear-observe,quick"],
        "quick",
        &["synthetic-s-step", "mnist-run-memory"],
    );
    refused(folder.path(), &["bench", "--repeats", "0"], "--repeats", &["1.."]);
}

#[test]
fn help_and_version_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let help = done(folder.path(), &["--help"]);
    assert!(text(&help.stdout).contains("reproduce") && text(&help.stdout).contains("simulate"));
    assert_eq!(text(&help.stderr), "");
    for sub in ["reproduce", "simulate"] {
        assert!(text(&done(folder.path(), &[sub, "--help"]).stdout).contains("--out"));
    }
    let version = done(folder.path(), &["--version"]);
    assert_eq!(text(&version.stdout).trim(), concat!("neuralcb ", env!("CARGO_PKG_VERSION")));
    assert_eq!(neuralcb(folder.path(), &[]).status.code(), Some(2), "nothing to do is no success");
    assert!(tree(folder.path()).is_empty());
}
