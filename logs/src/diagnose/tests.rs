//! Logs made by hand, of which the truth is known.

use std::convert::Infallible;

use super::*;
use crate::log::{Categories, Place, Values};

/// Uniform numbers in [0, 1): splitmix64 in its usual form.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn words<S: AsRef<str>>(values: &[S]) -> Categories {
    let mut made = Categories::default();
    for value in values {
        let value = value.as_ref();
        let code = made.names.iter().position(|name| name == value).unwrap_or_else(|| {
            made.names.push(value.to_owned());
            made.names.len() - 1
        });
        made.codes.push(code as u32);
    }
    made
}

/// A log as columns: actions, rewards, propensities, one number and one word per round.
#[derive(Default, Clone)]
struct Columns {
    actions: Vec<String>,
    rewards: Vec<f64>,
    propensities: Option<Vec<f64>>,
    numbers: Vec<f64>,
    words: Vec<String>,
}

impl Columns {
    /// Three actions, uniformly; the reward of action 2 is higher.
    fn healthy(n: usize, seed: u64) -> Self {
        let mut draws = Draws(seed);
        let mut made = Columns { propensities: Some(vec![1.0 / 3.0; n]), ..Columns::default() };
        for _ in 0..n {
            let action = (3.0 * draws.next()) as usize;
            made.actions.push(action.to_string());
            made.rewards.push(f64::from(draws.next() < [0.3, 0.4, 0.6][action]));
            made.numbers.push(draws.next());
            made.words.push(["red", "green", "blue"][(3.0 * draws.next()) as usize].to_owned());
        }
        made
    }

    /// The rounds of a range, as a block whose dictionaries are its own.
    fn block(&self, range: std::ops::Range<usize>) -> Block {
        let places = range.clone().map(|t| Place { file: 0, line: t as u64 + 1 }).collect();
        Block {
            places,
            shared: vec![
                Values::Numbers(self.numbers[range.clone()].to_vec()),
                Values::Categories(words(&self.words[range.clone()])),
            ],
            offered: Offered::All,
            chosen: Some(words(&self.actions[range.clone()])),
            rewards: Some(self.rewards[range.clone()].to_vec()),
            propensities: self.propensities.as_ref().map(|ps| ps[range].to_vec()),
            counts: None,
            extra: Vec::new(),
        }
    }

    fn diagnosed_by(&self, size: usize) -> Diagnosis {
        let n = self.actions.len();
        let blocks = (0..n).step_by(size).map(|start| Ok::<_, Infallible>(self.block(start..n.min(start + size))));
        diagnose(blocks, &["x".to_owned(), "colour".to_owned()], &[], &[]).unwrap()
    }

    fn diagnosed(&self) -> Diagnosis {
        self.diagnosed_by(1000)
    }
}

fn codes(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.warnings.iter().map(|w| w.code.as_str()).collect()
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} is not {b}");
}

#[test]
fn a_healthy_log_gives_no_warning() {
    let diagnosis = Columns::healthy(5000, 1).diagnosed();
    assert_eq!(codes(&diagnosis), Vec::<&str>::new(), "{diagnosis}");
    assert!(!diagnosis.unwise());
    let p = diagnosis.propensities.as_ref().unwrap();
    close(p.mean_weight, 1.0);
    close(p.sum.unwrap(), 1.0);
    close(diagnosis.ess.unwrap(), 5000.0);
    let kappa = diagnosis.kappa.as_ref().unwrap();
    assert_eq!((kappa.action.as_str(), kappa.plausible), ("2", 1));
    close(kappa.estimate, 3.0);
    assert_eq!(diagnosis.actions.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["0", "1", "2"]);
}

#[test]
fn numbers_are_those_of_plain_sums() {
    let mut log = Columns::healthy(3000, 2);
    let mut draws = Draws(3);
    log.propensities = Some((0..3000).map(|_| 0.05 + 0.9 * draws.next()).collect());
    let p = log.propensities.clone().unwrap();
    let diagnosis = log.diagnosed_by(777);
    let w: Vec<f64> = p.iter().map(|p| 1.0 / (3.0 * p)).collect();
    let (sum, squares) = (w.iter().sum::<f64>(), w.iter().map(|w| w * w).sum::<f64>());
    close(diagnosis.ess.unwrap(), sum * sum / squares);
    close(diagnosis.propensities.as_ref().unwrap().mean_weight, sum / 3000.0);
    close(diagnosis.propensities.as_ref().unwrap().max_weight, w.iter().copied().fold(0.0, f64::max));
    for (i, action) in diagnosis.actions.iter().enumerate() {
        let of = |t: &usize| log.actions[*t] == i.to_string();
        let rounds: Vec<usize> = (0..3000).filter(of).collect();
        let inverse = rounds.iter().map(|&t| 1.0 / p[t]).sum::<f64>();
        close(action.count, rounds.len() as f64);
        close(action.mean_reward.unwrap(), rounds.iter().map(|&t| log.rewards[t]).sum::<f64>() / rounds.len() as f64);
        close(action.value.unwrap(), rounds.iter().map(|&t| log.rewards[t] / p[t]).sum::<f64>() / inverse);
        close(action.mean_weight.unwrap(), inverse / 3000.0);
        close(action.ess.unwrap(), inverse * inverse / rounds.iter().map(|&t| 1.0 / (p[t] * p[t])).sum::<f64>());
    }
    let successes = log.rewards.iter().filter(|r| **r == 1.0).count() as u64;
    assert_eq!(diagnosis.rewards.as_ref().unwrap().successes, Some(successes));
}

