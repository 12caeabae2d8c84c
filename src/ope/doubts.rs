//! What speaks against trusting an estimate, each with its cure.

use super::config::{Interval, OpeConfig};
use super::estimators::is_mean;
use super::evaluation::State;
use super::moments::{TERMS, W};
use super::quantiles::normal;
use super::report::{Code, Estimate, Warning};
use super::sequence::Gap;

/// Below this effective sample size no interval holds.
const TINY: f64 = 30.0;

/// Below this effective sample size intervals are wide and approximate.
const SMALL: f64 = 100.0;

/// A round with this share of all weight decides too much.
const SHARE: f64 = 0.05;

/// Above this k̂ no number of rounds that one meets makes a weighted mean steady (Vehtari et al. 2024).
const HEAVY: f64 = 0.7;

/// Fewer rounds than this with weight and reward: the central limit theorem has not set in.
const REWARDED: u64 = 30;

/// The probability with which a right mean weight is called wrong.
const CHANCE: f64 = 0.001;

/// All doubts about a log and its estimates.
pub(crate) fn doubts(config: &OpeConfig, state: &State, estimates: &[Estimate]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, message: String| warnings.push(Warning { code, message });
    let (moments, seen) = (&state.moments, &state.seen);
    if seen.rounds == 0 {
        warn(Code::EmptyLog, "the log has no rounds: give at least two".to_owned());
        return warnings;
    }
    weights(state, &mut warn);
    if seen.rewarded < REWARDED && moments.sum(W) > 0.0 {
        let found = seen.rewarded;
        warn(
            Code::FewRewards,
            format!(
                "only {found} rounds have both weight and reward: normal, student-t and bootstrap intervals are \
                 too narrow; rely on bernstein, clopper-pearson or sequence, or collect more rounds"
            ),
        );
    }
    if config.estimated_propensities {
        warn(
            Code::EstimatedPropensities,
            "the propensities were estimated from the log: every number here \
             inherits the error of that estimate; log the probability of each choice from now on"
                .to_owned(),
        );
    }
    ranges(config, state, estimates, &mut warn);
    left_out(config, state, &mut warn);
    warnings
}

/// Doubts about the weights.
fn weights(state: &State, warn: &mut impl FnMut(Code, String)) {
    let (moments, seen) = (&state.moments, &state.seen);
    let (n, sum) = (moments.n(), moments.sum(W));
    if sum == 0.0 {
        warn(
            Code::NoOverlap,
            format!(
                "none of the {} logged actions is one that the target plays: collect rounds in which its \
                 actions are tried",
                seen.rounds
            ),
        );
        return;
    }
    let ess = sum * sum / moments.product(W, W);
    if ess < SMALL {
        let (code, what) = if ess < TINY {
            (Code::TinySampleSize, "a few rounds decide everything and no interval holds")
        } else {
            (Code::SmallSampleSize, "intervals are wide and only approximate")
        };
        warn(
            code,
            format!(
                "the effective sample size is {ess:.2} of {} rounds: {what}; evaluate a policy closer to the \
                 one that made the log, or collect rounds with larger propensities",
                seen.rounds
            ),
        );
    }
    let mut form = [0.0; TERMS];
    form[W] = 1.0;
    let (mean, error) = (sum / n, (moments.spread(&form) / (n - 1.0).max(1.0) / n).sqrt());
    if (mean - 1.0).abs() > normal(0.5 * CHANCE) * error + 1e-9 {
        let cause = if mean < 1.0 {
            "the target plays actions that were never logged, or the propensities are too large"
        } else {
            "the propensities are too small, or are not those of the logged actions"
        };
        warn(
            Code::MeanWeight,
            format!(
                "the mean weight is {mean:.4}, more than chance away from 1 (standard error {error:.4}): \
                 {cause}; check both probabilities of the logged action"
            ),
        );
    }
    let tail = state.weights.shape().tail;
    if let Some(k) = tail.and_then(|tail| tail.k).filter(|k| *k > HEAVY) {
        warn(
            Code::HeavyTail,
            format!(
                "the tail of the weights is heavy (Pareto k {k:.2}, above {HEAVY}): a rare round may still change every \
                 number, and normal intervals are too narrow; prefer ips-clip, switch-dr or dros, or a policy closer to the \
                 one that made the log"
            ),
        );
    }
    let share = seen.max_weight / sum;
    if share > SHARE && seen.rounds > 1 {
        warn(
            Code::MaxWeight,
            format!(
                "one round has {:.1} % of all weight (weight {:.4}): look at that round, or prefer ips-clip, \
                 switch-dr or dros",
                100.0 * share,
                seen.max_weight
            ),
        );
    }
}

