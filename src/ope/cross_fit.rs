//! Cross-fitting: a reward model's values for every round, from models that did not see it.
//!
//! Rounds are dealt to folds by number, sixteen neighbours at a time (the same whatever the length of the log). For each fold
//! a fresh learner reads the rounds of all others, in order, and tells q̂(x_t, a_t) and v̂(x_t) = Σ_a π(a|x_t) q̂(x_t, a) of
//! its own. Without it the model has seen the very reward that it corrects, and `dr` is biased towards `dm`.

use rayon::prelude::*;

use super::sample::Sample;
use crate::data::LoggedData;
use crate::error::{Column, Error, at_least};
use crate::model::Learner;

/// Neighbouring rounds that share a fold.
const NEIGHBOURS: usize = 16;

/// The values of models that did not see the round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CrossFit {
    /// q̂(x_t, a_t) of every round.
    pub q: Vec<f64>,
    /// v̂(x_t) of every round.
    pub v: Vec<f64>,
}

/// Fits `folds` models and tells q and v of every round. `target` holds π(a|x) of every pair, in the order of
/// `log.contexts()`; `learner` makes the learner of a fold at its start.
pub fn cross_fit<F>(log: &LoggedData, target: &[f64], folds: usize, learner: F) -> Result<CrossFit, Error>
where
    F: Fn(usize) -> Result<Box<dyn Learner>, Error> + Sync,
{
    at_least("folds", 2, "at least 2", folds)?;
    at_least("rounds in the log", NEIGHBOURS * folds, "at least 16 per fold", log.n_rounds())?;
    check_target(log, target)?;
    let n = log.n_rounds();
    let fold_of = |t: usize| t / NEIGHBOURS % folds;
    let fit = |fold: usize| {
        let mut learner = learner(fold)?;
        for t in (0..n).filter(|&t| fold_of(t) != fold) {
            let round = log.round(t);
            learner.observe(round.chosen, round.reward);
        }
        learner.model()
    };
    let models = (0..folds).into_par_iter().map(fit).collect::<Result<Vec<_>, Error>>()?;
    let contexts = log.contexts();
    if let Some(model) = models.iter().find(|m| m.layout() != contexts.layout()) {
        return Err(Error::Layout { expected: model.layout(), got: contexts.layout() });
    }
    let score = |start: usize| {
        let rounds = start..(start + NEIGHBOURS).min(n);
        let first = contexts.first_pair(rounds.start);
        let pairs = contexts.first_pair(rounds.end) - first;
        let (mut mean, mut width) = (vec![0.0; pairs], vec![0.0; pairs]);
        models[fold_of(start)].estimate_rounds(contexts, rounds.clone(), &mut mean, &mut width);
        let of_round = |t: usize| {
            let pairs = contexts.pairs(t);
            let chosen = contexts.place(t, log.actions()[t] as usize).expect("checked at the door");
            let q = &mean[pairs.start - first..pairs.end - first];
            (q[chosen], q.iter().zip(&target[pairs]).map(|(q, p)| q * p).sum::<f64>())
        };
        rounds.map(of_round).collect::<Vec<_>>()
    };
    let starts: Vec<usize> = (0..n).step_by(NEIGHBOURS).collect();
    let (q, v) = starts.into_par_iter().flat_map_iter(score).unzip();
    Ok(CrossFit { q, v })
}

/// The samples of a log with propensities for a target policy that plays pair i with probability `target[i]`.
pub fn samples(log: &LoggedData, target: &[f64], model: Option<&CrossFit>) -> Result<Vec<Sample>, Error> {
    let Some(propensities) = log.propensities() else { return Err(Error::NoPropensities) };
    check_target(log, target)?;
    let n = log.n_rounds();
    for (what, got) in [
        ("q of the model, one per round", model.map(|m| m.q.len())),
        ("v of the model, one per round", model.map(|m| m.v.len())),
    ] {
        if let Some(got) = got.filter(|&got| got != n) {
            return Err(Error::Shape { what, expected: n, got });
        }
    }
    let contexts = log.contexts();
    let sample = |t: usize| {
        let chosen = contexts.place(t, log.actions()[t] as usize).expect("checked at the door");
        let weight = target[contexts.first_pair(t) + chosen] / propensities[t];
        let sample = Sample::new(weight, log.rewards()[t]);
        model.map_or(sample, |m| sample.with_model(m.q[t], m.v[t]))
    };
    Ok((0..n).map(sample).collect())
}

fn check_target(log: &LoggedData, target: &[f64]) -> Result<(), Error> {
    let (contexts, n_pairs) = (log.contexts(), log.contexts().n_pairs());
    if target.len() != n_pairs {
        return Err(Error::Shape { what: "target probabilities, one per pair", expected: n_pairs, got: target.len() });
    }
    for round in 0..log.n_rounds() {
        let p = &target[contexts.pairs(round)];
        let refuse = |range, got| Err(Error::Value { round, column: Column::Target, range, got });
        if let Some(&got) = p.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return refuse("in [0, 1]", got);
        }
        let sum: f64 = p.iter().sum();
        if (sum - 1.0).abs() > 1e-4 {
            return refuse("1 in sum over the actions", sum);
        }
    }
    Ok(())
}
