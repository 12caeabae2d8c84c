//! Lower bounds that hold for every n: of a policy's value, and of how much better it is than the log's policy or
//! another.
//!
//! Every statement is the mean of numbers that are never negative (`outcomes.rs`), and every method bounds such a mean:
//!
//! | method | module | rounds | holds at | tight where |
//! |---|---|---|---|---|
//! | `betting` | `betting.rs` | may depend on the past; mean constant | the n that was there | everywhere |
//! | `mixture` | `mixture.rs` | may depend on the past | all n at once | logs grow, or their policy learned |
//! | `log-smoothing` | `log_smoothing.rs` | may depend on the past | the n that was there | its λ fits |
//! | `implicit-exploration` | `implicit_exploration.rs` | may depend on the past | the n that was there | w is small |
//! | `clipped-bernstein` | `clipped_bernstein.rs` | independent | the n that was there | n is large |
//!
//! All take the rewards' range and known propensities for granted; [`Assumptions`] says what else. None needs a bound
//! of the weights. Given a `least_propensity`, `betting` and `mixture` use it as well, which makes them tighter.
//!
//! ```
//! use neuralcb::ope::{BoundConfig, Paired, Statement, bound};
//!
//! // two actions, logged with equal probability; action 1 earns 1 twice as often, and the target plays it
//! let rounds: Vec<Paired> = (0..3000u32)
//!     .map(|t| Paired::single(f64::from(t % 2) / 0.5, f64::from(u8::from(t / 2 % 3 < 1 + t % 2))))
//!     .collect();
//! let config = BoundConfig { reward_range: Some([0.0, 1.0]), ..BoundConfig::default() };
//! let value = bound(&config, Statement::Value, &rounds)?;
//! assert!(value.lower > 0.6 && value.lower < 2.0 / 3.0);
//! let gain = bound(&config, Statement::OverLog, &rounds)?;
//! assert!(gain.lower > 0.1 && gain.lower < 1.0 / 6.0); // the log earns 1/2
//! # Ok::<(), neuralcb::Error>(())
//! ```

mod assumptions;
mod betting;
mod certificate;
mod clipped_bernstein;
mod implicit_exploration;
mod log_smoothing;
mod mixture;
mod outcomes;
mod sequence;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use assumptions::Assumptions;
pub use certificate::{Certificate, Claim};
pub use outcomes::{Paired, Statement};
pub use sequence::BoundSequence;

use crate::error::{Error, positive};
use betting::Wealth;
use mixture::Mixture;
use outcomes::{Known, Outcomes};

/// How a mean is bounded from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundMethod {
    /// Bets made from the rounds before.
    Betting,
    /// All bets at once: valid after every round.
    Mixture,
    /// Logarithmic smoothing.
    LogSmoothing,
    /// Implicit exploration.
    ImplicitExploration,
    /// The empirical Bernstein inequality on outcomes that are cut.
    ClippedBernstein,
}

impl BoundMethod {
    /// All of them.
    pub const ALL: [BoundMethod; 5] = {
        use BoundMethod::*;
        [Betting, Mixture, LogSmoothing, ImplicitExploration, ClippedBernstein]
    };

    /// Its name in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            BoundMethod::Betting => "betting",
            BoundMethod::Mixture => "mixture",
            BoundMethod::LogSmoothing => "log-smoothing",
            BoundMethod::ImplicitExploration => "implicit-exploration",
            BoundMethod::ClippedBernstein => "clipped-bernstein",
        }
    }
}

