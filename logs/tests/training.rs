//! A log in memory, and a training that goes on.

use std::path::Path;

use neuralcb::ope::{Estimator, Evaluation};
use neuralcb_logs::Training;
use neuralcb_logs::evaluate::{EvaluateOptions, evaluate, weigh};
use neuralcb_logs::log::{
    Block, Categories, Feature, Format, Kind, LogError, Missing, Offered, Place, PreparationConfig, ReadBlocks,
    ReadLog, Roles, Schema, Values, sha256_of_values,
};
use neuralcb_logs::policy::{Algorithm, Policy, PolicyError, Recipe};
use neuralcb_logs::train::train;

/// Rounds of a formula, cut into blocks of a size; it can be told to stop.
struct Made {
    schema: Schema,
    rounds: std::ops::Range<usize>,
    block: usize,
    stop: bool,
}

impl Made {
    fn new(rounds: std::ops::Range<usize>, block: usize) -> Made {
        let shared = ["x0", "x1"].map(|name| Feature { name: name.to_owned(), kind: Kind::Number }).to_vec();
        let (roles, missing) = (Roles::default(), Missing::Refuse);
        let schema = Schema { format: Format::Csv, shared, per_action: vec![], roles, missing, ignored: vec![] };
        Made { schema, rounds, block, stop: false }
    }

    fn block(&self, rounds: std::ops::Range<usize>) -> Block {
        let x = |of: fn(usize) -> f64| Values::Numbers(rounds.clone().map(of).collect());
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        Block {
            places: rounds.clone().map(|t| Place { file: 0, line: t as u64 + 1 }).collect(),
            shared: vec![x(|t| (t as f64 * 0.7).sin()), x(|t| (t as f64 * 1.3).cos())],
            offered: Offered::All,
            chosen: Some(Categories { codes: rounds.clone().map(|t| (t * 7 % 3) as u32).collect(), names }),
            rewards: Some(rounds.clone().map(|t| ((t * 7 % 3) as f64 - 1.0) * (t as f64 * 0.7).sin()).collect()),
            propensities: Some(vec![1.0 / 3.0; rounds.len()]),
            counts: None,
            extra: vec![],
        }
    }
}

impl ReadLog for Made {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self) -> ReadBlocks<'_> {
        let starts = self.rounds.clone().step_by(self.block);
        Box::new(starts.map(|start| Ok(self.block(start..(start + self.block).min(self.rounds.end)))))
    }

    fn actions(&self) -> Vec<String> {
        vec!["never chosen".to_owned()]
    }

    fn bad_rows(&self) -> u64 {
        0
    }

    fn parts(&self) -> Vec<String> {
        vec![]
    }

    fn digest(&self) -> Result<String, LogError> {
        sha256_of_values(self.read())
    }

    fn go_on(&self) -> Result<(), LogError> {
        if self.stop { Err(LogError::Interrupted) } else { Ok(()) }
    }
}

fn recipe(algorithm: Algorithm) -> Recipe {
    // without scaling the first rounds decide nothing that later ones would change
    let preparation = PreparationConfig { standardise: false, ..PreparationConfig::default() };
    Recipe { algorithm, preparation, standardise_rewards: Some(false), ..Recipe::default() }
}

fn start(log: &Made, algorithm: Algorithm) -> Training {
    Training::start(log, &recipe(algorithm), &mut |_| {}).unwrap()
}

const MODELS: [Algorithm; 6] = [
    Algorithm::Neuralcb,
    Algorithm::NeuralLinLcb,
    Algorithm::LinLcb,
    Algorithm::KernLcb,
    Algorithm::Choice,
    Algorithm::Clone,
];

#[test]
fn a_training_in_parts_ends_with_the_arrays_of_the_whole() {
    let whole = Made::new(0..300, 100);
    for algorithm in MODELS {
        let trained: Policy = train(&whole, &recipe(algorithm), None, &mut |_| {}).unwrap();
        let mut training = start(&Made::new(0..100, 64), algorithm);
        training.go_on(&Made::new(100..130, 7), &mut |_| {}).unwrap();
        // kept and taken up again
        let bytes = training.to_bytes().unwrap();
        let mut training = Training::from_bytes(&bytes, Path::new("here")).unwrap();
        training.go_on(&Made::new(130..300, 200), &mut |_| {}).unwrap();
        let policy = training.policy().unwrap();
        assert_eq!(policy.arrays(), trained.arrays(), "{}", algorithm.name());
        let (ours, theirs) = (&policy.description().training, &trained.description().training);
        assert_eq!((ours.rounds, ours.max_reward, ours.min_reward), (300, theirs.max_reward, theirs.min_reward));
        assert!((ours.mean_reward - theirs.mean_reward).abs() < 1e-12);
        assert!((ours.reward_deviation - theirs.reward_deviation).abs() < 1e-12);
        assert_eq!(ours.actions.iter().map(|a| a.count).collect::<Vec<_>>(), [100, 100, 100, 0]);
    }
}