#[test]
fn the_correlation_with_the_reward_is_that_of_plain_sums() {
    let log = Columns::healthy(500, 9);
    let report = &log.diagnosed().features[0];
    let mean = |v: &[f64]| v.iter().sum::<f64>() / 500.0;
    let (x, r) = (mean(&log.numbers), mean(&log.rewards));
    let sum = |f: &dyn Fn(usize) -> f64| (0..500).map(f).sum::<f64>();
    let together = sum(&|t| (log.numbers[t] - x) * (log.rewards[t] - r));
    let spread = (sum(&|t| (log.numbers[t] - x).powi(2)) * sum(&|t| (log.rewards[t] - r).powi(2))).sqrt();
    close(report.correlation.unwrap(), together / spread);
}

#[test]
fn logs_without_a_choice_are_unwise() {
    let empty = Columns { propensities: Some(Vec::new()), ..Columns::default() };
    assert_eq!(codes(&empty.diagnosed()), ["no-rounds"]);
    assert!(empty.diagnosed().unwise());

    let mut one = Columns::healthy(500, 4);
    one.actions.fill("same".to_owned());
    one.propensities = Some(vec![1.0; 500]);
    assert_eq!(codes(&one.diagnosed()), ["one-action"]);

    let mut equal = Columns::healthy(500, 4);
    equal.rewards.fill(0.25);
    assert_eq!(codes(&equal.diagnosed()), ["constant-reward"]);

    assert!(codes(&Columns::healthy(99, 4).diagnosed()).contains(&"few-rounds"));
}

#[test]
fn a_log_without_propensities_says_so_and_is_no_less_wise() {
    let log = Columns { propensities: None, ..Columns::healthy(2000, 5) };
    let diagnosis = log.diagnosed();
    assert_eq!(codes(&diagnosis), ["no-propensities"]);
    assert!(!diagnosis.unwise() && diagnosis.ess.is_none());
    let share = diagnosis.actions[2].share;
    close(diagnosis.kappa.unwrap().estimate, 1.0 / share);
}

#[test]
fn propensities_that_cannot_be_are_called_impossible() {
    let mut log = Columns::healthy(2000, 6);
    log.propensities = Some(vec![0.5; 2000]);
    let diagnosis = log.diagnosed();
    assert_eq!(codes(&diagnosis), ["impossible-propensities", "no-support"], "{diagnosis}");
    assert!(diagnosis.unwise());
    close(diagnosis.propensities.unwrap().sum.unwrap(), 1.5);
    log.propensities = Some((0..2000).map(|t| if t % 2 == 0 { 0.1 } else { 0.2 }).collect());
    let diagnosis = log.diagnosed();
    assert_eq!(codes(&diagnosis), ["impossible-propensities"], "{diagnosis}");
    assert!(diagnosis.warnings[0].message.contains("2.500"), "{diagnosis}");
}

#[test]
fn one_huge_weight_leaves_nothing_to_trust() {
    let mut log = Columns::healthy(2000, 7);
    log.propensities.as_mut().unwrap()[1000] = 1e-6;
    let diagnosis = log.diagnosed();
    assert_eq!(codes(&diagnosis), ["tiny-ess"], "{diagnosis}");
    assert!(diagnosis.unwise());
    assert!(diagnosis.warnings[0].message.contains("not to be trusted"));
}