impl fmt::Display for BoundMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Settings of a bound.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `method` | betting | how the mean is bounded | |
/// | `confidence` | 0.95 | 1 − δ | in (0, 1) |
/// | `reward_range` | from the log | \[least, greatest\] reward possible | least < greatest |
/// | `least_propensity` | not known | no eligible action is less likely in any round of the log | in (0, 1] |
/// | `adaptive` | false | whether the log's policy changed with what it saw | |
/// | `estimated_propensities` | false | whether the propensities were estimated, which is then said | |
/// | `lambda` | 1/√n | λ of `log-smoothing` | > 0 |
/// | `gamma` | 1/(2√n) | γ of `implicit-exploration` | > 0 |
/// | `clip` | ½√n | M of `clipped-bernstein`, in units of the rewards' range | > 0 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BoundConfig {
    /// How the mean is bounded.
    pub method: BoundMethod,
    /// 1 − δ.
    pub confidence: f64,
    /// Least and greatest reward possible.
    pub reward_range: Option<[f64; 2]>,
    /// No eligible action is less likely in any round of the log.
    pub least_propensity: Option<f64>,
    /// Whether the log's policy changed with what it saw.
    pub adaptive: bool,
    /// Whether the propensities behind the weights were estimated from the log.
    pub estimated_propensities: bool,
    /// λ of logarithmic smoothing.
    pub lambda: Option<f64>,
    /// γ of implicit exploration.
    pub gamma: Option<f64>,
    /// Where the empirical Bernstein inequality cuts.
    pub clip: Option<f64>,
}

impl Default for BoundConfig {
    fn default() -> Self {
        BoundConfig {
            method: BoundMethod::Betting,
            confidence: 0.95,
            reward_range: None,
            least_propensity: None,
            adaptive: false,
            estimated_propensities: false,
            lambda: None,
            gamma: None,
            clip: None,
        }
    }
}

impl BoundConfig {
    /// Refuses settings out of range.
    pub fn check(&self) -> Result<(), Error> {
        let inside = |name, range, got, ok: bool| if ok { Ok(()) } else { Err(Error::Param { name, range, got }) };
        inside("confidence", "in (0, 1)", self.confidence, self.confidence > 0.0 && self.confidence < 1.0)?;
        if let Some([low, high]) = self.reward_range {
            let ok = low < high && low.is_finite() && high.is_finite();
            inside("reward_range", "two finite numbers, the least reward first", low, ok)?;
        }
        if let Some(least) = self.least_propensity {
            inside("least_propensity", "in (0, 1]", least, least > 0.0 && least <= 1.0)?;
        }
        let sizes = [("lambda", self.lambda), ("gamma", self.gamma), ("clip", self.clip)];
        sizes.into_iter().try_for_each(|(name, size)| size.map_or(Ok(()), |size| positive(name, size)))
    }

    /// ln(1/δ).
    fn log(&self) -> f64 {
        -(1.0 - self.confidence).ln()
    }

    /// The same with the rewards' range of these rounds, where none was given.
    fn known(&self, rounds: &[Paired]) -> Known {
        let seen = || {
            let ends = rounds.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], round| {
                [low.min(round.reward), high.max(round.reward)]
            });
            if rounds.is_empty() { [0.0, 0.0] } else { ends }
        };
        Known { reward_range: self.reward_range.unwrap_or_else(seen), least_propensity: self.least_propensity }
    }

    /// The method for a statement: bets of one size where the mean may change from round to round.
    fn method_for(&self, statement: Statement) -> BoundMethod {
        match self.method {
            BoundMethod::Betting if self.adaptive && statement == Statement::OverLog => BoundMethod::Mixture,
            method => method,
        }
    }
}

/// A statement that is true with the given confidence, and what it takes for granted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// What is bounded.
    pub statement: Statement,
    /// 1 − δ.
    pub confidence: f64,
    /// The statement is at least this, in units of the reward.
    pub lower: f64,
    /// The self-normalised estimate of it; none where all weights are 0.
    pub estimate: Option<f64>,
    /// How it was bounded.
    pub method: BoundMethod,
    /// What it takes for granted.
    pub assumptions: Assumptions,
}

