//! Contextual bandits with a known truth: they make contexts, expected rewards and, with a behaviour policy, logs.
//!
//! A policy is judged by its sub-optimality, the mean over test contexts of v*(x) − v^π(x), in expected rewards.

mod synthetic;

use rand_distr::{Distribution, Normal};

pub use synthetic::{ContextForm, RewardFunction, Synthetic, SyntheticConfig};

use crate::data::{Contexts, Layout, LoggedData};
use crate::error::{Error, at_least};
use crate::policy::Behaviour;
use crate::seed::{Seed, Stream};

/// A bandit whose expected rewards are known.
pub trait Bandit: Send + Sync {
    /// The sizes of its contexts.
    fn layout(&self) -> Layout;

    /// Draws the contexts of `n` rounds from ρ.
    fn contexts(&self, n: usize, rng: &mut Stream) -> Result<Contexts, Error>;

    /// The expected reward h of every pair.
    fn expected_rewards(&self, contexts: &Contexts) -> Vec<f64>;

    /// Draws a reward with the given expectation.
    fn draw_reward(&self, expected: f64, rng: &mut Stream) -> f64;
}

/// Test contexts with the truth about them.
#[derive(Debug, Clone)]
pub struct TestSet {
    contexts: Contexts,
    expected: Vec<f64>,
    /// v*(x) of each round.
    best: Vec<f64>,
}

/// How good a policy is on a test set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Mean over the rounds of v*(x) − v^π(x).
    pub suboptimality: f64,
    /// Share of the rounds in which an optimal action is chosen.
    pub accuracy: f64,
}

impl TestSet {
    /// Draws `n` test contexts.
    pub fn draw(bandit: &dyn Bandit, n: usize, rng: &mut Stream) -> Result<Self, Error> {
        at_least("test contexts", 1, "at least 1", n)?;
        let contexts = bandit.contexts(n, rng)?;
        let expected = bandit.expected_rewards(&contexts);
        Ok(TestSet::new(contexts, expected))
    }

    /// Contexts with the expected reward of each pair.
    pub fn new(contexts: Contexts, expected: Vec<f64>) -> Self {
        let best = |t| expected[contexts.pairs(t)].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        TestSet { best: (0..contexts.n_rounds()).map(best).collect(), contexts, expected }
    }

    /// The contexts.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The expected reward of every pair.
    pub fn expected(&self) -> &[f64] {
        &self.expected
    }

    /// Judges a deterministic policy by the places it chooses.
    pub fn judge(&self, choices: &[u32]) -> Verdict {
        self.judge_values(choices.iter().enumerate().map(|(t, &place)| {
            let value = self.expected[self.contexts.first_pair(t) + place as usize];
            (value, f64::from(u8::from(value == self.best[t])))
        }))
    }

    /// Judges the behaviour policy itself, by its probabilities. An adaptive policy is judged as it stands.
    pub fn judge_behaviour(&self, behaviour: &mut Behaviour) -> Verdict {
        self.judge_values((0..self.contexts.n_rounds()).map(|t| {
            let expected = &self.expected[self.contexts.pairs(t)];
            let p = behaviour.probabilities(&self.contexts, t, expected);
            let value = p.iter().zip(expected).map(|(p, v)| p * v).sum();
            (value, p.iter().zip(expected).filter(|(_, v)| **v == self.best[t]).map(|(p, _)| p).sum())
        }))
    }

    fn judge_values(&self, rounds: impl Iterator<Item = (f64, f64)>) -> Verdict {
        let (mut gap, mut hits) = (0.0, 0.0);
        for ((value, hit), best) in rounds.zip(&self.best) {
            gap += best - value;
            hits += hit;
        }
        let n = self.best.len() as f64;
        Verdict { suboptimality: gap / n, accuracy: hits / n }
    }
}

/// Lets the behaviour policy play `n` rounds of the bandit and logs them with their propensities.
///
/// Streams: `contexts`, `actions`, `rewards`.
pub fn collect(bandit: &dyn Bandit, behaviour: &mut Behaviour, n: usize, seed: Seed) -> Result<LoggedData, Error> {
    at_least("n", 1, "at least 1", n)?;
    let contexts = bandit.contexts(n, &mut seed.stream("contexts"))?;
    let expected = bandit.expected_rewards(&contexts);
    let (mut action_rng, mut reward_rng) = (seed.stream("actions"), seed.stream("rewards"));
    let (mut actions, mut rewards) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut propensities = Vec::with_capacity(n);
    for t in 0..n {
        let means = &expected[contexts.pairs(t)];
        let (place, propensity) = behaviour.play(&contexts, t, means, &mut action_rng);
        let reward = bandit.draw_reward(means[place], &mut reward_rng);
        let chosen = contexts.pair(t, place);
        behaviour.observe(chosen, reward);
        actions.push(chosen.action as u32);
        rewards.push(reward);
        propensities.push(propensity.min(1.0));
    }
    LoggedData::new(contexts, actions, rewards, Some(propensities))
}

/// A reward with Gaussian noise.
fn gaussian(expected: f64, std: f64, rng: &mut Stream) -> f64 {
    Normal::new(expected, std).expect("the noise was checked when the bandit was made").sample(rng)
}
