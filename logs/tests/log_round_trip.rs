//! A log that was written reads back to the same rounds.

use std::fs;
use std::path::{Path, PathBuf};

use neuralcb::{Contexts, Eligible, Encoding, Layout, LoggedData, Standardiser};
use neuralcb_logs::log::{BLOCK, Log, LogOptions, Preparation, PreparationConfig, Want, write_parquet};
use neuralcb_logs::write_log;

/// Numbers that a generator of its own makes, so that the test needs no other crate: 24 bits, exact in f32.
fn numbers(n: usize) -> Vec<f32> {
    let mut state = 5u64;
    let draw = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.25
    };
    (0..n).map(draw).collect()
}

fn shared(n: usize) -> LoggedData {
    let layout = Layout { dim: 3, n_actions: 4, encoding: Encoding::Disjoint };
    let contexts = Contexts::new(layout, numbers(3 * n), Eligible::All).unwrap();
    logged(contexts)
}

fn per_action(n: usize) -> LoggedData {
    let layout = Layout { dim: 2, n_actions: 3, encoding: Encoding::PerAction };
    // Rounds offer {0, 1, 2}, {1, 2}, {0}, {0, 1, 2}, …
    let sets: [&[u32]; 3] = [&[0, 1, 2], &[1, 2], &[0]];
    let (mut offsets, mut actions) = (vec![0], Vec::new());
    for t in 0..n {
        actions.extend(sets[t % 3]);
        offsets.push(actions.len());
    }
    let x = numbers(2 * actions.len());
    logged(Contexts::new(layout, x, Eligible::Some { offsets, actions }).unwrap())
}

fn logged(contexts: Contexts) -> LoggedData {
    let n = contexts.n_rounds();
    let actions = (0..n).map(|t| contexts.action(t, t % contexts.pairs(t).len()) as u32).collect();
    let rewards = (0..n).map(|t| (t as f64).sin()).collect();
    let propensities = (0..n).map(|t| 1.0 / (1.0 + (t % 7) as f64)).collect();
    LoggedData::new(contexts, actions, rewards, Some(propensities)).unwrap()
}

fn written(log: &LoggedData, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let mut bytes = Vec::new();
    match name.ends_with("parquet") {
        true => write_parquet(log, &mut bytes).unwrap(),
        false => write_log(log, &mut bytes).unwrap(),
    }
    fs::write(&path, bytes).unwrap();
    path
}

fn read_back(path: &Path) -> Vec<LoggedData> {
    let log = Log::open(&[path.to_path_buf()], &LogOptions::default(), Want::OUTCOMES).unwrap();
    let (preparation, summary) = Preparation::fit(&log, &PreparationConfig::raw()).unwrap();
    assert_eq!(summary.skipped, 0);
    log.blocks().map(|block| preparation.logged(&block.unwrap()).unwrap()).collect()
}

fn assert_same(log: &LoggedData, parts: &[LoggedData]) {
    let n: usize = parts.iter().map(LoggedData::n_rounds).sum();
    assert_eq!(n, log.n_rounds());
    let mut t = 0;
    for part in parts {
        assert_eq!(part.contexts().layout(), log.contexts().layout());
        for s in 0..part.n_rounds() {
            assert_eq!(part.round(s), log.round(t), "round {t}");
            let (a, b) = (part.contexts().pairs(s), log.contexts().pairs(t));
            assert_eq!(a.len(), b.len(), "round {t}");
            for i in 0..a.len() {
                assert_eq!(part.contexts().pair(s, i), log.contexts().pair(t, i), "round {t}");
            }
            t += 1;
        }
    }
}

#[test]
fn a_simulated_log_of_shared_contexts_reads_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let log = shared(20_000);
    for name in ["log.csv", "log.parquet"] {
        let parts = read_back(&written(&log, folder.path(), name));
        assert_eq!(parts.len(), 3);
        assert_same(&log, &parts);
    }
}

#[test]
fn a_simulated_log_of_contexts_per_action_reads_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let log = per_action(40_000);
    for name in ["log.csv", "log.parquet"] {
        let parts = read_back(&written(&log, folder.path(), name));
        assert!(parts.iter().all(|part| part.n_rounds() <= BLOCK));
        assert_same(&log, &parts);
    }
}

#[test]
fn the_standardiser_is_that_of_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let log = shared(20_000);
    // Parquet keeps single precision; text is read as the decimal that it is, which differs in the ninth digit.
    let path = written(&log, folder.path(), "log.parquet");
    let file = Log::open(&[path], &LogOptions::default(), Want::OUTCOMES).unwrap();
    let config = PreparationConfig { intercept: false, unit_norm: Some(false), ..PreparationConfig::default() };
    let (preparation, _) = Preparation::fit(&file, &config).unwrap();
    let mut expected = log.contexts().rows(0..20_000).to_vec();
    let library = Standardiser::fit(&expected, 3).unwrap();
    for (j, (mean, scale)) in preparation.standardiser().into_iter().enumerate() {
        assert!((mean - library.mean()[j]).abs() < 1e-12, "mean {j}");
        assert!((scale - library.scale()[j]).abs() < 1e-12, "scale {j}");
    }
    library.apply(&mut expected).unwrap();
    let mut t = 0;
    for block in file.blocks() {
        let contexts = preparation.contexts(&block.unwrap()).unwrap();
        let rows = contexts.rows(0..contexts.n_rounds());
        for (got, want) in rows.iter().zip(&expected[t..]) {
            assert!((got - want).abs() <= 4.0 * f32::EPSILON, "{got} {want}");
        }
        t += rows.len();
    }
    assert_eq!(t, expected.len());
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&per_action(20_000), folder.path(), "log.parquet");
    let prepared = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let log = Log::open(std::slice::from_ref(&path), &LogOptions::default(), Want::OUTCOMES).unwrap();
            let (preparation, summary) = Preparation::fit(&log, &PreparationConfig::default()).unwrap();
            let rows: Vec<Vec<f32>> = log
                .blocks()
                .map(|block| {
                    let contexts = preparation.contexts(&block.unwrap()).unwrap();
                    contexts.rows(0..contexts.n_rounds()).to_vec()
                })
                .collect();
            (serde_json::to_string(&preparation).unwrap(), summary, rows)
        })
    };
    assert_eq!(prepared(1), prepared(3));
}
