//! Counters in the text format of Prometheus.
//!
//! Written by hand: a handful of counters and three histograms need no registry.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::journal::Counters;
use crate::service::Watched;

/// Upper ends of the buckets, in seconds.
const LATENCY: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0];
const LAG: [f64; 12] = [0.1, 1.0, 10.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0, 604800.0];
/// Different labels that are kept: names of actions come from callers.
const LABELS: usize = 1000;

/// How often values fell below each end.
#[derive(Debug, Default)]
struct Histogram {
    counts: [AtomicU64; 13],
    /// In microseconds.
    sum: AtomicU64,
}

impl Histogram {
    fn add(&self, ends: &[f64; 12], value: Duration) {
        let at = ends.iter().position(|end| value.as_secs_f64() <= *end).unwrap_or(ends.len());
        self.counts[at].fetch_add(1, Relaxed);
        self.sum.fetch_add(value.as_micros() as u64, Relaxed);
    }

    fn write(&self, to: &mut String, name: &str, labels: &str, ends: &[f64; 12]) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut sum = 0;
        for (end, count) in ends.iter().map(f64::to_string).chain(["+Inf".to_owned()]).zip(&self.counts) {
            sum += count.load(Relaxed);
            let _ = writeln!(to, "{name}_bucket{{{labels}{comma}le=\"{end}\"}} {sum}");
        }
        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(to, "{name}_sum{braces} {}", self.sum.load(Relaxed) as f64 / 1e6);
        let _ = writeln!(to, "{name}_count{braces} {sum}");
    }
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By model and action.
    decisions: Mutex<BTreeMap<(String, String), u64>>,
    shadow_failures: Mutex<BTreeMap<String, u64>>,
    /// By status.
    answers: Mutex<BTreeMap<u16, u64>>,
    explored: AtomicU64,
    agreed: [AtomicU64; 2],
    unlogged: AtomicU64,
    rank: Histogram,
    reward: Histogram,
    lag: Histogram,
}

fn count<K: Ord>(counts: &Mutex<BTreeMap<K, u64>>, key: K, other: impl FnOnce() -> K) {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let key = if counts.len() < LABELS || counts.contains_key(&key) { key } else { other() };
    *counts.entry(key).or_default() += 1;
}

/// A label's value, as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Metrics {
    /// A decision was given.
    pub fn decision(&self, watched: &Watched) {
        let other = || (watched.model.clone(), "(others)".to_owned());
        count(&self.decisions, (watched.model.clone(), watched.action.clone()), other);
        self.explored.fetch_add(u64::from(watched.explored), Relaxed);
        if let Some(agreed) = watched.agreed {
            self.agreed[usize::from(agreed)].fetch_add(1, Relaxed);
        }
    }

    /// A challenger could not decide.
    pub fn shadow_failed(&self, name: &str) {
        count(&self.shadow_failures, name.to_owned(), || "(others)".to_owned());
    }

    /// Decisions that could not be logged.
    pub fn unlogged(&self, decisions: u64) {
        self.unlogged.fetch_add(decisions, Relaxed);
    }

    /// How long after its decision a reward came.
    pub fn reward_lag(&self, lag: Duration) {
        self.lag.add(&LAG, lag);
    }

    /// A request was answered.
    pub fn answered(&self, what: Option<What>, status: u16, took: Duration) {
        count(&self.answers, status, || 0);
        match what {
            Some(What::Rank) => self.rank.add(&LATENCY, took),
            Some(What::Reward) => self.reward.add(&LATENCY, took),
            None => {}
        }
    }

    /// All of it.
    pub fn text(&self, journal: &Counters) -> String {
        let mut to = String::new();
        let head = |to: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(to, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        let locked = |counts: &Mutex<BTreeMap<(String, String), u64>>| {
            counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        head(&mut to, "neuralcb_decisions_total", "counter", "Decisions by model and action.");
        for ((model, action), n) in locked(&self.decisions) {
            let (model, action) = (escaped(&model), escaped(&action));
            let _ = writeln!(to, "neuralcb_decisions_total{{model=\"{model}\",action=\"{action}\"}} {n}");
        }
        head(&mut to, "neuralcb_shadow_failures_total", "counter", "Decisions that a challenger could not make.");
        for (model, n) in self.shadow_failures.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = writeln!(to, "neuralcb_shadow_failures_total{{model=\"{}\"}} {n}", escaped(model));
        }
        head(&mut to, "neuralcb_answers_total", "counter", "Answers by status.");
        for (status, n) in self.answers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = writeln!(to, "neuralcb_answers_total{{status=\"{status}\"}} {n}");
        }
        let plain = [
            ("neuralcb_explored_total", "Decisions other than the policy's choice.", &self.explored),
            ("neuralcb_agreed_total", "Decisions of the caller that the policy would have made.", &self.agreed[1]),
            ("neuralcb_disagreed_total", "Decisions of the caller that it would not.", &self.agreed[0]),
            ("neuralcb_unlogged_total", "Decisions that could not be logged.", &self.unlogged),
            ("neuralcb_log_records_total", "Records of the decision log.", &journal.records),
            ("neuralcb_log_bytes_total", "Bytes of the decision log.", &journal.bytes),
            ("neuralcb_log_flushes_total", "Flushes of the decision log.", &journal.flushes),
            ("neuralcb_log_refused_total", "Records that the disk refused.", &journal.refused),
        ];
        for (name, help, n) in plain {
            head(&mut to, name, "counter", help);
            let _ = writeln!(to, "{name} {}", n.load(Relaxed));
        }
        head(&mut to, "neuralcb_request_seconds", "histogram", "Time from a request's last byte to its answer.");
        self.rank.write(&mut to, "neuralcb_request_seconds", "what=\"rank\"", &LATENCY);
        self.reward.write(&mut to, "neuralcb_request_seconds", "what=\"reward\"", &LATENCY);
        head(&mut to, "neuralcb_reward_lag_seconds", "histogram", "Time from a decision to its first reward.");
        self.lag.write(&mut to, "neuralcb_reward_lag_seconds", "", &LAG);
        to
    }
}

/// What was asked for, where its time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// One decision or many.
    Rank,
    /// A reward or an activation.
    Reward,
}
