//! Whether what the service states is so: every action comes as often as its stated probability says, and IPS on the
//! joined log covers the truth as often as its confidence level says.
//!
//! `NEURALCB_DECISIONS=1000000 cargo test --release -p neuralcb-server --test honest -- --nocapture` decides a million
//! times in each mode and prints what docs/SERVE.md shows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::Duration;

use neuralcb::Seed;
use neuralcb::ope::{Estimator, Evaluation, Interval, OpeConfig, Sample};
use neuralcb_logs::log::Missing;
use neuralcb_server::decide::{Exploration, RankRequest};
use neuralcb_server::join::{Aggregate, JoinConfig, join};
use neuralcb_server::journal::{Durability, Folder, Journal, Options, RealDisk};
use neuralcb_server::service::{Mode, Models, Service, ServiceConfig};
use rand::RngExt;
use serde_json::Value;

mod common;
use common::{ACTIONS, CONTEXTS, policy, truth};

/// Decisions of one joined log that IPS is asked about.
const ROUNDS: usize = 1000;

/// The policy whose value is estimated: it was not the one that played.
fn target(context: usize) -> usize {
    context % ACTIONS.len()
}

/// What a mode has shown.
struct Found {
    chi2: f64,
    degrees: usize,
    covered: usize,
    logs: usize,
}

