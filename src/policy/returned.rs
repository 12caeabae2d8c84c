//! Which policy a pass over a log returns.
//!
//! Algorithm 1 yields one policy per round, π̂_1, …, π̂_n, where π̂_t has seen the rounds before t only. Returned is
//!
//! * the **latest**, learned from the whole log (the experiments' choice);
//! * a **uniform draw** from {π̂_1, …, π̂_n} (Algorithm 1's output): the index is drawn first, so one snapshot is
//!   enough;
//! * the **majority vote** over checkpoints (the ensemble average of deterministic policies); ties go to the first
//!   action;
//! * the **best checkpoint** by a score the caller gives.

use std::sync::Arc;

use rand::RngExt;

use super::pessimism::{Choices, Rounding, pessimistic};
use crate::data::{Contexts, LoggedData};
use crate::error::{Error, at_least, not_negative};
use crate::model::{Learner, RewardModel};
use crate::seed::Seed;

/// Which policy to return.
pub enum Returned<'a> {
    /// The policy after the last round.
    Latest,
    /// One of π̂_1, …, π̂_n, each with probability 1/n (stream `returned`).
    UniformDraw,
    /// The vote of the policies after every `every` rounds and after the last.
    MajorityVote {
        /// Rounds between checkpoints, ≥ 1.
        every: usize,
    },
    /// The checkpoint with the largest score, of equal ones the latest; a score of NaN loses to any other.
    BestCheckpoint {
        /// Rounds between checkpoints, ≥ 1.
        every: usize,
        /// How good a policy is; larger is better.
        score: &'a dyn Fn(&LearnedPolicy) -> f64,
    },
}

/// A pessimistic policy from one reward model, or from several that vote.
#[derive(Clone)]
pub struct LearnedPolicy {
    models: Vec<Arc<dyn RewardModel>>,
    beta: f64,
}

impl LearnedPolicy {
    /// The policy argmax mean − β·width of one model.
    pub fn new(model: Arc<dyn RewardModel>, beta: f64) -> Result<Self, Error> {
        not_negative("beta", beta)?;
        Ok(LearnedPolicy { models: vec![model], beta })
    }

    /// Number of models that vote.
    pub fn n_models(&self) -> usize {
        self.models.len()
    }

    /// The same models with another β: no training is needed.
    pub fn with_beta(&self, beta: f64) -> Result<Self, Error> {
        not_negative("beta", beta)?;
        Ok(LearnedPolicy { models: self.models.clone(), beta })
    }

    /// The place of the chosen action among the eligible ones, for every round.
    pub fn choose(&self, contexts: &Contexts) -> Result<Choices, Error> {
        let choose =
            |m: &Arc<dyn RewardModel>| pessimistic(contexts, &m.estimate(contexts)?, self.beta, Rounding::None);
        if let [only] = &self.models[..] {
            return choose(only);
        }
        let mut votes = Votes::new(contexts);
        for model in &self.models {
            votes.add(contexts, &choose(model)?);
        }
        Ok(votes.winners(contexts))
    }
}

/// How often each pair of some contexts was chosen, by several policies.
#[derive(Debug, Clone)]
pub struct Votes(Vec<u32>);

impl Votes {
    /// No votes yet.
    pub fn new(contexts: &Contexts) -> Self {
        Votes(vec![0; contexts.n_pairs()])
    }

    /// One policy's choices in every round.
    pub fn add(&mut self, contexts: &Contexts, choices: &[u32]) {
        for (round, &place) in choices.iter().enumerate() {
            self.0[contexts.first_pair(round) + place as usize] += 1;
        }
    }

    /// The place with most votes in every round; of equal ones, the first.
    pub fn winners(&self, contexts: &Contexts) -> Choices {
        let winner = |round: usize| {
            let votes = &self.0[contexts.pairs(round)];
            let most = votes.iter().max().expect("every round offers an action");
            votes.iter().position(|v| v == most).expect("the maximum is there") as u32
        };
        (0..contexts.n_rounds()).map(winner).collect()
    }
}

/// Reads the log once, in order, and returns the policy asked for.
pub fn learn(
    learner: &mut dyn Learner,
    log: &LoggedData,
    beta: f64,
    returned: Returned<'_>,
    seed: Seed,
) -> Result<LearnedPolicy, Error> {
    let n = log.n_rounds();
    at_least("rounds in the log", 1, "at least 1", n)?;
    let read = |learner: &mut dyn Learner, rounds: std::ops::Range<usize>| {
        for t in rounds {
            let round = log.round(t);
            learner.observe(round.chosen, round.reward);
        }
    };
    match returned {
        Returned::Latest => {
            read(learner, 0..n);
            LearnedPolicy::new(learner.model()?, beta)
        }
        Returned::UniformDraw => {
            // π̂_t, t = 1, …, n, is the policy before round t is read
            let t = seed.stream("returned").random_range(1..=n);
            read(learner, 0..t - 1);
            LearnedPolicy::new(learner.model()?, beta)
        }
        Returned::MajorityVote { every } => {
            let mut models = Vec::new();
            for rounds in checkpoints(n, every)? {
                read(learner, rounds);
                models.push(learner.model()?);
            }
            not_negative("beta", beta)?;
            Ok(LearnedPolicy { models, beta })
        }
        Returned::BestCheckpoint { every, score } => {
            let mut best: Option<(f64, LearnedPolicy)> = None;
            for rounds in checkpoints(n, every)? {
                read(learner, rounds);
                let policy = LearnedPolicy::new(learner.model()?, beta)?;
                let own = score(&policy);
                if best.as_ref().is_none_or(|(b, _)| own >= *b || b.is_nan()) {
                    best = Some((own, policy));
                }
            }
            Ok(best.expect("a log has at least one checkpoint").1)
        }
    }
}

/// The stretches of rounds between checkpoints; the last ends with the log.
fn checkpoints(n: usize, every: usize) -> Result<impl Iterator<Item = std::ops::Range<usize>>, Error> {
    at_least("rounds between checkpoints", 1, "at least 1", every)?;
    Ok((0..n).step_by(every).map(move |start| start..(start + every).min(n)))
}
