//! A run that is killed at any moment goes on where it was, and ends with the same bytes as one that nobody disturbed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of a few tenths of a second each, so that a kill meets some finished and some half done.
fn start(folder: &Path, out: &str) -> Child {
    let args = "reproduce fig1 --datasets quadratic,cosine --algorithms neuralcb,neural-greedy,lin-lcb --reps 3 \
                --n 400 --test-contexts 300 --mode S,B --lr 0.001 --jobs 2 --out";
    Command::new(env!("CARGO_BIN_EXE_neuralcb"))
        .current_dir(folder)
        .args(args.split_whitespace())
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn talk(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn finished_runs(out: &Path) -> usize {
    fs::read(out.join("runs.jsonl")).map_or(0, |bytes| bytes.iter().filter(|b| **b == b'\n').count())
}

/// Waits until so many runs are finished; gives up when the process ends or after two minutes.
fn wait_for(runs: usize, out: &Path, child: &mut Child) {
    let start = Instant::now();
    while finished_runs(out) < runs && child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(120), "no {runs} runs after two minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The files that may not depend on the clock or on the order in which runs ended.
fn lasting(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in ["results.csv", "validation.csv", "summary.csv", "settings.json"] {
        files.insert(name.to_owned(), fs::read(out.join(name)).unwrap());
    }
    for entry in fs::read_dir(out.join("figures")).unwrap().map(Result::unwrap) {
        files.insert(entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    }
    files
}

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = talk(start(folder.path(), "whole"));
    assert_eq!(code, Some(0), "{said}");
    let whole = folder.path().join("whole");
    let total = finished_runs(&whole);

    let out = folder.path().join("killed");
    let mut killed = 0;
    for share in [1, 3, 6, 10, 15] {
        let mut child = start(folder.path(), "killed");
        wait_for(total * share / 16, &out, &mut child);
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap(); // kill -9
        child.wait().unwrap();
        // a line that the kill cut in two
        if share == 6 {
            let bytes = fs::read(out.join("runs.jsonl")).unwrap();
            fs::write(out.join("runs.jsonl"), [&bytes[..], b"{\"task\":\"half a li"].concat()).unwrap();
        }
    }
    assert!(killed >= 3, "only {killed} of five kills met a running process");
    let (code, said) = talk(start(folder.path(), "killed"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("of {total} runs are already in killed: going on")), "{said}");
    let (whole, killed) = (lasting(&whole), lasting(&out));
    assert_eq!(whole.keys().collect::<Vec<_>>(), killed.keys().collect::<Vec<_>>());
    for (name, bytes) in &whole {
        assert!(bytes == &killed[name], "{name} is not the same");
    }
}

#[test]
fn a_second_process_in_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = start(folder.path(), "out");
    wait_for(1, &folder.path().join("out"), &mut first);
    assert!(first.try_wait().unwrap().is_none(), "the first process ended too early to be met");
    let (code, said) = talk(start(folder.path(), "out"));
    assert_eq!(code, Some(2));
    assert!(said.starts_with("error: another run is at work in `out`") && said.lines().count() == 1, "{said}");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn an_unfinished_folder_has_a_report_of_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start(folder.path(), "part");
    wait_for(4, &folder.path().join("part"), &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_neuralcb")).current_dir(folder.path()).args(["report", "part"]).output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("runs, report in part/report.html"), "{said}");
    assert!(fs::read_to_string(folder.path().join("part/results.csv")).unwrap().lines().count() > 10);
}

/// How often each command is killed: `NEURALCB_KILLS`, a few by default.
fn kills() -> u32 {
    std::env::var("NEURALCB_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6)
}

fn command(folder: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuralcb"));
    command.current_dir(folder).args(args.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn log(n: usize) -> String {
    let mut text = "action,reward,propensity,x,y\n".to_owned();
    for t in 0..n {
        let (action, x, y) = (["red", "green", "blue"][t * 7 % 3], t * 37 % 101, t * 53 % 97);
        text += &format!("{action},{},0.3333333333,{x},{y}\n", (x * (1 + t * 7 % 3)) % 10);
    }
    text
}

/// A segment of a decision log.
fn segment(n: usize) -> Vec<u8> {
    let mut bytes = neuralcb_server::journal::MAGIC.to_vec();
    for t in 0..n {
        let about = r#""probabilities":[0.5,0.5],"chosen":0,"model":"m","policy":"0""#;
        let what = format!(r#""context":{{"x":{t}}},"actions":[{{"id":"a"}},{{"id":"b"}}],"event":"{t}","at":{t}"#);
        neuralcb_server::journal::frame(format!("{{\"decision\":{{{what},{about}}}}}").as_bytes(), &mut bytes);
    }
    bytes
}

#[test]
fn a_command_killed_at_any_moment_leaves_the_old_file_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("log.csv"), log(30_000)).unwrap();
    fs::create_dir(at("decisions")).unwrap();
    fs::write(at("decisions/segment-00000001.ncb"), segment(10_000)).unwrap();
    assert!(command(folder.path(), "train log.csv --algorithm lin-lcb --out policy").status().unwrap().success());
    for args in [
        "train log.csv --algorithm lin-lcb --lambda 2 --out out.safetensors",
        "train log.csv --algorithm lin-lcb --checkpoint training --checkpoint-every 0 --out out.safetensors",
        "score policy log.csv --explain --out out.csv",
        "score policy log.csv --out out.parquet",
        "join decisions --out out.jsonl",
    ] {
        let out = at(args.split(' ').next_back().unwrap());
        let started = Instant::now();
        assert!(command(folder.path(), args).status().unwrap().success(), "{args}");
        let (took, whole) = (started.elapsed(), fs::read(&out).unwrap());
        let mut met = 0;
        for i in 0..kills() {
            let old = [&b"old"[..], b""][i as usize % 2];
            fs::write(&out, old).unwrap();
            let mut child = command(folder.path(), args).spawn().unwrap();
            std::thread::sleep(took * (2 * i + 1) / (2 * kills()));
            met += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            let now = fs::read(&out).unwrap();
            assert!(now == old || now == whole, "{args}: {} bytes after kill {i}", now.len());
        }
        println!("{args}: {met} of {} kills met it at work", kills());
        // What it left behind is in nobody's way: with a checkpoint it goes on, to the same bytes.
        assert!(command(folder.path(), args).status().unwrap().success(), "{args}");
        assert!(fs::read(&out).unwrap() == whole, "{args}");
        fs::remove_file(&out).unwrap();
    }
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["decisions", "log.csv", "policy"]);
}
