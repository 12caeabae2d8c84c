//! What a bound takes for granted.

use serde::{Deserialize, Serialize};

use super::{BoundConfig, BoundMethod};

/// What must be true for a bound to hold with its confidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assumptions {
    /// No reward leaves this range.
    pub reward_range: [f64; 2],
    /// The range is that of the log itself: the bound is no longer exact.
    pub reward_range_from_log: bool,
    /// No eligible action is less likely in any round of the log, where that was given and used.
    pub least_propensity: Option<f64>,
    /// The propensities were estimated from the log: the bound is no longer exact.
    pub estimated_propensities: bool,
    /// Rounds are independent of each other; otherwise each may depend on those before it.
    pub independent_rounds: bool,
}

impl Assumptions {
    pub(crate) fn of(config: &BoundConfig, method: BoundMethod, reward_range: [f64; 2]) -> Self {
        let weighs = matches!(method, BoundMethod::Betting | BoundMethod::Mixture);
        Assumptions {
            reward_range,
            reward_range_from_log: config.reward_range.is_none(),
            least_propensity: config.least_propensity.filter(|_| weighs),
            estimated_propensities: config.estimated_propensities,
            independent_rounds: method == BoundMethod::ClippedBernstein,
        }
    }

    /// Whether nothing was guessed from the log.
    pub fn exact(&self) -> bool {
        !self.reward_range_from_log && !self.estimated_propensities
    }

    /// One sentence each.
    pub fn words(&self) -> Vec<String> {
        let [low, high] = self.reward_range;
        let mut words = vec![match self.reward_range_from_log {
            false => format!("rewards lie in [{low}, {high}]"),
            true => format!(
                "rewards lie in [{low}, {high}], which was taken from the log itself, so the bound is not exact: give \
                 the range of what is possible"
            ),
        }];
        words.push(match self.estimated_propensities {
            false => "the log's propensities are the probabilities with which its actions were drawn".to_owned(),
            true => "the log's propensities were ESTIMATED from it and are taken as right, so the bound is not exact: \
                     log the probabilities"
                .to_owned(),
        });
        if let Some(least) = self.least_propensity {
            words.push(format!("the log's policy gives no eligible action less than {least}"));
        }
        words.push(match self.independent_rounds {
            true => "rounds are independent of each other".to_owned(),
            false => {
                "the future is like the rounds judged; a round's action may depend on the rounds before".to_owned()
            }
        });
        words
    }
}
