//! The loop from outside: traffic, join, and the log that the other commands read as it is.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

mod server;
use server::{Server, done};

#[test]
fn what_is_served_is_joined_and_learned_from() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    for preset in ["released-code", "paper"] {
        done(f, &format!("simulate quadratic --n 500 --seed 1 --preset {preset} --behaviour uniform --out log.csv"));
        done(f, "train log.csv --out policy.safetensors --algorithm lin-lcb");
        done(f, "train log.csv --out rival.safetensors --algorithm constant");
        let _ = fs::remove_dir_all(f.join("data"));
        let server = Server::start(
            f,
            "policy.safetensors --policy rival=rival.safetensors --data data --explore epsilon=0.3 --segment-age 200ms",
        );
        let traffic =
            format!("simulate quadratic --n 600 --seed 1 --preset {preset} --client {} --delay 20ms", server.url());
        let about: Value = serde_json::from_str(&done(f, &traffic)).unwrap();
        assert_eq!(about["rounds"], 600);
        assert_eq!(server.stop(), Some(0));

        for out in ["joined.jsonl", "joined.parquet"] {
            let counts: Value = serde_json::from_str(&done(
                f,
                &format!("join data --out {out} --wait 1h --until 99999999999999 --json"),
            ))
            .unwrap();
            assert_eq!((&counts["rows"], &counts["rewarded"], &counts["late"]), (&json!(600), &json!(600), &json!(0)));
            let diagnosis = done(f, &format!("diagnose {out}"));
            assert!(diagnosis.contains("rounds         600"), "{diagnosis}");
            let report: Value =
                serde_json::from_str(&done(f, &format!("evaluate policy.safetensors {out} --json"))).unwrap();
            assert_eq!(report["n"], 600);
            let behaviour = report["behaviour"]["value"].as_f64().unwrap();
            assert!((behaviour - about["mean_reward"].as_f64().unwrap()).abs() < 1e-9, "{behaviour} {about}");
            done(f, &format!("train {out} --out again-{out}.safetensors --algorithm lin-lcb"));
        }
        // Both forms hold the same numbers, and what begins with `_` is no feature.
        let places = |name: &str| {
            let bytes = fs::read(f.join(name)).unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(!text.contains("\"name\":\"_time\",\"kind\""), "{name}");
            bytes.len()
        };
        assert_eq!(places("again-joined.jsonl.safetensors") / 1000, places("again-joined.parquet.safetensors") / 1000);
        let first: Value =
            serde_json::from_str(fs::read_to_string(f.join("joined.jsonl")).unwrap().lines().next().unwrap()).unwrap();
        assert!(first["_shadow"]["rival"].is_string(), "{first}");
    }
}

