//! argmax_a mean(x_a) − β·width(x_a), for every round of some contexts.

use serde::{Deserialize, Serialize};

use crate::data::Contexts;
use crate::error::{Error, not_negative};
use crate::model::Estimates;

/// The chosen place among the eligible actions of each round.
pub type Choices = Vec<u32>;

/// The precision in which bounds are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// As computed, in f64.
    None,
    /// Rounded to f32 first, as in the released KernLCB: bounds that then tie go to the first action.
    F32,
}

/// The place of the action with the largest lower bound in each round; of equal ones, the first.
///
/// ```
/// use neuralcb::policy::{Rounding, pessimistic};
/// use neuralcb::{Contexts, Eligible, Encoding, Estimates, Layout};
///
/// let layout = Layout { dim: 1, n_actions: 2, encoding: Encoding::Disjoint };
/// let contexts = Contexts::new(layout, vec![1.0], Eligible::All)?;
/// let estimates = Estimates { mean: vec![0.9, 0.7], width: vec![0.5, 0.1] };
/// assert_eq!(pessimistic(&contexts, &estimates, 0.0, Rounding::None)?, [0]); // greedy
/// assert_eq!(pessimistic(&contexts, &estimates, 1.0, Rounding::None)?, [1]); // careful
/// # Ok::<(), neuralcb::Error>(())
/// ```
pub fn pessimistic(
    contexts: &Contexts,
    estimates: &Estimates,
    beta: f64,
    rounding: Rounding,
) -> Result<Choices, Error> {
    not_negative("beta", beta)?;
    let (expected, got) = (contexts.n_pairs(), estimates.mean.len().min(estimates.width.len()));
    if expected != got {
        return Err(Error::Shape { what: "estimates, one per pair", expected, got });
    }
    let bound = |pair: usize| {
        let bound = estimates.mean[pair] - beta * estimates.width[pair];
        if rounding == Rounding::F32 { f64::from(bound as f32) } else { bound }
    };
    let choose = |round: usize| {
        let (mut best, mut best_bound) = (0, f64::NEG_INFINITY);
        for (place, pair) in contexts.pairs(round).enumerate() {
            let bound = bound(pair);
            // Of a bound that is no number nothing is larger, and the first action would win in silence.
            if !bound.is_finite() {
                let (action, mean, width) =
                    (contexts.action(round, place), estimates.mean[pair], estimates.width[pair]);
                return Err(Error::Estimate { round, action, mean, width, beta });
            }
            if bound > best_bound {
                (best, best_bound) = (place as u32, bound);
            }
        }
        Ok(best)
    };
    (0..contexts.n_rounds()).map(choose).collect()
}
