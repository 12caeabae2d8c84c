//! Settings of the tuning.

use neuralcb::ope::{BoundConfig, BoundMethod};
use neuralcb::policy::PropensityConfig;
use serde::{Deserialize, Serialize};

use crate::policy::{Algorithm, Mode, PolicyError, Recipe};

/// Which rounds are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldOut {
    /// The last ones: what a policy learned from the past earns later.
    Time,
    /// Drawn at random.
    Random,
}

/// What is written where the winner is not shown to be better than the policy that made the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IfNotBetter {
    /// The winner all the same.
    Keep,
    /// A clone of the policy that made the log.
    Clone,
    /// Nothing.
    Refuse,
}

/// Settings of the tuning.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `base` | practical | what the candidates start from, and the seed | |
/// | `hold_out` | time | which rounds are held out | |
/// | `choose` | 0.15 | the share of rounds to choose by | in (0, ⅓) |
/// | `certify` | 0.25 | the share of rounds to certify on | in (0, ⅓) |
/// | `refit` | false | learn from all rounds at the end; the certificate is then of the procedure | |
/// | `if_not_better` | clone | what is written where nothing is shown to be better than the log's policy | |
/// | `confidence` | 0.95 | of the certificate | in (0, 1) |
/// | `reward_range` | from the log | \[least, greatest\] reward possible | least < greatest |
/// | `least_propensity` | not known | no eligible action is less likely in any round | in (0, 1] |
/// | `adaptive` | false | whether the log's policy changed with what it saw | |
/// | `algorithms` | few and different ones | what is tried | all that learn to choose |
/// | `betas` | 0, 0.1, 0.3, 1, 3 | β of every reward model | ≥ 0 |
/// | `lrs` | 1e-3, 3e-4 | learning rates of the neural model | > 0 |
/// | `modes` | S | its training modes | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuneOptions {
    /// What the candidates start from.
    pub base: Recipe,
    /// Which rounds are held out.
    pub hold_out: HoldOut,
    /// The share of rounds to choose by.
    pub choose: f64,
    /// The share of rounds to certify on.
    pub certify: f64,
    /// Whether the policy learns from all rounds at the end.
    pub refit: bool,
    /// What is written where nothing is shown to be better.
    pub if_not_better: IfNotBetter,
    /// The confidence of the certificate.
    pub confidence: f64,
    /// Least and greatest reward possible.
    pub reward_range: Option<[f64; 2]>,
    /// No eligible action is less likely in any round of the log.
    pub least_propensity: Option<f64>,
    /// Whether the log's policy changed with what it saw.
    pub adaptive: bool,
    /// What is tried; none is [`USUAL`](super::USUAL).
    pub algorithms: Option<Vec<Algorithm>>,
    /// β of every reward model.
    pub betas: Vec<f64>,
    /// Learning rates.
    pub lrs: Vec<f64>,
    /// Training modes.
    pub modes: Option<Vec<Mode>>,
    /// How propensities are estimated where the log has none.
    pub propensities: PropensityConfig,
}

impl Default for TuneOptions {
    fn default() -> Self {
        TuneOptions {
            base: Recipe::default(),
            hold_out: HoldOut::Time,
            choose: 0.15,
            certify: 0.25,
            refit: false,
            if_not_better: IfNotBetter::Clone,
            confidence: 0.95,
            reward_range: None,
            least_propensity: None,
            adaptive: false,
            algorithms: None,
            betas: vec![0.0, 0.1, 0.3, 1.0, 3.0],
            lrs: vec![1e-3, 3e-4],
            modes: None,
            propensities: PropensityConfig::default(),
        }
    }
}

impl TuneOptions {
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        let refuse = |name, range, got| Err(PolicyError::from(neuralcb::Error::Param { name, range, got }));
        for (name, share) in [("choose", self.choose), ("certify", self.certify)] {
            if !(share > 0.0 && share < 1.0 / 3.0) {
                return refuse(name, "in (0, 1/3)", share);
            }
        }
        if self.adaptive && self.hold_out == HoldOut::Random {
            let cure = "hold out by time: later rounds of an adaptive log tell of the earlier ones' rewards";
            return Err(PolicyError::Recipe { name: "hold_out = random", algorithm: "an adaptive log".into(), cure });
        }
        self.bound([0.0, 1.0], false).check()?;
        self.betas.iter().try_for_each(|&beta| crate::policy::check_beta(beta))?;
        Ok(())
    }

    /// The bounds that are asked for, on a log with rewards in that range.
    pub(super) fn bound(&self, seen: [f64; 2], estimated_propensities: bool) -> BoundConfig {
        BoundConfig {
            method: BoundMethod::Betting,
            confidence: self.confidence,
            // a single number is no range
            reward_range: self.reward_range.or((seen[0] < seen[1]).then_some(seen)),
            least_propensity: self.least_propensity,
            adaptive: self.adaptive,
            estimated_propensities,
            ..BoundConfig::default()
        }
    }
}
