//! What a bound is about, written as the mean of numbers that are never negative.
//!
//! With rewards in [a, b], r' = (r − a)/(b − a), weights w = π/μ of the policy asked about and u = ρ/μ of the one it is
//! compared with, every statement becomes E[X] − s for some X ≥ 0 and a known shift s. Values are in units of b − a.
//!
//! | statement | X | s | why X ≥ 0, and why its mean says enough |
//! |---|---|---|---|
//! | value of π, less a | w r' | 0 | E\[w r'\] is the value where μ can play what π plays; the rest counts as a |
//! | π less the log's policy | w r' + (1 − r') | 1 | w r' − r' ≥ −1: its known minimum is the shift |
//! | π less another policy ρ | (w−u)⁺ r' + (u−w)⁺ (1 − r') + 1 − h | 1 | see below |
//!
//! For two policies (w − u) r' has no known minimum, because u has no known maximum. Let h = ½ Σ_a |π(a|x) − ρ(a|x)| be
//! how far apart they are at x; of two policies that each play one action h is 0 where they agree and 1 where they do
//! not. Then E\[(u−w)⁺ | x\] ≤ h, so
//!
//! E\[(w − u) r' | x\] = E\[(w−u)⁺ r' + (u−w)⁺ (1 − r') − (u−w)⁺ | x\] ≥ E\[(w−u)⁺ r' + (u−w)⁺ (1 − r') | x\] − h
//!
//! with both terms ≥ 0 and h ≤ 1 known from the context alone: no weight needs an upper bound. Where the policies agree
//! X is exactly its shift and adds no noise. What μ never plays counts as the worst reward for π and as the best for ρ.
//!
//! **With a least propensity** p_min that was given, weights are at most M = 1/p_min and E\[w\] = E\[u\] = 1. Then any
//! c_t that is known before round t may be subtracted from the reward: E\[d (r' − c_t)\] + κ c_t is the same for every
//! c_t, where d is w, w − 1 or w − u, and κ = 1, 0 or 0. The second form is X = d (r' − c_t) + κ c_t + M, s = M, with
//! c_t = (½ + Σ_{i<t} d_i² r'_i) / (1 + Σ_{i<t} d_i²), which makes it vary least. d (r' − c) ≥ −M because |d| ≤ M and
//! |r' − c| ≤ 1.

use serde::{Deserialize, Serialize};

use super::super::sample::Sample;
use crate::error::{Column, Error};

/// What is bounded from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statement {
    /// The policy's value.
    Value,
    /// Its value less that of the policy that made the log.
    OverLog,
    /// Its value less that of the other policy.
    OverOther,
}

/// A round with two policies: one that is asked about, and another that it may be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// r.
    pub reward: f64,
    /// w = π(a | x) / μ(a | x) of the policy asked about.
    pub weight: f64,
    /// u = ρ(a | x) / μ(a | x) of the other policy.
    pub other: f64,
    /// h = ½ Σ_a |π(a | x) − ρ(a | x)| ∈ [0, 1]; 1 is always right.
    pub apart: f64,
}

impl Paired {
    /// A round of one policy alone.
    pub fn single(weight: f64, reward: f64) -> Self {
        Paired { reward, weight, other: 0.0, apart: 1.0 }
    }

    fn check(&self, round: u64, known: &Known) -> Result<(), Error> {
        Sample::new(self.weight, self.reward).check(round, Some(known.reward_range))?;
        Sample::new(self.other, self.reward).check(round, None)?;
        let round = round as usize;
        let refuse = |column, range, got| Err(Error::Value { round, column, range, got });
        if !(0.0..=1.0).contains(&self.apart) {
            return refuse(Column::Apart, "in [0, 1]", self.apart);
        }
        // as many digits as a propensity written as a decimal has
        let most = known.least_propensity.map_or(f64::INFINITY, |p| (1.0 + 1e-6) / p);
        match [self.weight, self.other].into_iter().find(|&w| w > most) {
            Some(w) => refuse(Column::Weight, "at most 1 / `least_propensity`", w),
            None => Ok(()),
        }
    }
}

/// What is known of rewards and propensities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Known {
    pub reward_range: [f64; 2],
    pub least_propensity: Option<f64>,
}

impl Known {
    /// b − a; of rewards that are all the same, 1.
    pub fn span(&self) -> f64 {
        let span = self.reward_range[1] - self.reward_range[0];
        if span > 0.0 { span } else { 1.0 }
    }

    /// The statement in units of the reward, from E[X] − s.
    pub fn undo(&self, statement: Statement, mean: f64) -> f64 {
        let least = if statement == Statement::Value { self.reward_range[0] } else { 0.0 };
        least + self.span() * mean
    }
}

impl Statement {
    /// The shift s of the form that needs no bound of the weights.
    pub(crate) fn shift(self) -> f64 {
        if self == Statement::Value { 0.0 } else { 1.0 }
    }
}

/// One round's X in both forms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// In the form that needs no bound of the weights.
    pub plain: f64,
    /// In the form that needs one, where there is one.
    pub centred: Option<f64>,
}

/// Turns rounds into X, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Outcomes {
    statement: Statement,
    known: Known,
    rounds: u64,
    /// Σ d² and Σ d² r' of the rounds so far.
    squares: f64,
    rewarded: f64,
}

impl Outcomes {
    pub fn new(statement: Statement, known: Known) -> Self {
        Outcomes { statement, known, rounds: 0, squares: 0.0, rewarded: 0.0 }
    }

