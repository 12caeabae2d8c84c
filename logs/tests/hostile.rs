//! Broken and hostile files: every reader refuses them or reads them, and never panics.
//!
//! Valid files are mutated at random: bytes changed, cut out, repeated, replaced by what parsers stumble over. The same
//! entry points are fuzzed by the targets in `fuzz/`; `PROPTEST_CASES` makes this test longer.

#[path = "common/reading.rs"]
mod reading;
#[path = "common/version_1.rs"]
mod version_1;

use std::path::Path;
use std::sync::OnceLock;

use neuralcb::{Contexts, Eligible, Encoding, Layout, LoggedData};
use neuralcb_logs::log::{Log, LogOptions, Want, dsjson, json_rounds, write_parquet};
use neuralcb_logs::policy::{Algorithm, Policy, Recipe};
use neuralcb_logs::train::train;
use proptest::prelude::*;
use proptest::sample::Index;

const FLAT: &str = "action,reward,propensity,age,vip,colour\n\
    a,1,0.5,31,true,red\nb,0,0.25,22.5,false,blue\na,0,0.5,-4e3,true,\"a, \"\"b\"\"\"\nc,0.5,1,0,false,red\n";

const LONG: &str = "round,action,chosen,reward,propensity,x0,x1\n\
    0,a,0,,,1,2\n0,b,1,0.25,0.5,3,4\n1,a,1,-1,1,5,6\n2,b,0,,,1,1\n2,c,1,0.5,0.75,2,2\n2,a,0,,,0,0\n";

const LINES: &str = r#"{"action":"red","reward":1,"propensity":0.5,"age":31,"vip":true,"eligible":["red","blue"],"place":{"city":"Rome"}}
{"action":"blue","reward":0,"propensity":0.25,"age":22.5,"vip":false,"eligible":["red","blue","green"],"place":{"city":"Oslo"}}
"#;

const ROUNDS: &str = r#"{"context":{"age":31,"place":{"city":"Rome"}},"v":[1,2],"actions":[{"id":"red","price":3.5},{"id":"blue","price":2}],"chosen":"blue","reward":1,"propensity":0.4}
{"context":{"age":18,"place":{"city":"Oslo"}},"v":[0,2],"actions":[{"id":"red","price":1},{"id":"blue","price":7}],"chosen":"red","reward":0,"propensity":0.6}
"#;

const DSJSON: &str = r#"{"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"a":[2,1],"c":{"User":{"id":"a","age":20},"_multi":[{"_tag":"x","A":{"p":1}},{"_tag":"y","A":{"p":2}}]},"p":[0.8,0.2],"pdrop":0.5}
{"_label_cost":0,"_label_probability":0.2,"_label_Action":2,"_labelIndex":1,"a":[2,1],"c":{"User":{"id":"b","age":30},"_multi":[{"_tag":"x","A":{"p":1}},{"_tag":"y","A":{"p":2}}]},"p":[0.2,0.8]}
"#;

/// What parsers stumble over.
const TOKENS: &[&[u8]] = &[
    b"NaN",
    b"inf",
    b"-inf",
    b"1e999",
    b"-1",
    b"0",
    b"1e-320",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"\"",
    b"\"\"",
    b",",
    b"\n",
    b"\r\n",
    b"\t",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\\u0000",
    b"\\ud800",
    b"|",
    b";",
    b"action",
    b"reward",
    b"chosen",
    b"round",
    b"id",
];

/// One change of a file.
#[derive(Debug, Clone)]
enum Change {
    Byte(Index, u8),
    Cut(Index, Index),
    Repeat(Index, Index, usize),
    Token(Index, Index),
    End(Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Cut(from, to)),
        (any::<Index>(), any::<Index>(), 1..20usize).prop_map(|(from, to, n)| Change::Repeat(from, to, n)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, token)| Change::Token(at, token)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, token)| Change::Token(at, token)),
        any::<Index>().prop_map(Change::End),
    ];
    prop::collection::vec(change, 1..6)
}

fn changed(valid: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for change in changes {
        let range = |from: &Index, to: &Index| {
            let (from, to) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
            from.min(to)..from.max(to)
        };
        match change {
            Change::Byte(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Change::Byte(..) => {}
            Change::Cut(from, to) => drop(bytes.drain(range(from, to))),
            Change::Repeat(from, to, n) => {
                let range = range(from, to);
                let copy = bytes[range.clone()].repeat(*n);
                bytes.splice(range.end..range.end, copy);
            }
            Change::Token(at, token) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, TOKENS[token.index(TOKENS.len())].iter().copied());
            }
            Change::End(at) => bytes.truncate(at.index(bytes.len() + 1)),
        }
    }
    bytes
}

/// The mutated files of a valid one are read or refused, in words.
fn survives(valid: &[u8], changes: &[Change], ending: &str) {
    if let Err(error) = reading::read(&changed(valid, changes), ending) {
        assert!(!error.to_string().is_empty());
    }
}

/// Parquet files of both shapes.
fn parquet() -> &'static [Vec<u8>] {
    static MADE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    MADE.get_or_init(|| {
        [(Encoding::Disjoint, 1), (Encoding::PerAction, 2)]
            .map(|(encoding, rows)| {
                let layout = Layout { dim: 3, n_actions: 2, encoding };
                let x = (0..60 * rows).map(|i| (i * 7 % 11) as f32).collect();
                let contexts = Contexts::new(layout, x, Eligible::All).unwrap();
                let actions = (0..20).map(|t| t % 2).collect();
                let log = LoggedData::new(contexts, actions, vec![0.5; 20], Some(vec![0.5; 20])).unwrap();
                let mut bytes = Vec::new();
                write_parquet(&log, &mut bytes).unwrap();
                bytes
            })
            .to_vec()
    })
}

