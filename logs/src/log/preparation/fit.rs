//! Fitting a preparation: one reading of the log, in memory that does not grow with it.

use std::collections::{BTreeSet, HashMap};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::moments::Moments;
use super::{Encoder, Preparation, PreparationConfig, action_order, all_integers};
use crate::log::block::{Block, Categories, Offered, Values};
use crate::log::error::LogError;
use crate::log::open::Log;
use crate::log::schema::{Feature, Kind};

/// The most actions that are told apart.
const MAX_ACTIONS: usize = 1 << 20;

/// What a log holds, as far as one reading tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogSummary {
    /// Rounds that were read.
    pub rounds: u64,
    /// Bad rows that were skipped.
    pub skipped: u64,
    /// Mean reward.
    pub mean_reward: f64,
    /// Population standard deviation of the rewards.
    pub reward_deviation: f64,
    /// Smallest reward.
    pub min_reward: f64,
    /// Largest reward.
    pub max_reward: f64,
    /// The actions, in their order.
    pub actions: Vec<ActionSummary>,
    /// The propensities, where the log has them.
    pub propensities: Option<PropensitySummary>,
}

/// What the log says of one action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionSummary {
    /// Its name.
    pub name: String,
    /// Rounds in which it was chosen.
    pub count: u64,
    /// Its mean reward; none where it was never chosen.
    pub mean_reward: Option<f64>,
}

/// What the log says of the propensities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PropensitySummary {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// What has been seen of a feature.
enum Seen {
    Numbers(Moments),
    Words(BTreeSet<String>),
}

impl Seen {
    fn new(feature: &Feature) -> Seen {
        match feature.kind {
            Kind::Number | Kind::Boolean => Seen::Numbers(Moments::default()),
            Kind::Category => Seen::Words(BTreeSet::new()),
        }
    }

    fn add(&mut self, values: &Values, feature: &Feature, max: usize) -> Result<(), LogError> {
        match (self, values) {
            (Seen::Numbers(moments), Values::Numbers(numbers)) => moments.add(numbers),
            (Seen::Words(words), Values::Categories(categories)) => {
                for name in used(categories) {
                    if !words.contains(name) {
                        words.insert(name.to_string());
                    }
                }
                if words.len() > max {
                    return Err(LogError::TooManyCategories { name: feature.name.clone(), max });
                }
            }
            _ => unreachable!("a block holds what its schema says"),
        }
        Ok(())
    }

    fn encoder(self, feature: &Feature, config: &PreparationConfig) -> Encoder {
        match self {
            Seen::Words(words) => Encoder::Category { words: words.into_iter().collect() },
            Seen::Numbers(moments) if feature.kind == Kind::Boolean => Encoder::Boolean { mean: moments.mean() },
            Seen::Numbers(moments) => {
                let scale = if config.standardise { moments.deviation() } else { 1.0 };
                Encoder::Number { mean: moments.mean(), scale }
            }
        }
    }
}

/// The names that stand somewhere, each once.
fn used(categories: &Categories) -> impl Iterator<Item = &str> {
    let mut used = vec![false; categories.names.len()];
    categories.codes.iter().filter(|&&code| code != Categories::ABSENT).for_each(|&code| used[code as usize] = true);
    categories.names.iter().zip(used).filter(|(_, used)| *used).map(|(name, _)| name.as_str())
}

#[derive(Default)]
struct Tally {
    count: u64,
    rewards: f64,
}

impl Preparation {
    /// Fits a preparation on a log, in one reading of it.
    pub fn fit(log: &Log, config: &PreparationConfig) -> Result<(Preparation, LogSummary), LogError> {
        let schema = log.schema();
        let features: Vec<&Feature> = schema.shared.iter().chain(&schema.per_action).collect();
        let mut seen: Vec<Seen> = features.iter().map(|feature| Seen::new(feature)).collect();
        let mut actions: HashMap<String, Tally> = HashMap::new();
        let (mut rewards, mut propensities) = (Moments::default(), Moments::default());
        for block in log.blocks() {
            let block = block?;
            let of_actions: &[Values] = match &block.offered {
                Offered::Listed { features, .. } => features,
                Offered::All => &[],
            };
            let columns: Vec<&Values> = block.shared.iter().chain(of_actions).collect();
            // Each column has an order of summation of its own, so threads change no bit.
            seen.par_iter_mut()
                .zip(columns)
                .zip(&features)
                .try_for_each(|((seen, values), feature)| seen.add(values, feature, config.max_categories))?;
            tally(&block, &mut actions)?;
            rewards.add(block.rewards.as_deref().unwrap_or_default());
            propensities.add(block.propensities.as_deref().unwrap_or_default());
            if actions.len() > MAX_ACTIONS {
                let column = schema.roles.action.clone().unwrap_or_else(|| "action".to_string());
                return Err(LogError::TooManyActions { column, max: MAX_ACTIONS });
            }
        }
        let skipped = log.skipped().bad_rows;
        if rewards.count == 0 {
            return Err(LogError::NoRounds { skipped });
        }
        let mut names: Vec<String> = actions.keys().cloned().collect();
        let numeric = all_integers(&names);
        names.sort_by(|a, b| action_order(numeric, a, b));
        let mut encoders: Vec<Encoder> =
            seen.into_iter().zip(&features).map(|(seen, feature)| seen.encoder(feature, config)).collect();
        let per_action = encoders.split_off(schema.shared.len());
        let preparation = Preparation {
            config: config.clone(),
            schema: schema.clone(),
            shared: encoders,
            per_action,
            actions: names.clone(),
        };
        if preparation.dim() == 0 {
            return Err(LogError::NoFeatures);
        }
        let summary = LogSummary {
            rounds: rewards.count,
            skipped,
            mean_reward: rewards.mean(),
            reward_deviation: rewards.deviation(),
            min_reward: rewards.min,
            max_reward: rewards.max,
            actions: names
                .into_iter()
                .map(|name| {
                    let Tally { count, rewards } = actions[&name];
                    ActionSummary { name, count, mean_reward: (count > 0).then(|| rewards / count as f64) }
                })
                .collect(),
            propensities: (propensities.count > 0).then_some(PropensitySummary {
                min: propensities.min,
                max: propensities.max,
                mean: propensities.mean(),
            }),
        };
        Ok((preparation, summary))
    }
}

/// Counts the actions that were chosen, and notes those that were offered.
fn tally(block: &Block, actions: &mut HashMap<String, Tally>) -> Result<(), LogError> {
    if let Offered::Listed { actions: offered, .. } = &block.offered {
        for name in used(offered) {
            if !actions.contains_key(name) {
                actions.insert(name.to_string(), Tally::default());
            }
        }
    }
    let (Some(chosen), Some(rewards)) = (&block.chosen, &block.rewards) else {
        return Err(LogError::NotRead { what: "actions and rewards" });
    };
    let mut tallies: Vec<(u64, f64)> = vec![(0, 0.0); chosen.names.len()];
    for (&code, reward) in chosen.codes.iter().zip(rewards) {
        let (count, sum) = &mut tallies[code as usize];
        *count += 1;
        *sum += reward;
    }
    for (name, (count, sum)) in chosen.names.iter().zip(tallies).filter(|(_, (count, _))| *count > 0) {
        let tally = actions.entry(name.clone()).or_default();
        tally.count += count;
        tally.rewards += sum;
    }
    Ok(())
}
