//! What is fuzzed, by name: everything that reads bytes from outside. Used by the fuzzer and by the test `replay` of
//! `neuralcb-server`, which feeds the seeds and whatever once did harm.
//!
//! A target panics where a promise is broken; an error is as good as success.

#[path = "../logs/tests/common/reading.rs"]
mod reading;
#[path = "../logs/tests/common/version_1.rs"]
mod version_1;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neuralcb::{Contexts, Eligible, Encoding, Layout, LoggedData};
use neuralcb_logs::log::{Log, LogOptions, Want, dsjson, json_rounds, write_parquet};
use neuralcb_logs::policy::{Algorithm, Policy, Recipe};
use neuralcb_logs::train::{Checkpoint, train};
use neuralcb_server::decide::RankRequest;
use neuralcb_server::join::{Aggregate, JoinConfig, join};
use neuralcb_server::journal::{MAGIC, frame};

/// A name, and what reads the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("body", body),
    ("checkpoint", checkpoint),
    ("csv", |bytes| read(bytes, "csv")),
    ("dsjson", |bytes| {
        lines(bytes).for_each(|line| words(dsjson::parse(line)));
        read(bytes, "dsjson");
    }),
    ("json_rounds", |bytes| {
        lines(bytes).for_each(|line| words(json_rounds::parse(line)));
        read(bytes, "jsonl");
    }),
    ("jsonl", |bytes| read(bytes, "jsonl")),
    // The header is given, so that the rounds are fuzzed.
    ("long_table", |bytes| read(&[b"round,action,chosen,reward,propensity,x0,x1\n", bytes].concat(), "csv")),
    ("parquet", |bytes| read(bytes, "parquet")),
    ("policy", policy),
    ("schema", schema),
    ("segment", segment),
    ("settings", settings),
    ("tsv", |bytes| read(bytes, "tsv")),
];

/// Seeds that are not texts, and so are made, not stored.
pub fn made_seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "parquet" => [(Encoding::Disjoint, 1), (Encoding::PerAction, 2)].map(|(e, rows)| parquet(e, rows)).to_vec(),
        "policy" => [Algorithm::LinLcb, Algorithm::KernLcb, Algorithm::TabLcb, Algorithm::Constant]
            .map(|algorithm| version_1::version_1(&trained(algorithm, None).to_bytes()))
            .to_vec(),
        "checkpoint" => {
            let folder = tempfile::tempdir().expect("a folder");
            let kept = Checkpoint { path: folder.path().join("training"), every: Duration::ZERO };
            trained(Algorithm::LinLcb, Some(&kept));
            vec![version_1::version_1(&fs::read(&kept.path).expect("a checkpoint"))]
        }
        "segment" => vec![framed(RECORDS.as_bytes())],
        _ => Vec::new(),
    }
}

const LOG: &str = "action,reward,propensity,x,word\na,1,0.5,1,u\nb,0,0.5,2,v\na,0.5,0.5,3,u\nc,1,0.25,4,w\n";

const RECORDS: &str = concat!(
    r#"{"opened":{"version":1,"server":"s","number":1,"at":1}}"#,
    "\n",
    r#"{"decision":{"context":{"x":1},"actions":[{"id":"a"},{"id":"b","features":{"p":2}}],"event":"1","at":2,"#,
    r#""chosen":1,"probabilities":[0.5,0.5],"model":"m","policy":"0"}}"#,
    "\n",
    r#"{"reward":{"event":"1","at":3,"value":1}}"#,
    "\n",
    r#"{"activation":{"event":"1","at":3}}"#,
);

fn read(bytes: &[u8], ending: &str) {
    words(reading::read(bytes, ending));
}

/// Every refusal has words.
fn words<T, E: ToString>(result: Result<T, E>) {
    if let Err(error) = result {
        assert!(!error.to_string().is_empty());
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}

fn parquet(encoding: Encoding, rows: usize) -> Vec<u8> {
    let layout = Layout { dim: 3, n_actions: 2, encoding };
    let x = (0..60 * rows).map(|i| (i * 7 % 11) as f32).collect();
    let contexts = Contexts::new(layout, x, Eligible::All).expect("contexts");
    let actions = (0..20).map(|t| t % 2).collect();
    let log = LoggedData::new(contexts, actions, vec![0.5; 20], Some(vec![0.5; 20])).expect("a log");
    let mut bytes = Vec::new();
    write_parquet(&log, &mut bytes).expect("memory");
    bytes
}

/// A file with these bytes, in a folder of its own.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file");
    (folder, path)
}

