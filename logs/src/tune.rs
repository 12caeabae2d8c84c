//! Choosing algorithm, mode, learning rate and β from the log alone.
//!
//! The log is divided: candidates learn from the first part and are judged on the rest, which none of them has seen, by the
//! self-normalised estimate of their value, in which what the log certainly does not cover counts as the worst reward
//! ([`WeightedMean::worst_case`]). The largest **lower bound** wins, not the largest value: a candidate that the log says
//! little about cannot win by luck. The bounds hold together (δ/N for each of N candidates), so the winner's is
//! not spoiled by the choosing. The winner then learns from the whole log.
//!
//! Among the candidates are a clone of the logged actions, a clone of those that were rewarded, and the best constant action.
//! Where no bound lies above the mean reward of the log's own policy, the answer is that nothing is shown to beat it.

use neuralcb::archive::{Archive, Keep};
use neuralcb::ope::{WeightedMean, importance_weights, snips};
use neuralcb::policy::{Choices, Imitation, PropensityConfig, Rounding, estimate_propensities, pessimistic};
use neuralcb::theory::Rule;
use neuralcb::{LoggedData, ModelConfig, Seed};
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::log::{LogSummary, Preparation, ReadLog};
use crate::memory;
use crate::policy::{Algorithm, Method, Mode, Origin, Policy, PolicyError, Recipe};
use crate::train::{describe, fit_clone, observe, read_all, train_as};

/// Which rounds are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldOut {
    /// The last ones: what a policy learned from the past earns later.
    Time,
    /// Drawn at random.
    Random,
}

/// Settings of the tuning.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `base` | practical | what the candidates start from, and the seed | |
/// | `hold_out` | time | which rounds are held out | |
/// | `share` | 0.3 | how many of them | in (0, 1) |
/// | `confidence` | 0.95 | that all bounds hold together | in (0, 1) |
/// | `betas` | 0, 0.1, 0.3, 1, 3 | β of every reward model | ≥ 0 |
/// | `lrs` | 1e-3, 3e-4 | learning rates of the neural model | > 0 |
/// | `modes` | S, and B where that is a minute's work | its training modes | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuneOptions {
    /// What the candidates start from.
    pub base: Recipe,
    /// Which rounds are held out.
    pub hold_out: HoldOut,
    /// How many of them.
    pub share: f64,
    /// That all bounds hold together.
    pub confidence: f64,
    /// β of every reward model.
    pub betas: Vec<f64>,
    /// Learning rates.
    pub lrs: Vec<f64>,
    /// Training modes.
    pub modes: Option<Vec<Mode>>,
    /// How propensities are estimated where the log has none.
    pub propensities: PropensityConfig,
}

impl Default for TuneOptions {
    fn default() -> Self {
        TuneOptions {
            base: Recipe::default(),
            hold_out: HoldOut::Time,
            share: 0.3,
            confidence: 0.95,
            betas: vec![0.0, 0.1, 0.3, 1.0, 3.0],
            lrs: vec![1e-3, 3e-4],
            modes: None,
            propensities: PropensityConfig::default(),
        }
    }
}

/// Rounds times parameters up to which B-mode is tried: about a minute on one core.
const B_MODE_LIMIT: f64 = 1e8;

/// Rounds of which a choice can be made.
const LEAST_ROUNDS: u64 = 100;

/// A candidate and what the held-out rounds say of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Mode, learning rate, σ and β, where it has them.
    pub mode: Option<Mode>,
    /// Learning rate.
    pub lr: Option<f64>,
    /// σ.
    pub sigma: Option<f64>,
    /// β.
    pub beta: Option<f64>,
    /// The estimate of its value; none where no held-out round agrees with it.
    pub value: Option<f64>,
    /// Its lower bound, which holds together with all others'.
    pub lower: f64,
    /// Mean weight: the share of it that the log covers.
    pub coverage: f64,
    /// Held-out rounds in which it would have done what was done.
    pub agreeing: u64,
}

/// What was found.
pub struct Tuned {
    /// The winner, trained on the whole log.
    pub policy: Policy,
    /// All candidates, the best bound first.
    pub tried: Vec<Tried>,
    /// Mean reward of the log's own policy on the held-out rounds.
    pub behaviour: f64,
    /// Held-out rounds.
    pub held_out: u64,
    /// Whether propensities had to be estimated.
    pub estimated_propensities: bool,
    /// The answer in words.
    pub words: String,
}

impl Tuned {
    /// Whether the winner is shown to beat the policy that made the log.
    pub fn beats_the_log(&self) -> bool {
        self.tried[0].lower > self.behaviour
    }
}

