//! A served policy from outside: the decisions of `score`, honest probabilities, and a server that survives its
//! callers.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

mod server;
use server::{Client, Server, done};

/// A small log, and a policy that learned from it.
fn policy(folder: &Path, train: &str, preset: &str) {
    done(folder, &format!("simulate quadratic --n 300 --seed 1 --preset {preset} --behaviour uniform --out log.csv"));
    done(folder, &format!("train log.csv --out policy.safetensors {train}"));
}

/// A log with words, booleans and numbers, for actions with features of their own.
fn shop(folder: &Path, n: usize) {
    let mut lines = String::new();
    for i in 0..n {
        let (hour, mobile) = (i % 24, i % 3 == 0);
        let city = ["Rome", "Oslo", "Lima"][i % 3];
        let chosen = i % 2;
        let reward = f64::from(u8::from((hour > 12) == (chosen == 1)));
        let line = json!({
            "context": {"hour": hour, "mobile": mobile, "place": {"city": city}},
            "actions": [
                {"id": "news", "features": {"length": (i % 7) as f64 + 0.5, "kind": "text"}},
                {"id": "sport", "features": {"length": i % 5, "kind": "film"}},
            ],
            "chosen": chosen,
            "reward": reward,
            "propensity": 0.5,
        });
        lines += &line.to_string();
        lines.push('\n');
    }
    fs::write(folder.join("shop.jsonl"), lines).unwrap();
}

#[test]
fn a_served_decision_is_that_of_score_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    shop(f, 400);
    for train in ["--algorithm neuralcb", "--algorithm lin-lcb --beta 0.5", "--algorithm clone"] {
        done(f, &format!("train shop.jsonl --out policy.safetensors {train}"));
        done(f, "score policy.safetensors shop.jsonl --out scored.jsonl --explain");
        let server = Server::start(f, "policy.safetensors --data data --durability batch");
        let mut client = server.client();
        let lines = fs::read_to_string(f.join("shop.jsonl")).unwrap();
        let scored = fs::read_to_string(f.join("scored.jsonl")).unwrap();
        for (line, scored) in lines.lines().zip(scored.lines()).take(150) {
            let (line, scored): (Value, Value) =
                (serde_json::from_str(line).unwrap(), serde_json::from_str(scored).unwrap());
            let body = json!({"contextFeatures": [line["context"]], "actions": line["actions"]}).to_string();
            let (status, answer) = client.post("/v1/rank?explain", &body);
            assert_eq!(status, 201, "{answer}");
            assert_eq!(answer["rewardActionId"], scored["action"], "{train}: {body}");
            for ranked in answer["ranking"].as_array().unwrap() {
                for what in ["mean", "width", "bound"] {
                    let score = &scored["actions"][ranked["id"].as_str().unwrap()][what];
                    assert_eq!(
                        ranked[what].as_f64().map(f64::to_bits),
                        score.as_f64().map(f64::to_bits),
                        "{train}: {what}"
                    );
                }
            }
        }
        // Another β, and everything in one request.
        if train.contains("neuralcb") {
            done(f, "score policy.safetensors shop.jsonl --out other.jsonl --beta 3");
            let other = fs::read_to_string(f.join("other.jsonl")).unwrap();
            let one = |line: &str| {
                let line: Value = serde_json::from_str(line).unwrap();
                json!({"contextFeatures": line["context"], "actions": line["actions"], "beta": 3})
            };
            let requests: Vec<Value> = lines.lines().take(100).map(one).collect();
            let (status, answer) = client.post("/v1/rank/batch", &json!({"requests": requests}).to_string());
            assert_eq!(status, 201, "{answer}");
            let names = |values: Vec<Value>, key: &str| values.iter().map(|v| v[key].clone()).collect::<Vec<_>>();
            let expected = other.lines().take(100).map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(
                names(answer["results"].as_array().unwrap().clone(), "rewardActionId"),
                names(expected, "action")
            );
        }
    }
}

