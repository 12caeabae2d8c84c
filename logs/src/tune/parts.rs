//! The three parts of a log: to learn from, to choose by, to certify on.

use neuralcb::{LoggedData, Seed};
use rand::seq::SliceRandom;

use super::{HoldOut, TuneOptions};
use crate::log::{ActionSummary, LogSummary, Preparation, PropensitySummary};

/// The rounds of a log in three parts.
pub(super) struct Parts {
    pub learn: LoggedData,
    pub choose: LoggedData,
    pub certify: LoggedData,
    /// Learn and choose together: all that may be known before the certificate.
    pub seen: LoggedData,
}

impl Parts {
    pub fn new(rounds: &LoggedData, options: &TuneOptions, seed: Seed) -> Parts {
        let n = rounds.n_rounds();
        let part = |share: f64| ((n as f64 * share).round() as usize).clamp(1, n / 3);
        let (choose, certify) = (part(options.choose), part(options.certify));
        let mut order: Vec<usize> = (0..n).collect();
        if options.hold_out == HoldOut::Random {
            order.shuffle(&mut seed.stream("hold-out"));
        }
        let take = |range: std::ops::Range<usize>| {
            let mut rounds_of_it = order[range].to_vec();
            rounds_of_it.sort_unstable();
            rounds.select(&rounds_of_it)
        };
        let (learned, seen) = (n - choose - certify, n - certify);
        Parts { learn: take(0..learned), choose: take(learned..seen), certify: take(seen..n), seen: take(0..seen) }
    }
}

/// What some rounds of a log hold, as if they were all of it.
pub(super) fn summarise(rounds: &LoggedData, preparation: &Preparation, skipped: u64) -> LogSummary {
    let n = rounds.n_rounds() as f64;
    let mean = rounds.rewards().iter().sum::<f64>() / n;
    let squares = rounds.rewards().iter().map(|r| (r - mean).powi(2)).sum::<f64>();
    let mut of_actions = vec![(0u64, 0.0); preparation.actions().len()];
    for (&action, reward) in rounds.actions().iter().zip(rounds.rewards()) {
        of_actions[action as usize].0 += 1;
        of_actions[action as usize].1 += reward;
    }
    let ends = |values: &[f64]| {
        let fold = |[low, high]: [f64; 2], v: &f64| [low.min(*v), high.max(*v)];
        values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], fold)
    };
    let [min_reward, max_reward] = ends(rounds.rewards());
    LogSummary {
        rounds: rounds.n_rounds() as u64,
        skipped,
        grouped: Vec::new(),
        mean_reward: mean,
        reward_deviation: (squares / n).sqrt(),
        min_reward,
        max_reward,
        actions: of_actions
            .into_iter()
            .zip(preparation.actions())
            .map(|((count, sum), name)| ActionSummary {
                name: name.clone(),
                count,
                mean_reward: (count > 0).then(|| sum / count as f64),
            })
            .collect(),
        propensities: rounds.propensities().map(|p| {
            let [min, max] = ends(p);
            PropensitySummary { min, max, mean: p.iter().sum::<f64>() / n }
        }),
    }
}
