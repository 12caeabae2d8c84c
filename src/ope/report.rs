//! What an evaluation says: estimates with their intervals, warnings with their cures, and a verdict in words.
//!
//! As JSON: `{"n", "ess", "mean_weight", "max_weight", "weights": {"zero", "bins": [{"low", "high", "rounds"}], "tail":
//! {"k", "rounds", "above"}}, "behaviour": {"value", "intervals", "lower_bounds"}, "estimates": [{"estimator", "value",
//! "intervals": {name: [low, high]}, "lower_bounds": {name: low}, "difference": {"value", "interval"}}], "verdict":
//! {"answer", "estimator", "words"}, "warnings": [{"code", "message"}]}`. Numbers are finite. A value that does not
//! exist (a ratio whose weights are all 0; an empty log) is `null`, an interval that does not exist is absent.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::config::{Estimator, Interval};
use super::shape::WeightShape;

/// The outcome of an off-policy evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Rounds in the log.
    pub n: u64,
    /// Effective sample size (Σ w)² / Σ w²: how many rounds of the target itself would tell as much.
    pub ess: Option<f64>,
    /// Mean weight, 1 up to chance where the log covers the target and the propensities are right.
    pub mean_weight: Option<f64>,
    /// Largest weight.
    pub max_weight: f64,
    /// How the weights are spread, and how heavy their tail is.
    #[serde(default)]
    pub weights: WeightShape,
    /// The value of the policy that made the log.
    pub behaviour: Bounded,
    /// The value of the target policy, once per estimator.
    pub estimates: Vec<Estimate>,
    /// Whether the target is better than the policy that made the log.
    pub verdict: Verdict,
    /// What speaks against trusting the numbers.
    pub warnings: Vec<Warning>,
}

/// A value with its bounds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Bounded {
    /// The value.
    pub value: Option<f64>,
    /// Two-sided intervals, δ/2 on each side.
    pub intervals: BTreeMap<Interval, [f64; 2]>,
    /// Lower bounds at δ.
    pub lower_bounds: BTreeMap<Interval, f64>,
}

/// What one estimator says of the target policy's value.
///
/// Its intervals bound the expectation of the estimator. Without bias that is the value of the policy (`ips`, `dr`);
/// the bias of `dm`, of cut and of shrunk weights is in no interval. `clopper-pearson`, `cressie-read` and `sequence`
/// bound the value itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimator.
    pub estimator: Estimator,
    /// Its value and bounds.
    #[serde(flatten)]
    pub bounded: Bounded,
    /// How much better than the policy that made the log, from the same rounds (so that their noise cancels).
    pub difference: Option<Difference>,
}

/// Target minus behaviour policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// V̂ − mean reward.
    pub value: f64,
    /// Its two-sided normal interval.
    pub interval: [f64; 2],
}

/// The answer to "is the target better?".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// The estimator that decided; `None` where none could.
    pub estimator: Option<Estimator>,
    /// A sentence for people.
    pub words: String,
}

/// The four answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The interval of the difference lies above 0.
    Better,
    /// It lies below 0.
    Worse,
    /// It holds 0.
    CannotTell,
    /// A warning says that the numbers mean nothing.
    NotToBeTrusted,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Better => "better",
            Answer::Worse => "worse",
            Answer::CannotTell => "cannot tell",
            Answer::NotToBeTrusted => "not to be trusted",
        })
    }
}

/// A reason for doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// What kind.
    pub code: Code,
    /// What was found, and the cure.
    pub message: String,
}

/// Kinds of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// No round at all.
    EmptyLog,
    /// No logged action is one that the target would play.
    NoOverlap,
    /// The effective sample size is so small that no interval holds.
    TinySampleSize,
    /// The effective sample size is small.
    SmallSampleSize,
    /// The mean weight differs from 1 beyond chance.
    MeanWeight,
    /// One round has a large part of all weight.
    MaxWeight,
    /// The tail of the weights is so heavy that no mean of them settles.
    HeavyTail,
    /// Few rounds have both weight and reward.
    FewRewards,
    /// The propensities were estimated.
    EstimatedPropensities,
    /// The range of rewards was taken from the log.
    RewardRangeFromLog,
    /// The bound of w·r was taken from the log.
    XMaxFromLog,
    /// A round exceeds the bound that was given.
    XMaxExceeded,
    /// Rounds without the reward model's values.
    NoModel,
    /// All rewards are equal, so intervals that need their range are left out.
    ConstantReward,
    /// The confidence sequence is left out.
    NoSequence,
    /// The policy was learned from the very log that judges it.
    SameLog,
}

impl Code {
    /// Whether the numbers are not to be trusted at all.
    pub fn is_severe(self) -> bool {
        matches!(self, Code::EmptyLog | Code::NoOverlap | Code::TinySampleSize | Code::MeanWeight)
    }
}

impl Report {
    /// Whether the target is better than the policy that made the log.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// What an estimator says, if it was asked for and could be computed.
    pub fn estimate(&self, estimator: Estimator) -> Option<&Estimate> {
        self.estimates.iter().find(|e| e.estimator == estimator)
    }

    /// The first warning of a kind.
    pub fn warning(&self, code: Code) -> Option<&Warning> {
        self.warnings.iter().find(|w| w.code == code)
    }
}

/// Estimators that may decide, the steadiest without bias first.
const DECIDING: [Estimator; 4] = [Estimator::Dr, Estimator::Sndr, Estimator::Snips, Estimator::Ips];

/// The verdict from estimates and warnings.
pub(crate) fn verdict(estimates: &[Estimate], warnings: &[Warning], confidence: f64) -> Verdict {
    let found = |name: &Estimator| {
        let estimate = estimates.iter().find(|e| e.estimator == *name)?;
        Some((*name, estimate.difference?))
    };
    let deciding = DECIDING.iter().find_map(found);
    let estimator = deciding.map(|(name, _)| name);
    if let Some(severe) = warnings.iter().find(|w| w.code.is_severe()) {
        let words = format!("not to be trusted: {}", severe.message);
        return Verdict { answer: Answer::NotToBeTrusted, estimator, words };
    }
    let Some((name, Difference { value, interval: [low, high] })) = deciding else {
        let words = "cannot tell: none of dr, sndr, snips and ips was computed; ask for one of them".to_owned();
        return Verdict { answer: Answer::CannotTell, estimator: None, words };
    };
    let percent = (1e4 * confidence).round() / 100.0;
    let numbers = format!(
        "{name} puts the target {value:+.4} from the policy that made the log, {percent} % interval \
         [{low:+.4}, {high:+.4}]"
    );
    let (answer, words) = if low > 0.0 {
        (Answer::Better, format!("better: {numbers}"))
    } else if high < 0.0 {
        (Answer::Worse, format!("worse: {numbers}"))
    } else {
        (Answer::CannotTell, format!("cannot tell: {numbers} holds 0; more rounds would narrow it"))
    };
    Verdict { answer, estimator, words }
}
