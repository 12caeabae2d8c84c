//! From a log to a policy file and back: the same decisions to the bit, and files that are damaged, hostile or of the
//! future.

#[path = "common/version_1.rs"]
mod version_1;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neuralcb::net::{NetConfig, Optimiser, Schedule};
use neuralcb::theory::{Ntk, NtkConfig, Points, Rule, Theorem};
use neuralcb::{Contexts, LoggedData, ModelConfig};
use neuralcb_logs::log::{Log, LogOptions, Want};
use neuralcb_logs::policy::{Algorithm, Method, Mode, Policy, PolicyError, Preset, Recipe};
use neuralcb_logs::score::{ScoreOptions, score};
use neuralcb_logs::train::{Checkpoint, train};
use version_1::version_1;

/// A log of three named actions; red earns for small x, blue for large x, green never.
fn log_file(folder: &Path, rounds: usize) -> PathBuf {
    let mut text = "action,reward,propensity,x,colour\n".to_owned();
    for t in 0..rounds {
        let x = (t * 37 % 101) as f64 / 101.0;
        let action = ["red", "green", "blue"][t * 7 % 3];
        let reward = match action {
            "red" => 1.0 - x,
            "blue" => x,
            _ => 0.0,
        };
        writeln!(text, "{action},{reward},0.3333333333,{x},{}", ["warm", "cold"][t % 2]).unwrap();
    }
    let path = folder.join("log.csv");
    fs::write(&path, text).unwrap();
    path
}

fn open(path: &Path) -> Log {
    Log::open(&[path.to_path_buf()], &LogOptions::default(), Want::OUTCOMES).unwrap()
}

fn recipe(algorithm: Algorithm) -> Recipe {
    Recipe { algorithm, ..Recipe::default() }
}

fn trained(log: &Log, recipe: &Recipe) -> Policy {
    train(log, recipe, None, &mut |_| {}).unwrap()
}

fn contexts(policy: &Policy, log: &Log) -> Contexts {
    let blocks: Vec<LoggedData> = log.blocks().map(|b| policy.preparation().logged(&b.unwrap()).unwrap()).collect();
    LoggedData::concat(blocks).unwrap().contexts().clone()
}

#[test]
fn every_algorithm_decides_the_same_after_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 400));
    for &algorithm in Algorithm::ALL {
        for preset in [Preset::Practical, Preset::Paper, Preset::ReleasedCode] {
            let policy = trained(&log, &Recipe { preset, ..recipe(algorithm) });
            let path = folder.path().join("policy.safetensors");
            policy.save(&path).unwrap();
            let again = Policy::load(&path).unwrap();
            assert_eq!(again.description(), policy.description());
            assert_eq!(again.to_bytes(), fs::read(&path).unwrap(), "the same bytes for the same policy");
            let x = contexts(&policy, &log);
            let (a, b) = (policy.decide(&x).unwrap(), again.decide(&x).unwrap());
            assert_eq!(a.choices, b.choices, "{algorithm:?}");
            assert_eq!(a.estimates, b.estimates, "{algorithm:?}");
        }
    }
}

#[test]
fn a_policy_learns_which_action_earns_where() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 3000));
    for algorithm in [Algorithm::Neuralcb, Algorithm::LinLcb, Algorithm::KernLcb, Algorithm::NeuralLinLcb] {
        let policy = trained(&log, &recipe(algorithm));
        let out = folder.path().join("decisions.csv");
        score(&policy, &log, &out, ScoreOptions { explain: true }, &mut || {}).unwrap();
        let mut right = 0;
        let mut rows = csv::Reader::from_path(&out).unwrap();
        assert_eq!(rows.headers().unwrap().len(), 2 + 3 * 3);
        for (t, row) in rows.records().enumerate() {
            let x = (t * 37 % 101) as f64 / 101.0;
            right += usize::from(&row.unwrap()[1] == if x < 0.5 { "red" } else { "blue" });
        }
        assert!(right > 2700, "{algorithm:?}: {right} of 3000");
    }
}

#[test]
fn beta_is_turned_without_retraining_and_only_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 200));
    let policy = trained(&log, &recipe(Algorithm::LinLcb));
    assert_eq!(policy.beta(), Some(1.0));
    let greedy = policy.clone().with_beta(0.0).unwrap();
    assert_eq!(greedy.beta(), Some(0.0));
    assert_eq!(greedy.arrays(), policy.arrays());
    let refused = policy.with_beta(-1.0).err().unwrap().to_string();
    assert_eq!(refused, "`beta` must be a number from 0 to 1e30, got -1");
    let clone = trained(&log, &recipe(Algorithm::Clone)).with_beta(1.0).err().unwrap().to_string();
    assert_eq!(clone, "a policy of kind `clone` has no beta: only reward models are pessimistic");
}

