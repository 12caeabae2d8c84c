//! A lower bound that goes on with its log.

use super::mixture::{Mixture, evidence, lower_mean};
use super::outcomes::{Known, Outcomes, Paired, Statement};
use super::{Assumptions, Bound, BoundConfig, BoundMethod, Sums};
use crate::error::Error;

/// A statement's lower bound after every round of a growing log: with the given confidence it is right after all of
/// them at once ([`BoundMethod::Mixture`]). Memory does not grow.
///
/// ```
/// use neuralcb::ope::{BoundConfig, BoundSequence, Paired, Statement};
///
/// let config = BoundConfig { reward_range: Some([0.0, 1.0]), ..BoundConfig::default() };
/// let mut sequence = BoundSequence::new(&config, Statement::OverLog)?;
/// for t in 0..2000u32 {
///     let (action, luck) = (t % 2, t / 2 % 4);
///     // the target plays action 1, which earns three times as often
///     sequence.add(&Paired::single(f64::from(action) / 0.5, f64::from(u8::from(luck < 1 + 2 * action))))?;
/// }
/// assert!(sequence.bound().lower > 0.0);
/// assert!(sequence.p_value() < 1e-6); // that it is no better
/// # Ok::<(), neuralcb::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BoundSequence {
    config: BoundConfig,
    statement: Statement,
    known: Known,
    outcomes: Outcomes,
    mixtures: Vec<Mixture>,
    sums: Sums,
}

impl BoundSequence {
    /// Before the first round. The rewards' range must be given: it cannot be taken from rounds that are still to come.
    pub fn new(config: &BoundConfig, statement: Statement) -> Result<Self, Error> {
        config.check()?;
        let Some(reward_range) = config.reward_range else {
            let range = "given for a sequence of bounds";
            return Err(Error::Param { name: "reward_range", range, got: f64::NAN });
        };
        let known = Known { reward_range, least_propensity: config.least_propensity };
        let mut mixtures = vec![Mixture::new(statement.shift())];
        mixtures.extend(known.least_propensity.map(|least| Mixture::new(1.0 / least)));
        let outcomes = Outcomes::new(statement, known);
        Ok(BoundSequence { config: config.clone(), statement, known, outcomes, mixtures, sums: Sums::default() })
    }

    /// The next round.
    pub fn add(&mut self, round: &Paired) -> Result<(), Error> {
        let outcome = self.outcomes.next(round)?;
        let forms = [Some(outcome.plain), outcome.centred];
        self.mixtures.iter_mut().zip(forms.into_iter().flatten()).for_each(|(mixture, x)| mixture.add(x));
        self.sums.add(round);
        Ok(())
    }

    /// The bound after the rounds so far.
    pub fn bound(&self) -> Bound {
        let (config, method) = (&self.config, BoundMethod::Mixture);
        Bound {
            statement: self.statement,
            confidence: config.confidence,
            lower: self.known.undo(self.statement, lower_mean(&self.mixtures, config.log()).min(1.0)),
            estimate: self.sums.estimate(self.statement),
            method,
            assumptions: Assumptions::of(config, method, self.known.reward_range),
        }
    }

    /// A p-value, valid after every round, of the difference being at most 0 (of the value being at most the least
    /// reward).
    pub fn p_value(&self) -> f64 {
        (-evidence(&self.mixtures, 0.0)).exp().min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bound;
    use super::*;

    #[test]
    fn round_by_round_it_is_the_bound_of_all_rounds() {
        let round = |t: u32| Paired {
            reward: f64::from(t % 5) / 4.0,
            weight: f64::from(t % 3),
            other: f64::from(t % 2),
            apart: 1.0,
        };
        let rounds: Vec<Paired> = (0..300).map(round).collect();
        for least_propensity in [None, Some(0.25)] {
            for statement in [Statement::Value, Statement::OverLog, Statement::OverOther] {
                let (method, reward_range) = (BoundMethod::Mixture, Some([0.0, 1.0]));
                let config = BoundConfig { method, reward_range, least_propensity, ..BoundConfig::default() };
                let mut sequence = BoundSequence::new(&config, statement).unwrap();
                rounds.iter().for_each(|round| sequence.add(round).unwrap());
                assert_eq!(sequence.bound(), bound(&config, statement, &rounds).unwrap());
            }
        }
        assert!(BoundSequence::new(&BoundConfig::default(), Statement::Value).is_err());
    }
}
