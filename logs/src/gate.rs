//! May this policy replace that one? A question that may be asked after every round of a growing log.
//!
//! On every round the weights of the new policy and of the old one are set against each other
//! ([`Statement::OverOther`]), and a [`BoundSequence`] bounds from below how much more the new one earns. With the
//! confidence that was asked for its bounds hold after all rounds at once: however often the question is put, and
//! whenever the answer is first yes, a policy that is no better is promoted with a probability of at most 1 −
//! confidence.
//!
//! That holds for a log of rounds that neither policy learned from, and, to the letter, for a range of rewards that was
//! given: that of the log itself may grow from one day to the next.

use neuralcb::ope::{Bound, BoundConfig, BoundMethod, BoundSequence, Paired, Statement, WeightShape, WeightSums};
use neuralcb::policy::PropensityConfig;
use serde::{Deserialize, Serialize};

use crate::card::About;
use crate::detail::{Detail, DetailSums, Round};
use crate::evaluate::{check_segments, estimate, propensities, target, want};
use crate::log::{Preparation, PreparationConfig, ReadLog, Unseen};
use crate::policy::{Origin, Policy, PolicyError};

/// Settings of the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateOptions {
    /// 1 less the probability of ever promoting a policy that is no better.
    pub confidence: f64,
    /// Least and greatest reward possible; by default those of the log, with a warning.
    pub reward_range: Option<[f64; 2]>,
    /// No eligible action is less likely in any round of the log, where that is known.
    pub least_propensity: Option<f64>,
    /// How propensities are estimated where the log has none; the log is then held in memory.
    pub propensities: PropensityConfig,
    /// Columns by whose segments to say who gains and who loses.
    pub segments: Vec<String>,
}

