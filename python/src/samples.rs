//! Rounds for an off-policy evaluation, in numpy's memory: nothing is copied but the block that is being worked on.

use neuralcb::ope::Sample;
use neuralcb::{Column, Error};
use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;
use std::ops::Range;

use crate::error::Refusal;

/// A number for each round, or one for each action of each round.
enum HeldValues<'py> {
    Logged(PyReadonlyArray1<'py, f64>),
    Every(PyReadonlyArray2<'py, f64>),
}

/// Arrays, held for as long as views on them live.
pub struct Held<'py> {
    rewards: PyReadonlyArray1<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    propensities: Option<PyReadonlyArray1<'py, f64>>,
    actions: Option<PyReadonlyArray1<'py, i64>>,
    target: Option<HeldValues<'py>>,
    q: Option<HeldValues<'py>>,
    v: Option<PyReadonlyArray1<'py, f64>>,
}

impl<'py> Held<'py> {
    pub fn new(rounds: &Bound<'py, PyDict>) -> PyResult<Self> {
        let entry = |name: &str| Ok::<_, PyErr>(rounds.get_item(name)?.filter(|value| !value.is_none()));
        let vector = |name| entry(name)?.map(|v| v.extract::<PyReadonlyArray1<'py, f64>>()).transpose();
        let values = |name| entry(name)?.map(|v| HeldValues::new(&v)).transpose();
        Ok(Held {
            rewards: vector("rewards")?.ok_or_else(|| Refusal("rounds without `rewards`".to_owned()))?,
            weights: vector("weights")?,
            propensities: vector("propensities")?,
            actions: entry("actions")?.map(|v| v.extract()).transpose()?,
            target: values("target")?,
            q: values("q")?,
            v: vector("v")?,
        })
    }

    /// Views on the arrays.
    pub fn given(&self) -> Given<'_> {
        Given {
            rewards: self.rewards.as_array(),
            weights: view(&self.weights),
            propensities: view(&self.propensities),
            actions: self.actions.as_ref().map(|actions| actions.as_array()),
            target: self.target.as_ref().map(HeldValues::values),
            q: self.q.as_ref().map(HeldValues::values),
            v: view(&self.v),
        }
    }
}

fn view<'a>(array: &'a Option<PyReadonlyArray1<'_, f64>>) -> Option<ArrayView1<'a, f64>> {
    array.as_ref().map(|array| array.as_array())
}

impl<'py> HeldValues<'py> {
    fn new(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        match array.extract() {
            Ok(vector) => Ok(HeldValues::Logged(vector)),
            Err(_) => Ok(HeldValues::Every(array.extract()?)),
        }
    }

    fn values(&self) -> Values<'_> {
        match self {
            HeldValues::Logged(array) => Values::Logged(array.as_array()),
            HeldValues::Every(array) => Values::Every(array.as_array()),
        }
    }
}

/// A view on a number for each round, or on one for each action of each round.
enum Values<'a> {
    Logged(ArrayView1<'a, f64>),
    Every(ArrayView2<'a, f64>),
}

impl Values<'_> {
    fn n_rounds(&self) -> usize {
        match self {
            Values::Logged(values) => values.len(),
            Values::Every(values) => values.nrows(),
        }
    }

    /// The value of round t, whose logged action is known if there is one for each.
    fn at(&self, t: usize, action: usize) -> f64 {
        match self {
            Values::Logged(values) => values[t],
            Values::Every(values) => values[[t, action]],
        }
    }
}

/// Views on what is told of rounds.
pub struct Given<'a> {
    rewards: ArrayView1<'a, f64>,
    weights: Option<ArrayView1<'a, f64>>,
    propensities: Option<ArrayView1<'a, f64>>,
    actions: Option<ArrayView1<'a, i64>>,
    target: Option<Values<'a>>,
    q: Option<Values<'a>>,
    v: Option<ArrayView1<'a, f64>>,
}