/// Bounds a statement from below. The rounds stand in the order in which they were logged.
pub fn bound(config: &BoundConfig, statement: Statement, rounds: &[Paired]) -> Result<Bound, Error> {
    config.check()?;
    let (known, method) = (config.known(rounds), config.method_for(statement));
    if method == BoundMethod::ClippedBernstein && config.adaptive {
        let known = "betting, mixture, log-smoothing, implicit-exploration, because the log is adaptive";
        return Err(Error::Name { what: "method for this log", known, got: method.name().to_owned() });
    }
    let mut outcomes = Outcomes::new(statement, known);
    let (mut plain, mut centred) = (Vec::with_capacity(rounds.len()), Vec::new());
    for round in rounds {
        let outcome = outcomes.next(round)?;
        plain.push(outcome.plain);
        centred.extend(outcome.centred);
    }
    let (n, log, shift) = (rounds.len(), config.log(), statement.shift());
    let of_plain = |mean: f64| if n == 0 { -shift } else { mean - shift };
    let mean = match method {
        BoundMethod::Betting => {
            let mut wealths = vec![Wealth::new(&plain, shift)];
            wealths.extend(known.least_propensity.map(|least| Wealth::new(&centred, 1.0 / least)));
            betting::lower_mean(&wealths, log)
        }
        BoundMethod::Mixture => {
            let of = |x: &[f64], shift| {
                let mut mixture = Mixture::new(shift);
                x.iter().for_each(|&x| mixture.add(x));
                mixture
            };
            let mut mixtures = vec![of(&plain, shift)];
            mixtures.extend(known.least_propensity.map(|least| of(&centred, 1.0 / least)));
            mixture::lower_mean(&mixtures, log)
        }
        BoundMethod::LogSmoothing => {
            let lambda = config.lambda.unwrap_or_else(|| log_smoothing::default_lambda(n));
            of_plain(log_smoothing::lower_mean(&plain, lambda, log))
        }
        BoundMethod::ImplicitExploration => {
            let gamma = config.gamma.unwrap_or_else(|| implicit_exploration::default_gamma(n));
            of_plain(implicit_exploration::lower_mean(&plain, gamma, log))
        }
        BoundMethod::ClippedBernstein => {
            let clip = config.clip.unwrap_or_else(|| clipped_bernstein::default_clip(n));
            of_plain(clipped_bernstein::lower_mean(&plain, clip, log))
        }
    };
    let mut sums = Sums::default();
    rounds.iter().for_each(|round| sums.add(round));
    Ok(Bound {
        statement,
        confidence: config.confidence,
        lower: known.undo(statement, mean.min(1.0)),
        estimate: sums.estimate(statement),
        method,
        assumptions: Assumptions::of(config, method, known.reward_range),
    })
}

/// What self-normalised estimates need.
#[derive(Debug, Clone, Default)]
struct Sums {
    rounds: f64,
    reward: f64,
    weight: [f64; 2],
    weighted: [f64; 2],
}

impl Sums {
    fn add(&mut self, round: &Paired) {
        self.rounds += 1.0;
        self.reward += round.reward;
        for (i, weight) in [round.weight, round.other].into_iter().enumerate() {
            self.weight[i] += weight;
            self.weighted[i] += weight * round.reward;
        }
    }