impl Default for GateOptions {
    fn default() -> Self {
        GateOptions {
            confidence: 0.95,
            reward_range: None,
            least_propensity: None,
            propensities: PropensityConfig::default(),
            segments: Vec::new(),
        }
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gated {
    /// Whether the new policy may replace the old one.
    pub promote: bool,
    /// How much more the new policy earns than the old one.
    pub over_old: Bound,
    /// A p-value of the new policy being no better, valid after every round.
    pub p_value: f64,
    /// Rounds of the log.
    pub rounds: u64,
    /// Those in which the two would not do the same: only they tell.
    pub apart: f64,
    /// What speaks against trusting the answer.
    pub warnings: Vec<String>,
    /// The answer in words.
    pub words: String,
    /// The weights of the new policy.
    #[serde(default)]
    pub weights: WeightShape,
    /// What lies behind the numbers: the new policy against the old one, by weighted rewards (`ips`).
    #[serde(default)]
    pub detail: Detail,
    /// What was read and what was asked.
    #[serde(default)]
    pub about: Option<About>,
}

/// Asks whether `new` may replace `old`, on a log with actions, rewards and, where it has them, propensities.
pub fn gate(
    new: &Policy,
    old: &Policy,
    log: &dyn ReadLog,
    options: &GateOptions,
    progress: &mut dyn FnMut(&'static str),
) -> Result<Gated, PolicyError> {
    progress("preparing");
    let features = check_segments(log, &options.segments)?;
    let mut detail = DetailSums::new(features.iter().map(String::as_str), &options.segments);
    let mut weights = WeightSums::default();
    let (own, summary) = Preparation::fit(log, &PreparationConfig::default())?;
    let digest = log.digest()?;
    let learned_here = |policy: &Policy| !policy.arrays().is_empty() && policy.description().log.sha256 == digest;
    let mut estimated = None;
    if summary.propensities.is_none() {
        progress("estimating propensities");
        estimated = Some(estimate(log, &own, &options.propensities, 0)?);
    }
    let seen = [summary.min_reward, summary.max_reward];
    let config = BoundConfig {
        method: BoundMethod::Mixture,
        confidence: options.confidence,
        // of a single reward any range will do: nothing is shown
        reward_range: options.reward_range.or(Some(if seen[0] < seen[1] { seen } else { [seen[0], seen[0] + 1.0] })),
        least_propensity: options.least_propensity,
        adaptive: true,
        estimated_propensities: estimated.is_some(),
        ..BoundConfig::default()
    };
    let mut sequence = BoundSequence::new(&config, Statement::OverOther)?;
    let (mut unseen, mut first, mut apart) = ([Unseen::default(); 2], 0u64, 0.0);
    for block in log.read() {
        log.go_on()?;
        progress("comparing");
        let block = block?;
        let rounds = own.logged(&block)?;
        let contexts = rounds.contexts();
        let mu = propensities(&block, estimated.as_deref(), first)?;
        let [pi, rho] = [target(new, &block, &own, contexts)?, target(old, &block, &own, contexts)?];
        for (policy, unseen) in [new, old].into_iter().zip(&mut unseen) {
            *unseen += policy.preparation().unseen(&block);
        }
        want(&mut detail, &block, &own, contexts, &pi);
        let mut seen = Vec::with_capacity(rounds.n_rounds());
        for t in 0..rounds.n_rounds() {
            let pairs = contexts.pairs(t);
            let chosen = pairs.start + contexts.place(t, rounds.actions()[t] as usize).expect("checked at the door");
            let round = Paired {
                reward: rounds.rewards()[t],
                weight: pi[chosen] / mu[t],
                other: rho[chosen] / mu[t],
                apart: distance(&pi[pairs.clone()], &rho[pairs]),
            };
            sequence.add(&round)?;
            apart += round.apart;
            weights.add(round.weight);
            let Paired { reward, weight, other, .. } = round;
            let terms = [weight * reward, 1.0, 0.0, other * reward];
            seen.push(Round { weight, terms, reward, predicted: None, times: 1.0 });
        }
        detail.add(&block, &seen);
        first += block.n_rounds() as u64;
    }
    let mut over_old = sequence.bound();
    over_old.assumptions.reward_range_from_log = options.reward_range.is_none();
    let promote = over_old.lower > 0.0;
    let mut warnings = Vec::new();
    for (policy, name) in [(new, "new"), (old, "old")] {
        if learned_here(policy) {
            warnings.push(format!(
                "the {name} policy learned from this very log, so the answer means nothing: give a log of later rounds"
            ));
        }
    }
    warnings.extend(unseen.iter().filter_map(Unseen::warning));
    if summary.propensities.is_none() {
        warnings.push("the log has no propensities; they were ESTIMATED from it, and the answer rests on that".into());
    }
    if options.reward_range.is_none() {
        warnings.push(format!(
            "the range of rewards was taken from the log ([{}, {}]), so the answer is not exact: give `reward-range`",
            seen[0], seen[1]
        ));
    }
    let words = words(promote, &over_old, first, apart);
    Ok(Gated {
        promote,
        over_old,
        p_value: sequence.p_value(),
        rounds: first,
        apart,
        warnings,
        words,
        weights: weights.shape(),
        detail: detail.detail(options.confidence),
        about: Some(About::new(Origin::of(log)?, &[("new policy", new), ("old policy", old)], options)),
    })
}

/// ½ Σ_a |π(a) − ρ(a)|, where both may play actions that the log does not know: these may be different ones.
fn distance(pi: &[f64], rho: &[f64]) -> f64 {
    let above = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).max(0.0)).sum::<f64>();
    let unknown = |p: &[f64]| (1.0 - p.iter().sum::<f64>()).max(0.0);
    (above(pi, rho).max(above(rho, pi)) + unknown(pi).min(unknown(rho))).min(1.0)
}

fn words(promote: bool, over_old: &Bound, rounds: u64, apart: f64) -> String {
    let percent = (over_old.confidence * 1e6).round() / 1e4;
    let estimated = over_old.estimate.map_or(String::new(), |e| format!(" (estimated {e:.4})"));
    if promote {
        return format!(
            "yes: with {percent} % confidence, however often this is asked, the new policy earns at least {:.4} more than \
             the old one{estimated}",
            over_old.lower
        );
    }
    let why = if apart == 0.0 {
        "the two do the same in every round of the log".to_owned()
    } else {
        format!("{rounds} rounds, in {apart:.0} of which the two differ, do not show it: ask again when there are more")
    };
    format!("no: the new policy is not shown to earn more than the old one{estimated}; {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_that_play_unknown_actions_may_be_as_far_apart_as_can_be() {
        assert_eq!(distance(&[1.0, 0.0], &[1.0, 0.0]), 0.0);
        assert_eq!(distance(&[1.0, 0.0], &[0.0, 1.0]), 1.0);
        assert_eq!(distance(&[0.5, 0.5], &[0.25, 0.75]), 0.25);
        assert_eq!(distance(&[0.0, 0.0], &[0.0, 1.0]), 1.0);
        assert_eq!(distance(&[0.0, 0.0], &[0.0, 0.0]), 1.0);
    }
}