impl Given<'_> {
    /// Refuses sizes that do not agree; returns the number of rounds.
    pub fn check(&self) -> Result<usize, Refusal> {
        let n = self.weights.as_ref().map_or(self.rewards.len(), ArrayView1::len);
        let sizes = [
            ("rewards", Some(self.rewards.len())),
            ("propensities", self.propensities.as_ref().map(ArrayView1::len)),
            ("actions", self.actions.as_ref().map(ArrayView1::len)),
            ("target", self.target.as_ref().map(Values::n_rounds)),
            ("q", self.q.as_ref().map(Values::n_rounds)),
            ("v", self.v.as_ref().map(ArrayView1::len)),
        ];
        if let Some((what, got)) = sizes.into_iter().find_map(|(what, size)| Some((what, size.filter(|&s| s != n)?))) {
            return Err(Error::Shape { what, expected: n, got }.into());
        }
        let widths = [&self.target, &self.q].map(|values| match values {
            Some(Values::Every(values)) => Some(values.ncols()),
            _ => None,
        });
        if let [Some(expected), Some(got)] = widths
            && expected != got
        {
            return Err(Error::Shape { what: "actions of `q`", expected, got }.into());
        }
        if widths != [None, None] && self.actions.is_none() {
            let message = "`target` and `q` of every action need `actions`, the logged ones";
            return Err(Refusal(message.to_owned()));
        }
        if self.weights.is_none() && (self.propensities.is_none() || self.target.is_none()) {
            let message = "give `weights`, or `propensities` of the log and `target`, the policy's probabilities";
            return Err(Refusal(message.to_owned()));
        }
        Ok(n)
    }

    /// Puts the samples of some rounds in the place of others; the error is that of the first round that has one.
    pub fn samples(&self, rounds: Range<usize>, samples: &mut Vec<Sample>) -> Result<(), Error> {
        samples.resize(rounds.len(), Sample::new(0.0, 0.0));
        let put = |(sample, t): (&mut Sample, usize)| self.sample(t).map(|found| *sample = found);
        let done = samples.par_iter_mut().zip(rounds.clone()).with_min_len(1024).try_for_each(put);
        done.or_else(|_| samples.iter_mut().zip(rounds).try_for_each(put))
    }

    /// Round t: w = π(a) / μ(a) unless it is given, q̂(a), and v̂ = Σ π q̂ unless it is given.
    fn sample(&self, round: usize) -> Result<Sample, Error> {
        let action = self.action(round)?;
        let refuse = |column, range, got| Err(Error::Value { round, column, range, got });
        let weight = match (&self.weights, &self.propensities, &self.target) {
            (None, Some(propensities), Some(target)) => {
                let (mu, pi) = (propensities[round], target.at(round, action));
                if !(mu > 0.0 && mu <= 1.0) {
                    return refuse(Column::Propensity, "in (0, 1]", mu);
                }
                if !(0.0..=1.0).contains(&pi) {
                    return refuse(Column::Target, "in [0, 1]", pi);
                }
                pi / mu
            }
            (weights, ..) => weights.as_ref().map_or(f64::NAN, |weights| weights[round]),
        };
        let v = match (&self.v, &self.target, &self.q) {
            (Some(v), ..) => Some(v[round]),
            (None, Some(Values::Every(pi)), Some(Values::Every(q))) => {
                Some(pi.row(round).iter().zip(q.row(round)).map(|(pi, q)| pi * q).sum())
            }
            _ => None,
        };
        Ok(Sample { q: self.q.as_ref().map(|q| q.at(round, action)), v, ..Sample::new(weight, self.rewards[round]) })
    }

    /// The logged action where there are values of every action, else 0.
    fn action(&self, round: usize) -> Result<usize, Error> {
        let n_actions = [&self.target, &self.q].into_iter().find_map(|values| match values {
            Some(Values::Every(values)) => Some(values.ncols()),
            _ => None,
        });
        let (Some(n_actions), Some(actions)) = (n_actions, &self.actions) else { return Ok(0) };
        match usize::try_from(actions[round]) {
            Ok(action) if action < n_actions => Ok(action),
            Ok(action) => Err(Error::ActionRange { round, action, n_actions }),
            Err(_) => {
                let (range, got) = ("a number of an action, from 0", actions[round] as f64);
                Err(Error::Value { round, column: Column::Action, range, got })
            }
        }
    }
}
