//! Choosing a learner from the log alone: `auto`.
//!
//! A few different candidates learn from one part of the log and are judged on the rest, which they have not seen, by
//! the rounds' own propensities: by V̂, the self-normalised estimate of the value, where what the log does not cover
//! counts as the worst reward. The first candidate is the one that is best without looking. Another one must beat it
//! beyond chance, by its *lead*:
//!
//! ```text
//! lead = V̂ − V̂₁ − z·(standard error of V̂ − V̂₁)
//! ```
//!
//! The largest lead wins, never the largest estimate: that one is the luckiest. A lower bound of each value alone is no
//! better on short logs: a policy that keeps to the log always has the narrow interval. In the difference, rounds in
//! which both policies choose alike cancel. The winner then learns from the whole log.
//!
//! Where imitation is hard to beat (a good log, noisy rewards) this finds the clone, or pessimism towards the log;
//! where imitation fails it finds the choice likelihood or regression. The size of a candidate's network is chosen
//! once, from the whole log: that looks at losses, not at values, and so tells nothing about who is better. Costs as
//! much as its candidates together, and three members more.

use std::sync::Arc;

use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::LoggedData;
use crate::error::{Error, at_least};
use crate::model::{LinearConfig, ModelConfig, Objective, RewardModel, TrunkConfig, Width};
use crate::ope::{WeightedMean, importance_weights, normal_quantile, snips};
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

    /// The same with the size of network that the log asks for.
    fn sized(&self, log: &LoggedData, seed: Seed, watch: &Watch) -> Result<Candidate, Error> {
        let config = match &self.config {
            ModelConfig::Trunk(config) => ModelConfig::Trunk(config.sized(log, seed, watch)?),
            other => other.clone(),
        };
        Ok(Candidate { config, ..self.clone() })
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
/// | `confidence` | 0.95 | of a lead and of the bound that is reported | in (0, 1) |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AutoConfig {
    /// What is tried; the first, at its first β, unless another beats it beyond chance.
    pub candidates: Vec<Candidate>,
    /// Share of the rounds held out.
    pub share: f64,
    /// Confidence of a lead, and of the bound that is reported.
    pub confidence: f64,
}

