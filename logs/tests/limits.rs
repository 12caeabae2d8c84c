//! The limits that `docs/LIMITS.md` tells: what is just within is read, what is beyond is refused in words.

use std::fs;
use std::path::PathBuf;

use neuralcb_logs::log::{Log, LogOptions, Preparation, PreparationConfig, Want};

/// A log of this text; the number of its rounds, or the refusal.
fn read(name: &str, text: &[u8], options: &LogOptions) -> Result<u64, String> {
    let (_folder, path) = file(name, text);
    let log = Log::open(&[path], options, Want::OUTCOMES).map_err(|e| e.to_string())?;
    let fitted = Preparation::fit(&log, &PreparationConfig::default()).map_err(|e| e.to_string())?;
    Ok(fitted.1.rounds)
}

fn file(name: &str, text: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn plain(name: &str, text: &str) -> Result<u64, String> {
    read(name, text.as_bytes(), &LogOptions::default())
}

#[test]
fn columns() {
    let csv = |n: usize| {
        let names: Vec<String> = (0..n - 2).map(|i| format!("c{i}")).collect();
        let options = LogOptions { features: Some(vec!["c7".to_owned()]), ..LogOptions::default() };
        let text = format!("action,reward,{}\na,1,{}\n", names.join(","), vec!["2"; n - 2].join(","));
        read("log.csv", text.as_bytes(), &options)
    };
    assert_eq!(csv(65_536), Ok(1));
    assert!(csv(65_537).unwrap_err().contains("has more than 65536 columns"));
    let members: Vec<String> = (0..40_000).map(|i| format!("\"c{i}\":1")).collect();
    let more: Vec<String> = (40_000..80_000).map(|i| format!("\"c{i}\":1")).collect();
    let line = |members: &[String]| format!("{{\"action\":\"a\",\"reward\":1,{}}}\n", members.join(","));
    let refused = plain("log.jsonl", &(line(&members) + &line(&more))).unwrap_err();
    assert!(refused.contains("has more than 65536 columns"), "{refused}");
}

#[test]
fn the_length_of_a_row_of_text() {
    let mut text = "action,reward,word\na,1,x\nb,0,\"".to_owned();
    text += &"y\n".repeat(33 << 20);
    let refused = plain("log.csv", &text).unwrap_err();
    assert!(refused.contains("line 3: a row of at most 64 MiB") || refused.contains("at most 64 MiB"), "{refused}");
    assert!(refused.contains("line 3"), "{refused}");
}

#[test]
fn the_length_of_a_line_of_json() {
    let line = |n: usize| format!("{{\"action\":\"a\",\"reward\":1,\"word\":\"{}\"}}\n", "x".repeat(n));
    let text = line(1) + &line(16 << 20) + &line(20 << 20) + &line(2);
    let refused = plain("log.jsonl", &text).unwrap_err();
    assert!(refused.contains("line 2: ") && refused.contains("16777216 bytes in a line"), "{refused}");
    let options = LogOptions { max_bad_rows: 2, ..LogOptions::default() };
    assert_eq!(read("log.jsonl", text.as_bytes(), &options), Ok(2), "the lines around them are read");
}

#[test]
fn actions() {
    let log = |n: usize| {
        let mut text = "action,reward,x\n".to_owned();
        (0..n).for_each(|i| text += &format!("{i},1,{}\n", i % 3));
        plain("log.csv", &text)
    };
    assert_eq!(log(1 << 20), Ok(1 << 20));
    let refused = log((1 << 20) + 1).unwrap_err();
    assert!(refused.contains("1048576"), "{refused}");
}

#[test]
fn words_of_a_category() {
    let log = |n: usize| {
        let mut text = "action,reward,word\n".to_owned();
        (0..n).for_each(|i| text += &format!("a,1,w{i}\n"));
        let options = LogOptions {
            kinds: [("word".to_owned(), neuralcb_logs::log::Kind::Category)].into(),
            ..LogOptions::default()
        };
        read("log.csv", text.as_bytes(), &options)
    };
    assert_eq!(log(1 << 20), Ok(1 << 20));
    let refused = log((1 << 20) + 1).unwrap_err();
    assert!(refused.contains("`word`") && refused.contains("1048576"), "{refused}");
}

#[test]
fn rows_of_a_round() {
    let log = |n: usize| {
        let mut text = "round,action,chosen,reward,x\n".to_owned();
        (0..n).for_each(|i| text += &format!("1,{i},{},1,2\n", u8::from(i == 0)));
        plain("log.csv", &(text + "2,0,1,1,2\n2,1,0,,2\n"))
    };
    assert_eq!(log(65_535), Ok(2));
    let refused = log(65_537).unwrap_err();
    assert!(refused.contains("a round of fewer rows than are held at a time"), "{refused}");
}

#[test]
fn sizes_of_numbers() {
    let log = |x: &str, reward: &str, p: &str| {
        let text = format!("action,reward,propensity,x\na,1,0.5,1\nb,{reward},{p},{x}\n");
        plain("log.csv", &text)
    };
    assert_eq!(log("3.4e38", "1e100", "1"), Ok(2));
    assert!(log("3.5e38", "1", "1").unwrap_err().contains("a finite number, at most 3.4e38 in size"));
    assert!(log("1", "inf", "1").unwrap_err().contains("a finite number"));
    assert!(log("1", "1", "0").unwrap_err().contains("a probability above 0 and at most 1"));
    assert!(log("1", "1e200", "1").unwrap_err().contains("too large"));
}