fn trained(algorithm: Algorithm, checkpoint: Option<&Checkpoint>) -> Policy {
    let (_folder, path) = file("log.csv", LOG.as_bytes());
    let log = Log::open(&[path], &LogOptions::default(), Want::OUTCOMES).expect("a log");
    let recipe = Recipe { algorithm, ..Recipe::default() };
    train(&log, &recipe, checkpoint, &mut |_| {}).expect("a policy")
}

/// What is read as a policy can be written and read again.
fn policy(bytes: &[u8]) {
    match Policy::from_bytes(bytes, Path::new("fuzzed")) {
        Ok(policy) => assert!(Policy::from_bytes(&policy.to_bytes(), Path::new("again")).is_ok()),
        Err(error) => assert!(error.to_string().contains("fuzzed"), "{error}"),
    }
}

/// Training that goes on from these bytes.
fn checkpoint(bytes: &[u8]) {
    let (folder, path) = file("training", bytes);
    fs::write(folder.path().join("log.csv"), LOG).expect("a file");
    let log = Log::open(&[folder.path().join("log.csv")], &LogOptions::default(), Want::OUTCOMES).expect("a log");
    let recipe = Recipe { algorithm: Algorithm::LinLcb, ..Recipe::default() };
    let kept = Checkpoint { path, every: Duration::from_secs(60) };
    words(train(&log, &recipe, Some(&kept), &mut |_| {}));
}

/// The body of a request to the server.
fn body(bytes: &[u8]) {
    words(RankRequest::parse_batch(bytes, 100));
    if let Ok(request) = RankRequest::parse(bytes) {
        let places: Vec<usize> = (0..request.actions.len()).collect();
        words(request.round(&places));
    }
}

/// Lines as records of a segment.
fn framed(text: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    lines(text).filter(|line| !line.is_empty()).for_each(|line| frame(line, &mut bytes));
    bytes
}

/// A segment of the decision log, as it is and with its lines as records, joined; what comes out can be read.
fn segment(bytes: &[u8]) {
    for bytes in [bytes, &framed(bytes)] {
        let (folder, _) = file("segment-00000001.ncb", bytes);
        let out = folder.path().join("out.jsonl");
        let config = JoinConfig {
            wait: Duration::from_secs(60),
            default_reward: 0.0,
            aggregate: Aggregate::First,
            until: u64::MAX / 4,
            memory: 1 << 20,
        };
        match join(&[folder.path().to_path_buf()], &out, &config) {
            Ok(joined) if joined.rows > 0 => words(reading::read_path(&out, &LogOptions::default())),
            result => words(result),
        }
    }
}

/// A file of log options, used on a log.
fn schema(bytes: &[u8]) {
    let (folder, path) = file("schema.toml", bytes);
    let log = folder.path().join("log.csv");
    fs::write(&log, LOG).expect("a file");
    match LogOptions::from_toml(&path) {
        Ok(options) => words(reading::read_path(&log, &options)),
        Err(error) => words::<(), _>(Err(error)),
    }
}

/// A file of training settings; those of learners that are trained in no time are used.
fn settings(bytes: &[u8]) {
    let (folder, path) = file("settings.toml", bytes);
    match Recipe::from_toml(&path) {
        Ok(recipe) if matches!(recipe.algorithm, Algorithm::LinLcb | Algorithm::TabLcb | Algorithm::Constant) => {
            let log = folder.path().join("log.csv");
            fs::write(&log, LOG).expect("a file");
            let log = Log::open(&[log], &LogOptions::default(), Want::OUTCOMES).expect("a log");
            if let Ok(policy) = train(&log, &recipe, None, &mut |_| {}) {
                assert!(Policy::from_bytes(&policy.to_bytes(), Path::new("again")).is_ok());
            }
        }
        result => words(result),
    }
}
