//! TLS from outside, with a certificate that is made here.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

mod server;
use server::{Client, Server, done};

#[test]
fn decisions_come_over_tls_and_bad_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let f = folder.path();
    done(f, "simulate quadratic --n 50 --seed 1 --preset released-code --behaviour uniform --out log.csv");
    done(f, "train log.csv --out policy.safetensors --algorithm constant");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(f.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(f.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(f.join("other.pem"), other.signing_key.serialize_pem()).unwrap();

    let tls = "--tls-cert cert.pem --tls-key key.pem --head-time 1s";
    let server = Server::start(f, &format!("policy.safetensors --fill-missing --data data {tls}"));
    assert!(server.url().starts_with("https://"));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let secured = || {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config.clone()), name).unwrap();
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client::over(StreamOwned::new(connection, stream))
    };
    let mut client = secured();
    for _ in 0..3 {
        let (status, answer) = client.post("/v1/rank", "{\"contextFeatures\":{}}");
        assert_eq!(status, 201, "{answer}");
        let event = answer["eventId"].as_str().unwrap();
        assert_eq!(client.post(&format!("/v1/events/{event}/reward"), "{\"value\":1}").0, 204);
    }
    // A caller without TLS, and one that says nothing, are dropped; others are served.
    assert!(server.client().try_ask("GET", "/health/live", b"").is_err());
    assert!(server.client().answer().is_err());
    assert_eq!(secured().ask("GET", "/health/live", "").0, 200);
    assert_eq!(server.stop(), Some(0));
    done(f, "join data --out joined.jsonl --wait 0s");
    assert_eq!(fs::read_to_string(f.join("joined.jsonl")).unwrap().lines().count(), 3);

    for (files, part) in [
        ("--tls-cert cert.pem", "--tls-key"),
        ("--tls-cert none.pem --tls-key key.pem", "cannot read certificates from `none.pem`"),
        ("--tls-cert key.pem --tls-key key.pem", "cannot read certificates from `key.pem`"),
        ("--tls-cert cert.pem --tls-key cert.pem", "cannot read a private key from `cert.pem`"),
        ("--tls-cert cert.pem --tls-key other.pem", "must be that of the first certificate"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_neuralcb"))
            .current_dir(f)
            .args(["serve", "policy.safetensors", "--data", "other"])
            .args(files.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(part), "{files}: {said}");
    }
}
