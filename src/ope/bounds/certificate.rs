//! What is certain of one policy: its value, and how much better it is than the log's policy and than a clone of that.

use serde::{Deserialize, Serialize};

use super::{Assumptions, Bound, BoundConfig, BoundMethod, Paired, Statement, bound};
use crate::error::Error;

/// Three lower bounds that hold together with one confidence.
///
/// The rounds that it rests on must have had no part in learning or choosing the policy. Each bound takes a third of δ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// That all three hold.
    pub confidence: f64,
    /// The policy's value.
    pub value: Claim,
    /// Its value less that of the policy that made the log.
    pub over_log: Claim,
    /// Its value less that of a clone of the policy that made the log.
    pub over_clone: Claim,
    /// How they were bounded.
    pub method: BoundMethod,
    /// What they take for granted.
    pub assumptions: Assumptions,
    /// Rounds that they rest on.
    pub rounds: u64,
    /// Those of them in which the policy may have done what was done.
    pub agreeing: u64,
}

/// A lower bound with its estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// It is at least this.
    pub lower: f64,
    /// It is estimated as this; none where the rounds say nothing.
    pub estimate: Option<f64>,
}

impl From<&Bound> for Claim {
    fn from(bound: &Bound) -> Self {
        Claim { lower: bound.lower, estimate: bound.estimate }
    }
}

impl Certificate {
    /// Certifies a policy on rounds in which the other policy is the clone.
    pub fn new(config: &BoundConfig, rounds: &[Paired]) -> Result<Self, Error> {
        Certificate::sharing(config, rounds, 1.0)
    }

    /// The same where these rounds also decide which of several certificates is given. They share δ: this one takes its
    /// share in (0, 1], so that the one which is given holds with the confidence that it says.
    pub fn sharing(config: &BoundConfig, rounds: &[Paired], share: f64) -> Result<Self, Error> {
        config.check()?;
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::Param { name: "share", range: "in (0, 1]", got: share });
        }
        let each = BoundConfig { confidence: 1.0 - share * (1.0 - config.confidence) / 3.0, ..config.clone() };
        let value = bound(&each, Statement::Value, rounds)?;
        let over_log = bound(&each, Statement::OverLog, rounds)?;
        let over_clone = bound(&each, Statement::OverOther, rounds)?;
        Ok(Certificate {
            confidence: config.confidence,
            value: Claim::from(&value),
            over_log: Claim::from(&over_log),
            over_clone: Claim::from(&over_clone),
            method: config.method,
            assumptions: value.assumptions,
            rounds: rounds.len() as u64,
            agreeing: rounds.iter().filter(|round| round.weight > 0.0).count() as u64,
        })
    }

    /// Whether the policy is shown to be better than the one that made the log.
    pub fn beats_the_log(&self) -> bool {
        self.over_log.lower > 0.0
    }

    /// Whether it is shown to be better than the clone.
    pub fn beats_the_clone(&self) -> bool {
        self.over_clone.lower > 0.0
    }

    /// The certificate in words, for a policy of that name.
    pub fn words(&self, name: &str) -> String {
        let percent = (self.confidence * 1e6).round() / 1e4;
        let estimated = |claim: &Claim| claim.estimate.map_or(String::new(), |e| format!(" (estimated {e:.4})"));
        let (value, log, clone) = (&self.value, &self.over_log, &self.over_clone);
        let over = |claim: &Claim, whom: &str| {
            if claim.lower > 0.0 {
                format!("at least {:.4} more than {whom}{}", claim.lower, estimated(claim))
            } else {
                format!(
                    "not shown to be more than {whom} (at least {:.4}{})",
                    claim.lower,
                    match claim.estimate {
                        Some(e) => format!(", estimated {e:.4}"),
                        None => String::new(),
                    }
                )
            }
        };
        format!(
            "with {percent} % confidence, from {} rounds that had no part in learning or choosing it: {name} earns at \
             least {:.4}{}; that is {}, and {}",
            self.rounds,
            value.lower,
            estimated(value),
            over(log, "the policy that made the log"),
            over(clone, "a clone of that policy")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy plays action 1, the clone action 0; action 1 earns twice as often.
    fn rounds(n: u32) -> Vec<Paired> {
        let round = |t: u32| {
            let action = t % 2;
            let reward = f64::from(u8::from(t / 2 % 3 < 1 + action));
            Paired { reward, weight: 2.0 * f64::from(action), other: 2.0 * f64::from(1 - action), apart: 1.0 }
        };
        (0..n).map(round).collect()
    }

    #[test]
    fn each_claim_is_the_bound_at_a_third_of_the_risk() {
        let config = BoundConfig { reward_range: Some([0.0, 1.0]), ..BoundConfig::default() };
        let certificate = Certificate::new(&config, &rounds(6000)).unwrap();
        let third = BoundConfig { confidence: 1.0 - 0.05 / 3.0, ..config };
        for (claim, statement, truth) in [
            (certificate.value, Statement::Value, 2.0 / 3.0),
            (certificate.over_log, Statement::OverLog, 1.0 / 6.0),
            (certificate.over_clone, Statement::OverOther, 1.0 / 3.0),
        ] {
            assert_eq!(claim, Claim::from(&bound(&third, statement, &rounds(6000)).unwrap()));
            assert!((claim.estimate.unwrap() - truth).abs() < 1e-12);
            assert!(claim.lower < truth && claim.lower > truth - 0.1, "{claim:?}");
        }
        assert!(certificate.beats_the_log() && certificate.beats_the_clone());
    }

    #[test]
    fn the_words_say_what_is_shown_and_what_is_not() {
        let config = BoundConfig { reward_range: Some([0.0, 1.0]), ..BoundConfig::default() };
        let words = Certificate::new(&config, &rounds(6000)).unwrap().words("lin-lcb");
        assert!(words.starts_with("with 95 % confidence, from 6000 rounds that had no part"), "{words}");
        assert!(words.contains("lin-lcb earns at least 0.6") && words.contains("more than a clone of that policy"));
        let few = Certificate::new(&config, &rounds(20)).unwrap();
        assert!(!few.beats_the_log());
        assert!(few.words("lin-lcb").contains("not shown to be more than the policy that made the log (at least -0."));
    }

    #[test]
    fn as_json_it_has_the_names_of_the_contract() {
        let certificate = Certificate::new(&BoundConfig::default(), &rounds(500)).unwrap();
        let json = serde_json::to_value(&certificate).unwrap();
        for claim in ["value", "over_log", "over_clone"] {
            assert!(json[claim]["lower"].is_f64() && json[claim]["estimate"].is_f64());
        }
        assert_eq!((json["confidence"].as_f64(), json["method"].as_str()), (Some(0.95), Some("betting")));
        assert_eq!(json["assumptions"]["reward_range_from_log"], true);
        assert_eq!(serde_json::from_value::<Certificate>(json).unwrap(), certificate);
    }
}