#[test]
fn the_order_of_folders_and_segments_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate quadratic --n 200 --seed 1 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out policy.safetensors --algorithm constant");
    // Rewards go to another server than the decisions that earned them.
    let one = Server::start(f, "policy.safetensors --data one --explore epsilon=0.5 --segment-age 20ms");
    let two = Server::start(f, "policy.safetensors --data two --explore epsilon=0.5 --segment-age 20ms");
    let (mut first, mut second) = (one.client(), two.client());
    let context: Vec<String> = (0..20).map(|j| format!("\"x{j}\":0.5")).collect();
    let context = context.join(",");
    for i in 0..60 {
        let deferred = i % 10 == 9;
        let body = format!("{{\"eventId\":\"e{i}\",\"contextFeatures\":{{{context}}},\"deferActivation\":{deferred}}}");
        assert_eq!(first.post("/v1/rank", &body).0, 201);
        if i % 20 == 19 {
            assert_eq!(second.post(&format!("/v1/events/e{i}/activate"), "").0, 204);
        }
        for value in 0..i % 4 {
            let (path, body) =
                (format!("/v1/events/e{i}/reward"), format!("{{\"value\":{value},\"rewardId\":\"r{value}\"}}"));
            assert_eq!(second.post(&path, &body).0, 204);
            assert_eq!(first.post(&path, &body).0, 204, "the same reward again, by its name");
        }
    }
    assert_eq!(first.post("/v1/rank", &format!("{{\"eventId\":\"e7\",\"contextFeatures\":{{{context}}}}}")).0, 201);
    assert_eq!(second.post("/v1/events/nobody/reward", "{\"value\":9}").0, 204);
    assert_eq!((one.stop(), two.stop()), (Some(0), Some(0)));

    let join = |folders: &str, out: &str, more: &str| -> Value {
        let args =
            format!("join {folders} --out {out} --wait 1h --until 99999999999999 --default-reward -1 --json {more}");
        serde_json::from_str(&done(f, &args)).unwrap()
    };
    let counts = join("one two", "a.jsonl", "--aggregate sum");
    let expected = json!({"rows": 57, "rewarded": 42, "open": 0, "inactive": 3,
        "repeated": 1, "contradicted": 0, "late": 3, "unknown": 1, "growing": 0});
    assert_eq!(counts, expected);
    join("two one", "b.jsonl", "--aggregate sum --memory-mib 1");
    assert_eq!(fs::read(f.join("a.jsonl")).unwrap(), fs::read(f.join("b.jsonl")).unwrap());
    assert_eq!(fs::read(f.join("a.late.jsonl")).unwrap(), fs::read(f.join("b.late.jsonl")).unwrap());
    // The same segments in one folder, in another order.
    fs::create_dir(f.join("mixed")).unwrap();
    let mut segments: Vec<_> = ["one", "two"]
        .iter()
        .flat_map(|folder| fs::read_dir(f.join(folder)).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "ncb"))
        .collect();
    assert!(segments.len() > 2, "{segments:?}");
    segments.sort_by_key(|path| std::cmp::Reverse(path.clone()));
    for (i, path) in segments.iter().enumerate() {
        fs::copy(path, f.join(format!("mixed/segment-{i:08}.ncb"))).unwrap();
    }
    join("mixed", "c.jsonl", "--aggregate sum");
    assert_eq!(fs::read(f.join("a.jsonl")).unwrap(), fs::read(f.join("c.jsonl")).unwrap());

    for (aggregate, reward) in [("first", 0.0), ("last", 2.0), ("sum", 3.0), ("mean", 1.0), ("min", 0.0), ("max", 2.0)]
    {
        join("one two", "d.jsonl", &format!("--aggregate {aggregate}"));
        let rows = fs::read_to_string(f.join("d.jsonl")).unwrap();
        let row = |event: &str| -> Value {
            let line = rows.lines().find(|line| line.contains(&format!("\"_event\":\"{event}\""))).unwrap();
            serde_json::from_str(line).unwrap()
        };
        assert_eq!(row("e3")["reward"], reward, "{aggregate}");
        assert_eq!(row("e4")["reward"], -1.0, "the default");
    }
    // Windows that are still open, and a segment that is damaged.
    assert_eq!(serde_json::from_str::<Value>(&done(f, "join one --out e.jsonl --wait 1h --json")).unwrap()["open"], 60);
    let mut bytes = fs::read(&segments[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(f.join("mixed/segment-00000000.ncb"), bytes).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_neuralcb"))
        .current_dir(f)
        .args(["join", "mixed", "--out", "f.jsonl"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("is damaged at byte"), "{said}");
}

#[test]
fn late_rewards_are_set_aside_and_a_growing_log_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate quadratic --n 50 --seed 1 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out policy.safetensors --algorithm constant");
    let server = Server::start(f, "policy.safetensors --fill-missing --data data");
    let mut client = server.client();
    let mut ask = |event: &str| {
        let body = format!("{{\"eventId\":\"{event}\",\"contextFeatures\":{{}}}}");
        assert_eq!(client.post("/v1/rank", &body).0, 201);
        sleep(Duration::from_millis(20));
        assert_eq!(client.post(&format!("/v1/events/{event}/reward"), "{\"value\":0.75}").0, 204);
    };
    ask("one");
    let command = "join data --out joined.jsonl --wait 10ms --default-reward 0.5 --follow --every 50ms";
    let mut following = Command::new(env!("CARGO_BIN_EXE_neuralcb"))
        .current_dir(f)
        .args(command.split(' '))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let wait = |lines: usize| {
        let (started, out) = (Instant::now(), f.join("joined.jsonl"));
        while fs::read_to_string(&out).unwrap_or_default().lines().count() != lines {
            assert!(started.elapsed() < Duration::from_secs(60), "the log does not follow");
            sleep(Duration::from_millis(20));
        }
    };
    wait(1);
    ask("two");
    ask("three");
    wait(3);
    following.kill().unwrap();
    following.wait().unwrap();
    // Each reward came 20 ms after its decision: too late for 10 ms, in time for a second.
    done(f, "join data --out late.jsonl --wait 10ms --default-reward 0.5 --until 99999999999999");
    let rows = fs::read_to_string(f.join("late.jsonl")).unwrap();
    assert!(rows.lines().all(|row| row.contains("\"reward\":0.5") && row.contains("\"_rewards\":0")), "{rows}");
    let side = fs::read_to_string(f.join("late.late.jsonl")).unwrap();
    assert!(side.lines().count() == 3 && side.contains("\"event\":\"two\",\"value\":0.75"), "{side}");
    done(f, "join data --out late.jsonl --wait 60s --until 99999999999999");
    let rows = fs::read_to_string(f.join("late.jsonl")).unwrap();
    assert!(rows.lines().all(|row| row.contains("\"reward\":0.75") && row.contains("\"_rewards\":1")), "{rows}");
    assert!(!f.join("late.late.jsonl").exists(), "nothing is late any more");
}

#[test]
fn a_feature_called_like_a_column_of_the_log_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate quadratic --n 50 --seed 1 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out policy.safetensors --algorithm constant");
    let server = Server::start(f, "policy.safetensors --fill-missing --data data");
    assert_eq!(server.client().post("/v1/rank", "{\"contextFeatures\":{\"reward\":2}}").0, 201);
    assert_eq!(server.stop(), Some(0));
    done(f, "join data --out joined.jsonl --wait 0s");
    let output = Command::new(env!("CARGO_BIN_EXE_neuralcb"))
        .current_dir(f)
        .args(["join", "data", "--out", "joined.parquet", "--wait", "0s"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("a feature is called `reward`"), "{said}");
}
