//! The parts of a log: to learn from, to choose by, to certify on; and what some of them hold.

use neuralcb::Seed;
use rand::seq::SliceRandom;

use super::rounds::{Parts, Rounds};
use super::{HoldOut, TuneOptions};
use crate::log::{ActionSummary, LogSummary, Preparation, PropensitySummary};
use crate::policy::PolicyError;

/// Rounds before the certificate below which each of them is chosen by, once.
const SHORT: usize = 2000;

/// Parts of a short log.
const FOLDS: u8 = 3;

/// The part that certifies.
pub(super) const CERTIFY: Parts = 1 << FOLDS;

/// All that may be known before the certificate.
pub(super) const SEEN: Parts = CERTIFY - 1;

/// Rounds to learn from and rounds to choose by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fold {
    pub learn: Parts,
    pub choose: Parts,
}

/// The part of every round of a log of n, and how candidates are compared.
pub(super) fn divide(n: usize, options: &TuneOptions) -> (Vec<u8>, Vec<Fold>) {
    let part = |share: f64| ((n as f64 * share).round() as usize).clamp(1, n / 3);
    let (choose, seen) = (part(options.choose), n - part(options.certify));
    let seed = Seed::new(options.base.seed);
    let mut order: Vec<u32> = (0..n as u32).collect();
    if options.hold_out == HoldOut::Random {
        order.shuffle(&mut seed.stream("hold-out"));
    }
    let mut parts = vec![FOLDS; n];
    if seen >= SHORT {
        order[..seen - choose].iter().for_each(|&t| parts[t as usize] = 0);
        order[seen - choose..seen].iter().for_each(|&t| parts[t as usize] = 1);
        return (parts, vec![Fold { learn: 1, choose: 2 }]);
    }
    order[..seen].shuffle(&mut seed.stream("folds"));
    order[..seen].iter().enumerate().for_each(|(i, &t)| parts[t as usize] = (i % usize::from(FOLDS)) as u8);
    (parts, (0..FOLDS).map(|fold| Fold { learn: SEEN & !(1 << fold), choose: 1 << fold }).collect())
}

/// Whether each round of a log of n is one that the certificate rests on.
pub(super) fn certified(n: usize, options: &TuneOptions) -> Vec<bool> {
    divide(n, options).0.iter().map(|&part| part == FOLDS).collect()
}

/// What some rounds of a log hold, as if they were all of it, and the action that earned the most there: by its
/// self-normalised value.
pub(super) fn summarise(
    rounds: &Rounds,
    of: Parts,
    preparation: &Preparation,
    skipped: u64,
) -> Result<(LogSummary, usize), PolicyError> {
    let k = preparation.actions().len();
    let (mut n, mut mean, mut squares) = (0u64, 0.0, 0.0);
    let (mut of_actions, mut weighted) = (vec![(0u64, 0.0); k], vec![(0.0, 0.0); k]);
    let (mut ends, mut least_most, mut sum) =
        ([f64::INFINITY, f64::NEG_INFINITY], [f64::INFINITY, f64::NEG_INFINITY], 0.0);
    let widen = |[low, high]: [f64; 2], v: f64| [low.min(v), high.max(v)];
    for block in rounds.of(of) {
        let block = block?;
        let propensities = block.propensities().expect("known or estimated");
        for ((&action, &reward), &p) in block.actions().iter().zip(block.rewards()).zip(propensities) {
            n += 1;
            let before = mean;
            mean += (reward - mean) / n as f64;
            squares += (reward - before) * (reward - mean);
            let action = action as usize;
            of_actions[action].0 += 1;
            of_actions[action].1 += reward;
            weighted[action].0 += 1.0 / p;
            weighted[action].1 += reward / p;
            (ends, least_most, sum) = (widen(ends, reward), widen(least_most, p), sum + p);
        }
    }
    let value = |a: usize| if weighted[a].0 > 0.0 { weighted[a].1 / weighted[a].0 } else { f64::NEG_INFINITY };
    let best = (0..k).fold(0, |best, a| if value(a) > value(best) { a } else { best });
    let actions = of_actions.into_iter().zip(preparation.actions()).map(|((count, sum), name)| ActionSummary {
        name: name.clone(),
        count,
        mean_reward: (count > 0).then(|| sum / count as f64),
    });
    let summary = LogSummary {
        rounds: n,
        skipped,
        grouped: Vec::new(),
        mean_reward: mean,
        reward_deviation: (squares / n as f64).max(0.0).sqrt(),
        min_reward: ends[0],
        max_reward: ends[1],
        actions: actions.collect(),
        propensities: Some(PropensitySummary { min: least_most[0], max: least_most[1], mean: sum / n as f64 }),
    };
    Ok((summary, best))
}
