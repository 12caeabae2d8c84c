//! What a log says about each action, and about policies far from the one that wrote it.
//!
//! With the propensity p_t of the chosen action a_t, and K_t actions offered, the importance weight towards
//!
//! * the uniform policy is w_t = 1/(K_t p_t),
//! * the policy that always plays a is w_t = 1{a_t = a}/p_t.
//!
//! Under true propensities the mean of w_t over the rounds (in which a was offered) is 1, or less where the log never
//! tries some offered action. The effective sample size (Σw)²/Σw² says how many rounds of the target policy itself
//! would be as informative (Kish 1965).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::moments::Moments;
use crate::log::{Block, Categories, Offered};

/// The most actions that are told apart; the rest is counted as one.
pub(super) const KEPT: usize = 1 << 16;

/// How much a log says about one action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionReport {
    /// Its name.
    pub name: String,
    /// How many rounds chose it.
    pub count: f64,
    /// Their share of all rounds.
    pub share: f64,
    /// Rounds that offered it.
    pub offered: f64,
    /// The mean reward of the rounds that chose it; none if none did.
    pub mean_reward: Option<f64>,
    /// The estimated value of always playing it: Σ(r/p)/Σ(1/p) over its rounds, or the mean reward without
    /// propensities.
    pub value: Option<f64>,
    /// The smallest probability with which it was chosen.
    pub smallest_propensity: Option<f64>,
    /// The mean weight towards the policy that always plays it, over the rounds that offered it: about 1.
    pub mean_weight: Option<f64>,
    /// Effective sample size towards that policy.
    pub ess: Option<f64>,
}

/// What is summed for an action.
#[derive(Debug, Clone, Default)]
pub(super) struct Action {
    pub name: String,
    pub rewards: Moments,
    pub offered: f64,
    pub weights: Weights,
    /// Rewards, each counting 1/p times.
    pub weighted: Moments,
    pub smallest: f64,
    pub largest: f64,
}

/// Sums of some importance weights.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weights {
    pub sum: f64,
    pub squares: f64,
}

impl Weights {
    fn push(&mut self, w: f64) {
        self.sum += w;
        self.squares += w * w;
    }

    /// (Σw)²/Σw².
    pub fn ess(&self) -> f64 {
        if self.squares > 0.0 { self.sum * (self.sum / self.squares) } else { 0.0 }
    }
}

/// All actions of a log.
#[derive(Debug, Default)]
pub(super) struct Actions {
    numbers: HashMap<String, usize>,
    pub list: Vec<Action>,
    pub rounds: f64,
    /// Weights 1/p (every action offered) or 1/(K_t p) (actions listed).
    pub uniform: Weights,
    pub propensities: Moments,
    pub listed: bool,
    pub overflow: bool,
}

impl Actions {
    /// The number of each name of a dictionary.
    fn known(&mut self, words: &Categories) -> Vec<usize> {
        words.names.iter().map(|name| self.number(name)).collect()
    }

    fn number(&mut self, name: &str) -> usize {
        if let Some(&i) = self.numbers.get(name) {
            return i;
        }
        let i = self.list.len();
        if i == KEPT {
            self.overflow = true;
            return KEPT - 1;
        }
        self.numbers.insert(name.to_owned(), i);
        let (smallest, largest) = (f64::INFINITY, 0.0);
        self.list.push(Action { name: name.to_owned(), smallest, largest, ..Action::default() });
        i
    }

    /// Adds a block; gives the number of each round's chosen action.
    pub fn add(&mut self, block: &Block, chosen: &Categories, rewards: &[f64]) -> Vec<usize> {
        let known = self.known(chosen);
        let count = |t: usize| block.counts.as_ref().map_or(1.0, |counts| counts[t]);
        let offers = match &block.offered {
            Offered::All => None,
            Offered::Listed { offsets, actions, .. } => {
                self.listed = true;
                let known = self.known(actions);
                for t in 0..block.n_rounds() {
                    for &code in &actions.codes[offsets[t]..offsets[t + 1]] {
                        if let Some(&i) = known.get(code as usize) {
                            self.list[i].offered += count(t);
                        }
                    }
                }
                Some(offsets)
            }
        };
        let mut numbers = Vec::with_capacity(rewards.len());
        for (t, &reward) in rewards.iter().enumerate() {
            let i = known.get(chosen.codes[t] as usize).copied().unwrap_or(0);
            numbers.push(i);
            let Some(action) = self.list.get_mut(i) else { continue };
            self.rounds += count(t);
            action.rewards.push(reward, count(t));
            if let Some(p) = block.propensities.as_ref().map(|ps| ps[t]) {
                let inverse = count(t) / p;
                action.weights.push(inverse);
                action.weighted.push(reward, inverse);
                action.smallest = action.smallest.min(p);
                action.largest = action.largest.max(p);
                self.propensities.push(p, count(t));
                self.uniform.push(offers.map_or(inverse, |o| inverse / (o[t + 1] - o[t]).max(1) as f64));
            }
        }
        numbers
    }

    /// Rounds that offered an action.
    fn offers(&self, action: &Action) -> f64 {
        if self.listed { action.offered } else { self.rounds }
    }

    pub fn reports(&self) -> Vec<ActionReport> {
        let report = |action: &Action| {
            let (chosen, weighed) = (action.rewards.n > 0.0, action.weights.sum > 0.0);
            let mean_reward = chosen.then_some(action.rewards.mean);
            ActionReport {
                name: action.name.clone(),
                count: action.rewards.n,
                share: action.rewards.n / self.rounds,
                offered: self.offers(action),
                mean_reward,
                value: if weighed { Some(action.weighted.mean) } else { mean_reward },
                smallest_propensity: weighed.then_some(action.smallest),
                mean_weight: weighed.then(|| action.weights.sum / self.offers(action)),
                ess: weighed.then(|| action.weights.ess()),
            }
        };
        let mut reports: Vec<ActionReport> = self.list.iter().map(report).collect();
        if reports.iter().all(|a| a.name.parse::<i64>().is_ok()) {
            reports.sort_by_key(|a| a.name.parse::<i64>().unwrap_or_default());
        } else {
            reports.sort_by(|a, b| a.name.cmp(&b.name));
        }
        reports
    }

    /// The factor that turns the sums of [`Actions::uniform`] into weights.
    pub fn uniform_scale(&self) -> f64 {
        if self.listed { 1.0 } else { 1.0 / self.list.len().max(1) as f64 }
    }
}