#[test]
fn the_vocabulary_of_the_retired_service_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    shop(f, 200);
    done(f, "train shop.jsonl --out policy.safetensors --algorithm lin-lcb");
    let server = Server::start(f, "policy.safetensors --data data --explore epsilon=0.2");
    let mut client = server.client();
    let body = r#"{"contextFeatures":[{"hour":9},{"mobile":true,"place":{"city":"Rome"}}],
        "actions":[{"id":"news","features":[{"length":3},{"kind":"text"}]},
        {"id":"sport","features":[{"length":2,"kind":"film"}]},{"id":"ads","features":[{"length":2,"kind":"film"}]}],
        "excludedActions":["ads"],"eventId":"75269AD0/1","deferActivation":true}"#;
    let (status, first) = client.post("/personalizer/v1.0/rank", body);
    assert_eq!((status, &first["eventId"]), (201, &json!("75269AD0/1")), "{first}");
    let ranking = first["ranking"].as_array().unwrap();
    assert_eq!(ranking[0]["id"], first["rewardActionId"]);
    assert_eq!((&ranking[2]["id"], &ranking[2]["probability"]), (&json!("ads"), &json!(0.0)));
    let sum: f64 = ranking.iter().map(|r| r["probability"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-12);
    assert_eq!(
        client.post("/personalizer/v1.1-preview.3/rank", body).1,
        first,
        "a repeated request gets the same answer"
    );
    assert_eq!(client.post("/personalizer/v1.0/events/75269AD0%2F1/activate", "").0, 204);
    assert_eq!(client.post("/personalizer/v1.0/events/75269AD0%2F1/reward", r#"{"value":0.5}"#).0, 204);
    assert!(client.refused(404, "/personalizer/v1.1-preview.3/multislot/rank", "{}").contains("multi-slot"));

    let (_, stats) = client.ask("GET", "/v1/stats", "");
    assert_eq!((&stats["decisions"], &stats["rewards"]), (&json!(2), &json!(1)));
    let (_, recent) = client.ask("GET", "/v1/recent", "");
    assert_eq!(recent[0]["reward"], 0.5);
    assert!(recent[0]["actions"][0]["bound"].is_f64());
    let (_, metrics) = client.ask("GET", "/metrics", "");
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("neuralcb_request_seconds_count{what=\"rank\"} 2"), "{metrics}");
    assert!(metrics.contains("neuralcb_reward_lag_seconds_count 1"), "{metrics}");
    let (_, document) = client.ask("GET", "/openapi.json", "");
    assert_eq!(document["openapi"], "3.1.0");
    for path in document["paths"].as_object().unwrap().keys() {
        let method = if document["paths"][path]["get"].is_null() { "POST" } else { "GET" };
        let (status, _) = client.ask(method, &path.replace(['{', '}'], ""), "");
        assert!(status != 404 || path.contains("models"), "{path} is documented and not there");
    }
    assert!(client.ask("GET", "/", "").1.as_str().unwrap().contains("<title>neuralcb serve</title>"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn what_callers_do_wrong_is_told_and_the_server_lives() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    policy(f, "--algorithm lin-lcb", "released-code");
    let limits = "--max-body 100000 --max-actions 40 --head-time 1s --body-time 500ms --max-connections 40";
    let mut server = Server::start(f, &format!("policy.safetensors --data data {limits}"));
    let mut client = server.client();
    let context: Vec<String> = (0..20).map(|j| format!("\"x{j}\":0.1")).collect();
    let good = format!("{{\"contextFeatures\":{{{}}}}}", context.join(","));
    for (path, body, status, part) in [
        ("/v1/rank", "{", 400, "not JSON"),
        ("/v1/rank", "{\"contextFeatures\":{}}", 400, "must be a number"),
        ("/v1/rank", "{\"contextFeatures\":{\"x0\":\"red\"}}", 400, "`x0` must be a number"),
        ("/v1/rank", "{\"actions\":[{\"id\":\"none such\"}]}", 400, "column"),
        ("/v1/rank/batch", "{\"requests\":[{}]}", 400, "requests[0]: "),
        ("/v1/events/a/reward", "{\"value\":\"1\"}", 400, "`value` must be a finite number"),
        ("/v1/events/a/reward", "{}", 400, "`value` is missing"),
        ("/v1/events/%ff/reward", "{\"value\":1}", 400, "UTF-8"),
        ("/v1/rang", "{}", 404, "/openapi.json"),
        ("/metrics", "{}", 405, "use GET"),
        ("/v1/models/none", "{}", 404, "there is no model `none`"),
        ("/v1/models/champion", "{}", 400, "is not a whole policy file"),
    ] {
        let said = client.refused(status, path, body);
        assert!(said.contains(part), "{path} {body}: {said}");
    }
    let deep = format!("{{\"contextFeatures\":{}1{}}}", "[".repeat(40_000), "]".repeat(40_000));
    assert!(client.refused(400, "/v1/rank", &deep).contains("levels of nesting"));
    let many: Vec<String> = (0..41).map(|i| format!("{{\"id\":\"{i}\"}}")).collect();
    assert!(
        client.refused(400, "/v1/rank", &format!("{{\"actions\":[{}]}}", many.join(","))).contains("--max-actions")
    );
    assert_eq!(client.post("/v1/rank", &good).0, 201, "the connection is still good");

    // A body of a gigabyte is refused before it comes, one without a length as it comes.
    client.send(b"POST /v1/rank HTTP/1.1\r\nhost: here\r\ncontent-length: 1073741824\r\n\r\n{").unwrap();
    assert_eq!(client.answer().unwrap().0, 413);
    let mut chunked = server.client();
    chunked.send(b"POST /v1/rank HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    for _ in 0..11 {
        let _ = chunked.send(&[b"2710\r\n".to_vec(), vec![b' '; 10_000], b"\r\n".to_vec()].concat());
    }
    assert_eq!(chunked.answer().unwrap().0, 413);
    // Half a body, and half a head.
    let mut slow = server.client();
    slow.send(b"POST /v1/rank HTTP/1.1\r\nhost: here\r\ncontent-length: 100\r\n\r\n{\"context").unwrap();
    assert_eq!(slow.answer().unwrap().0, 408);
    let mut half = server.client();
    half.send(b"POST /v1/rank HTTP/1.1\r\nhost: he").unwrap();
    let broken = half.answer().map(|(status, _)| status);
    assert!(broken.is_err() || broken.is_ok_and(|status| status == 408), "a head that does not come is not waited for");
    // More connections than there are places.
    let mut idle: Vec<Client> = (0..60).map(|_| server.client()).collect();
    assert_eq!(idle[59].answer().unwrap().0, 503);
    drop(idle);
    let started = Instant::now();
    while server.client().try_ask("POST", "/v1/rank", good.as_bytes()).map_or(0, |(status, _)| status) != 201 {
        assert!(started.elapsed() < Duration::from_secs(30), "the server does not recover");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.is_alive());
}

#[test]
fn a_new_policy_is_taken_up_and_a_bad_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    policy(f, "--algorithm lin-lcb", "released-code");
    done(f, "train log.csv --out other.safetensors --algorithm constant");
    let old = fs::read(f.join("policy.safetensors")).unwrap();
    let server = Server::start(f, "--policy main=policy.safetensors --policy rival=other.safetensors --data data");
    let mut client = server.client();
    let digest = |client: &mut Client| client.ask("GET", "/v1/models", "").1[0]["policy"].as_str().unwrap().to_owned();
    let first = digest(&mut client);

    done(f, "train log.csv --out new.safetensors --algorithm lin-lcb --beta 2");
    fs::rename(f.join("new.safetensors"), f.join("policy.safetensors")).unwrap();
    let started = Instant::now();
    while digest(&mut client) == first {
        assert!(started.elapsed() < Duration::from_secs(30), "the new policy is not taken up");
        std::thread::sleep(Duration::from_millis(50));
    }
    let second = digest(&mut client);
    fs::write(f.join("policy.safetensors"), &old[..old.len() / 2]).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(digest(&mut client), second, "a bad file leaves the old policy");

    let (status, about) = client.try_ask("POST", "/v1/models/main", &old).unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&about));
    assert_eq!(digest(&mut client), first);
    assert_eq!(fs::read(f.join("policy.safetensors")).unwrap(), old, "the file is what is served");
}

