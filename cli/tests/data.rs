//! `neuralcb data` from outside. Where the published files are absent (`$NEURALCB_SHARED/data`, else
//! `../../shared/data` seen from this crate's folder), the tests that need them say so and check nothing.

#[path = "../../logs/tests/common/mod.rs"]
mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use common::data_folder;

/// Runs `neuralcb data …` with that cache.
fn data(cache: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuralcb"));
    command.arg("data").args(args).env("NEURALCB_DATA", cache).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Expects success, and returns standard output and standard error.
#[track_caller]
fn done(cache: &Path, args: &[&str]) -> (String, String) {
    let output = data(cache, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
}

/// Expects exit code 2, one line with all the parts, and an empty standard output.
#[track_caller]
fn refused(cache: &Path, args: &[&str], parts: &[&str]) {
    let output = data(cache, args);
    let talk = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {talk}");
    assert_eq!((text(&output.stdout), talk.lines().count()), ("", 1), "{args:?}: {talk}");
    for part in parts {
        assert!(talk.contains(part), "{args:?}: `{part}` is missing in: {talk}");
    }
}

/// The column `here` of the table.
fn here(cache: &Path) -> Vec<String> {
    let (table, _) = done(cache, &["list"]);
    let rows = table.lines().skip(1).filter(|line| !line.starts_with("cache: "));
    rows.map(|line| line.split_whitespace().last().unwrap().to_owned()).collect()
}

#[test]
fn list_shows_the_papers_counts_and_where_the_cache_is() {
    let cache = tempfile::tempdir().unwrap();
    let (table, talk) = done(cache.path(), &["list"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["name", "rows", "dimensions", "actions", "licence", "here"]);
    assert_eq!(rows[1], ["mushroom", "8,124", "117", "2", "CC", "BY", "4.0", "no"]);
    assert_eq!(rows[2], ["statlog", "43,500", "9", "7", "CC", "BY", "4.0", "no"]);
    assert_eq!(rows[3], ["adult", "45,222", "94", "14", "CC", "BY", "4.0", "no"]);
    assert_eq!(rows[4], ["mnist", "70,000", "784", "10", "CC", "BY-SA", "3.0", "no"]);
    assert_eq!(table.lines().last().unwrap(), format!("cache: {}", cache.path().display()));
    assert_eq!((rows.len(), talk.as_str()), (6, ""));
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn list_as_json_names_every_file_with_its_hash_and_home() {
    let cache = tempfile::tempdir().unwrap();
    let (json, _) = done(cache.path(), &["list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(list["cache"], cache.path().to_str().unwrap());
    let sets = list["datasets"].as_array().unwrap();
    let count = |i: usize, key: &str| sets[i][key].as_u64().unwrap();
    assert_eq!((count(2, "rows"), count(2, "dimensions"), count(2, "actions")), (45_222, 94, 14));
    let files: Vec<&serde_json::Value> = sets.iter().flat_map(|set| set["files"].as_array().unwrap()).collect();
    assert_eq!(files.len(), 8);
    for file in files {
        assert_eq!((file["sha256"].as_str().unwrap().len(), &file["here"]), (64, &"no".into()));
        assert!(file["home"].as_str().unwrap().starts_with("https://"));
    }
}

#[test]
fn fetch_takes_local_copies_once_and_list_shows_them() {
    let Some(folder) = data_folder() else { return };
    let (folder, cache) = (folder.to_str().unwrap(), tempfile::tempdir().unwrap());
    let (out, talk) = done(cache.path(), &["fetch", "adult", "--from", folder]);
    let place = cache.path().display();
    assert_eq!((out.as_str(), talk), ("", format!("adult: 2 files fetched into {place}\n")));
    assert_eq!(here(cache.path()), ["no", "no", "yes", "no"]);

    let (out, talk) = done(cache.path(), &["fetch", "all", "--from", folder]);
    assert_eq!(out, "");
    assert_eq!(talk.lines().count(), 4);
    assert!(talk.contains(&format!("adult is already here: {place}\n")), "{talk}");
    assert!(talk.contains(&format!("mnist: 4 files fetched into {place}\n")), "{talk}");
    assert_eq!(here(cache.path()), ["yes"; 4]);

    // Nothing is downloaded that is here.
    let (_, talk) = done(cache.path(), &["fetch", "ALL"]);
    assert_eq!(talk.matches("is already here").count(), 4, "{talk}");

    fs::remove_file(cache.path().join("adult/adult.test")).unwrap();
    fs::write(cache.path().join("shuttle/shuttle.trn"), "1 2 3\n").unwrap();
    assert_eq!(here(cache.path()), ["yes", "damaged", "partly", "yes"]);
    let (_, talk) = done(cache.path(), &["fetch", "statlog", "--from", folder]);
    assert_eq!(talk, format!("statlog: 1 file fetched into {place}\n"));
}

#[test]
fn fetch_takes_a_mirrors_address() {
    let Some(folder) = data_folder() else { return };
    let content = fs::read(folder.join("mushroom/agaricus-lepiota.data")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let server = thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) if Instant::now() > deadline => return String::new(),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        };
        stream.set_nonblocking(false).unwrap();
        let (mut request, mut byte) = (Vec::new(), [0]);
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
            request.push(byte[0]);
        }
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", content.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content)).unwrap();
        String::from_utf8(request).unwrap()
    });
    let cache = tempfile::tempdir().unwrap();
    let (_, talk) = done(cache.path(), &["fetch", "mushroom", "--from", &format!("http://{address}/copies")]);
    assert_eq!(talk, format!("mushroom: 1 file fetched into {}\n", cache.path().display()));
    let request = server.join().unwrap();
    assert!(request.starts_with("GET /copies/mushroom/agaricus-lepiota.data HTTP/1.1\r\n"), "{request}");
    assert_eq!(here(cache.path())[0], "yes");
}

#[test]
fn wrong_input_is_refused_in_one_line_and_nothing_is_installed() {
    let (cache, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let from = folder.path().to_str().unwrap();
    refused(cache.path(), &["fetch", "cifar"], &["'cifar'", "mushroom, statlog, adult, mnist, all"]);
    refused(cache.path(), &["fetch"], &["<NAME>"]);
    refused(cache.path(), &["fetch", "mnist", "--from", "absent"], &["`mnist`", "`absent`"]);
    refused(cache.path(), &["fetch", "mnist", "--from", from], &["mnist/train-images-idx3-ubyte.gz", from]);
    let closed = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    refused(cache.path(), &["fetch", "all", "--from", &closed], &["cannot download", &closed, "--from DIR"]);

    fs::create_dir(folder.path().join("mushroom")).unwrap();
    fs::write(folder.path().join("mushroom/agaricus-lepiota.data"), "abc").unwrap();
    let hashes = ["e65d082030501a3e", "ba7816bf8f01cfea"];
    refused(cache.path(), &["fetch", "mushroom", "--from", from], &hashes);
    refused(cache.path(), &["fetch", "all", "--from", from], &hashes);
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    assert_eq!(here(cache.path()), ["no"; 4]);
}
