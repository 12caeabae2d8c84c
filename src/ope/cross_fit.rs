//! Cross-fitting: a reward model's values for every round, from models that did not see it.
//!
//! Rounds are dealt to folds by number, sixteen neighbours at a time (the same whatever the length of the log and
//! however it comes in blocks). For each fold a learner reads the rounds of all others, in order ([`Folds`]), and tells
//! q̂ of its own ([`CrossFit::means`]), of which [`samples`] makes q̂(x_t, a_t) and v̂(x_t) = Σ_a π(a|x_t) q̂(x_t, a).
//! Without it the model has seen the very reward that it corrects, and `dr` is biased towards `dm`.

use std::sync::Arc;

use rayon::prelude::*;

use super::sample::Sample;
use crate::data::{Contexts, LoggedData};
use crate::error::{Column, Error, at_least};
use crate::model::{Learner, RewardModel};

/// Neighbouring rounds that share a fold.
const NEIGHBOURS: u64 = 16;

fn fold_of(round: u64, folds: usize) -> usize {
    (round / NEIGHBOURS % folds as u64) as usize
}

/// The models of all folds in training.
pub struct Folds {
    learners: Vec<Box<dyn Learner>>,
    /// Rounds read so far.
    first: u64,
}

impl Folds {
    /// At the start of a log; `learner` makes the learner of a fold.
    pub fn new(folds: usize, learner: impl Fn(usize) -> Result<Box<dyn Learner>, Error>) -> Result<Self, Error> {
        at_least("folds", 2, "at least 2", folds)?;
        Ok(Folds { learners: (0..folds).map(learner).collect::<Result<_, _>>()?, first: 0 })
    }

    /// Reads the rounds that follow.
    pub fn observe(&mut self, rounds: &LoggedData) {
        let (first, folds) = (self.first, self.learners.len());
        self.learners.par_iter_mut().enumerate().for_each(|(fold, learner)| {
            for t in (0..rounds.n_rounds()).filter(|&t| fold_of(first + t as u64, folds) != fold) {
                let round = rounds.round(t);
                learner.observe(round.chosen, round.reward);
            }
        });
        self.first += rounds.n_rounds() as u64;
    }

    /// What was learned.
    pub fn finish(self) -> Result<CrossFit, Error> {
        let models = self.learners.into_par_iter().map(|mut learner| learner.model()).collect::<Result<_, _>>()?;
        Ok(CrossFit { models })
    }
}

/// For each fold a model that has not seen it.
pub struct CrossFit {
    models: Vec<Arc<dyn RewardModel>>,
}

impl CrossFit {
    /// q̂ of every pair by the model of its round's fold; `first` is the number of the first round in the log.
    pub fn means(&self, contexts: &Contexts, first: u64) -> Result<Vec<f64>, Error> {
        if let Some(model) = self.models.iter().find(|m| m.layout() != contexts.layout()) {
            return Err(Error::Layout { expected: model.layout(), got: contexts.layout() });
        }
        // pieces that lie in one fold each
        let (n, step, lead) = (contexts.n_rounds(), NEIGHBOURS as usize, (first % NEIGHBOURS) as usize);
        let piece = |i: usize| (i * step).saturating_sub(lead)..((i + 1) * step - lead).min(n);
        let score = |i: usize| {
            let piece = piece(i);
            let pairs = contexts.first_pair(piece.end) - contexts.first_pair(piece.start);
            let (mut mean, mut width) = (vec![0.0; pairs], vec![0.0; pairs]);
            let fold = fold_of(first + piece.start as u64, self.models.len());
            self.models[fold].estimate_rounds(contexts, piece, &mut mean, &mut width);
            mean
        };
        Ok((0..(lead + n).div_ceil(step)).into_par_iter().flat_map_iter(score).collect())
    }
}