/// Policy files of models of different kinds.
fn policies() -> &'static [Vec<u8>] {
    static MADE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        std::fs::write(&path, FLAT.to_owned() + &FLAT.split_once('\n').unwrap().1.repeat(9)).unwrap();
        let log = Log::open(&[path], &LogOptions::default(), Want::OUTCOMES).unwrap();
        let made = |algorithm| {
            let recipe = Recipe { algorithm, ..Recipe::default() };
            // without a sum, which would refuse every change before the other checks see it
            version_1::version_1(&train(&log, &recipe, None, &mut |_| {}).unwrap().to_bytes())
        };
        [Algorithm::Neuralcb, Algorithm::LinLcb, Algorithm::KernLcb].map(made).to_vec()
    })
}

/// Other digits in the header, whose length stays: sizes, shapes and settings that lie.
fn with_digits(valid: &[u8], digits: &[(Index, u8)]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    let length = u64::from_le_bytes(valid[..8].try_into().unwrap()) as usize;
    let places: Vec<usize> = (8..8 + length).filter(|&i| bytes[i].is_ascii_digit()).collect();
    for (at, digit) in digits {
        bytes[places[at.index(places.len())]] = b'0' + digit;
    }
    bytes
}

/// A policy file is refused in words, or is a whole policy.
fn load(bytes: &[u8]) {
    match Policy::from_bytes(bytes, Path::new("hostile.safetensors")) {
        Ok(policy) => assert!(Policy::from_bytes(&policy.to_bytes(), Path::new("again")).is_ok()),
        Err(error) => assert!(error.to_string().contains("hostile.safetensors"), "{error}"),
    }
}

#[test]
fn the_files_to_be_broken_are_valid() {
    for policy in policies() {
        assert!(Policy::from_bytes(policy, Path::new("valid")).is_ok());
    }
    assert_eq!(reading::read(FLAT.as_bytes(), "csv").unwrap(), 4);
    assert_eq!(reading::read(FLAT.replace(',', "\t").as_bytes(), "tsv").unwrap(), 4);
    assert_eq!(reading::read(LONG.as_bytes(), "csv").unwrap(), 3);
    assert_eq!(reading::read(LINES.as_bytes(), "jsonl").unwrap(), 2);
    assert_eq!(reading::read(ROUNDS.as_bytes(), "jsonl").unwrap(), 2);
    assert_eq!(reading::read(DSJSON.as_bytes(), "dsjson").unwrap(), 2);
    for bytes in parquet() {
        assert_eq!(reading::read(bytes, "parquet").unwrap(), 20);
    }
}

/// A file's table of contents with one bit changed: the lowest of a byte is the sign of a number.
#[test]
fn a_parquet_file_that_lies_about_itself_does_no_harm() {
    let valid = &parquet()[0];
    let end = valid.len() - 8;
    let length = u32::from_le_bytes(valid[end..end + 4].try_into().unwrap()) as usize;
    let mut refused = 0;
    for i in end - length..end {
        let mut bytes = valid.clone();
        bytes[i] ^= 1;
        refused += usize::from(reading::read(&bytes, "parquet").is_err());
    }
    assert!(refused > length / 10, "{refused} of {length}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_tables_do_no_harm(changes in changes()) {
        survives(FLAT.as_bytes(), &changes, "csv");
        survives(FLAT.replace(',', "\t").as_bytes(), &changes, "tsv");
    }

    #[test]
    fn broken_long_tables_do_no_harm(changes in changes()) {
        survives(LONG.as_bytes(), &changes, "csv");
    }

    #[test]
    fn broken_json_lines_do_no_harm(changes in changes()) {
        survives(LINES.as_bytes(), &changes, "jsonl");
    }

    #[test]
    fn broken_parquet_does_no_harm(changes in changes()) {
        for bytes in parquet() {
            survives(bytes, &changes, "parquet");
        }
    }

    #[test]
    fn broken_json_rounds_do_no_harm(changes in changes()) {
        survives(ROUNDS.as_bytes(), &changes, "jsonl");
        for line in changed(ROUNDS.as_bytes(), &changes).split(|b| *b == b'\n') {
            let _ = json_rounds::parse(line).map_err(|problem| problem.to_string());
        }
    }

    #[test]
    fn broken_dsjson_does_no_harm(changes in changes()) {
        survives(DSJSON.as_bytes(), &changes, "dsjson");
        for line in changed(DSJSON.as_bytes(), &changes).split(|b| *b == b'\n') {
            if let Ok(Some(round)) = dsjson::parse(line) {
                prop_assert!(round.count >= 1.0 && round.chosen.is_none_or(|i| i < round.actions.len()));
            }
        }
    }

    #[test]
    fn broken_policies_do_no_harm(changes in changes(), digits in prop::collection::vec((any::<Index>(), 0..10u8), 1..4)) {
        for policy in policies() {
            load(&changed(policy, &changes));
            load(&with_digits(policy, &digits));
        }
    }

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for ending in ["csv", "tsv", "jsonl", "dsjson", "parquet"] {
            let _ = reading::read(&bytes, ending).map_err(|error| error.to_string());
        }
        let _ = (json_rounds::parse(&bytes), dsjson::parse(&bytes));
        load(&bytes);
    }
}