/// Chooses among the candidates and trains the winner on the whole log.
pub fn tune(log: &dyn ReadLog, options: &TuneOptions, progress: &mut dyn FnMut(&str)) -> Result<Tuned, PolicyError> {
    check(options)?;
    progress("preparing");
    let (preparation, summary) = Preparation::fit(log, &options.base.preparation)?;
    if summary.rounds < LEAST_ROUNDS {
        return Err(PolicyError::TooShort { rounds: summary.rounds, what: "tuning", least: LEAST_ROUNDS });
    }
    let origin = Origin::of(log)?;
    let mut rounds = LoggedData::concat(read_all(log, &preparation)?)?;
    let seed = Seed::new(options.base.seed);
    let estimated = rounds.propensities().is_none();
    if estimated {
        progress("estimating propensities");
        let p = estimate_propensities(&options.propensities, &rounds, seed)?;
        let (contexts, actions) = (rounds.contexts().clone(), rounds.actions().to_vec());
        rounds = LoggedData::new(contexts, actions, rounds.rewards().to_vec(), Some(p))?;
    }
    let (learn, judge) = divide(&rounds, options, seed);
    let recipes = candidates(options, &preparation, &summary);
    let n = recipes.iter().map(|(_, betas)| betas.len().max(1)).sum::<usize>();
    let judge =
        Judge { held_out: judge, confidence: 1.0 - (1.0 - options.confidence) / n as f64, worst: summary.min_reward };
    progress(&format!("{n} candidates"));
    let of_recipe =
        |(recipe, betas): &(Recipe, Vec<f64>)| try_recipe(log, recipe, betas, &learn, &judge, &preparation, &summary);
    let tried = recipes.par_iter().map(of_recipe).collect::<Result<Vec<_>, PolicyError>>()?;
    let mut tried: Vec<(Recipe, Tried)> = tried.into_iter().flatten().collect();
    // of equal bounds the earlier, which is the simpler
    tried.sort_by(|(_, a), (_, b)| b.lower.total_cmp(&a.lower));
    progress("training the best on the whole log");
    let method = tried[0].0.method(&summary, preparation.actions(), None)?;
    let description = describe(method, preparation, summary, origin, options.base.seed);
    let policy = train_as(log, description, None, &mut |_| {})?;
    let behaviour = judge.held_out.rewards().iter().sum::<f64>() / judge.held_out.n_rounds() as f64;
    let tried: Vec<Tried> = tried.into_iter().map(|(_, tried)| tried).collect();
    let words = words(&tried, behaviour, options.confidence);
    let held_out = judge.held_out.n_rounds() as u64;
    Ok(Tuned { policy, tried, behaviour, held_out, estimated_propensities: estimated, words })
}

fn check(options: &TuneOptions) -> Result<(), PolicyError> {
    let inside = |name, got: f64| {
        let refused = neuralcb::Error::Param { name, range: "in (0, 1)", got };
        if got > 0.0 && got < 1.0 { Ok(()) } else { Err(PolicyError::from(refused)) }
    };
    inside("share", options.share)?;
    inside("confidence", options.confidence)?;
    options.betas.iter().try_for_each(|&beta| crate::policy::check_beta(beta))?;
    Ok(())
}

/// The rounds to learn from and those to judge by.
fn divide(rounds: &LoggedData, options: &TuneOptions, seed: Seed) -> (LoggedData, LoggedData) {
    let n = rounds.n_rounds();
    let held_out = ((n as f64 * options.share).round() as usize).clamp(1, n - 1);
    match options.hold_out {
        HoldOut::Time => (rounds.slice(0..n - held_out), rounds.slice(n - held_out..n)),
        HoldOut::Random => {
            let mut order: Vec<usize> = (0..n).collect();
            order.shuffle(&mut seed.stream("hold-out"));
            let (judge, learn) = order.split_at_mut(held_out);
            judge.sort_unstable();
            learn.sort_unstable();
            (rounds.select(learn), rounds.select(judge))
        }
    }
}

/// The recipes with the β to be read off each, simple ones first.
fn candidates(options: &TuneOptions, preparation: &Preparation, log: &LogSummary) -> Vec<(Recipe, Vec<f64>)> {
    let (base, betas) = (&options.base, &options.betas);
    let of =
        |algorithm| Recipe { algorithm, beta: None, mode: None, lr: None, step: None, sigma: None, ..base.clone() };
    let plain = |algorithm| Recipe { lambda: None, net: None, covariance: None, ..of(algorithm) };
    let mut all = vec![
        (plain(Algorithm::Constant), Vec::new()),
        (plain(Algorithm::Clone), Vec::new()),
        (plain(Algorithm::CloneRewarded), Vec::new()),
        (Recipe { net: None, covariance: None, ..of(Algorithm::LinLcb) }, betas.clone()),
        (of(Algorithm::NeuralLinLcb), betas.clone()),
    ];
    for sigma in [0.1, 1.0, 10.0] {
        let kernel = Recipe { sigma: Some(sigma), net: None, covariance: None, ..of(Algorithm::KernLcb) };
        all.push((kernel, betas.clone()));
    }
    let modes = options.modes.clone().unwrap_or_else(|| {
        let size = |config: &ModelConfig| config.n_numbers(preparation.layout()) as f64 * log.rounds as f64;
        let method = of(Algorithm::Neuralcb).method(log, preparation.actions(), None);
        let small = matches!(&method, Ok(Method::Model { config, .. }) if size(config) <= B_MODE_LIMIT);
        if small { vec![Mode::S, Mode::B] } else { vec![Mode::S] }
    });
    for &mode in &modes {
        for &lr in &options.lrs {
            all.push((Recipe { mode: Some(mode), lr: Some(lr), ..of(Algorithm::Neuralcb) }, betas.clone()));
        }
    }
    all
}

