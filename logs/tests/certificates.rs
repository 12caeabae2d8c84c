//! What `tune` promises of the file that it writes, and when one file may replace another.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use neuralcb::ope::Claim;
use neuralcb_logs::gate::{GateOptions, gate};
use neuralcb_logs::log::{Log, LogError, LogOptions, ReadBlocks, ReadLog, Schema, Want};
use neuralcb_logs::policy::{Algorithm, Policy, PolicyError, Recipe};
use neuralcb_logs::train::train;
use neuralcb_logs::tune::{Certifies, HoldOut, IfNotBetter, Scratch, TuneOptions, Tuned, Tuning, tune, tune_in};
use rand::RngExt;

/// A log of two actions drawn evenly: action b earns 1 with probability `good` where x > 0 and `bad` elsewhere, a the
/// other way round. `reward` may change what a round earned.
fn log(folder: &Path, seed: u64, n: usize, [good, bad]: [f64; 2], reward: impl Fn(usize, f64) -> f64) -> Log {
    let path = folder.join(format!("{seed}-{n}-{good}.csv"));
    let mut rng = neuralcb::Seed::new(seed).stream("log");
    let mut file = std::fs::File::create(&path).unwrap();
    writeln!(file, "action,reward,propensity,x").unwrap();
    for t in 0..n {
        let (x, b) = (2.0 * rng.random::<f64>() - 1.0, rng.random_bool(0.5));
        let mean = if (x > 0.0) == b { good } else { bad };
        let earned = reward(t, f64::from(u8::from(rng.random_bool(mean))));
        writeln!(file, "{},{earned},0.5,{x}", if b { "b" } else { "a" }).unwrap();
    }
    drop(file);
    Log::open(&[path], &LogOptions::default(), Want::OUTCOMES).unwrap()
}

/// Few candidates, which learn quickly.
fn options() -> TuneOptions {
    TuneOptions {
        algorithms: Some(vec![Algorithm::Constant, Algorithm::LinLcb, Algorithm::TabLcb]),
        betas: vec![0.0, 1.0],
        reward_range: Some([0.0, 1.0]),
        ..TuneOptions::default()
    }
}

fn tuned(log: &Log, options: &TuneOptions) -> Tuned {
    tune(log, options, &mut |_| {}).unwrap()
}

#[test]
fn a_better_policy_is_written_with_what_is_certain_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let found = tuned(&log(folder.path(), 1, 4000, [0.9, 0.2], |_, r| r), &options());
    assert!(found.beats_the_log(), "{}", found.words);
    assert_eq!(found.parts, [2400, 600, 1000]);
    let path = folder.path().join("p.safetensors");
    found.policy.as_ref().unwrap().save(&path).unwrap();
    let policy = Policy::load(&path).unwrap();
    let certified = policy.description().certified.as_ref().unwrap();
    assert_eq!(&certified.certificate, found.certificate());
    assert_eq!(certified.certifies, Certifies::ThisFile);
    assert_eq!((&certified.settings, certified.candidates), (&options(), found.tried.len()));
    assert_eq!(certified.log, policy.description().log);
    assert_eq!(policy.description().training.rounds, 3000); // what it learned from is not what it is judged by
    let certificate = &certified.certificate;
    // the best policy earns 0.9, the log 0.55
    assert!(certificate.value.lower > 0.6 && certificate.value.lower < 0.9, "{certificate:?}");
    assert!(certificate.over_log.lower > 0.1 && certificate.over_log.lower < 0.35, "{certificate:?}");
    assert!(certificate.assumptions.exact());
    assert_eq!(found.words, certificate.words(policy.description().method.name()));
    // another β is another policy
    if let Some(beta) = policy.beta() {
        assert!(policy.clone().with_beta(beta).unwrap().description().certified.is_some());
        assert!(policy.with_beta(beta + 0.5).unwrap().description().certified.is_none());
    }
}

#[test]
fn rewards_of_the_third_part_change_the_certificate_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, hold_out) in [(2, HoldOut::Time), (3, HoldOut::Random)] {
        let options = TuneOptions { hold_out, if_not_better: IfNotBetter::Keep, ..options() };
        let own = tuned(&log(folder.path(), seed, 1000, [0.8, 0.3], |_, r| r), &options);
        if hold_out == HoldOut::Random {
            // a short log: each of the first 750 rounds is chosen by once
            assert_eq!((own.parts, own.folds), ([500, 750, 250], 3));
            continue;
        }
        let changed = log(folder.path(), seed, 1000, [0.8, 0.3], |t, r| if t < 750 { r } else { 1.0 - r });
        let changed = tuned(&changed, &options);
        assert_eq!(own.tried, changed.tried);
        let [a, b] = [&own, &changed].map(|found| found.policy.as_ref().unwrap());
        assert_eq!(a.arrays(), b.arrays());
        assert_eq!(a.description().method, b.description().method);
        assert!(own.certificate().value.lower > changed.certificate().value.lower);
    }
}

