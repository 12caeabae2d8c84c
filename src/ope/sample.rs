//! What an estimator sees of a round.

use crate::error::{Column, Error};

/// No weight, reward or model value may be larger: squares and sums of them stay far from overflow.
const LARGEST: f64 = 1e100;

/// One round of a log, as off-policy estimators see it: the importance weight, the reward and, if there is a reward
/// model, what that says.
///
/// ```
/// use neuralcb::ope::Sample;
///
/// // the target plays the logged action with probability 0.5, the log's policy did with 0.25
/// let sample = Sample::new(0.5 / 0.25, 1.0).with_model(0.8, 0.6);
/// assert_eq!((sample.weight, sample.q), (2.0, Some(0.8)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// w = π(a | x) / μ(a | x), ≥ 0.
    pub weight: f64,
    /// r.
    pub reward: f64,
    /// q̂(x, a): the reward model's value of the logged action.
    pub q: Option<f64>,
    /// v̂(x) = Σ_a π(a | x) q̂(x, a): the model's expected value under the target.
    pub v: Option<f64>,
    /// The probability with which the log left out a round like this one, in [0, 1); it counts 1 / (1 − drop) times.
    pub drop: f64,
}

impl Sample {
    /// A round without a reward model.
    pub fn new(weight: f64, reward: f64) -> Self {
        Sample { weight, reward, q: None, v: None, drop: 0.0 }
    }

    /// The same with the model's value `q` of the logged action and `v` of the target policy.
    pub fn with_model(self, q: f64, v: f64) -> Self {
        Sample { q: Some(q), v: Some(v), ..self }
    }

    /// ρ = 1 / (1 − drop): the rounds that this one stands for.
    pub(crate) fn count(&self) -> f64 {
        if self.drop == 0.0 { 1.0 } else { 1.0 / (1.0 - self.drop) }
    }

    /// Refuses what no estimator may see.
    pub(crate) fn check(&self, round: u64, reward_range: Option<[f64; 2]>) -> Result<(), Error> {
        let round = round as usize;
        let refuse = |column, range, got| Err(Error::Value { round, column, range, got });
        if !(self.weight >= 0.0 && self.weight <= LARGEST) {
            return refuse(Column::Weight, "in [0, 1e100]", self.weight);
        }
        let values = [(Column::Reward, Some(self.reward)), (Column::ModelValue, self.q), (Column::TargetValue, self.v)];
        for (column, value) in values {
            if let Some(value) = value
                && !(-LARGEST..=LARGEST).contains(&value)
            {
                return refuse(column, "in [-1e100, 1e100]", value);
            }
        }
        if !(self.drop >= 0.0 && self.drop < 1.0) {
            return refuse(Column::Drop, "in [0, 1)", self.drop);
        }
        match reward_range {
            Some([low, high]) if !(self.reward >= low && self.reward <= high) => {
                refuse(Column::Reward, "within `reward_range`", self.reward)
            }
            _ => Ok(()),
        }
    }
}
