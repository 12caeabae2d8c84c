//! What the machine and callers do to a server: a full disk, thousands of connections, callers that do not read.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

mod server;
use server::{Client, Server, done};

fn policy(f: &Path) {
    done(f, "simulate quadratic --n 50 --seed 1 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out policy.safetensors --algorithm constant");
}

const ASK: &str = "{\"contextFeatures\":{}}";

/// Asks until it is answered so.
fn until(client: &mut Client, status: u16) -> serde_json::Value {
    let started = Instant::now();
    loop {
        let (found, answer) = client.post("/v1/rank", ASK);
        if found == status {
            return answer;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{found}, not {status}: {answer}");
    }
}

/// A file system in memory that is soon full; only root may make one.
struct Tiny<'a>(&'a Path);

impl Tiny<'_> {
    fn mount(at: &Path) -> Option<Tiny<'_>> {
        fs::create_dir(at).unwrap();
        let made = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(at).output();
        made.is_ok_and(|made| made.status.success()).then_some(Tiny(at))
    }
}

impl Drop for Tiny<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_survived() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    let at = f.join("disk");
    let Some(disk) = Tiny::mount(&at) else {
        eprintln!("skipped: only root may mount a small tmpfs");
        return;
    };
    policy(f);
    for on_failure in ["refuse", "serve"] {
        let data = format!("disk/{on_failure}");
        let server =
            Server::start(f, &format!("policy.safetensors --fill-missing --data {data} --on-log-failure {on_failure}"));
        let mut client = server.client();
        let mut acknowledged = 1;
        until(&mut client, 201);
        // All that is left, to the last byte.
        let filler = disk.0.join("filler");
        let full = fs::write(&filler, vec![0; 2 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        let failed = loop {
            let (status, answer) = client.post("/v1/rank", ASK);
            if status != 201 || answer["logged"] == json!(false) {
                break (status, answer);
            }
            acknowledged += 1;
            assert!(acknowledged < 100_000, "the disk is never full");
        };
        if on_failure == "refuse" {
            let said = failed.1["error"]["message"].as_str().unwrap();
            assert!(failed.0 == 503 && said.contains("No space left") && said.contains("free space"), "{said}");
        } else {
            assert_eq!(failed.0, 201);
            let metrics = client.ask("GET", "/metrics", "").1;
            assert!(metrics.as_str().unwrap().contains("neuralcb_unlogged_total 1"), "{metrics}");
        }
        assert!(client.refused(503, "/v1/events/a/reward", "{\"value\":1}").contains("No space left"));
        assert!(client.ask("GET", "/health/ready", "").0 == 503 && client.ask("GET", "/health/live", "").0 == 200);
        fs::remove_file(&filler).unwrap();
        let started = Instant::now();
        while client.ask("GET", "/health/ready", "").0 != 200 {
            assert!(started.elapsed() < Duration::from_secs(30), "the server does not recover");
            std::thread::sleep(Duration::from_millis(50));
        }
        until(&mut client, 201);
        assert_eq!(server.stop(), Some(0));
        done(f, &format!("join {data} --out joined.jsonl --wait 0s"));
        assert_eq!(fs::read_to_string(f.join("joined.jsonl")).unwrap().lines().count(), acknowledged + 1);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn ten_thousand_idle_connections_leave_the_server_quick_and_small() {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: usize = files.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    // The descriptors of this process must do for them.
    let n = files.saturating_sub(200).min(10_000);
    if n < 10_000 {
        eprintln!("{n} connections: raise `ulimit -n` for 10,000");
    }
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    policy(f);
    let server = Server::start(
        f,
        &format!("policy.safetensors --fill-missing --data data --head-time 5m --max-connections {}", n + 10),
    );
    let mut client = server.client();
    until(&mut client, 201);
    let memory = || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
    };
    let before = memory();
    let mut idle = Vec::new();
    for i in 0..n {
        idle.push(TcpStream::connect(&server.address).unwrap());
        // The system keeps some hundred that the server has not accepted yet; callers beyond them wait for seconds.
        if i % 500 == 0 {
            until(&mut client, 201);
        }
    }
    for _ in 0..20 {
        until(&mut client, 201);
    }
    // A new caller is served once all before it are accepted.
    until(&mut server.client(), 201);
    let more = memory().saturating_sub(before);
    assert!(more < 16 * n + 20_000, "{more} KiB for {n} connections");
    drop(idle);
    until(&mut client, 201);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_caller_that_does_not_read_is_hung_up_on() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    policy(f);
    let server =
        Server::start(f, "policy.safetensors --fill-missing --data data --head-time 500ms --max-connections 1");
    let mut deaf = server.client();
    let ask = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n".repeat(100);
    // Answers fill the buffers of both ends; then nothing goes on, and the connection ends.
    let started = Instant::now();
    while deaf.send(&ask).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(60), "the server writes for ever");
    }
    // Its place is free again.
    let started = Instant::now();
    while server.client().try_ask("GET", "/health/live", b"").map_or(0, |(status, _)| status) != 200 {
        assert!(started.elapsed() < Duration::from_secs(30), "the place stays taken");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.stop(), Some(0));
}
