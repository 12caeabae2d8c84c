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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Contexts, Eligible, Encoding, Layout, Pair};
    use crate::model::{Linear, LinearConfig, RewardModel};
    use std::ops::Range;
    use std::sync::Arc;

    const LAYOUT: Layout = Layout { dim: 1, n_actions: 2, encoding: Encoding::Disjoint };

    fn log(n: usize) -> LoggedData {
        let x = (0..n).map(|t| t as f32).collect();
        let contexts = Contexts::new(LAYOUT, x, Eligible::All).unwrap();
        let actions = (0..n as u32).map(|t| t % 2).collect();
        let rewards = (0..n).map(|t| (t % 3) as f64).collect();
        LoggedData::new(contexts, actions, rewards, Some(vec![0.5; n])).unwrap()
    }

    /// A model that says of a round 1 if it has seen it, else 0 (the context is the round's number).
    #[derive(Default, Clone)]
    struct Memory(Vec<u32>);

    impl Learner for Memory {
        fn observe(&mut self, chosen: Pair<'_>, _: f64) {
            self.0.push(chosen.x[0] as u32);
        }

        fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
            Ok(Arc::new(self.clone()))
        }
    }

    impl RewardModel for Memory {
        fn layout(&self) -> Layout {
            LAYOUT
        }

        fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], _: &mut [f64]) {
            for (place, t) in rounds.enumerate() {
                let seen = self.0.contains(&(contexts.pair(t, 0).x[0] as u32));
                mean[2 * place..2 * place + 2].fill(f64::from(u8::from(seen)));
            }
        }
    }

    #[test]
    fn no_round_is_judged_by_a_model_that_saw_it() {
        let log = log(103);
        let fit = cross_fit(&log, &[0.5; 206], 5, |_| Ok(Box::new(Memory::default()))).unwrap();
        assert_eq!((fit.q, fit.v), (vec![0.0; 103], vec![0.0; 103]));
    }

    #[test]
    fn values_are_those_of_a_model_trained_on_the_other_folds() {
        let (log, target) = (log(64), [0.25, 0.75].repeat(64));
        let learner = || Linear::new(LinearConfig::default(), LAYOUT).unwrap();
        let fit = cross_fit(&log, &target, 2, |_| Ok(Box::new(learner()))).unwrap();
        let mut by_hand = learner();
        for t in (0..64).filter(|t| t / 16 % 2 == 1) {
            by_hand.observe(log.round(t).chosen, log.round(t).reward);
        }
        let q = by_hand.model().unwrap().estimate(log.contexts()).unwrap().mean;
        for t in [0, 7, 15, 32, 40] {
            let chosen = log.actions()[t] as usize;
            assert_eq!(fit.q[t], q[2 * t + chosen]);
            assert_eq!(fit.v[t], 0.25 * q[2 * t] + 0.75 * q[2 * t + 1]);
        }
        let samples = samples(&log, &target, Some(&fit)).unwrap();
        assert_eq!((samples[1].weight, samples[2].weight), (1.5, 0.5));
        assert_eq!((samples[1].q, samples[1].v), (Some(fit.q[1]), Some(fit.v[1])));
    }

    #[test]
    fn targets_that_are_no_probabilities_are_refused() {
        let log = log(64);
        let refuse = |target: &[f64]| samples(&log, target, None).unwrap_err().to_string();
        assert_eq!(refuse(&[1.0; 3]), "target probabilities, one per pair: expected 128, got 3");
        assert_eq!(
            refuse(&[1.0; 128]),
            "round 0, target policy's probability: must be 1 in sum over the actions, got 2"
        );
        let fit = cross_fit(&log, &[0.5; 128], 5, |_| Ok(Box::new(Memory::default())));
        assert_eq!(fit.unwrap_err().to_string(), "`rounds in the log` must be at least 16 per fold, got 64");
    }
}