#[test]
fn an_action_that_nobody_chose_is_known_if_the_log_says_so() {
    let policy = start(&Made::new(0..30, 30), Algorithm::LinLcb).policy().unwrap();
    assert_eq!(policy.preparation().actions(), ["a", "b", "c", "never chosen"]);
    assert_eq!(policy.description().training.actions[3].mean_reward, None);
}

#[test]
fn the_digest_knows_values_and_not_blocks() {
    let digest = |rounds, block| Made::new(rounds, block).digest().unwrap();
    assert_eq!(digest(0..100, 100), digest(0..100, 7));
    assert_ne!(digest(0..100, 100), digest(0..99, 100));
    assert_ne!(digest(0..100, 100), digest(1..101, 100));
    assert_eq!(digest(0..10, 10).len(), 64);
}

#[test]
fn a_log_that_is_to_stop_ends_every_work_on_it() {
    let stopped = Made { stop: true, ..Made::new(0..300, 100) };
    let interrupted = |e: PolicyError| assert!(matches!(e, PolicyError::Log(LogError::Interrupted)), "{e}");
    interrupted(train(&stopped, &Recipe::default(), None, &mut |_| {}).err().unwrap());
    interrupted(Training::start(&stopped, &Recipe::default(), &mut |_| {}).err().unwrap());
    interrupted(neuralcb_logs::tune::tune(&stopped, &Default::default(), &mut |_| {}).err().unwrap());
    let policy = start(&Made::new(0..30, 30), Algorithm::LinLcb).policy().unwrap();
    let found = evaluate(&policy, None, &stopped, &Default::default(), &mut |_| {});
    interrupted(found.err().unwrap());
}

#[test]
fn blocks_that_are_weighed_apart_give_the_report_of_the_log() {
    let policy = start(&Made::new(0..100, 100), Algorithm::LinLcb).policy().unwrap();
    let model = start(&Made::new(100..300, 100), Algorithm::KernLcb).policy().unwrap();
    let options = EvaluateOptions { folds: 0, ..EvaluateOptions::default() };
    for model in [None, Some(&model)] {
        let log = Made::new(300..700, 64);
        let whole = evaluate(&policy, model, &log, &options, &mut |_| {}).unwrap().report;
        let (mut merged, mut first) = (Evaluation::new(options.ope.clone(), 400).unwrap(), 0);
        for block in log.read() {
            let samples = weigh(&policy, model, &block.unwrap()).unwrap();
            let mut part = Evaluation::new(options.ope.clone(), first).unwrap();
            part.extend(&samples).unwrap();
            first += samples.len() as u64;
            merged.merge(&Evaluation::from_bytes(&part.to_bytes()).unwrap()).unwrap();
        }
        assert_eq!(merged.report(), whole);
        assert_eq!(whole.estimate(Estimator::Dr).is_some(), model.is_some());
    }
    let uniform = Recipe { algorithm: Algorithm::Uniform, ..Recipe::default() };
    let uniform = train(&Made::new(0..30, 30), &uniform, None, &mut |_| {}).unwrap();
    let refused = evaluate(&policy, Some(&uniform), &Made::new(0..30, 30), &options, &mut |_| {}).err().unwrap();
    assert!(refused.to_string().contains("has no reward model"), "{refused}");
}

#[test]
fn only_a_reward_model_can_go_on() {
    let refused = Training::start(&Made::new(0..30, 30), &recipe_of_constant(), &mut |_| {}).err().unwrap();
    assert!(refused.to_string().contains("train it anew on all rounds"), "{refused}");
}

fn recipe_of_constant() -> Recipe {
    Recipe { algorithm: Algorithm::Constant, ..Recipe::default() }
}
