//! What is seen of the service as it runs: what was played and what it earned, and what each model would have earned.
//!
//! An event is settled by its first reward, or with the default reward once the wait for it is over. What is estimated
//! of a model m from settled events is that of the library's [`Evaluation`]: weights w = 1[m would have played it] / p,
//! IPS and SNIPS, and the confidence sequence, which stays valid however often one looks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use neuralcb::ope::{Bounded, Estimator, Evaluation, Interval, OpeConfig, Sample};
use serde::Serialize;

use crate::clock::now;

/// Events that may wait for a reward: those before them are settled early.
const MOST: usize = 100_000;
/// Different actions that are told apart.
const ACTIONS: usize = 200;
/// Rewards whose lag is kept.
const LAGS: usize = 1000;
/// Decisions that are shown.
const SHOWN: usize = 20;

/// What is watched of a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// The event's name.
    pub event: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The model that decided.
    pub model: String,
    /// The action that was played.
    pub action: String,
    /// Its probability.
    pub probability: f64,
    /// Whether another action than the policy's choice was played.
    pub explored: bool,
    /// Where the caller decides: whether the policy would have chosen the same.
    pub agreed: Option<bool>,
    /// Whether it waits for its activation.
    pub deferred: bool,
    /// Whether each model would have played it.
    pub same: Vec<(String, bool)>,
}

/// What an action was played and earned.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Played {
    decisions: u64,
    settled: u64,
    reward: f64,
}

#[derive(Default)]
struct State {
    waiting: HashMap<String, Watched>,
    order: VecDeque<(u64, String)>,
    decisions: u64,
    rewards: u64,
    explored: u64,
    agreed: [u64; 2],
    actions: BTreeMap<String, Played>,
    values: BTreeMap<String, Evaluation>,
    recent: VecDeque<Recent>,
    /// Of the newest rewards, in milliseconds.
    lags: VecDeque<u64>,
}

/// A decision that is shown.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    pub watched: Watched,
    /// As it was logged.
    pub record: Vec<u8>,
    pub reward: Option<f64>,
}

/// Running statistics; they begin anew with every start.
pub struct Stats {
    state: Mutex<State>,
    wait: u64,
    default_reward: f64,
}

/// What the page shows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    decisions: u64,
    rewards: u64,
    explored: u64,
    agreed: u64,
    disagreed: u64,
    waiting: usize,
    actions: &'a BTreeMap<String, Played>,
    values: BTreeMap<String, Value>,
    median_lag_seconds: Option<f64>,
}

/// The estimated value of a model.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Value {
    settled: u64,
    effective_sample_size: Option<f64>,
    played: Option<f64>,
    snips: Option<f64>,
    sequence: Option<[f64; 2]>,
}

impl Stats {
    /// Nothing seen yet.
    pub fn new(wait: Duration, default_reward: f64) -> Stats {
        Stats { state: Mutex::default(), wait: wait.as_millis() as u64, default_reward }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A decision was made and, as a record, logged.
    pub fn decision(&self, watched: Watched, record: Vec<u8>) {
        let mut state = self.state();
        state.decisions += 1;
        state.explored += u64::from(watched.explored);
        if let Some(agreed) = watched.agreed {
            state.agreed[usize::from(agreed)] += 1;
        }
        state.played(&watched.action).decisions += 1;
        state.recent.push_back(Recent { watched: watched.clone(), record, reward: None });
        if state.recent.len() > SHOWN {
            state.recent.pop_front();
        }
        state.order.push_back((watched.at, watched.event.clone()));
        state.waiting.insert(watched.event.clone(), watched);
        self.settle_due(&mut state);
    }

    /// A reward came; how long after its decision, in milliseconds, where that is known.
    pub fn reward(&self, event: &str, at: u64, value: f64) -> Option<u64> {
        let mut state = self.state();
        state.rewards += 1;
        if let Some(recent) = state.recent.iter_mut().rev().find(|recent| recent.watched.event == event) {
            recent.reward.get_or_insert(value);
        }
        let watched = state.waiting.remove(event)?;
        let lag = at.saturating_sub(watched.at);
        state.lags.push_back(lag);
        if state.lags.len() > LAGS {
            state.lags.pop_front();
        }
        state.settle(&watched, value);
        Some(lag)
    }

    /// A deferred event counts now.
    pub fn activate(&self, event: &str) {
        if let Some(watched) = self.state().waiting.get_mut(event) {
            watched.deferred = false;
        }
    }

    /// The newest decisions, the last first.
    pub(super) fn recent(&self) -> Vec<Recent> {
        self.state().recent.iter().rev().cloned().collect()
    }

    /// Settles what has waited long enough.
    fn settle_due(&self, state: &mut State) {
        let until = now().saturating_sub(self.wait);
        while let Some((at, _)) = state.order.front()
            && (*at <= until || state.order.len() > MOST)
        {
            let (_, event) = state.order.pop_front().expect("it is there");
            if let Some(watched) = state.waiting.remove(&event)
                && !watched.deferred
            {
                state.settle(&watched, self.default_reward);
            }
        }
    }

    /// What the page shows, as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut state = self.state();
        self.settle_due(&mut state);
        let value = |(name, evaluation): (&'_ String, &Evaluation)| {
            let report = evaluation.report();
            let of = |estimator| report.estimate(estimator).map(|e| &e.bounded);
            let sequence = |b: &Bounded| b.intervals.get(&Interval::Sequence).copied();
            let value = Value {
                settled: report.n,
                effective_sample_size: report.ess,
                played: report.behaviour.value,
                snips: of(Estimator::Snips).and_then(|b| b.value),
                sequence: of(Estimator::Ips).and_then(sequence),
            };
            (name.clone(), value)
        };
        let values = state.values.iter().map(value).collect();
        let mut lags: Vec<u64> = state.lags.iter().copied().collect();
        lags.sort_unstable();
        let shown = Shown {
            decisions: state.decisions,
            rewards: state.rewards,
            explored: state.explored,
            agreed: state.agreed[1],
            disagreed: state.agreed[0],
            waiting: state.waiting.len(),
            actions: &state.actions,
            values,
            median_lag_seconds: lags.get(lags.len() / 2).map(|&lag| lag as f64 / 1000.0),
        };
        serde_json::to_vec(&shown).expect("plain data")
    }
}

impl State {
    fn played(&mut self, action: &str) -> &mut Played {
        let name = match self.actions.len() < ACTIONS || self.actions.contains_key(action) {
            true => action,
            false => "(others)",
        };
        self.actions.entry(name.to_owned()).or_default()
    }

    fn settle(&mut self, watched: &Watched, reward: f64) {
        let played = self.played(&watched.action);
        played.settled += 1;
        played.reward += reward;
        for (name, same) in &watched.same {
            let weight = if *same { 1.0 / watched.probability } else { 0.0 };
            let evaluation = match self.values.get_mut(name) {
                Some(evaluation) => evaluation,
                None => {
                    let (estimators, intervals) = (vec![Estimator::Ips, Estimator::Snips], vec![Interval::Sequence]);
                    let config = OpeConfig { estimators, intervals, ..OpeConfig::default() };
                    let Ok(evaluation) = Evaluation::new(config, 0) else { return };
                    self.values.entry(name.clone()).or_insert(evaluation)
                }
            };
            // A weight too large for exact sums is left out of the picture, not of the log.
            let _ = evaluation.extend(&[Sample::new(weight, reward)]);
        }
    }
}