impl Default for AutoConfig {
    fn default() -> Self {
        let linear = ModelConfig::Linear(LinearConfig { lambda: 1.0, ..LinearConfig::default() });
        AutoConfig {
            candidates: vec![
                Candidate::trunk("choice", Objective::Choice, Width::Log, &[0.03, 0.0, 0.3]),
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
    /// The lower bound of that.
    pub lower: f64,
    /// By how much it beats the first candidate.
    #[serde(default)]
    pub ahead: f64,
    /// By how much beyond chance: what decides.
    #[serde(default)]
    pub lead: f64,
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
    let size = |candidate: &Candidate| candidate.sized(log, seed.child("sizes"), watch);
    let candidates = config.candidates.par_iter().map(size).collect::<Result<Vec<Candidate>, Error>>()?;
    let jobs: Vec<(usize, usize)> =
        (0..candidates.len()).flat_map(|c| (0..folds.len()).map(move |fold| (c, fold))).collect();
    let outcomes = jobs
        .par_iter()
        .map(|&(c, fold)| {
            let (learn, held_out) = &folds[fold];
            try_one(&candidates[c], &log.select(learn), &judged.select(held_out), seed.child("candidates"), watch)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let rewards: Vec<f64> = folds.iter().flat_map(|(_, held)| held.iter().map(|&t| log.rewards()[t])).collect();
    let mut first = None;
    let mut all = Vec::new();
    for (c, outcomes) in outcomes.chunks(folds.len()).enumerate() {
        for (b, &beta) in candidates[c].betas.iter().enumerate() {
            let weights: Vec<f64> = outcomes.iter().flat_map(|weights| &weights[b]).copied().collect();
            let estimate = snips(&weights, &rewards);
            let judged = Judged::new(&estimate, &weights, &rewards, worst);
            let first = first.get_or_insert_with(|| judged.clone());
            let ahead = judged.value - first.value;
            let lead = ahead - normal_quantile(config.confidence) * judged.error(first);
            let name = candidates[c].name.clone();
            let value = estimate.value.is_finite().then_some(estimate.value);
            let lower = estimate.worst_case(config.confidence, worst);
            all.push((c, Tried { name, beta, value, lower, ahead, lead }));
        }
    }
    // of equal leads the first candidate's
    all.sort_by(|a, b| b.1.lead.total_cmp(&a.1.lead));
    let (c, ref best) = all[0];
    let winner = Candidate { betas: vec![best.beta], ..candidates[c].clone() };
    Ok(Chosen { winner, tried: all.into_iter().map(|(_, tried)| tried).collect(), estimated_propensities: estimated })
}

/// What held-out rounds say of a policy.
#[derive(Clone)]
struct Judged {
    /// V̂.
    value: f64,
    /// What each round adds to n·V̂, less its mean: their spread is the error of V̂.
    influence: Vec<f64>,
}

impl Judged {
    fn new(estimate: &WeightedMean, weights: &[f64], rewards: &[f64], worst: f64) -> Judged {
        if !estimate.value.is_finite() {
            return Judged { value: worst, influence: vec![0.0; weights.len()] };
        }
        let covered = (estimate.coverage + estimate.coverage_error).min(1.0);
        let share = covered / estimate.coverage;
        let influence = weights.iter().zip(rewards).map(|(w, r)| share * w * (r - estimate.value)).collect();
        Judged { value: covered * estimate.value + (1.0 - covered) * worst, influence }
    }

    /// The standard error of the difference to another policy's V̂.
    fn error(&self, other: &Judged) -> f64 {
        let square = self.influence.iter().zip(&other.influence).map(|(own, other)| (own - other).powi(2)).sum::<f64>();
        square.sqrt() / self.influence.len() as f64
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(weights: &[f64], rewards: &[f64]) -> (Judged, f64) {
        let estimate = snips(weights, rewards);
        (Judged::new(&estimate, weights, rewards, 0.0), estimate.worst_case(0.95, 0.0))
    }

    #[test]
    fn rounds_in_which_both_choose_alike_cancel() {
        let rewards = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
        let (one, _) = judged(&[2.0, 2.0, 0.0, 0.0, 1.0, 1.0], &rewards);
        let (other, _) = judged(&[2.0, 2.0, 0.0, 0.0, 1.0, 1.0], &rewards);
        assert_eq!((one.value - other.value, one.error(&other)), (0.0, 0.0));
        // Σ w(r − V̂) = 0, so that the spread of the influences is the error of a self-normalised mean
        assert!(one.influence.iter().sum::<f64>().abs() < 1e-12);
    }

    /// A log that plays one action in 80 % of the rounds, where that pays 0.25; the other policy earns 0.5, but 4
    /// rounds of 500 say so.
    #[test]
    fn keeping_to_a_biased_log_does_not_win_by_a_narrow_interval() {
        let reward = |t: usize| if t < 4 { [1.0, 0.0][t % 2] } else { [0.0, 0.0, 0.0, 1.0][t % 4] };
        let rewards: Vec<f64> = (0..500).map(reward).collect();
        let rare: Vec<f64> = (0..500).map(|t| if t < 4 { 125.0 } else { 0.0 }).collect();
        let usual: Vec<f64> = (0..500).map(|t| if t < 100 { 0.0 } else { 1.25 }).collect();
        let ((first, low), (clone, narrow)) = (judged(&rare, &rewards), judged(&usual, &rewards));
        assert!(low < 0.15 && narrow > 0.2, "{low} {narrow}");
        let lead = clone.value - first.value - normal_quantile(0.95) * clone.error(&first);
        assert!(lead < -0.25, "{lead}");
    }
}