fn request(event: usize, context: usize) -> RankRequest {
    // Probabilities of the caller: read in logging mode alone.
    let caller = [0.1, 0.2, 0.3, 0.4];
    let action = |a: usize| format!(r#"{{"id":"{}","probability":{}}}"#, ACTIONS[a], caller[(a + context) % 4]);
    let actions: Vec<String> = (0..ACTIONS.len()).map(action).collect();
    let (features, actions) = (format!(r#"{{"x":"c{context}"}}"#), actions.join(","));
    let body = format!(r#"{{"eventId":"e{event}","contextFeatures":{features},"actions":[{actions}]}}"#);
    RankRequest::parse(body.as_bytes()).unwrap()
}

async fn play(service: Arc<Service>, decisions: usize) -> (f64, usize) {
    let mut counts: BTreeMap<(usize, String), (u64, f64)> = BTreeMap::new();
    let mut contexts = Seed::new(3).stream("contexts");
    let mut rewards = Seed::new(3).stream("rewards");
    for turn in 0..decisions / 100 {
        let drawn: Vec<usize> = (0..100).map(|_| contexts.random_range(0..CONTEXTS)).collect();
        let requests = drawn.iter().enumerate().map(|(i, &context)| request(turn * 100 + i, context)).collect();
        let answers = service.rank_all(requests, false).await.unwrap();
        let mut sent = Vec::new();
        for (context, answer) in drawn.into_iter().zip(answers) {
            for ranked in answer.ranking {
                let count = counts.entry((context, ranked.id)).or_default();
                assert!(count.0 == 0 || count.1 == ranked.probability, "probabilities of one context differ");
                count.1 = ranked.probability;
            }
            let action = ACTIONS.iter().position(|name| *name == answer.reward_action_id).unwrap();
            counts.get_mut(&(context, answer.reward_action_id)).unwrap().0 += 1;
            let value = f64::from(u8::from(rewards.random::<f64>() < truth(context, action)));
            let service = service.clone();
            sent.push(tokio::spawn(async move { service.reward(answer.event_id, value, None).await }));
        }
        for done in sent {
            done.await.unwrap().unwrap();
        }
    }
    let mut chi2 = 0.0;
    let mut degrees = 0;
    for context in 0..CONTEXTS {
        let of: Vec<_> = counts.iter().filter(|((c, _), _)| *c == context).map(|(_, &count)| count).collect();
        let n: u64 = of.iter().map(|(count, _)| count).sum();
        for (count, p) in &of {
            match *p > 0.0 {
                true => chi2 += (*count as f64 - p * n as f64).powi(2) / (p * n as f64),
                false => assert_eq!(*count, 0, "an action of probability 0 was played"),
            }
        }
        degrees += of.iter().filter(|(_, p)| *p > 0.0).count().saturating_sub(1);
    }
    (chi2, degrees)
}

fn try_out(mode: Mode, explore: &str, floor: f64, decisions: usize) -> Found {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (policy(folder.path()), folder.path().join("data"));
    let exploration = Exploration { explore: explore.parse().unwrap(), floor };
    let models = Models::load(&[("champion".to_owned(), file)], Missing::Refuse, exploration).unwrap();
    let config = ServiceConfig { mode, exploration, ..ServiceConfig::default() };
    let (segment_bytes, segment_age) = (64 << 20, Duration::from_secs(3600));
    let service = Service::new(config, models, |server| {
        let options = Options { durability: Durability::Batch, segment_bytes, segment_age, server };
        Journal::start(Folder::open(&data).unwrap().0, Box::new(RealDisk), options)
    });
    let service = Arc::new(service.unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (chi2, degrees) = runtime.block_on(play(service.clone(), decisions));
    service.stop();

    let out = folder.path().join("joined.jsonl");
    let config = JoinConfig {
        wait: Duration::from_secs(3600),
        default_reward: 0.0,
        aggregate: Aggregate::First,
        until: u64::MAX,
        memory: 64 << 20,
    };
    let joined = join(&[data], &out, &config).unwrap();
    assert_eq!((joined.rows, joined.rewarded), (decisions as u64, decisions as u64));
    let settings =
        OpeConfig { estimators: vec![Estimator::Ips], intervals: vec![Interval::StudentT], ..OpeConfig::default() };
    let value = (0..CONTEXTS).map(|context| truth(context, target(context))).sum::<f64>() / CONTEXTS as f64;
    let (mut covered, mut logs, mut samples) = (0, 0, Vec::new());
    for line in BufReader::new(File::open(&out).unwrap()).lines() {
        let row: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let context = row["context"]["x"].as_str().unwrap()[1..].parse::<usize>().unwrap();
        let same = row["chosen"] == ACTIONS[target(context)];
        let weight = if same { 1.0 / row["propensity"].as_f64().unwrap() } else { 0.0 };
        samples.push(Sample::new(weight, row["reward"].as_f64().unwrap()));
        if samples.len() == ROUNDS {
            let mut evaluation = Evaluation::new(settings.clone(), 0).unwrap();
            evaluation.extend(&samples).unwrap();
            let report = evaluation.report();
            let [low, high] = report.estimate(Estimator::Ips).unwrap().bounded.intervals[&Interval::StudentT];
            covered += usize::from(low <= value && value <= high);
            logs += 1;
            samples.clear();
        }
    }
    Found { chi2, degrees, covered, logs }
}

#[test]
fn stated_probabilities_are_true_and_ips_covers_the_truth() {
    let decisions: usize = std::env::var("NEURALCB_DECISIONS").map_or(10_000, |n| n.parse().unwrap());
    println!("| mode | decisions | χ² | degrees of freedom | logs | IPS covers |\n|---|---|---|---|---|---|");
    for (name, mode, explore, floor) in [
        ("online, `epsilon=0.2`", Mode::Online, "epsilon=0.2", 0.0),
        ("online, `softmax=0.1`, floor 0.02", Mode::Online, "softmax=0.1", 0.02),
        ("logging, the caller's", Mode::Logging, "none", 0.0),
        ("apprentice", Mode::Apprentice, "none", 0.0),
    ] {
        let Found { chi2, degrees, covered, logs } = try_out(mode, explore, floor, decisions);
        let share = covered as f64 / logs as f64;
        let overlap = mode != Mode::Apprentice;
        let covers = if overlap { format!("{share:.3}") } else { "no overlap".to_owned() };
        println!("| {name} | {decisions} | {chi2:.1} | {degrees} | {logs} | {covers} |");
        // Beyond it lies one of ten thousand draws, by Wilson and Hilferty.
        let d = degrees as f64;
        let limit = d * (1.0 - 2.0 / (9.0 * d) + 3.72 * (2.0 / (9.0 * d)).sqrt()).powi(3);
        assert!(degrees == 0 || chi2 < limit, "{name}: χ² = {chi2} beyond {limit}");
        let off = 3.72 * (0.95 * 0.05 / logs as f64).sqrt();
        assert!(!overlap || share > 0.95 - off, "{name}: {share}");
    }
}