#[test]
fn a_killed_training_goes_on_from_its_checkpoint_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 20_000)); // three blocks
    let recipe = Recipe { preset: Preset::Paper, ..recipe(Algorithm::Neuralcb) };
    let undisturbed = trained(&log, &recipe).to_bytes();
    let checkpoint = Checkpoint { path: folder.path().join("training"), every: Duration::ZERO };
    // the progress callback ends the training as a kill would: in the middle of the second block's reading
    let mut blocks = 0;
    let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        train(&log, &recipe, Some(&checkpoint), &mut |step| {
            blocks += usize::from(step == neuralcb_logs::train::Step::Training);
            assert!(blocks < 3, "killed");
        })
    }));
    assert!(killed.is_err() && checkpoint.path.exists());
    let other = Recipe { seed: 9, ..recipe.clone() };
    let refused = train(&log, &other, Some(&checkpoint), &mut |_| {}).err().unwrap().to_string();
    assert!(refused.contains("belongs to another training (the seed differs)"), "{refused}");
    let resumed = train(&log, &recipe, Some(&checkpoint), &mut |_| {}).unwrap().to_bytes();
    assert!(resumed == undisturbed);
    assert!(checkpoint.path.exists(), "the policy is not saved yet");
    checkpoint.remove().unwrap();
    assert!(!checkpoint.path.exists());
}

#[test]
fn a_flipped_bit_anywhere_in_a_policy_or_a_checkpoint_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 9_000)); // two blocks
    let recipe = recipe(Algorithm::LinLcb);
    let checkpoint = Checkpoint { path: folder.path().join("training"), every: Duration::ZERO };
    let policy = train(&log, &recipe, Some(&checkpoint), &mut |_| {}).unwrap().to_bytes();
    let kept = fs::read(&checkpoint.path).unwrap();
    for i in 0..300 {
        let flipped = |bytes: &[u8]| {
            let (at, bit) = (i * 7919 % bytes.len(), i % 8);
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1 << bit;
            bytes
        };
        assert!(Policy::from_bytes(&flipped(&policy), Path::new("p")).is_err(), "policy, change {i}");
        fs::write(&checkpoint.path, flipped(&kept)).unwrap();
        let refused = train(&log, &recipe, Some(&checkpoint), &mut |_| {}).err().unwrap().to_string();
        assert!(refused.contains("training"), "checkpoint, change {i}: {refused}");
    }
    let mut last = kept.clone();
    *last.last_mut().unwrap() ^= 1;
    fs::write(&checkpoint.path, last).unwrap();
    let refused = train(&log, &recipe, Some(&checkpoint), &mut |_| {}).err().unwrap().to_string();
    assert!(refused.contains("is not a whole checkpoint file: its bytes are not those that were written"), "{refused}");
    fs::write(&checkpoint.path, kept).unwrap();
    assert!(train(&log, &recipe, Some(&checkpoint), &mut |_| {}).unwrap().to_bytes() == policy);
}

#[test]
fn a_file_of_version_1_which_had_no_sum_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 200));
    let policy = trained(&log, &recipe(Algorithm::Neuralcb)).to_bytes();
    let old = version_1(&policy);
    assert!(Policy::from_bytes(&old, Path::new("p")).unwrap().to_bytes() == policy);
}