#[test]
fn where_nothing_is_shown_the_answer_says_so_and_the_setting_decides_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let noise = log(folder.path(), 4, 600, [0.5, 0.5], |_, r| r);
    let with = |if_not_better| tuned(&noise, &TuneOptions { if_not_better, ..options() });
    let clone = with(IfNotBetter::Clone);
    assert!(!clone.beats_the_log());
    assert!(clone.words.starts_with("nothing is shown to beat the policy that made the log"), "{}", clone.words);
    assert_eq!(clone.policy.as_ref().unwrap().description().method.name(), "clone");
    assert_eq!(clone.certificate().over_clone, Claim { lower: 0.0, estimate: Some(0.0) });
    let keep = with(IfNotBetter::Keep);
    assert_eq!(keep.policy.as_ref().unwrap().description().method.name(), keep.tried[0].algorithm.name());
    let refuse = with(IfNotBetter::Refuse);
    assert!(refuse.policy.is_none() && refuse.words.contains("no file was written"), "{}", refuse.words);
    assert_eq!(refuse.certificate(), &refuse.winner);
}

#[test]
fn a_policy_that_learned_from_all_rounds_has_a_certificate_of_its_procedure() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), 5, 2000, [0.9, 0.2], |_, r| r);
    let found = tuned(&log, &TuneOptions { refit: true, ..options() });
    let description = found.policy.as_ref().unwrap().description();
    assert_eq!(description.certified.as_ref().unwrap().certifies, Certifies::Procedure);
    assert_eq!(description.training.rounds, 2000);
    assert_eq!(found.certificate(), tuned(&log, &options()).certificate());
}

#[test]
fn settings_that_cannot_be_honest_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), 6, 300, [0.9, 0.2], |_, r| r);
    let refuse = |options: TuneOptions| tune(&log, &options, &mut |_| {}).err().unwrap().to_string();
    assert_eq!(refuse(TuneOptions { certify: 0.5, ..options() }), "`certify` must be in (0, 1/3), got 0.5");
    assert!(
        refuse(TuneOptions { adaptive: true, hold_out: HoldOut::Random, ..options() }).contains("hold out by time")
    );
    let uniform = TuneOptions { algorithms: Some(vec![Algorithm::Uniform]), ..options() };
    assert!(refuse(uniform).contains("name algorithms that learn to choose"));
    assert!(refuse(TuneOptions { confidence: 1.0, ..options() }).starts_with("`confidence` must be in (0, 1)"));
    assert!(
        refuse(TuneOptions { reward_range: Some([0.0, 0.5]), ..options() }).contains("must be within `reward_range`")
    );
    assert!(
        refuse(TuneOptions { least_propensity: Some(0.9), ..options() })
            .contains("must be at most 1 / `least_propensity`")
    );
}

#[test]
fn the_certificate_of_a_whole_tuning_is_not_false_too_often() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, mut bad, mut shown) = (40, 0, 0);
    for seed in 0..logs {
        let log = log(folder.path(), 100 + seed, 400, [0.7, 0.4], |_, r| r);
        let found = tuned(&log, &TuneOptions { confidence: 0.8, ..options() });
        // the truth: what the file does on fresh contexts, with known means
        let policy = found.policy.as_ref().unwrap();
        let fresh = self::log(folder.path(), 900, 2000, [1.0, 0.0], |_, r| r);
        let block = fresh.blocks().next().unwrap().unwrap();
        let contexts = policy.preparation().contexts(&block).unwrap();
        let choices = policy.decide(&contexts).unwrap().choices.unwrap();
        let names = policy.preparation().actions();
        // where the right action was taken the reward is 1
        let right = |t: usize| {
            let chosen = block.chosen.as_ref().unwrap().get(t).unwrap();
            (names[contexts.action(t, choices[t] as usize)] == chosen) == (block.rewards.as_ref().unwrap()[t] == 1.0)
        };
        let share = (0..2000).filter(|&t| right(t)).count() as f64 / 2000.0;
        let value = 0.4 + 0.3 * share;
        bad += u32::from(found.certificate().value.lower > value || found.certificate().over_log.lower > value - 0.55);
        shown += u32::from(found.beats_the_log());
    }
    // 20 % of 40 is 8, standard deviation 2.5: 17 has a probability below 1 in 1,000
    assert!(bad < 17, "{bad} of {logs}");
    assert!(shown > 0);
}

/// A log that ends when it is told to.
struct Stopped<'a>(&'a Log, &'a AtomicBool);

impl ReadLog for Stopped<'_> {
    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn read(&self) -> ReadBlocks<'_> {
        self.0.read()
    }

    fn bad_rows(&self) -> u64 {
        0
    }

    fn parts(&self) -> Vec<String> {
        self.0.parts()
    }

    fn digest(&self) -> Result<String, LogError> {
        self.0.digest()
    }

    fn go_on(&self) -> Result<(), LogError> {
        if self.1.load(Ordering::Relaxed) { Err(LogError::Interrupted) } else { Ok(()) }
    }
}