    fn estimate(&self, statement: Statement) -> Option<f64> {
        let snips = |i: usize| (self.weight[i] > 0.0).then(|| self.weighted[i] / self.weight[i]);
        let other = match statement {
            Statement::Value => 0.0,
            Statement::OverLog => self.reward / self.rounds,
            Statement::OverOther => snips(1)?,
        };
        Some(snips(0)? - other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(n: u32) -> Vec<Paired> {
        let round = |t: u32| {
            let (reward, apart) = (f64::from(t * 7 % 11) / 5.0 - 1.0, f64::from(u8::from(!t.is_multiple_of(3))));
            let weight = if t.is_multiple_of(4) { 4.0 } else { 0.0 };
            Paired { reward, weight, other: if apart == 0.0 { weight } else { 3.0 * f64::from(t % 2) }, apart }
        };
        (0..n).map(round).collect()
    }

    fn of(method: BoundMethod, statement: Statement, confidence: f64, least: Option<f64>) -> f64 {
        let range = Some([-1.0, 1.0]);
        let config =
            BoundConfig { method, confidence, reward_range: range, least_propensity: least, ..Default::default() };
        bound(&config, statement, &rounds(700)).unwrap().lower
    }

    #[test]
    fn a_bound_falls_as_the_confidence_rises_and_stays_in_the_possible() {
        for method in BoundMethod::ALL {
            for statement in [Statement::Value, Statement::OverLog, Statement::OverOther] {
                for least in [None, Some(0.2)] {
                    let bounds: Vec<f64> = [1e-9, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999_999, 1.0 - 1e-15]
                        .into_iter()
                        .map(|confidence| of(method, statement, confidence, least))
                        .collect();
                    assert!(bounds.is_sorted_by(|a, b| a >= b), "{method} {statement:?}: {bounds:?}");
                    let (low, high) = if statement == Statement::Value { (-1.0, 1.0) } else { (-2.0, 2.0) };
                    assert!(bounds.iter().all(|b| (low..=high).contains(b)), "{method} {statement:?}: {bounds:?}");
                }
            }
        }
    }

    #[test]
    fn a_policy_is_no_better_than_itself() {
        let same: Vec<Paired> = rounds(400).into_iter().map(|r| Paired { other: r.weight, apart: 0.0, ..r }).collect();
        for method in BoundMethod::ALL {
            let config = BoundConfig { method, ..BoundConfig::default() };
            let bound = bound(&config, Statement::OverOther, &same).unwrap();
            assert_eq!(bound.estimate, Some(0.0));
            assert!(bound.lower < 0.0, "{method}: {bound:?}");
        }
    }

    #[test]
    fn the_units_of_the_reward_do_not_matter() {
        let config = |method, range| BoundConfig { method, reward_range: Some(range), ..BoundConfig::default() };
        for method in BoundMethod::ALL {
            for statement in [Statement::Value, Statement::OverLog, Statement::OverOther] {
                let plain = bound(&config(method, [-1.0, 1.0]), statement, &rounds(500)).unwrap().lower;
                let scaled: Vec<Paired> =
                    rounds(500).iter().map(|r| Paired { reward: 10.0 * r.reward + 7.0, ..*r }).collect();
                let scaled = bound(&config(method, [-3.0, 17.0]), statement, &scaled).unwrap().lower;
                let offset = if statement == Statement::Value { 7.0 } else { 0.0 };
                assert!((scaled - (10.0 * plain + offset)).abs() < 1e-9, "{method} {statement:?}: {plain}, {scaled}");
            }
        }
    }

    #[test]
    fn no_rounds_say_nothing_and_no_weight_has_no_estimate() {
        for method in BoundMethod::ALL {
            let config = BoundConfig { method, reward_range: Some([2.0, 5.0]), ..BoundConfig::default() };
            let nothing = bound(&config, Statement::Value, &[]).unwrap();
            assert_eq!((nothing.lower, nothing.estimate), (2.0, None));
            assert_eq!(bound(&config, Statement::OverLog, &[]).unwrap().lower, -3.0);
            let unseen = bound(&config, Statement::Value, &[Paired::single(0.0, 4.0); 30]).unwrap();
            assert_eq!((unseen.lower, unseen.estimate), (2.0, None));
        }
    }

    #[test]
    fn an_adaptive_log_changes_the_method_or_is_refused() {
        let config = BoundConfig { adaptive: true, ..BoundConfig::default() };
        let of = |config: &BoundConfig, statement| bound(config, statement, &rounds(50));
        assert_eq!(of(&config, Statement::Value).unwrap().method, BoundMethod::Betting);
        assert_eq!(of(&config, Statement::OverLog).unwrap().method, BoundMethod::Mixture);
        let refused = BoundConfig { method: BoundMethod::ClippedBernstein, ..config };
        let refused = of(&refused, Statement::Value).unwrap_err().to_string();
        assert!(
            refused.starts_with("unknown method for this log `clipped-bernstein`: use one of betting"),
            "{refused}"
        );
    }
}