#[test]
fn damaged_hostile_and_future_files_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 200));
    let bytes = version_1(&trained(&log, &recipe(Algorithm::Neuralcb)).to_bytes());
    let read = |bytes: &[u8]| Policy::from_bytes(bytes, Path::new("p")).err().map(|e| e.to_string());
    assert_eq!(read(&bytes), None);
    for cut in [0, 7, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        let message = read(&bytes[..cut]).expect("refused");
        assert!(message.starts_with("`p` is not a whole policy file: "), "{cut}: {message}");
    }
    // a header that claims to be longer than any file
    let mut long = bytes.clone();
    long[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(read(&long).unwrap().starts_with("`p` is not a whole policy file"));
    let change = |from: &str, to: &str| {
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let text = std::str::from_utf8(&bytes[8..8 + header]).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        let text = text.replacen(from, to, 1);
        let padded = format!("{text}{}", " ".repeat(text.len().next_multiple_of(8) - text.len()));
        let mut out = (padded.len() as u64).to_le_bytes().to_vec();
        out.extend(padded.as_bytes());
        out.extend(&bytes[8 + header..]);
        read(&out).expect("refused")
    };
    assert_eq!(
        change(r#"\"version\":1"#, r#"\"version\":7"#),
        "`p` has policy format 7, and this program reads up to 2: use a newer neuralcb"
    );
    // settings that would take more memory than there is
    for (from, to) in [
        (r#"\"width\":128"#, r#"\"width\":128000000000"#),
        (r#"\"depth\":3"#, r#"\"depth\":3000000000000"#),
        (r#"\"width\":128"#, r#"\"width\":0"#),
    ] {
        let message = change(from, to);
        assert!(message.starts_with("`p` is not a whole policy file: "), "{message}");
    }
    assert!(change(r#"\"kind\":\"model\""#, r#"\"kind\":\"oracle\""#).contains("oracle"));
    assert!(change("weights.w1", "weights.w9").contains("weights."));
    let nan = {
        let mut nan = bytes.clone();
        let at = nan.len() - 4;
        nan[at..].copy_from_slice(&f32::NAN.to_le_bytes());
        read(&nan).unwrap()
    };
    assert!(nan.contains("must be finite numbers"), "{nan}");
}

#[test]
fn settings_that_an_algorithm_has_no_use_for_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 200));
    let refusal = |recipe: Recipe| match train(&log, &recipe, None, &mut |_| {}) {
        Err(error @ (PolicyError::Recipe { .. } | PolicyError::Library(_))) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("must be refused"),
    };
    assert_eq!(
        refusal(Recipe { lr: Some(0.1), ..recipe(Algorithm::LinLcb) }),
        "`lr` does not apply to lin-lcb: leave it out, or choose another algorithm"
    );
    assert_eq!(
        refusal(Recipe { beta: Some(Rule::Fixed(0.1)), ..recipe(Algorithm::NeuralGreedy) }),
        "`beta` does not apply to neural-greedy: leave it out, or choose another algorithm"
    );
    assert_eq!(
        refusal(Recipe { beta: Some(Rule::Theory), ..recipe(Algorithm::LinLcb) }),
        "`beta = theory` does not apply to lin-lcb: leave it out, or choose another algorithm"
    );
    assert_eq!(
        refusal(Recipe { step: Some(Rule::Theory), lr: Some(0.1), ..recipe(Algorithm::Neuralcb) }),
        "`lr` does not apply to the SGD that `step` asks for: give one of `lr` (Adam) and `step` (SGD)"
    );
    assert!(
        refusal(Recipe { action: Some("mauve".into()), ..recipe(Algorithm::Constant) }).contains("no action `mauve`")
    );
    assert_eq!(
        refusal(Recipe { lr: Some(-1.0), mode: Some(Mode::S), ..recipe(Algorithm::Neuralcb) }),
        "`learning rate` must be a finite number > 0, got -1"
    );
}

/// β and η against the theorem's formulas, with H made of the same contexts here.
#[test]
fn pessimism_and_steps_can_be_those_of_the_theorem() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&log_file(folder.path(), 300));
    let net = NetConfig { layer_norm: false, duplicate_input: true, ..NetConfig::default() };
    let wanted = Recipe {
        beta: Some(Rule::Theory),
        step: Some(Rule::Theory),
        net: Some(net.clone()),
        ..recipe(Algorithm::Neuralcb)
    };
    let policy = trained(&log, &wanted);

    let points = Points::all(&contexts(&policy, &log)).unwrap().normalised().distinct();
    let h = Ntk::new(&points, &NtkConfig { depth: net.depth, ..NtkConfig::default() }).unwrap();
    let theorem = Theorem {
        n: 300,
        n_contexts: 900,
        depth: net.depth,
        width: net.width,
        lambda: wanted.constants.least_lambda(net.depth),
        lambda_0: h.lambda_0().unwrap(),
        constants: wanted.constants.clone(),
    };
    assert_eq!(policy.beta(), Some(theorem.beta(300)));
    let Method::Model { config: ModelConfig::Neural(config), .. } = &policy.description().method else { panic!() };
    assert_eq!(config.optimiser, theorem.optimiser());
    assert_eq!(config.lambda, theorem.lambda);
    let path = folder.path().join("policy.safetensors");
    policy.save(&path).unwrap();
    assert_eq!(Policy::load(&path).unwrap().description(), policy.description());

    let fixed = trained(&log, &Recipe { step: Some(Rule::Fixed(1e-3)), ..recipe(Algorithm::NeuralGreedy) });
    let Method::Model { config: ModelConfig::Neural(config), .. } = &fixed.description().method else { panic!() };
    assert_eq!(config.optimiser, Optimiser::Sgd { schedule: Schedule::Constant(1e-3) });
}

#[test]
fn a_settings_file_is_read_and_its_typing_errors_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.toml");
    fs::write(&path, "algorithm = \"lin-lcb\"\nbeta = 0.5\n[preparation]\nintercept = false\n").unwrap();
    let recipe = Recipe::from_toml(&path).unwrap();
    assert_eq!((recipe.algorithm, recipe.beta), (Algorithm::LinLcb, Some(Rule::Fixed(0.5))));
    assert!(!recipe.preparation.intercept && recipe.preparation.unit_norm.is_none());
    fs::write(&path, "betta = 0.5\n").unwrap();
    let message = Recipe::from_toml(&path).unwrap_err().to_string();
    assert!(message.contains("recipe.toml") && message.contains("betta"), "{message}");
}