/// The samples of rounds for a target policy that plays pair i of their contexts with probability `target[i]`. `mu` are
/// the propensities of the logged actions, `q` a reward model's q̂ of every pair.
pub fn samples(rounds: &LoggedData, mu: &[f64], target: &[f64], q: Option<&[f64]>) -> Result<Vec<Sample>, Error> {
    let (contexts, n) = (rounds.contexts(), rounds.n_rounds());
    for (what, expected, got) in [
        ("propensities, one per round", n, mu.len()),
        ("q of the model, one per pair", contexts.n_pairs(), q.map_or(contexts.n_pairs(), <[f64]>::len)),
    ] {
        if got != expected {
            return Err(Error::Shape { what, expected, got });
        }
    }
    check_target(rounds, target)?;
    let of_round = |t: usize| {
        let pairs = contexts.pairs(t);
        let chosen = contexts.place(t, rounds.actions()[t] as usize).expect("checked at the door");
        let sample = Sample::new(target[pairs.start + chosen] / mu[t], rounds.rewards()[t]);
        let Some(q) = q.map(|q| &q[pairs.clone()]) else { return sample };
        sample.with_model(q[chosen], q.iter().zip(&target[pairs]).map(|(q, p)| q * p).sum())
    };
    Ok((0..n).into_par_iter().map(of_round).collect())
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
    use crate::data::{Eligible, Encoding, Layout, Pair};
    use crate::model::{Linear, LinearConfig};
    use std::ops::Range;

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

        fn archive(&mut self, _: &mut crate::archive::Archive) -> Result<(), Error> {
            Ok(())
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

    fn cross_fit(log: &LoggedData, folds: usize, learner: impl Fn() -> Box<dyn Learner>) -> CrossFit {
        let mut fit = Folds::new(folds, |_| Ok(learner())).unwrap();
        fit.observe(log);
        fit.finish().unwrap()
    }

    #[test]
    fn no_round_is_judged_by_a_model_that_saw_it() {
        let log = log(103);
        let fit = cross_fit(&log, 5, || Box::new(Memory::default()));
        let samples = samples(&log, &[0.5; 103], &[0.5; 206], Some(&fit.means(log.contexts(), 0).unwrap())).unwrap();
        assert!(samples.len() == 103 && samples.iter().all(|s| s.q == Some(0.0) && s.v == Some(0.0)));
    }

    #[test]
    fn values_are_those_of_a_model_trained_on_the_other_folds() {
        let (log, target) = (log(64), [0.25, 0.75].repeat(64));
        let learner = || Box::new(Linear::new(LinearConfig::default(), LAYOUT).unwrap());
        let fit = cross_fit(&log, 2, || learner());
        let mut by_hand = learner();
        for t in (0..64).filter(|t| t / 16 % 2 == 1) {
            by_hand.observe(log.round(t).chosen, log.round(t).reward);
        }
        let q = by_hand.model().unwrap().estimate(log.contexts()).unwrap().mean;
        let samples = samples(&log, &[0.5; 64], &target, Some(&fit.means(log.contexts(), 0).unwrap())).unwrap();
        for t in [0, 7, 15, 32, 40] {
            let chosen = log.actions()[t] as usize;
            assert_eq!(samples[t].q, Some(q[2 * t + chosen]));
            assert_eq!(samples[t].v, Some(0.25 * q[2 * t] + 0.75 * q[2 * t + 1]));
        }
        assert_eq!((samples[1].weight, samples[2].weight), (1.5, 0.5));
    }

    #[test]
    fn a_log_in_blocks_is_judged_as_one_in_one_piece() {
        let log = log(103);
        let learner = |_| Ok(Box::new(Linear::new(LinearConfig::default(), LAYOUT)?) as Box<dyn Learner>);
        let cuts = [0, 5, 40, 48, 103];
        let (mut whole, mut blocks) = (Folds::new(3, learner).unwrap(), Folds::new(3, learner).unwrap());
        whole.observe(&log);
        cuts.windows(2).for_each(|cut| blocks.observe(&log.slice(cut[0]..cut[1])));
        let (whole, blocks) = (whole.finish().unwrap(), blocks.finish().unwrap());
        let mut pieces = Vec::new();
        for cut in cuts.windows(2) {
            pieces.extend(blocks.means(log.slice(cut[0]..cut[1]).contexts(), cut[0] as u64).unwrap());
        }
        assert_eq!(pieces, whole.means(log.contexts(), 0).unwrap());
    }

    #[test]
    fn targets_that_are_no_probabilities_are_refused() {
        let log = log(64);
        let refuse = |target: &[f64]| samples(&log, &[0.5; 64], target, None).unwrap_err().to_string();
        assert_eq!(refuse(&[1.0; 3]), "target probabilities, one per pair: expected 128, got 3");
        assert_eq!(
            refuse(&[1.0; 128]),
            "round 0, target policy's probability: must be 1 in sum over the actions, got 2"
        );
        let few = Folds::new(1, |_| Ok(Box::new(Memory::default()))).err().unwrap();
        assert_eq!(few.to_string(), "`folds` must be at least 2, got 1");
    }
}