fn same(a: &Tuned, b: &Tuned) {
    assert_eq!(a.to_json(), b.to_json());
    assert_eq!(a.policy.as_ref().unwrap().arrays(), b.policy.as_ref().unwrap().arrays());
}

#[test]
fn rounds_in_a_file_give_the_same_bits_and_a_run_that_was_killed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), 12, 20_000, [0.9, 0.2], |_, r| r);
    // the ridge regression reads every round; the clone keeps what it learns from
    let options = TuneOptions { algorithms: Some(vec![Algorithm::Clone, Algorithm::LinLcb]), ..options() };
    let in_memory = tuned(&log, &options);
    let scratch = Scratch { folder: folder.path().join("scratch"), always: true };
    let stop = AtomicBool::new(false);
    let tried = scratch.folder.join("neuralcb-tried.jsonl");
    let killed = tune_in(&Stopped(&log, &stop), &options, &scratch, &mut |_| {
        // after the first group of candidates
        stop.store(tried.exists(), Ordering::Relaxed);
    });
    assert!(matches!(killed.err().unwrap(), PolicyError::Log(LogError::Interrupted)));
    let before = std::fs::read_to_string(&tried).unwrap();
    assert_eq!((before.matches("lin-lcb").count(), before.matches("clone").count()), (2, 0));
    let mut read_again = false;
    let went_on = tune_in(&log, &options, &scratch, &mut |step| {
        read_again |= matches!(step, neuralcb_logs::train::Step::Doing("reading", ..));
    });
    same(&went_on.unwrap(), &in_memory);
    assert!(!read_again && std::fs::read_to_string(&tried).unwrap().starts_with(&before));
    // other settings begin anew
    let other = TuneOptions { confidence: 0.9, ..options.clone() };
    same(&tune_in(&log, &other, &scratch, &mut |_| {}).unwrap(), &tuned(&log, &other));
    scratch.remove().unwrap();
    assert!(!scratch.folder.exists());
}

#[test]
fn groups_of_candidates_may_be_tried_anywhere_and_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), 13, 1000, [0.9, 0.2], |_, r| r);
    let options = TuneOptions { algorithms: Some(vec![Algorithm::Clone, Algorithm::LinLcb]), ..options() };
    let mut tried = Vec::new();
    let groups = Tuning::new(&log, &options, None, &mut |_| {}).unwrap().groups();
    assert_eq!(groups, [[1], [0]]);
    for group in groups.iter().rev() {
        tried.extend(Tuning::new(&log, &options, None, &mut |_| {}).unwrap().try_group(group, &mut |_| {}).unwrap());
    }
    let found = Tuning::new(&log, &options, None, &mut |_| {}).unwrap().finish(tried, &mut |_| {}).unwrap();
    same(&found, &tuned(&log, &options));
}

fn constant(log: &Log, action: &str) -> Policy {
    let recipe = Recipe { algorithm: Algorithm::Constant, action: Some(action.to_owned()), ..Recipe::default() };
    train(log, &recipe, None, &mut |_| {}).unwrap()
}

#[test]
fn the_gate_opens_for_a_better_policy_alone() {
    let folder = tempfile::tempdir().unwrap();
    // action b is right everywhere
    let both = |t: usize, r: f64| if t.is_multiple_of(3) { r } else { 0.0 };
    let log = log(folder.path(), 7, 3000, [0.9, 0.1], both);
    let clever = {
        let recipe = Recipe { algorithm: Algorithm::LinLcb, ..Recipe::default() };
        train(&self::log(folder.path(), 8, 2000, [0.9, 0.1], both), &recipe, None, &mut |_| {}).unwrap()
    };
    let a = constant(&log, "a");
    let options = GateOptions { reward_range: Some([0.0, 1.0]), ..GateOptions::default() };
    let ask = |new: &Policy, old: &Policy| gate(new, old, &log, &options, &mut |_| {}).unwrap();
    // given how often the reward is left out, only the least propensity makes it quick
    let known = GateOptions { least_propensity: Some(0.5), ..options.clone() };
    let yes = gate(&clever, &a, &log, &known, &mut |_| {}).unwrap();
    assert!(yes.promote && yes.over_old.lower > 0.0 && yes.p_value < 0.05, "{}", yes.words);
    assert!(yes.words.starts_with("yes: with 95 % confidence, however often this is asked"), "{}", yes.words);
    assert!(yes.warnings.is_empty(), "{:?}", yes.warnings);
    assert!(!ask(&a, &clever).promote);
    let same = ask(&a, &a);
    assert!(!same.promote && same.apart == 0.0 && same.words.contains("do the same"), "{}", same.words);
    let guessed = gate(&a, &a, &log, &GateOptions::default(), &mut |_| {}).unwrap();
    assert!(guessed.warnings[0].contains("range of rewards was taken from the log"));
    let learned_here = train(&log, &Recipe { algorithm: Algorithm::LinLcb, ..Recipe::default() }, None, &mut |_| {});
    assert!(ask(&learned_here.unwrap(), &a).warnings[0].contains("the new policy learned from this very log"));
}
