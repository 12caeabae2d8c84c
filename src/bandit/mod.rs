//! Contextual bandits with a known truth: they make contexts, expected rewards and, with a behaviour policy, logs.
//!
//! A policy is judged by its sub-optimality, the mean over test contexts of v*(x) − v^π(x), in expected rewards.

mod classification;
mod synthetic;

use rand_distr::{Distribution, Normal};

pub use classification::{Classification, Labelled, RewardRule};
pub use synthetic::{ContextForm, RewardFunction, Synthetic, SyntheticConfig};

use crate::data::{Contexts, Layout, LoggedData};
use crate::error::{Error, at_least};
use crate::policy::Behaviour;
use crate::seed::{Seed, Stream};

/// A bandit whose expected rewards are known.
pub trait Bandit: Send + Sync {
    /// The sizes of its contexts.
    fn layout(&self) -> Layout;

    /// Draws the contexts of `n` rounds from ρ, with the expected reward h of every pair.
    fn draw(&self, n: usize, rng: &mut Stream) -> Result<(Contexts, Vec<f64>), Error>;

    /// How many different contexts there are, where they are not drawn from a continuum.
    fn n_contexts(&self) -> Option<usize> {
        None
    }

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
        let (contexts, expected) = bandit.draw(n, rng)?;
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
            value_and_hit(behaviour.probabilities(&self.contexts, t, expected), expected, self.best[t])
        }))
    }

    /// Judges the best policy that always plays the same place: what can be had without looking at the context.
    pub fn judge_best_constant(&self) -> Verdict {
        let places = (0..self.contexts.n_rounds()).map(|t| self.contexts.pairs(t).len()).min().unwrap_or(0);
        let judge = |place: usize| self.judge(&vec![place as u32; self.contexts.n_rounds()]);
        let better = |a: Verdict, b: Verdict| if b.suboptimality < a.suboptimality { b } else { a };
        (0..places).map(judge).reduce(better).expect("every round offers an action")
    }

    fn judge_values(&self, rounds: impl Iterator<Item = (f64, f64)>) -> Verdict {
        Verdict::mean(rounds.zip(&self.best).map(|((value, hit), best)| (best - value, hit)))
    }
}

impl Verdict {
    /// From the gap v* − v^π and the probability of an optimal action of each round.
    fn mean(rounds: impl Iterator<Item = (f64, f64)>) -> Verdict {
        let (mut gaps, mut hits, mut n) = (0.0, 0.0, 0.0);
        for (gap, hit) in rounds {
            gaps += gap;
            hits += hit;
            n += 1.0;
        }
        Verdict { suboptimality: gaps / n, accuracy: hits / n }
    }
}

/// The expected reward of playing by `probabilities`, and the probability of an optimal action.
fn value_and_hit(probabilities: &[f64], expected: &[f64], best: f64) -> (f64, f64) {
    let played = probabilities.iter().zip(expected);
    let value = played.clone().map(|(p, v)| p * v).sum();
    (value, played.filter(|(_, v)| **v == best).map(|(p, _)| p).sum())
}

/// A log and what is known about the policy that made it.
#[derive(Debug, Clone)]
pub struct Collected {
    /// The log, with propensities.
    pub log: LoggedData,
    /// The behaviour policy over the rounds it played, by its probabilities at the time.
    pub behaviour: Verdict,
}

/// Lets the behaviour policy play `n` rounds of the bandit and logs them with their propensities.
///
/// Streams: `contexts`, `actions`, `rewards`.
pub fn collect(bandit: &dyn Bandit, behaviour: &mut Behaviour, n: usize, seed: Seed) -> Result<Collected, Error> {
    at_least("n", 1, "at least 1", n)?;
    let (contexts, expected) = bandit.draw(n, &mut seed.stream("contexts"))?;
    let (mut action_rng, mut reward_rng) = (seed.stream("actions"), seed.stream("rewards"));
    let (mut actions, mut rewards) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let (mut propensities, mut played) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for t in 0..n {
        let means = &expected[contexts.pairs(t)];
        let (place, propensity) = behaviour.play(&contexts, t, means, &mut action_rng);
        let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (value, hit) = value_and_hit(behaviour.last_probabilities(), means, best);
        played.push((best - value, hit));
        let reward = bandit.draw_reward(means[place], &mut reward_rng);
        let chosen = contexts.pair(t, place);
        behaviour.observe(chosen, reward);
        actions.push(chosen.action as u32);
        rewards.push(reward);
        propensities.push(propensity.min(1.0));
    }
    let log = LoggedData::new(contexts, actions, rewards, Some(propensities))?;
    Ok(Collected { log, behaviour: Verdict::mean(played.into_iter()) })
}

/// A reward with Gaussian noise.
fn gaussian(expected: f64, std: f64, rng: &mut Stream) -> f64 {
    Normal::new(expected, std).expect("the noise was checked when the bandit was made").sample(rng)
}