    /// The next round's.
    pub fn next(&mut self, round: &Paired) -> Result<Outcome, Error> {
        round.check(self.rounds, &self.known)?;
        self.rounds += 1;
        let Paired { reward, weight: w, other: u, apart } = *round;
        let r = (reward - self.known.reward_range[0]) / self.known.span();
        let (plain, d, kappa) = match self.statement {
            Statement::Value => (w * r, w, 1.0),
            Statement::OverLog => (w * r + (1.0 - r), w - 1.0, 0.0),
            Statement::OverOther => ((w - u).max(0.0) * r + (u - w).max(0.0) * (1.0 - r) + (1.0 - apart), w - u, 0.0),
        };
        let centred = self.known.least_propensity.map(|least| {
            let c = (0.5 + self.rewarded) / (1.0 + self.squares);
            self.squares += d * d;
            self.rewarded += d * d * r;
            (d * (r - c) + kappa * c + 1.0 / least).max(0.0)
        });
        Ok(Outcome { plain, centred })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E[X] − s over one context with three actions, by enumeration; ρ and π may be random.
    fn exact(statement: Statement, mu: [f64; 3], pi: [f64; 3], rho: [f64; 3], q: [f64; 3]) -> (f64, f64) {
        let known = Known { reward_range: [0.0, 1.0], least_propensity: None };
        let apart = 0.5 * (0..3).map(|a| f64::abs(pi[a] - rho[a])).sum::<f64>();
        let (mut mean, mut least) = (0.0, f64::INFINITY);
        for a in (0..3).filter(|&a| mu[a] > 0.0) {
            for reward in [0.0, 1.0] {
                let p = mu[a] * if reward > 0.0 { q[a] } else { 1.0 - q[a] };
                let round = Paired { reward, weight: pi[a] / mu[a], other: rho[a] / mu[a], apart };
                let x = Outcomes::new(statement, known).next(&round).unwrap().plain;
                least = least.min(x);
                mean += p * x;
            }
        }
        (mean - statement.shift(), least)
    }

    #[test]
    fn the_mean_is_the_statement_and_no_outcome_is_negative() {
        let (mu, pi, rho, q) = ([0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.6, 0.4, 0.0], [0.3, 0.9, 0.6]);
        let value = |p: [f64; 3]| (0..3).map(|a| p[a] * q[a]).sum::<f64>();
        let cases = [
            (Statement::Value, value(pi)),
            (Statement::OverLog, value(pi) - value(mu)),
            (Statement::OverOther, value(pi) - value(rho)),
        ];
        for (statement, truth) in cases {
            let (mean, least) = exact(statement, mu, pi, rho, q);
            assert!((mean - truth).abs() < 1e-12, "{statement:?}: {mean}, {truth}");
            assert!(least >= 0.0);
        }
    }

    #[test]
    fn what_the_log_never_plays_counts_against_the_policy() {
        let (mu, q) = ([0.5, 0.5, 0.0], [0.3, 0.9, 0.6]);
        // π's unseen action earns 0, ρ's earns 1
        let unseen = [0.0, 0.0, 1.0];
        assert!((exact(Statement::OverOther, mu, unseen, [0.0, 1.0, 0.0], q).0 - (0.0 - 0.9)).abs() < 1e-12);
        assert!((exact(Statement::OverOther, mu, [0.0, 1.0, 0.0], unseen, q).0 - (0.9 - 1.0)).abs() < 1e-12);
        assert!((exact(Statement::OverLog, mu, unseen, unseen, q).0 - (0.0 - 0.6)).abs() < 1e-12);
    }

    #[test]
    fn with_a_least_propensity_the_other_form_has_the_same_mean_whatever_came_before() {
        let known = Known { reward_range: [-1.0, 3.0], least_propensity: Some(0.2) };
        let (mu, pi, rho, q) = ([0.2, 0.5, 0.3], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.3, 0.9, 0.6]);
        for statement in [Statement::Value, Statement::OverLog, Statement::OverOther] {
            let mut outcomes = Outcomes::new(statement, known);
            for reward in [3.0, -1.0, 3.0] {
                outcomes.next(&Paired { reward, weight: 2.0, other: 0.0, apart: 1.0 }).unwrap();
            }
            let (mut plain, mut centred) = (0.0, 0.0);
            for a in 0..3 {
                for (reward, p) in [(3.0, q[a]), (-1.0, 1.0 - q[a])] {
                    let round = Paired { reward, weight: pi[a] / mu[a], other: rho[a] / mu[a], apart: 1.0 };
                    let outcome = outcomes.clone().next(&round).unwrap();
                    assert!(outcome.centred.unwrap() >= 0.0);
                    plain += mu[a] * p * outcome.plain;
                    centred += mu[a] * p * outcome.centred.unwrap();
                }
            }
            assert!((plain - statement.shift() - (centred - 5.0)).abs() < 1e-12, "{statement:?}");
        }
    }

    #[test]
    fn a_weight_that_refutes_the_least_propensity_is_refused() {
        let known = Known { reward_range: [0.0, 1.0], least_propensity: Some(0.2) };
        let refused = Outcomes::new(Statement::Value, known).next(&Paired::single(6.0, 1.0)).unwrap_err();
        assert_eq!(refused.to_string(), "round 0, importance weight: must be at most 1 / `least_propensity`, got 6");
        let outside = Outcomes::new(Statement::Value, known).next(&Paired::single(1.0, 2.0)).unwrap_err();
        assert_eq!(outside.to_string(), "round 0, reward: must be within `reward_range`, got 2");
    }
}
