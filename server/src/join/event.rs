//! One event: its decision, its activation, its rewards.

use std::collections::{BTreeMap, HashSet};

use neuralcb_logs::log::Json;
use serde::Serialize;

use super::read::{ACTIVATION, DECISION, event_of, kind_of};
use super::{Aggregate, JoinConfig, Joined};
use crate::journal::{Decision, Record, Reward};

/// What is known of an event. Records come in the order of their keys: decisions, activations, rewards, each by time.
#[derive(Default)]
pub(super) struct Event {
    name: Option<Vec<u8>>,
    decision: Option<Decision>,
    activated: Option<u64>,
    repeated: u64,
    contradicted: u64,
    rewards: Vec<Reward>,
}

/// A joined round.
pub(super) struct Row {
    /// When it was decided.
    pub at: u64,
    /// A line of JSON, with its end.
    pub line: Vec<u8>,
}

/// A line of the log: JSON lines with actions. Names that begin with `_` are no features.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "_event")]
    event: &'a str,
    #[serde(rename = "_time")]
    time: u64,
    #[serde(rename = "_model")]
    model: &'a str,
    #[serde(rename = "_policy")]
    policy: &'a str,
    #[serde(rename = "_rewards")]
    rewards: u64,
    #[serde(rename = "_shadow", skip_serializing_if = "BTreeMap::is_empty")]
    shadow: BTreeMap<&'a str, &'a str>,
    context: &'a Json,
    actions: Vec<Offer<'a>>,
    chosen: &'a str,
    reward: f64,
    propensity: f64,
}

#[derive(Serialize)]
struct Offer<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<&'a Json>,
    probability: f64,
}

/// A line of the side file.
#[derive(Serialize)]
struct Late<'a> {
    event: &'a str,
    value: f64,
    at: u64,
    /// When it was decided, where that is known.
    decided: Option<u64>,
}

impl Event {
    /// Its name; none before its first record.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Adds a record of this event.
    pub fn add(&mut self, key: &[u8], record: Record) {
        self.name.get_or_insert_with(|| event_of(key).to_vec());
        match (kind_of(key), record) {
            (DECISION, Record::Decision(decision)) => match &self.decision {
                None => self.decision = Some(*decision),
                Some(first) => {
                    self.repeated += 1;
                    let name = |d: &Decision| d.actions[d.chosen].id.clone();
                    self.contradicted += u64::from(name(first) != name(&decision));
                }
            },
            (ACTIVATION, Record::Activation(activation)) => {
                self.activated.get_or_insert(activation.at);
            }
            (_, Record::Reward(reward)) => self.rewards.push(reward),
            _ => unreachable!("the key was made from the record"),
        }
    }

    /// The row of this event, unless it is left out; lines of rewards that count nowhere are appended to `late`.
    pub fn settle(self, config: &JoinConfig, joined: &mut Joined, late: &mut Vec<u8>) -> Option<Row> {
        let mut side = |reward: &Reward, decided: Option<u64>| {
            let line = Late { event: &reward.event, value: reward.value, at: reward.at, decided };
            serde_json::to_writer(&mut *late, &line).expect("plain data");
            late.push(b'\n');
        };
        let Some(decision) = self.decision else {
            joined.unknown += self.rewards.len() as u64;
            self.rewards.iter().for_each(|reward| side(reward, None));
            return None;
        };
        joined.repeated += self.repeated;
        joined.contradicted += self.contradicted;
        let start = if decision.deferred { self.activated } else { Some(decision.at) };
        let end = start.unwrap_or(decision.at).saturating_add(config.wait.as_millis() as u64);
        let mut ids = HashSet::new();
        let mut counted = Vec::new();
        for reward in &self.rewards {
            if reward.id.as_ref().is_some_and(|id| !ids.insert(id)) {
                continue;
            }
            if reward.at > end || start.is_none() {
                joined.late += 1;
                side(reward, Some(decision.at));
            } else {
                counted.push(reward.value);
            }
        }
        if end > config.until {
            joined.open += 1;
            return None;
        }
        if start.is_none() {
            joined.inactive += 1;
            return None;
        }
        joined.rows += 1;
        joined.rewarded += u64::from(!counted.is_empty());
        let reward = config.aggregate.of(&counted).unwrap_or(config.default_reward);
        Some(Row { at: decision.at, line: line(&decision, reward, counted.len() as u64) })
    }
}

fn line(decision: &Decision, reward: f64, rewards: u64) -> Vec<u8> {
    let id = |place: usize| decision.actions[place].id.as_str();
    let offers = decision.actions.iter().zip(&decision.probabilities);
    let line = Line {
        event: &decision.event,
        time: decision.at,
        model: &decision.model,
        policy: &decision.policy,
        rewards,
        shadow: decision.shadow.iter().map(|(name, &place)| (name.as_str(), id(place))).collect(),
        context: &decision.context,
        actions: offers
            .map(|(a, &probability)| Offer { id: &a.id, features: a.features.as_ref(), probability })
            .collect(),
        chosen: id(decision.chosen),
        reward,
        propensity: decision.probabilities[decision.chosen],
    };
    let mut line = serde_json::to_vec(&line).expect("plain data");
    line.push(b'\n');
    line
}

impl Aggregate {
    /// One reward of those that came, in the order of their times; none of none.
    fn of(self, rewards: &[f64]) -> Option<f64> {
        let sum = || rewards.iter().sum::<f64>();
        let (first, last) = (rewards.first()?, rewards.last()?);
        Some(match self {
            Aggregate::First => *first,
            Aggregate::Last => *last,
            Aggregate::Sum => sum(),
            Aggregate::Mean => sum() / rewards.len() as f64,
            Aggregate::Min => rewards.iter().copied().fold(f64::INFINITY, f64::min),
            Aggregate::Max => rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}
