//! Choosing a learner from the log alone: `auto`.
//!
//! A few different candidates learn from one part of the log and are judged on the rest, which they have not seen, by
//! the rounds' own propensities. The largest lower bound wins, never the largest estimate: a candidate that the log
//! says little about cannot win by luck. The bound is that of [`WeightedMean::worst_case`]: self-normalised, and what
//! the log does not cover counts as the worst reward. The winner then learns from the whole log.
//!
//! Where imitation is hard to beat (a good log, noisy rewards) this finds the clone, or pessimism towards the log;
//! where imitation fails it finds the choice likelihood or regression. Costs as much as its candidates together, and
//! one more.

use std::sync::Arc;

use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::LoggedData;
use crate::error::{Error, at_least};
use crate::model::{LinearConfig, ModelConfig, Objective, RewardModel, TrunkConfig, Width};
use crate::ope::{WeightedMean, importance_weights, snips};
use crate::policy::{PropensityConfig, Rounding, estimate_propensities, pessimistic};
use crate::seed::Seed;
use crate::watch::Watch;

/// A learner, and the β that it is tried with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// The learner.
    pub config: ModelConfig,
    /// Whether it learns from standardised rewards.
    pub standardise: bool,
    /// β.
    pub betas: Vec<f64>,
}

impl Candidate {
    /// A learner on a trunk.
    fn trunk(name: &str, objective: Objective, width: Width, betas: &[f64]) -> Candidate {
        let config = ModelConfig::Trunk(TrunkConfig { objective, width, ..TrunkConfig::default() });
        Candidate { name: name.to_owned(), config, standardise: false, betas: betas.to_vec() }
    }

    /// The same with a single member: enough to tell learners apart.
    fn alone(&self) -> Candidate {
        let config = match &self.config {
            ModelConfig::Trunk(config) => ModelConfig::Trunk(TrunkConfig { members: 1, ..config.clone() }),
            other => other.clone(),
        };
        Candidate { config, ..self.clone() }
    }

    /// Fits it to a log. The estimates of one that standardises rewards are in units of their deviation.
    pub fn fit(&self, log: &LoggedData, seed: Seed, watch: &Arc<Watch>) -> Result<Arc<dyn RewardModel>, Error> {
        let mut learner = self.config.learner(log.contexts().layout(), seed)?;
        learner.watch(watch);
        if self.standardise {
            let (r, n) = (log.rewards(), log.n_rounds() as f64);
            let mean = r.iter().sum::<f64>() / n;
            let deviation = (r.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n).sqrt();
            let scale = if deviation > 0.0 { deviation } else { 1.0 };
            learner.read(&log.with_rewards(|r| (r - mean) / scale), 0..log.n_rounds());
        } else {
            learner.read(log, 0..log.n_rounds());
        }
        learner.model()
    }
}

/// Settings of the choice.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `candidates` | choice, regression, clones, linear | what is tried | at least 1 |
/// | `share` | 0.3 | rounds held out; on short logs every round is, once | in (0, 1) |
/// | `confidence` | 0.95 | of the bound | in (0, 1) |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoConfig {
    /// What is tried.
    pub candidates: Vec<Candidate>,
    /// Share of the rounds held out.
    pub share: f64,
    /// Confidence of the bound.
    pub confidence: f64,
}

impl Default for AutoConfig {
    fn default() -> Self {
        let linear = ModelConfig::Linear(LinearConfig { lambda: 1.0, ..LinearConfig::default() });
        AutoConfig {
            candidates: vec![
                Candidate::trunk("choice", Objective::Choice, Width::Log, &[0.0, 0.03, 1.0]),
                Candidate::trunk("regression", Objective::Regression, Width::Spread, &[0.0]),
                Candidate::trunk("clone", Objective::Clone, Width::Spread, &[0.0]),
                Candidate::trunk("clone-rewarded", Objective::CloneRewarded, Width::Spread, &[0.0]),
                Candidate { name: "lin-lcb".to_owned(), config: linear, standardise: true, betas: vec![1.0] },
            ],
            share: 0.3,
            confidence: 0.95,
        }
    }
}

/// How a candidate did on the held-out rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Its name.
    pub name: String,
    /// Its β.
    pub beta: f64,
    /// Its estimated value; `None` where no round agrees with it.
    pub value: Option<f64>,
    /// The lower bound.
    pub lower: f64,
}

/// What was chosen.
pub struct Chosen {
    /// The candidate, with the one β that won.
    pub winner: Candidate,
    /// All of them, the best first.
    pub tried: Vec<Tried>,
    /// Whether propensities had to be estimated.
    pub estimated_propensities: bool,
}

