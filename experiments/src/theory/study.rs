//! A log with, where it is known, the truth about it.
//!
//! The theory speaks of rewards in [0, 1] and contexts of length 1: rewards are mapped linearly so that the expected
//! ones of log and test fill [0, 1], and real data are scaled to unit rows.

use neuralcb::bandit::{Bandit, TestSet};
use neuralcb::policy::{Behaviour, BehaviourConfig};
use neuralcb::theory::Coverage;
use neuralcb::{Error, LoggedData, Seed};
use neuralcb_logs::datasets::Scale;

use super::settings::Settings;
use crate::error::ExperimentError;
use crate::names::{Dataset, Figure, Preset};
use crate::problem::{Library, bandits};
use crate::settings::Settings as Reproduction;

/// What is studied.
pub struct Study {
    /// Its name.
    pub name: String,
    /// The log.
    pub log: LoggedData,
    /// The truth about it.
    pub truth: Option<Truth>,
    /// The seed of models.
    pub seed: Seed,
}

/// What only a simulation knows.
pub struct Truth {
    /// The expected reward of every pair of the log, in [0, 1].
    pub expected: Vec<f64>,
    /// Contexts to be judged on, with expected rewards in the same unit.
    pub test: TestSet,
    /// κ of the behaviour policy.
    pub coverage: Coverage,
}

impl Study {
    /// A log as it stands; nothing is known about the truth.
    pub fn of_log(name: &str, log: LoggedData, seed: u64) -> Self {
        Study { name: name.to_owned(), log, truth: None, seed: Seed::new(seed).child(name) }
    }

    /// Draws the bandit of the settings, a log of an ε-greedy policy, and test contexts.
    pub fn draw(settings: &Settings, library: &Library, rep: usize, epsilon: f64) -> Result<Self, ExperimentError> {
        let dataset = settings.dataset.unwrap_or(Dataset::Quadratic);
        let reproduction = Reproduction {
            datasets: vec![dataset],
            scale: Some(Scale::UnitNorm),
            synthetic_rounds: settings.n,
            real_rounds: settings.n,
            test_contexts: settings.test_contexts,
            noise_std: settings.constants.noise,
            ..Reproduction::of(&[Figure::Fig1, Figure::Fig2], Preset::Paper)
        };
        let config = reproduction.problems().remove(0);
        let seed = Seed::new(settings.seed).child(dataset.name()).nth(rep as u64);
        let (log_bandit, test_bandit) = bandits(&config, library, seed)?;
        let n_test = test_bandit.n_contexts().map_or(settings.test_contexts, |n| n.min(settings.test_contexts));
        let test = TestSet::draw(test_bandit.as_ref(), n_test, &mut seed.stream("test"))?;
        let behaviour = BehaviourConfig::EpsilonGreedy { epsilon };
        let behaviour = Behaviour::new(&behaviour, log_bandit.layout())?;
        let (log, truth) = collect(log_bandit.as_ref(), behaviour, settings.n, test, seed.child("log"))?;
        Ok(Study { name: dataset.name().to_owned(), log, truth: Some(truth), seed })
    }

    /// Number of pairs in the first n rounds.
    pub(crate) fn pairs(&self, n: usize) -> usize {
        self.log.contexts().first_pair(n)
    }
}

/// Lets the behaviour policy play, and keeps what it could not see.
fn collect(
    bandit: &dyn Bandit,
    mut behaviour: Behaviour,
    n: usize,
    test: TestSet,
    seed: Seed,
) -> Result<(LoggedData, Truth), Error> {
    let (contexts, expected) = bandit.draw(n, &mut seed.stream("contexts"))?;
    let all = || expected.iter().chain(test.expected()).copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let range = if high > low { high - low } else { 1.0 };
    let unit = |v: f64| (v - low) / range;
    let (mut action_rng, mut reward_rng) = (seed.stream("actions"), seed.stream("rewards"));
    let (mut actions, mut rewards, mut propensities, mut ratios) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for t in 0..n {
        let means = &expected[contexts.pairs(t)];
        let (place, propensity) = behaviour.play(&contexts, t, means, &mut action_rng);
        let chosen = contexts.pair(t, place);
        let reward = bandit.draw_reward(means[place], &mut reward_rng);
        behaviour.observe(chosen, reward);
        let mut best = vec![0.0; means.len()];
        best[(0..means.len()).fold(0, |b, i| if means[i] > means[b] { i } else { b })] = 1.0;
        ratios.push((best, behaviour.probabilities(&contexts, t, means).to_vec()));
        actions.push(chosen.action as u32);
        rewards.push(unit(reward));
        propensities.push(propensity.min(1.0));
    }
    let coverage = Coverage::of(ratios.iter().map(|(target, mu)| (&target[..], &mu[..])))?;
    let test = TestSet::new(test.contexts().clone(), test.expected().iter().map(|&v| unit(v)).collect());
    let truth = Truth { expected: expected.iter().map(|&v| unit(v)).collect(), test, coverage };
    Ok((LoggedData::new(contexts, actions, rewards, Some(propensities))?, truth))
}
