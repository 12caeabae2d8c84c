//! Fitting a preparation: one reading of the log, in memory that does not grow with it.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::moments::Moments;
use super::{Encoder, Preparation, PreparationConfig, action_order, all_integers};
use crate::log::block::{Block, Categories, Offered, Values};
use crate::log::error::LogError;
use crate::log::read_log::ReadLog;
use crate::log::schema::{Feature, Kind};

/// The most actions that are told apart.
const MAX_ACTIONS: usize = 1 << 20;

/// The most different words of a column that are counted.
const MAX_WORDS: usize = 1 << 20;

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
    /// Categories of more words than are told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grouped: Vec<Grouped>,
}

/// A category of which only the words seen most often have places of their own; the others are as words never seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grouped {
    /// The column.
    pub column: String,
    /// Words with a place.
    pub kept: u64,
    /// Different words.
    pub words: u64,
}

impl LogSummary {
    /// Adds the rounds of another log, by the formulas of [`Moments`] for blocks.
    pub(crate) fn add(&mut self, other: &LogSummary) {
        let (n_a, n_b) = (self.rounds as f64, other.rounds as f64);
        let (n, delta) = (n_a + n_b, other.mean_reward - self.mean_reward);
        let squares = |s: &LogSummary, n: f64| s.reward_deviation.powi(2) * n;
        let all = squares(self, n_a) + squares(other, n_b) + delta * delta * n_a * n_b / n;
        self.reward_deviation = (all / n).sqrt();
        self.mean_reward += delta * n_b / n;
        self.min_reward = self.min_reward.min(other.min_reward);
        self.max_reward = self.max_reward.max(other.max_reward);
        self.rounds += other.rounds;
        self.skipped += other.skipped;
        for action in &mut self.actions {
            if let Some(more) = other.actions.iter().find(|more| more.name == action.name) {
                let sum = |a: &ActionSummary| a.mean_reward.unwrap_or(0.0) * a.count as f64;
                let (count, rewards) = (action.count + more.count, sum(action) + sum(more));
                *action =
                    ActionSummary { mean_reward: (count > 0).then(|| rewards / count as f64), count, ..action.clone() };
            }
        }
        self.propensities = match (self.propensities.take(), &other.propensities) {
            (Some(a), Some(b)) => Some(PropensitySummary {
                min: a.min.min(b.min),
                max: a.max.max(b.max),
                mean: a.mean + (b.mean - a.mean) * n_b / n,
            }),
            _ => None,
        };
    }
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
    /// In how many rows each stands.
    Words(HashMap<String, u64>),
}

impl Seen {
    fn new(feature: &Feature) -> Seen {
        match feature.kind {
            Kind::Number | Kind::Boolean => Seen::Numbers(Moments::default()),
            Kind::Category => Seen::Words(HashMap::new()),
        }
    }

    fn add(&mut self, values: &Values, feature: &Feature) -> Result<(), LogError> {
        match (self, values) {
            (Seen::Numbers(moments), Values::Numbers(numbers)) => moments.add(numbers),
            (Seen::Words(words), Values::Categories(categories)) => {
                for (name, count) in used(categories) {
                    match words.get_mut(name) {
                        Some(known) => *known += count,
                        None => drop(words.insert(name.to_string(), count)),
                    }
                }
                if words.len() > MAX_WORDS {
                    return Err(LogError::TooManyCategories { name: feature.name.clone(), max: MAX_WORDS });
                }
            }
            _ => unreachable!("a block holds what its schema says"),
        }
        Ok(())
    }

    fn encoder(self, feature: &Feature, config: &PreparationConfig) -> Encoder {
        match self {
            Seen::Words(words) => Encoder::Category { words: commonest(words, config.max_categories) },
            Seen::Numbers(moments) if feature.kind == Kind::Boolean => Encoder::Boolean { mean: moments.mean() },
            Seen::Numbers(moments) => {
                let scale = if config.standardise { moments.deviation() } else { 1.0 };
                Encoder::Number { mean: moments.mean(), scale }
            }
        }
    }
}

/// The names that stand somewhere, and how often.
fn used(categories: &Categories) -> impl Iterator<Item = (&str, u64)> {
    let mut used = vec![0; categories.names.len()];
    categories.codes.iter().filter(|&&code| code != Categories::ABSENT).for_each(|&code| used[code as usize] += 1);
    categories.names.iter().zip(used).filter(|(_, n)| *n > 0).map(|(name, n)| (name.as_str(), n))
}

/// The words seen most often, in rising order; of equally many the earlier in that order.
fn commonest(words: HashMap<String, u64>, max: usize) -> Vec<String> {
    let mut words: Vec<(String, u64)> = words.into_iter().collect();
    words.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    let mut words: Vec<String> = words.into_iter().take(max).map(|(word, _)| word).collect();
    words.sort_unstable();
    words
}

#[derive(Default)]
struct Tally {
    count: u64,
    rewards: f64,
}

impl Preparation {
    /// Fits a preparation on a log, in one reading of it.
    pub fn fit(log: &dyn ReadLog, config: &PreparationConfig) -> Result<(Preparation, LogSummary), LogError> {
        let schema = log.schema();
        let features: Vec<&Feature> = schema.shared.iter().chain(&schema.per_action).collect();
        let mut seen: Vec<Seen> = features.iter().map(|feature| Seen::new(feature)).collect();
        let mut actions: HashMap<String, Tally> =
            log.actions().into_iter().map(|name| (name, Tally::default())).collect();
        let (mut rewards, mut propensities) = (Moments::default(), Moments::default());
        for block in log.read() {
            log.go_on()?;
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
                .try_for_each(|((seen, values), feature)| seen.add(values, feature))?;
            tally(&block, &mut actions)?;
            rewards.add(block.rewards.as_deref().unwrap_or_default());
            propensities.add(block.propensities.as_deref().unwrap_or_default());
            if actions.len() > MAX_ACTIONS {
                let column = schema.roles.action.clone().unwrap_or_else(|| "action".to_string());
                return Err(LogError::TooManyActions { column, max: MAX_ACTIONS });
            }
        }
        let skipped = log.bad_rows();
        if rewards.count == 0 {
            return Err(LogError::NoRounds { skipped });
        }
        let mut names: Vec<String> = actions.keys().cloned().collect();
        let numeric = all_integers(&names);
        names.sort_by(|a, b| action_order(numeric, a, b));
        let mut grouped = Vec::new();
        let mut encoders = Vec::with_capacity(features.len());
        for (seen, feature) in seen.into_iter().zip(&features) {
            if let Seen::Words(words) = &seen
                && words.len() > config.max_categories
            {
                let (kept, words) = (config.max_categories as u64, words.len() as u64);
                grouped.push(Grouped { column: feature.name.clone(), kept, words });
            }
            let encoder = seen.encoder(feature, config);
            if !encoder.fits(feature) {
                return Err(LogError::TooLarge { column: feature.name.clone() });
            }
            encoders.push(encoder);
        }
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
            grouped,
        };
        let means = summary.actions.iter().filter_map(|action| action.mean_reward);
        if ![summary.mean_reward, summary.reward_deviation].into_iter().chain(means).all(f64::is_finite) {
            let column = schema.roles.reward.clone().unwrap_or_else(|| "reward".to_string());
            return Err(LogError::TooLarge { column });
        }
        Ok((preparation, summary))
    }
}

/// Counts the actions that were chosen, and notes those that were offered.
fn tally(block: &Block, actions: &mut HashMap<String, Tally>) -> Result<(), LogError> {
    if let Offered::Listed { actions: offered, .. } = &block.offered {
        for (name, _) in used(offered) {
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