/// The held-out rounds and how they are read.
struct Judge {
    held_out: LoggedData,
    confidence: f64,
    worst: f64,
}

impl Judge {
    fn of(&self, recipe: &Recipe, beta: Option<f64>, choices: &Choices) -> Result<Tried, PolicyError> {
        let weights = importance_weights(&self.held_out, choices)?;
        let estimate: WeightedMean = snips(&weights, self.held_out.rewards());
        Ok(Tried {
            algorithm: recipe.algorithm,
            mode: recipe.mode,
            lr: recipe.lr,
            sigma: recipe.sigma,
            beta,
            value: estimate.value.is_finite().then_some(estimate.value),
            lower: estimate.worst_case(self.confidence, self.worst),
            coverage: estimate.coverage,
            agreeing: weights.iter().filter(|&&w| w > 0.0).count() as u64,
        })
    }
}

/// Learns a recipe once and judges it at every β.
fn try_recipe(
    log: &dyn ReadLog,
    recipe: &Recipe,
    betas: &[f64],
    learn: &LoggedData,
    judge: &Judge,
    preparation: &Preparation,
    summary: &LogSummary,
) -> Result<Vec<(Recipe, Tried)>, PolicyError> {
    let contexts = judge.held_out.contexts();
    let seed = Seed::new(recipe.seed);
    let one = |choices: Choices| Ok(vec![(recipe.clone(), judge.of(recipe, None, &choices)?)]);
    match recipe.method(summary, preparation.actions(), None)? {
        Method::Model { config, scale, .. } => {
            let mut learner = memory::learner(&config, preparation.layout(), seed)?;
            memory::check(contexts.n_pairs() as u128 * 16, "judging candidates", "hold out fewer rounds (--share)")?;
            observe(learner.as_mut(), learn, scale, &mut |_| log.go_on())?;
            let estimates = learner.model()?.estimate(contexts)?;
            let at = |&beta: &f64| {
                let recipe = Recipe { beta: Some(Rule::Fixed(beta)), ..recipe.clone() };
                let choices = pessimistic(contexts, &estimates, beta, Rounding::None)?;
                let tried = judge.of(&recipe, Some(beta), &choices)?;
                Ok((recipe, tried))
            };
            // Whose numbers have left their range is no candidate.
            let lost = |tried: &Result<_, PolicyError>| {
                matches!(tried, Err(PolicyError::Library(neuralcb::Error::Estimate { .. })))
            };
            betas.iter().map(at).filter(|tried| !lost(tried)).collect()
        }
        Method::Clone { config, rewarded } => {
            let arrays = fit_clone(&config, rewarded, learn, seed)?;
            let mut clone = Imitation::blank(&config, preparation.layout());
            clone.archive(&mut Archive::reader(arrays, Keep::Policy))?;
            one(clone.choose(contexts)?)
        }
        Method::Constant { .. } => {
            let action = best_constant(learn);
            let place = |t| contexts.place(t, action).unwrap_or(0) as u32;
            one((0..contexts.n_rounds()).map(place).collect())
        }
        Method::Uniform => Ok(Vec::new()),
    }
}

/// The action with the largest self-normalised value on the rounds learned from.
fn best_constant(learn: &LoggedData) -> usize {
    let mut sums = vec![(0.0, 0.0); learn.contexts().layout().n_actions];
    let propensities = learn.propensities().expect("known or estimated");
    for t in 0..learn.n_rounds() {
        let (weight, reward) = &mut sums[learn.actions()[t] as usize];
        *weight += 1.0 / propensities[t];
        *reward += learn.rewards()[t] / propensities[t];
    }
    let value = |a: usize| if sums[a].0 > 0.0 { sums[a].1 / sums[a].0 } else { f64::NEG_INFINITY };
    (0..sums.len()).fold(0, |best, a| if value(a) > value(best) { a } else { best })
}

fn words(tried: &[Tried], behaviour: f64, confidence: f64) -> String {
    let best = &tried[0];
    let percent = confidence * 100.0;
    let name = best.algorithm.name();
    let imitates = matches!(best.algorithm, Algorithm::Clone | Algorithm::CloneRewarded);
    if best.lower > behaviour {
        let more = if imitates { ": imitating the log is the best that was found" } else { "" };
        return format!(
            "{name} earns at least {:.4} with {percent} % confidence, more than the log's own {behaviour:.4}{more}",
            best.lower
        );
    }
    let value = best.value.unwrap_or(f64::NAN);
    format!(
        "nothing is shown to beat the policy that made the log ({behaviour:.4}): the best bound is {:.4} ({name}, \
         estimated {value:.4}); more rounds, or more variety in them, would tell",
        best.lower
    )
}