/// Rounds below which every round is held out once.
const SHORT: usize = 2000;

/// Parts of a short log.
const FOLDS: usize = 3;

/// Rounds that candidates learn from at most while they are compared; the winner learns from all.
const MOST_LEARNED: usize = 100_000;

/// Chooses among the candidates. The seed decides the division of the log and all that learners draw.
pub fn choose(config: &AutoConfig, log: &LoggedData, seed: Seed, watch: &Arc<Watch>) -> Result<Chosen, Error> {
    let n = log.n_rounds();
    at_least("candidates", 1, "at least 1", config.candidates.len())?;
    at_least("rounds in the log", 2, "at least 2: some to learn from, some to judge by", n)?;
    for (name, share) in [("share", config.share), ("confidence", config.confidence)] {
        if !(share > 0.0 && share < 1.0) {
            return Err(Error::Param { name, range: "in (0, 1)", got: share });
        }
    }
    let estimated = log.propensities().is_none();
    let known = if estimated {
        let p = estimate_propensities(&PropensityConfig::default(), log, seed.child("propensities"))?;
        Some(LoggedData::new(log.contexts().clone(), log.actions().to_vec(), log.rewards().to_vec(), Some(p))?)
    } else {
        None
    };
    let judged = known.as_ref().unwrap_or(log);
    let folds = folds(config, n, seed);
    let worst = log.rewards().iter().copied().fold(f64::INFINITY, f64::min);
    let jobs: Vec<(usize, usize)> =
        (0..config.candidates.len()).flat_map(|c| (0..folds.len()).map(move |fold| (c, fold))).collect();
    let outcomes = jobs
        .par_iter()
        .map(|&(c, fold)| {
            let (learn, held_out) = &folds[fold];
            try_one(
                &config.candidates[c],
                &log.select(learn),
                &judged.select(held_out),
                seed.child("candidates"),
                watch,
            )
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut all = Vec::new();
    for (c, outcomes) in outcomes.chunks(folds.len()).enumerate() {
        for (b, &beta) in config.candidates[c].betas.iter().enumerate() {
            let weights: Vec<f64> = outcomes.iter().flat_map(|weights| &weights[b]).copied().collect();
            let rewards: Vec<f64> = folds.iter().flat_map(|(_, held)| held.iter().map(|&t| log.rewards()[t])).collect();
            let estimate: WeightedMean = snips(&weights, &rewards);
            let name = config.candidates[c].name.clone();
            let lower = estimate.worst_case(config.confidence, worst);
            all.push((c, b, Tried { name, beta, value: estimate.value.is_finite().then_some(estimate.value), lower }));
        }
    }
    // of equal bounds the first candidate's
    all.sort_by(|a, b| b.2.lower.total_cmp(&a.2.lower));
    let (c, _, ref best) = all[0];
    let winner = Candidate { betas: vec![best.beta], ..config.candidates[c].clone() };
    Ok(Chosen {
        winner,
        tried: all.into_iter().map(|(_, _, tried)| tried).collect(),
        estimated_propensities: estimated,
    })
}

/// Rounds to learn from and rounds held out, each in rising order.
fn folds(config: &AutoConfig, n: usize, seed: Seed) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut seed.stream("held-out"));
    let part = |from: usize, to: usize| {
        let mut held_out = order[from..to].to_vec();
        let mut learn = [&order[to..], &order[..from]].concat();
        learn.truncate(MOST_LEARNED);
        held_out.sort_unstable();
        learn.sort_unstable();
        (learn, held_out)
    };
    if n < SHORT {
        let folds = FOLDS.min(n);
        return (0..folds).map(|i| part(i * n / folds, (i + 1) * n / folds)).collect();
    }
    vec![part(0, ((n as f64 * config.share).round() as usize).clamp(1, n - 1))]
}

/// The weights of each β of a candidate on the held-out rounds.
fn try_one(
    candidate: &Candidate,
    learn: &LoggedData,
    held_out: &LoggedData,
    seed: Seed,
    watch: &Arc<Watch>,
) -> Result<Vec<Vec<f64>>, Error> {
    let estimates = candidate.alone().fit(learn, seed, watch)?.estimate(held_out.contexts())?;
    let weights = |&beta: &f64| match pessimistic(held_out.contexts(), &estimates, beta, Rounding::None) {
        Ok(choices) => importance_weights(held_out, &choices),
        // whose numbers have left their range agrees with no round, and cannot win
        Err(Error::Estimate { .. }) => Ok(vec![0.0; held_out.n_rounds()]),
        Err(error) => Err(error),
    };
    candidate.betas.iter().map(weights).collect()
}
