//! In which rounds a policy would have done what was done: all that a log tells of a policy that never draws lots.

use std::sync::Arc;

use neuralcb::ope::{Paired, snips};
use neuralcb::policy::{Rounding, pessimistic};
use neuralcb::{LoggedData, RewardModel};
use rayon::prelude::*;

use super::rounds::{Parts, Rounds};
use crate::policy::{Policy, PolicyError, pieces};
use crate::train::{Progress, Step};

/// What chooses.
pub(super) enum Chooser<'a> {
    /// A reward model, at each β.
    Model(Arc<dyn RewardModel>, &'a [f64]),
    /// A policy.
    Policy(&'a Policy),
}

/// Of each round of a block what each chooser plays. Whose numbers have left their range plays nothing.
type Played = Vec<Vec<Option<u32>>>;

impl Chooser<'_> {
    /// How many policies it stands for.
    fn len(&self) -> usize {
        if let Chooser::Model(_, betas) = self { betas.len() } else { 1 }
    }

    fn play(&self, rounds: &LoggedData) -> Result<Played, PolicyError> {
        let contexts = rounds.contexts();
        let mut played: Played = vec![Vec::with_capacity(contexts.n_rounds()); self.len()];
        for piece in pieces(contexts) {
            let contexts = contexts.slice(piece);
            match self {
                Chooser::Model(model, betas) => {
                    let estimates = model.estimate(&contexts)?;
                    for (&beta, played) in betas.iter().zip(&mut played) {
                        match pessimistic(&contexts, &estimates, beta, Rounding::None) {
                            Ok(choices) => played.extend(choices.into_iter().map(Some)),
                            Err(neuralcb::Error::Estimate { .. }) => played.extend(vec![None; contexts.n_rounds()]),
                            Err(error) => return Err(error.into()),
                        }
                    }
                }
                Chooser::Policy(policy) => {
                    let choices = policy.decide(&contexts)?.choices.expect("candidates choose");
                    played[0].extend(choices.into_iter().map(Some));
                }
            }
        }
        Ok(played)
    }
}

/// Blocks that are read before they are judged together.
const TOGETHER: usize = 16;

/// Judges choosers on some parts, block by block: `each` hears of every block what each of their policies plays.
pub(super) fn judge(
    rounds: &Rounds,
    of: Parts,
    choosers: &[Chooser<'_>],
    progress: Progress<'_>,
    each: &mut dyn FnMut(&LoggedData, Played),
) -> Result<(), PolicyError> {
    let (mut blocks, mut done, all) = (rounds.of(of), 0, rounds.count(of) as u64);
    loop {
        let some = blocks.by_ref().take(TOGETHER).collect::<Result<Vec<_>, _>>()?;
        if some.is_empty() {
            return Ok(());
        }
        progress(Step::Doing("judging", done, all));
        let jobs: Vec<(usize, usize)> =
            (0..some.len()).flat_map(|b| (0..choosers.len()).map(move |c| (b, c))).collect();
        let played = jobs.par_iter().map(|&(b, c)| choosers[c].play(&some[b])).collect::<Result<Vec<_>, _>>()?;
        let mut played = played.into_iter();
        for block in &some {
            done += block.n_rounds() as u64;
            each(block, played.by_ref().take(choosers.len()).flatten().collect());
        }
    }
}

/// What was done in some rounds, and in which of them candidates would have done it.
#[derive(Default)]
pub(super) struct Judged {
    rewards: Vec<f64>,
    propensities: Vec<f64>,
    /// Of each policy; none where its numbers have left their range.
    agrees: Vec<Vec<Option<bool>>>,
}

/// What the rounds say of one policy.
pub(super) struct Score {
    pub value: Option<f64>,
    pub lower: f64,
    pub coverage: f64,
    pub agreeing: u64,
}

impl Judged {
    /// The next rounds.
    pub fn add(&mut self, block: &LoggedData, played: Played) {
        self.rewards.extend(block.rewards());
        self.propensities.extend(block.propensities().expect("known or estimated"));
        self.agrees.resize(played.len(), Vec::new());
        let place = |t: usize| block.contexts().place(t, block.actions()[t] as usize).map(|place| place as u32);
        for (agrees, played) in self.agrees.iter_mut().zip(played) {
            agrees.extend(played.into_iter().enumerate().map(|(t, own)| own.map(|own| Some(own) == place(t))));
        }
    }

    /// The score of a policy: the bound by which `auto` chooses, self-normalised, with what the log does not cover
    /// counted as the worst reward. Two rounds are added to those that agree, one with the worst and one with the best
    /// reward: otherwise a few that happen to be alike would look certain. None where its numbers have left their
    /// range.
    pub fn score(&self, policy: usize, confidence: f64) -> Option<Score> {
        let agrees = self.agrees[policy].iter().copied().collect::<Option<Vec<bool>>>()?;
        let mut weights: Vec<f64> =
            agrees.iter().zip(&self.propensities).map(|(&agrees, p)| if agrees { 1.0 / p } else { 0.0 }).collect();
        let ends = self.rewards.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], &r| [a.min(r), b.max(r)]);
        let (agreeing, sum) = (agrees.iter().filter(|&&agrees| agrees).count(), weights.iter().sum::<f64>());
        let (value, coverage) = (snips(&weights, &self.rewards).value, sum / weights.len() as f64);
        let lower = if agreeing == 0 {
            ends[0]
        } else {
            weights.extend([sum / agreeing as f64; 2]);
            snips(&weights, &[&self.rewards[..], &ends].concat()).worst_case(confidence, ends[0])
        };
        Some(Score { value: value.is_finite().then_some(value), lower, coverage, agreeing: agreeing as u64 })
    }
}

/// Two policies on some rounds, against each other.
pub(super) fn pair(
    rounds: &Rounds,
    of: Parts,
    policies: [&Policy; 2],
    progress: Progress<'_>,
) -> Result<Vec<Paired>, PolicyError> {
    let mut paired = Vec::with_capacity(rounds.count(of));
    let choosers = policies.map(Chooser::Policy);
    judge(rounds, of, &choosers, progress, &mut |block, played| {
        let propensities = block.propensities().expect("known or estimated");
        paired.extend((0..block.n_rounds()).map(|t| {
            let logged = block.contexts().place(t, block.actions()[t] as usize).map(|place| place as u32);
            let weight = |p: usize| if played[p][t] == logged { 1.0 / propensities[t] } else { 0.0 };
            let apart = f64::from(u8::from(played[0][t] != played[1][t]));
            Paired { reward: block.rewards()[t], weight: weight(0), other: weight(1), apart }
        }));
    })?;
    Ok(paired)
}