#[test]
fn tokens_have_rights_and_are_needed_beyond_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    policy(f, "--algorithm constant", "released-code");
    let mut file = fs::File::create(f.join("tokens")).unwrap();
    writeln!(file, "rank aaaaaaaaaaaaaaaaaaaa\nread bbbbbbbbbbbbbbbbbbbb").unwrap();
    let server = Server::start(f, "policy.safetensors --data data --token-file tokens");
    let mut client = server.client();
    let body = "{\"contextFeatures\":{}}";
    assert!(client.refused(401, "/v1/rank", body).contains("Authorization: Bearer"));
    client.headers = "authorization: Bearer bbbbbbbbbbbbbbbbbbbb\r\n".to_owned();
    assert!(client.refused(403, "/v1/rank", body).contains("lacks the right `rank`"));
    assert_eq!(client.ask("GET", "/metrics", "").0, 200);
    client.headers = "Ocp-Apim-Subscription-Key: aaaaaaaaaaaaaaaaaaaa\r\n".to_owned();
    assert_eq!(client.ask("GET", "/metrics", "").0, 403);
    assert_eq!(client.post("/v1/events/a/reward", "{\"value\":1}").0, 204);
    client.headers.clear();
    assert_eq!(client.ask("GET", "/health/ready", "").0, 200);

    let output = std::process::Command::new(env!("CARGO_BIN_EXE_neuralcb"))
        .current_dir(f)
        .args(["serve", "policy.safetensors", "--data", "other", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("give tokens by --token-file"));
}

