//! kill -9 under load: nothing that was acknowledged is missing after `join`, and nothing is there twice.
//!
//! `NEURALCB_KILLS=100` kills a hundred times; in a run of all tests a few must do.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

mod server;
use server::{Server, done};

/// What a client was told.
#[derive(Default)]
struct Acknowledged {
    /// Event and action.
    decisions: HashMap<String, String>,
    /// Event and value.
    rewards: HashMap<String, f64>,
}

#[test]
fn a_killed_server_has_lost_nothing_that_it_acknowledged() {
    let kills: usize = std::env::var("NEURALCB_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate quadratic --n 200 --seed 1 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out policy.safetensors --algorithm constant");
    let acknowledged = Mutex::new(Acknowledged::default());
    let next = AtomicUsize::new(0);
    let context: Vec<String> = (0..20).map(|j| format!("\"x{j}\":0.25")).collect();
    let mut torn = 0;
    for kill in 0..kills {
        // Small segments, so that kills meet their ends too.
        let mut server = Server::start(f, "policy.safetensors --data data --explore epsilon=0.5 --segment-mib 1");
        let before = acknowledged.lock().unwrap().decisions.len();
        thread::scope(|scope| {
            for _ in 0..4 {
                let address = server.address.clone();
                let (acknowledged, next, context) = (&acknowledged, &next, &context);
                scope.spawn(move || {
                    let mut client = server::Client::new(&address);
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let event = format!("event-{i}");
                        let body = format!("{{\"eventId\":\"{event}\",\"contextFeatures\":{{{}}}}}", context.join(","));
                        let Ok((201, answer)) = client.try_ask("POST", "/v1/rank", body.as_bytes()) else { return };
                        let answer: Value = serde_json::from_slice(&answer).unwrap();
                        let action = answer["rewardActionId"].as_str().unwrap().to_owned();
                        acknowledged.lock().unwrap().decisions.insert(event.clone(), action);
                        if i % 2 == 0 {
                            let (path, body) = (format!("/v1/events/{event}/reward"), format!("{{\"value\":{i}}}"));
                            let Ok((204, _)) = client.try_ask("POST", &path, body.as_bytes()) else { return };
                            acknowledged.lock().unwrap().rewards.insert(event, i as f64);
                        }
                    }
                });
            }
            // A moment that no two kills have in common, once there is load.
            let started = Instant::now();
            while acknowledged.lock().unwrap().decisions.len() < before + 20 {
                assert!(started.elapsed() < Duration::from_secs(60), "no decisions");
                thread::sleep(Duration::from_millis(2));
            }
            thread::sleep(Duration::from_micros((kill as u64 * 7919) % 50_000));
            server.kill();
        });
        torn += usize::from(kill % 2 == 0 && tear(&f.join("data")));
    }
    assert!(torn > 0 || kills < 2, "no segment was torn");

    done(f, "join data --out joined.jsonl --wait 0s");
    let mut seen = HashSet::new();
    let mut joined = HashMap::new();
    for line in fs::read_to_string(f.join("joined.jsonl")).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let event = row["_event"].as_str().unwrap().to_owned();
        assert!(seen.insert(event.clone()), "`{event}` is there twice");
        joined.insert(event, row);
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.decisions.len() > 20 * kills && !acknowledged.rewards.is_empty());
    for (event, action) in &acknowledged.decisions {
        let row = joined.get(event).unwrap_or_else(|| panic!("`{event}` was acknowledged and is lost"));
        assert_eq!(row["chosen"], **action, "{event}");
        match acknowledged.rewards.get(event) {
            // With `--wait 0s` a reward of a later millisecond is late: it stands in the side file.
            Some(value) if row["_rewards"] == 1 => assert_eq!(row["reward"], *value, "{event}"),
            _ => {}
        }
    }
    done(f, "join data --out rewarded.jsonl --wait 1h --until 99999999999999");
    let rewarded = fs::read_to_string(f.join("rewarded.jsonl")).unwrap();
    let rewards: HashMap<String, f64> = rewarded
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["_rewards"] == 1)
        .map(|row| (row["_event"].as_str().unwrap().to_owned(), row["reward"].as_f64().unwrap()))
        .collect();
    for (event, value) in &acknowledged.rewards {
        assert_eq!(rewards.get(event), Some(value), "the reward of `{event}` was acknowledged and is lost");
    }
}

/// Leaves half a record at the end of the newest segment, as a machine that lost its power might.
fn tear(data: &std::path::Path) -> bool {
    let mut segments: Vec<_> = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.retain(|path| path.extension().is_some_and(|ending| ending == "ncb"));
    segments.sort();
    let newest = segments.last().unwrap();
    let bytes = fs::read(newest).unwrap();
    fs::write(newest, [&bytes[..], &200u32.to_le_bytes(), b"torn{\"dec"].concat()).unwrap();
    true
}
