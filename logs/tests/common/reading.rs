//! One way into every reader, for tests with hostile files and for the fuzz targets.

use std::io::Write;
use std::path::Path;

use neuralcb_logs::diagnose::diagnose;
use neuralcb_logs::log::{
    BLOCK, Block, Categories, Log, LogError, LogOptions, Offered, Preparation, PreparationConfig, Values, Want,
};

/// Reads bytes as a file of this ending, all the way to prepared rounds and a diagnosis; gives the number of rounds.
/// Panics where a block breaks its contract.
#[allow(dead_code)] // not every test that reads files makes them of bytes
pub fn read(bytes: &[u8], ending: &str) -> Result<usize, LogError> {
    let suffix = format!(".{ending}");
    let mut file = tempfile::Builder::new().suffix(&suffix).tempfile().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file can be written");
    read_path(file.path(), &LogOptions { max_bad_rows: 3, ..LogOptions::default() })
}

/// As [`read`], of a file.
pub fn read_path(path: &Path, options: &LogOptions) -> Result<usize, LogError> {
    let log = Log::open(&[path.to_path_buf()], options, Want::OUTCOMES)?;
    let schema = log.schema();
    let names = |features: &[neuralcb_logs::log::Feature]| -> Vec<String> {
        features.iter().map(|feature| feature.name.clone()).collect()
    };
    let (shared, per_action) = (names(&schema.shared), names(&schema.per_action));
    let mut rounds = 0;
    for block in log.blocks() {
        let block = block?;
        check(&block, shared.len(), per_action.len());
        rounds += block.n_rounds();
    }
    let diagnosis = diagnose(log.blocks(), &shared, &per_action, &[])?;
    assert_eq!(diagnosis.rows, rounds as u64);
    assert!(!diagnosis.to_string().is_empty());
    let (preparation, _) = Preparation::fit(&log, &PreparationConfig::default())?;
    for block in log.blocks() {
        let block = block?;
        assert_eq!(preparation.logged(&block)?.n_rounds(), block.n_rounds());
    }
    Ok(rounds)
}

/// What readers promise of a block.
fn check(block: &Block, shared: usize, per_action: usize) {
    let n = block.n_rounds();
    assert!(n <= BLOCK, "{n} rounds in a block");
    assert_eq!(block.shared.len(), shared);
    block.shared.iter().for_each(|values| check_values(values, n));
    let chosen = block.chosen.as_ref().expect("actions were asked for");
    check_words(chosen, n);
    let rewards = block.rewards.as_ref().expect("rewards were asked for");
    assert!(rewards.len() == n && rewards.iter().all(|r| r.is_finite()));
    if let Some(p) = &block.propensities {
        assert!(p.len() == n && p.iter().all(|p| *p > 0.0 && *p <= 1.0));
    }
    if let Some(counts) = &block.counts {
        assert!(counts.len() == n && counts.iter().all(|c| *c >= 1.0 && c.is_finite()));
    }
    let Offered::Listed { offsets, actions, features } = &block.offered else { return };
    assert_eq!((offsets.len(), offsets.first(), features.len()), (n + 1, Some(&0), per_action));
    assert_eq!(offsets.last(), Some(&actions.codes.len()));
    check_words(actions, actions.codes.len());
    features.iter().for_each(|values| check_values(values, actions.codes.len()));
    for t in 0..n {
        let mut names: Vec<&str> = (offsets[t]..offsets[t + 1]).filter_map(|i| actions.get(i)).collect();
        assert!(names.contains(&chosen.get(t).expect("an action was chosen")), "round {t} chose what it did not offer");
        let offered = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), offered, "round {t} offers an action twice");
    }
}

fn check_values(values: &Values, n: usize) {
    match values {
        Values::Numbers(numbers) => assert!(numbers.len() == n && numbers.iter().all(|x| !x.is_infinite())),
        Values::Categories(words) => check_words(words, n),
    }
}

fn check_words(words: &Categories, n: usize) {
    assert_eq!(words.codes.len(), n);
    let known = |code: &u32| *code == Categories::ABSENT || (*code as usize) < words.names.len();
    assert!(words.codes.iter().all(known));
}