#[test]
fn an_apprentice_plays_the_callers_choice_and_a_logger_the_callers_distribution() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    shop(f, 200);
    done(f, "train shop.jsonl --out policy.safetensors --algorithm neuralcb");
    let lines = fs::read_to_string(f.join("shop.jsonl")).unwrap();
    let context = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let server = Server::start(f, "policy.safetensors --data apprentice --mode apprentice");
    let mut client = server.client();
    for line in lines.lines().take(50).map(context) {
        let (_, answer) = client
            .post("/v1/rank", &json!({"contextFeatures": line["context"], "actions": line["actions"]}).to_string());
        assert_eq!(answer["rewardActionId"], "news");
        assert_eq!(answer["ranking"][0]["probability"], 1.0);
    }
    let (_, stats) = client.ask("GET", "/v1/stats", "");
    let (agreed, disagreed) = (stats["agreed"].as_u64().unwrap(), stats["disagreed"].as_u64().unwrap());
    assert!(agreed + disagreed == 50 && agreed > 0 && disagreed > 0, "{stats}");

    let server = Server::start(f, "policy.safetensors --data logging --mode logging");
    let mut client = server.client();
    let mut line = context(lines.lines().next().unwrap());
    let ask = |line: &Value| json!({"contextFeatures": line["context"], "actions": line["actions"]}).to_string();
    assert!(client.refused(400, "/v1/rank", &ask(&line)).contains("needs a `probability`"));
    line["actions"][0]["probability"] = json!(0.25);
    line["actions"][1]["probability"] = json!(0.75);
    let played: Vec<Value> =
        (0..200).map(|_| client.post("/v1/rank", &ask(&line)).1["rewardActionId"].clone()).collect();
    let news = played.iter().filter(|id| **id == "news").count();
    assert!((20..=85).contains(&news), "{news} of 200 with probability 1/4");
}

#[test]
fn the_first_decision_comes_within_a_second_of_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    policy(f, "--algorithm neuralcb", "released-code");
    let context: Vec<String> = (0..20).map(|j| format!("\"x{j}\":0.1")).collect();
    let body = format!("{{\"contextFeatures\":{{{}}}}}", context.join(","));
    // The best of a few: other tests run beside.
    let took = (0..5).map(|_| {
        let started = Instant::now();
        let server = Server::start(f, "policy.safetensors --data data");
        assert_eq!(server.client().post("/v1/rank", &body).0, 201);
        started.elapsed()
    });
    let best = took.min().unwrap();
    assert!(best < Duration::from_secs(1), "{best:?}");
}
