//! What goes wrong outside: full disks, closed pipes, outputs that are inputs, files that change. Nothing is lost in
//! silence, nothing is left half written.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn neuralcb(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuralcb"));
    command.current_dir(folder).args(args);
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    neuralcb(folder, args).output().unwrap()
}

fn done(folder: &Path, args: &[&str]) {
    let output = run(folder, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", said(&output));
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A log of so many rounds of three actions.
fn rounds(n: usize) -> String {
    let mut text = "action,reward,propensity,x,y\n".to_owned();
    for t in 0..n {
        let (action, x, y) = (["red", "green", "blue"][t * 7 % 3], t * 37 % 101, t * 53 % 97);
        text += &format!("{action},{},0.3333333333,{x},{y}\n", (x * (1 + t * 7 % 3)) % 10);
    }
    text
}

fn with_log(n: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log.csv"), rounds(n)).unwrap();
    folder
}

/// Lets every step of writing fail in turn, from the first to the last; `whole` checks what a failed run left behind.
/// Returns how many steps there were.
fn at_every_step(folder: &Path, args: &[&str], whole: impl Fn()) -> usize {
    for step in 1.. {
        assert!(step < 2000, "{args:?} never succeeds");
        let output = neuralcb(folder, args).env("NEURALCB_FAIL_AT", step.to_string()).output().unwrap();
        if output.status.code() == Some(0) {
            return step - 1;
        }
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}, step {step}: {said}");
        let last = said.lines().last().unwrap_or_default();
        let named =
            ["error: cannot write file `", "error: cannot sort in `"].iter().any(|start| last.starts_with(start));
        assert!(named, "step {step}: {said}");
        assert!(!names(folder).iter().any(|name| name.ends_with(".tmp")), "step {step}: {:?}", names(folder));
        whole();
    }
    unreachable!()
}

#[test]
fn a_disk_that_fills_at_any_step_leaves_the_old_file_or_the_new_one() {
    if !cfg!(debug_assertions) {
        println!("skipped: faults on purpose are in builds with debug assertions only");
        return;
    }
    let folder = with_log(9_000);
    let train = ["train", "log.csv", "--algorithm", "lin-lcb", "--out", "policy"];
    done(folder.path(), &train);
    let (policy, first) = (folder.path().join("policy"), fs::read(folder.path().join("policy")).unwrap());
    let new = [&train[..], &["--lambda", "2"]].concat();
    let same_or_new = || {
        let now = fs::read(&policy).unwrap();
        if now != first {
            done(folder.path(), &["score", "policy", "log.csv", "--out", "/dev/null"]);
        }
    };
    let mut steps = vec![("train", at_every_step(folder.path(), &new, same_or_new))];

    // With a checkpoint: as long as the policy is not saved the training is kept, and goes on to the same bytes.
    let kept = folder.path().join("training");
    let checkpoint = [&train[..], &["--checkpoint", "training", "--checkpoint-every", "0"]].concat();
    let n = at_every_step(folder.path(), &checkpoint, || {
        assert!(fs::read(&policy).unwrap() == first || kept.exists() || fs::read(&policy).is_ok());
    });
    steps.push(("train --checkpoint", n));
    assert_eq!(fs::read(&policy).unwrap(), first);
    assert!(!kept.exists());

    for out in ["decisions.csv", "decisions.jsonl", "decisions.parquet"] {
        let score = ["score", "policy", "log.csv", "--explain", "--out", out];
        let absent = || assert!(!folder.path().join(out).exists());
        // The last step flushes the folder: the file is then in its place, and whole.
        let n = at_every_step(folder.path(), &score, || {
            if folder.path().join(out).exists() {
                fs::remove_file(folder.path().join(out)).unwrap();
            }
            absent();
        });
        steps.push((out, n));
        done(folder.path(), &["diagnose", "log.csv", "--write-schema", "schema.toml"]);
    }
    let (joined, late) = (folder.path().join("joined.jsonl"), folder.path().join("joined.late.jsonl"));
    segment(&folder.path().join("decisions"));
    let join = "join decisions --out joined.jsonl --wait 1h --memory-mib 1";
    let n = at_every_step(folder.path(), &join.split(' ').collect::<Vec<_>>(), || {
        let rows = fs::read_to_string(&joined).map_or(8, |text| text.lines().count());
        assert_eq!(rows, 8);
        let _ = (fs::remove_file(&joined), fs::remove_file(&late));
    });
    steps.push(("join", n));
    let tune = ["tune", "log.csv", "--out", "tuned", "--algorithms", "lin-lcb", "--beta", "1"];
    steps.push(("tune", at_every_step(folder.path(), &tune, || {})));
    println!("steps at which writing was made to fail: {steps:?}");
    assert!(steps.iter().all(|(_, n)| *n >= 5), "{steps:?}");
}

/// A folder of decisions with a segment of 8, each with a reward in time and one that is late.
fn segment(folder: &Path) {
    let mut bytes = neuralcb_server::journal::MAGIC.to_vec();
    let mut add = |text: String| neuralcb_server::journal::frame(text.as_bytes(), &mut bytes);
    // More than half of the least memory that can be asked for: it goes through files.
    let page = "x".repeat(100_000);
    for t in 0..8 {
        let at = 1_000_000 + t;
        let what = format!(r#""context":{{"x":{t},"page":"{page}"}},"event":"{t}","at":{at}"#);
        let about =
            r#""actions":[{"id":"a"},{"id":"b"}],"chosen":0,"probabilities":[0.5,0.5],"model":"m","policy":"0""#;
        add(format!("{{\"decision\":{{{what},{about}}}}}"));
        add(format!(r#"{{"reward":{{"event":"{t}","at":{},"value":1}}}}"#, at + 1));
        add(format!(r#"{{"reward":{{"event":"{t}","at":{},"value":1}}}}"#, at + 7_200_000));
    }
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("segment-00000001.ncb"), bytes).unwrap();
}

#[test]
fn work_without_room_is_refused_before_it_and_leaves_nothing() {
    if !cfg!(debug_assertions) {
        println!("skipped: faults on purpose are in builds with debug assertions only");
        return;
    }
    let folder = with_log(300);
    for args in [
        &["train", "log.csv", "--out", "policy"][..],
        &["train", "log.csv", "--out", "policy", "--algorithm", "lin-lcb"],
        &["train", "log.csv", "--out", "policy", "--algorithm", "neuralcb", "--mode", "S"],
    ] {
        let output = neuralcb(folder.path(), args).env("NEURALCB_FREE", "200").output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(" of memory, and 200 bytes are free: "), "{args:?}: {said}");
        assert_eq!(names(folder.path()), ["log.csv"]);
    }
}

#[test]
fn a_full_disk_at_the_end_loses_neither_policy_nor_checkpoint() {
    if !cfg!(debug_assertions) {
        println!("skipped: faults on purpose are in builds with debug assertions only");
        return;
    }
    let folder = with_log(9_000);
    let train = ["train", "log.csv", "--algorithm", "lin-lcb", "--out", "policy", "--checkpoint", "training"];
    let train = [&train[..], &["--checkpoint-every", "0"]].concat();
    let (mut kept, mut lost) = (0, 0);
    for step in 1..200 {
        let output = neuralcb(folder.path(), &train).env("NEURALCB_FAIL_AT", step.to_string()).output().unwrap();
        if output.status.code() == Some(0) {
            break;
        }
        let (checkpoint, policy) = (folder.path().join("training"), folder.path().join("policy"));
        if said(&output).contains("`policy`") && step > 12 {
            // all was learned, and the policy could not be saved
            kept += usize::from(checkpoint.exists() || policy.exists());
            lost += usize::from(!checkpoint.exists() && !policy.exists());
        }
        let _ = (fs::remove_file(checkpoint), fs::remove_file(policy));
    }
    assert!(kept > 0 && lost == 0, "{kept} kept, {lost} lost");
}

#[test]
fn an_output_that_is_an_input_is_refused_and_the_input_stays() {
    let folder = with_log(300);
    let log = folder.path().join("log.csv");
    done(folder.path(), &["train", "log.csv", "--algorithm", "lin-lcb", "--out", "policy"]);
    fs::hard_link(&log, folder.path().join("twin.csv")).unwrap();
    let before: Vec<Vec<u8>> = ["log.csv", "policy"].map(|name| fs::read(folder.path().join(name)).unwrap()).into();
    for args in [
        &["train", "log.csv", "--algorithm", "lin-lcb", "--out", "log.csv"][..],
        &["train", "log.csv", "--algorithm", "lin-lcb", "--out", "twin.csv"],
        &["train", "log.csv", "--algorithm", "lin-lcb", "--out", "new", "--checkpoint", "./log.csv"],
        &["tune", "log.csv", "--out", "log.csv"],
        &["score", "policy", "log.csv", "--out", "log.csv"],
        &["score", "policy", "log.csv", "--out", "./policy"],
        &["diagnose", "log.csv", "--write-schema", "log.csv"],
    ] {
        let output = run(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said(&output).contains("it is the same file as"), "{args:?}: {}", said(&output));
    }
    let after: Vec<Vec<u8>> = ["log.csv", "policy"].map(|name| fs::read(folder.path().join(name)).unwrap()).into();
    assert!(before == after);
    assert_eq!(names(folder.path()), ["log.csv", "policy", "twin.csv"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let folder = with_log(3_000);
    done(folder.path(), &["train", "log.csv", "--algorithm", "lin-lcb", "--out", "policy"]);
    for args in [
        &["diagnose", "log.csv", "--json"][..],
        &["evaluate", "policy", "log.csv", "--json"],
        &["evaluate", "policy", "log.csv"],
        &["score", "policy", "log.csv", "--explain", "--out", "/dev/stdout"],
        &["data", "list"],
        &["simulate", "quadratic", "--n", "2000", "--seed", "1", "--out", "-"],
        &["tune", "log.csv", "--out", "tuned", "--algorithms", "lin-lcb", "--json"],
    ] {
        let mut child = neuralcb(folder.path(), args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {:?} {}", output.status, said(&output));
        assert!(!said(&output).contains("panic"), "{args:?}: {}", said(&output));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_output_that_takes_nothing_is_said() {
    let folder = with_log(300);
    done(folder.path(), &["train", "log.csv", "--algorithm", "lin-lcb", "--out", "policy"]);
    for args in [
        &["diagnose", "log.csv"][..],
        &["evaluate", "policy", "log.csv", "--json"],
        &["score", "policy", "log.csv", "--out", "/dev/full"],
        &["data", "list"],
        &["simulate", "quadratic", "--n", "2000", "--seed", "1", "--out", "-"],
        &["tune", "log.csv", "--out", "tuned", "--algorithms", "lin-lcb"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = neuralcb(folder.path(), args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        let said = said(&output);
        assert!(said.lines().last().unwrap().starts_with("error: cannot write"), "{args:?}: {said}");
        assert!(said.contains("No space left"), "{args:?}: {said}");
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_known_before_the_training() {
    let folder = with_log(300);
    let args = ["train", "log.csv", "--out", "policy", "--checkpoint", "none/training"];
    let output = run(folder.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("cannot write file `none/training`"), "{}", said(&output));
    assert_eq!(names(folder.path()), ["log.csv"]);
}

#[cfg(unix)]
#[test]
fn a_device_without_an_end_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["diagnose", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("`/dev/zero` gives bytes that are neither text nor Parquet"), "{}", said(&output));
}

#[test]
fn a_log_through_a_pipe_leaves_no_file_behind_even_if_it_is_killed() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut child = neuralcb(folder.path(), &["diagnose", "-"])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(rounds(200_000).as_bytes()).unwrap();
    assert!(names(temporary.path()).is_empty(), "{:?}", names(temporary.path()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(names(temporary.path()).is_empty());
}

#[test]
fn a_log_through_a_pipe_is_read_as_from_a_file() {
    let folder = with_log(500);
    let file = fs::File::open(folder.path().join("log.csv")).unwrap();
    let piped = neuralcb(folder.path(), &["diagnose", "-"]).stdin(file).output().unwrap();
    let mut plain = Vec::new();
    run(folder.path(), &["diagnose", "log.csv"]).stdout.as_slice().read_to_end(&mut plain).unwrap();
    assert!(!plain.is_empty() && piped.stdout == plain);
}

#[test]
fn settings_that_cannot_work_are_refused_at_the_door() {
    let folder = with_log(300);
    let train = |more: &[&str]| run(folder.path(), &[&["train", "log.csv", "--out", "policy"], more].concat());
    let refused = train(&["--algorithm", "lin-lcb", "--lambda", "1e-40"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("`lambda` must be a number from 1e-20 to 1e20"), "{}", said(&refused));
    let refused = train(&["--algorithm", "lin-lcb", "--beta", "1e308"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("`beta` must be a number from 0 to 1e30"), "{}", said(&refused));
}

#[test]
fn a_network_that_learned_nothing_is_told() {
    let folder = with_log(2_000);
    let train = |more: &str| {
        let args = format!("train log.csv --out policy --algorithm {more}");
        let output = run(folder.path(), &args.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&output)
    };
    let dead = train("neuralcb --mode S --lr 1");
    assert!(dead.contains("in each of the first 1000 rounds of the log") && dead.contains("smaller --lr"), "{dead}");
    let alive = train("neuralcb --mode S --lr 0.001");
    assert!(!alive.contains("in each of the first"), "{alive}");
}

#[test]
fn rewards_whose_spread_has_no_place_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let text = "action,reward,propensity,x\na,1e200,0.5,1\nb,-1e200,0.5,2\n";
    fs::write(folder.path().join("log.csv"), text).unwrap();
    let output = run(folder.path(), &["train", "log.csv", "--out", "policy"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("the values of `reward` are too large"), "{}", said(&output));
    assert_eq!(names(folder.path()), ["log.csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn more_memory_than_there_is_is_refused_before_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "action,reward,propensity,x\n".to_owned();
    // a ridge regression of a thousand words for each of ten thousand actions
    (0..10_000).for_each(|t| text += &format!("a{t},1,0.5,w{}\n", t % 1000));
    fs::write(folder.path().join("log.csv"), text).unwrap();
    let output = run(folder.path(), &["tune", "log.csv", "--out", "policy"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains(" needs ") && said.contains(" of memory, and ") && said.contains(" are free"), "{said}");
}

#[test]
fn a_header_of_too_many_columns_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let columns: Vec<String> = (0..80_000).map(|i| format!("c{i}")).collect();
    fs::write(folder.path().join("log.csv"), format!("action,reward,{}\n", columns.join(","))).unwrap();
    let output = run(folder.path(), &["diagnose", "log.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("has more than 65536 columns"), "{}", said(&output));
}
