//! A server whose disk fails at flushing, over HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use neuralcb_logs::log::Missing;
use neuralcb_server::decide::Exploration;
use neuralcb_server::http::{Limits, Listener, Tokens, serve};
use neuralcb_server::join::{Aggregate, JoinConfig, join};
use neuralcb_server::journal::{Durability, Folder, Journal, Options};
use neuralcb_server::service::{Models, Service, ServiceConfig};
use tokio::sync::oneshot;

mod common;
use common::{Broken, policy};

/// One request on a connection of its own: status and body.
fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn a_failing_flush_refuses_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (policy(folder.path()), folder.path().join("data"));
    let models = Models::load(&[("champion".to_owned(), file)], Missing::Refuse, Exploration::default()).unwrap();
    let disk = Broken::new();
    let service = Service::new(ServiceConfig::default(), models, |server| {
        let (segment_bytes, segment_age) = (1 << 30, Duration::from_secs(3600));
        let options = Options { durability: Durability::Sync, segment_bytes, segment_age, server };
        Journal::start(Folder::open(&data).unwrap().0, Box::new(disk.clone()), options)
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(Listener::bind("127.0.0.1:0".parse().unwrap(), None)).unwrap();
    let address = listener.address().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (service, limits) = (Arc::new(service.unwrap()), Limits::default());
    let served = runtime.spawn(serve(listener, service, Tokens::default(), limits, async { drop(stopped.await) }));

    let body = |event: &str| {
        let actions = r#"[{"id":"a"},{"id":"b"}]"#;
        format!(r#"{{"eventId":"{event}","contextFeatures":{{"x":"c1"}},"actions":{actions}}}"#)
    };
    assert_eq!(ask(address, "POST", "/v1/rank", &body("one")).0, 201);
    disk.flush_fails.store(true, Ordering::SeqCst);
    let (status, said) = ask(address, "POST", "/v1/rank", &body("two"));
    assert!(status == 503 && said.contains("input/output error") && said.contains("mend the disk"), "{said}");
    assert_eq!(ask(address, "POST", "/v1/events/one/reward", r#"{"value":1}"#).0, 503);
    assert_eq!(ask(address, "GET", "/health/ready", "").0, 503);
    let metrics = ask(address, "GET", "/metrics", "").1;
    assert!(
        metrics.contains("neuralcb_log_refused_total 2") && metrics.contains("neuralcb_unlogged_total 1"),
        "{metrics}"
    );
    disk.flush_fails.store(false, Ordering::SeqCst);
    let started = Instant::now();
    while ask(address, "GET", "/health/ready", "").0 != 200 {
        assert!(started.elapsed() < Duration::from_secs(30), "the server does not recover");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ask(address, "POST", "/v1/rank", &body("three")).0, 201);
    assert_eq!(ask(address, "POST", "/v1/events/one/reward", r#"{"value":1}"#).0, 204);
    drop(stop);
    runtime.block_on(served).unwrap();

    let out = folder.path().join("joined.jsonl");
    let (wait, aggregate) = (Duration::from_secs(3600), Aggregate::First);
    let config = JoinConfig { wait, default_reward: 0.0, aggregate, until: u64::MAX, memory: 1 << 20 };
    let joined = join(&[data], &out, &config).unwrap();
    assert_eq!((joined.rows, joined.rewarded), (2, 1));
    let rows = std::fs::read_to_string(out).unwrap();
    assert!(rows.contains("\"one\"") && rows.contains("\"three\"") && !rows.contains("\"two\""), "{rows}");
}