/// Doubts about the ranges that bounds rest on.
fn ranges(config: &OpeConfig, state: &State, estimates: &[Estimate], warn: &mut impl FnMut(Code, String)) {
    let seen = &state.seen;
    let means = || estimates.iter().map(|e| e.estimator).filter(|&e| is_mean(e));
    let inequalities = config.wants(Interval::Hoeffding) || config.wants(Interval::Bernstein);
    if inequalities && config.x_max.is_none() && means().next().is_some() {
        warn(
            Code::XMaxFromLog,
            format!(
                "hoeffding and bernstein take the largest weight ({:.4}) and the rewards from the log, and hold \
                 only if no round can exceed them: give `x_max`",
                seen.max_weight
            ),
        );
    }
    let exceeding: Vec<&str> = means().filter(|&e| seen.width(config, e).is_none()).map(|e| e.name()).collect();
    if inequalities && !exceeding.is_empty() {
        warn(
            Code::XMaxExceeded,
            format!(
                "a round exceeds the `x_max` given, so hoeffding and bernstein are left out for {}: give a \
                 larger bound",
                exceeding.join(", ")
            ),
        );
    }
    let named = [Interval::ClopperPearson, Interval::CressieRead, Interval::Sequence];
    if !named.iter().any(|&i| config.wants(i)) {
        return;
    }
    match (config.reward_range, seen.reward_range(config)) {
        (Some(_), _) => {}
        (None, Some([low, high])) => warn(
            Code::RewardRangeFromLog,
            format!(
                "clopper-pearson, cressie-read and sequence take the rewards' range from the log ([{low}, \
                 {high}]), and hold only if no reward can leave it: give `reward_range`"
            ),
        ),
        (None, None) => warn(
            Code::ConstantReward,
            format!(
                "all rewards are {}: clopper-pearson, cressie-read and sequence are left out, because they need \
                 the range of rewards; give `reward_range`",
                seen.reward.low
            ),
        ),
    }
}

/// What could not be computed, and why.
fn left_out(config: &OpeConfig, state: &State, warn: &mut impl FnMut(Code, String)) {
    let seen = &state.seen;
    let missing: Vec<&str> = config.estimators.iter().filter(|&&e| !state.can(e)).map(|e| e.name()).collect();
    if !missing.is_empty() {
        let rounds = seen.without_model;
        warn(
            Code::NoModel,
            format!(
                "{rounds} of {} rounds have no q and v of a reward model, so {} are left out: give both, or fit \
                 a model by cross-fitting",
                seen.rounds,
                missing.join(", ")
            ),
        );
    }
    if !config.wants(Interval::Sequence) {
        return;
    }
    if seen.dropped > 0 {
        warn(
            Code::NoSequence,
            format!(
                "{} rounds stand for dropped ones as well, so the confidence sequence, which needs the place of \
                 each round, is left out: keep all rounds",
                seen.dropped
            ),
        );
        return;
    }
    match state.sequence.interval(&state.moments, 0.5, [0.0, 1.0]) {
        Err(Gap::Missing(round)) => warn(
            Code::NoSequence,
            format!(
                "the parts merged so far lack rounds from \
                 {round} on, so the confidence sequence, which needs all from the first, is left out: merge the \
                 missing parts"
            ),
        ),
        Err(Gap::TooLarge) => warn(
            Code::NoSequence,
            "weights or weighted rewards sum to more than 2^54, so the \
             confidence sequence is left out: scale the rewards"
                .to_owned(),
        ),
        Ok(_) => {}
    }
}
