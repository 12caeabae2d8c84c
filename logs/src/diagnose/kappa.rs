//! An estimate of the paper's κ.
//!
//! Assumption 4.2 asks for max_a π*(a|x_t)/μ(a|x_t) ≤ κ in every logged round: the log must not be too unlikely to do
//! what the best policy would. The sub-optimality bound of Theorem 4.1 grows in proportion to κ. π* plays one action
//! with certainty, so κ is the largest 1/μ(a*(x_t)|x_t), and neither a*(x) nor the probabilities of actions that were
//! not chosen are in a log.
//!
//! What is said instead: the actions that may be the best to always play are those whose value (Σ(r/p)/Σ(1/p)) plus two
//! standard errors reaches the highest value minus two standard errors. κ is estimated by the largest 1/p among the
//! rounds that chose one of these. Without propensities, p is the share of the action. It is the smallest κ that the
//! rounds seen allow for a best policy that is at times played by each of these actions.

use serde::{Deserialize, Serialize};

use super::actions::Actions;

/// The estimate and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kappa {
    /// The largest 1/p of the actions that may be best.
    pub estimate: f64,
    /// The action of that round.
    pub action: String,
    /// How many actions may be best.
    pub plausible: usize,
}

/// The estimate; none for an empty log.
pub(super) fn estimate(actions: &Actions, deviation: f64) -> Option<Kappa> {
    let bounds = actions.list.iter().filter(|action| action.rewards.n > 0.0).map(|action| {
        let weighed = action.weights.sum > 0.0;
        let (value, n) = if weighed {
            (action.weighted.mean, action.weights.ess())
        } else {
            (action.rewards.mean, action.rewards.n)
        };
        // Rewards of other actions lend their spread: a few equal rewards say nothing about it.
        let error = 2.0 * action.rewards.deviation().max(deviation) / n.sqrt();
        let inverse = if weighed { 1.0 / action.smallest } else { actions.rounds / action.rewards.n };
        (value - error, value + error, inverse, &action.name)
    });
    let bounds: Vec<_> = bounds.collect();
    let bar = bounds.iter().map(|b| b.0).max_by(f64::total_cmp)?;
    let plausible: Vec<_> = bounds.iter().filter(|b| b.1 >= bar).collect();
    let worst = plausible.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(Kappa { estimate: worst.2, action: worst.3.clone(), plausible: plausible.len() })
}