#[test]
fn actions_offered_and_never_chosen_are_named() {
    let log = Columns::healthy(900, 8);
    let mut block = log.block(0..900);
    let pairs: Vec<&str> = (0..900).flat_map(|_| ["0", "1", "2", "lost"]).collect();
    let offsets = (0..=900).map(|t| 4 * t).collect();
    let x = (0..3600).map(f64::from).collect();
    block.offered = Offered::Listed { offsets, actions: words(&pairs), features: vec![Values::Numbers(x)] };
    block.propensities = Some(vec![1.0 / 3.0; 900]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let diagnosis = diagnose([Ok::<_, Infallible>(block)], &names(&["x", "colour"]), &names(&["price"]), &[]).unwrap();
    assert_eq!(codes(&diagnosis), ["untried-actions", "no-support"], "{diagnosis}");
    assert!(diagnosis.warnings[0].message.contains("1 action offered and never chosen: `lost`"), "{diagnosis}");
    close(diagnosis.propensities.as_ref().unwrap().mean_weight, 0.75);
    assert_eq!((diagnosis.features[2].name.as_str(), diagnosis.features[2].per_action), ("price", true));
    assert_eq!(diagnosis.features[2].max, Some(3599.0));
}

#[test]
fn repeated_rounds_are_counted_across_blocks_and_dictionaries() {
    let mut log = Columns::healthy(3000, 10);
    for t in [5usize, 6, 7, 1500, 8, 8, 9, 10] {
        log.actions.push(log.actions[t].clone());
        log.rewards.push(log.rewards[t]);
        log.numbers.push(log.numbers[t]);
        log.words.push(log.words[t].clone());
        log.propensities.as_mut().unwrap().push(1.0 / 3.0);
    }
    let diagnosis = log.diagnosed_by(499);
    assert_eq!(diagnosis.duplicates, Duplicates { count: 8, complete: true });
    assert_eq!(codes(&diagnosis), ["duplicates"]);
    assert_eq!(diagnosis.warnings[0].severity, Severity::Warning);
}

#[test]
fn features_that_teach_nothing_or_too_much_are_named() {
    let mut log = Columns::healthy(500, 11);
    log.words.fill("same".to_owned());
    log.numbers = log.rewards.iter().map(|r| 3.0 * r - 1.0).collect();
    let diagnosis = log.diagnosed();
    assert_eq!(diagnosis.constant_features, ["colour"]);
    assert_eq!(codes(&diagnosis), ["leak", "duplicates", "constant-features"], "{diagnosis}");
    assert!(diagnosis.unwise());

    let mut log = Columns::healthy(500, 11);
    log.numbers = (0..500).map(f64::from).collect();
    assert!(codes(&log.diagnosed()).contains(&"index-feature"));

    let mut log = Columns::healthy(1500, 11);
    log.words = (0..1500).map(|t| format!("user {t}")).collect();
    log.numbers[7] = f64::NAN;
    let diagnosis = log.diagnosed();
    assert_eq!(codes(&diagnosis), ["many-categories", "missing-values"], "{diagnosis}");
}

#[test]
fn drift_is_found_where_there_is_some() {
    let n = 6000;
    let mut log = Columns::healthy(n, 12);
    let mut draws = Draws(13);
    for t in n / 2..n {
        log.rewards[t] = f64::from(draws.next() < 0.7);
        log.numbers[t] += 0.5;
        if draws.next() < 0.5 {
            log.words[t] = "blue".to_owned();
        }
        log.actions[t] = ((2.0 * draws.next()) as usize).to_string();
    }
    let found = log.diagnosed_by(333).halves;
    let mut what: Vec<&str> = found.drift.iter().map(|d| d.of.as_str()).collect();
    what.sort_unstable();
    assert_eq!(what, ["action shares", "colour", "reward", "x"]);
    let x = found.drift.iter().find(|d| d.of == "x").unwrap();
    let middle = found.rounds[0] as usize;
    close(x.first.unwrap(), log.numbers[..middle].iter().sum::<f64>() / middle as f64);
    assert!((n / 2).abs_diff(middle) <= n / 64, "{:?}", found.rounds);
    let codes = log.diagnosed().warnings.iter().map(|w| w.code.clone()).collect::<Vec<_>>();
    assert!(
        ["reward-drift", "policy-drift", "feature-drift"].iter().all(|c| codes.iter().any(|d| d == c)),
        "{codes:?}"
    );
}

/// At the level of 0.01, 200 logs give 2 false alarms on average, and more than 9 with probability under 1e-4.
#[test]
fn drift_is_not_found_where_there_is_none() {
    let alarms =
        (0..200).filter(|seed| !Columns::healthy(400, 1000 + seed).diagnosed().halves.drift.is_empty()).count();
    assert!(alarms <= 9, "{alarms}");
}

#[test]
fn blocks_of_any_size_give_the_same_diagnosis() {
    let log = Columns::healthy(10_000, 14);
    let (a, b) = (log.diagnosed_by(10_000), log.diagnosed_by(37));
    assert_eq!(a.halves.rounds, b.halves.rounds);
    assert_eq!(a.to_string(), b.to_string());
    assert_eq!((a.rows, a.duplicates.clone(), codes(&a)), (b.rows, b.duplicates.clone(), codes(&b)));
}

#[test]
fn a_count_stands_for_as_many_rounds() {
    let log = Columns::healthy(400, 15);
    let mut block = log.block(0..400);
    block.counts = Some(vec![2.5; 400]);
    let names = ["x".to_owned(), "colour".to_owned()];
    let diagnosis = diagnose([Ok::<_, Infallible>(block)], &names, &[], &[]).unwrap();
    close(diagnosis.actions.iter().map(|a| a.count).sum(), 1000.0);
    close(diagnosis.actions.iter().map(|a| a.share).sum(), 1.0);
    close(diagnosis.propensities.unwrap().mean_weight, 1.0);
}

#[test]
fn a_diagnosis_is_json_and_reads_back() {
    let diagnosis = Columns::healthy(300, 16).diagnosed();
    let text = serde_json::to_string(&diagnosis).unwrap();
    assert_eq!(serde_json::from_str::<Diagnosis>(&text).unwrap(), diagnosis);
}
