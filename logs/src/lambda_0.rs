//! λ_0 of a log: what Theorem 4.1's β_t asks of its contexts.

use neuralcb::theory::{Ntk, NtkConfig, Points};

use crate::log::{Preparation, ReadLog};
use crate::policy::PolicyError;

/// Contexts over which H is made: its smallest eigenvalue takes the cube of their number.
const MAX_CONTEXTS: usize = 2_000;

/// The smallest eigenvalue of H over the first rounds, those with at most [`MAX_CONTEXTS`] contexts; contexts count by
/// their direction, and once. H grows with the log, so that λ_0 of the whole log is at most this.
pub(crate) fn lambda_0(log: &dyn ReadLog, preparation: &Preparation, depth: usize) -> Result<f64, PolicyError> {
    let first = log.read().next().transpose()?.map(|block| preparation.logged(&block)).transpose()?;
    let Some(first) = first else {
        return Err(PolicyError::TooShort { rounds: 0, what: "`beta = theory`", least: 1 });
    };
    let contexts = first.contexts();
    let rounds = (1..=contexts.n_rounds()).take_while(|&n| contexts.first_pair(n) <= MAX_CONTEXTS).last().unwrap_or(1);
    let points = Points::all(&contexts.slice(0..rounds))?.normalised().distinct();
    Ok(Ntk::new(&points, &NtkConfig { depth, ..NtkConfig::default() })?.lambda_0()?)
}
