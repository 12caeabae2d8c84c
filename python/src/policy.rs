//! A policy that decides.

use std::path::{Path, PathBuf};

use neuralcb::ope::Sample;
use neuralcb_logs::evaluate::{EvaluateOptions, evaluate, weigh as weigh_block};
use neuralcb_logs::log::ReadLog;
use neuralcb_logs::policy;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::ArrayLog;
use crate::error::{Refusal, json, settings};
use crate::input::Input;
use crate::pool::pool;
use crate::work;

/// A policy as the command line keeps it.
#[pyclass(frozen, module = "neuralcb._neuralcb")]
pub struct Policy(pub policy::Policy);

/// Actions, and of every action mean and width (NaN where it is not eligible), round after round.
struct Decided {
    actions: Vec<i64>,
    mean: Vec<f64>,
    width: Vec<f64>,
}

#[pymethods]
impl Policy {
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        Ok(Policy(policy::Policy::load(&path).map_err(Refusal::from)?))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(Policy(policy::Policy::from_bytes(bytes, Path::new("(bytes)")).map_err(Refusal::from)?))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn save(&self, path: PathBuf) -> PyResult<()> {
        Ok(self.0.save(&path).map_err(Refusal::from)?)
    }

    /// Everything that the file says of the policy, as JSON.
    fn description(&self) -> PyResult<String> {
        Ok(json(self.0.description())?)
    }

    fn actions(&self) -> Vec<String> {
        self.0.preparation().actions().to_vec()
    }

    fn places(&self) -> Vec<String> {
        self.0.preparation().places()
    }

    #[getter]
    fn beta(&self) -> Option<f64> {
        self.0.beta()
    }

    fn with_beta(&self, beta: f64) -> PyResult<Policy> {
        Ok(Policy(self.0.clone().with_beta(beta).map_err(Refusal::from)?))
    }

    /// The chosen action of each round (−1: all are alike) and, if asked for, mean and width of each action: n × K
    /// each.
    #[allow(clippy::type_complexity)]
    #[pyo3(signature = (rounds, explain=true))]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        rounds: &Bound<'py, PyDict>,
        explain: bool,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let input = Input::new(rounds)?;
        let log = input.log()?;
        let decided = match log.n_rounds {
            // starting a thread to watch would take longer
            0..64 => {
                let threads = pool()?;
                py.detach(|| threads.install(|| self.decided(&log, explain)))?
            }
            _ => work::run(py, None, |_| self.decided(&log, explain))?,
        };
        let shape = [if explain { log.n_rounds } else { 0 }, self.0.preparation().actions().len()];
        let square = |values: Vec<f64>| Ok::<_, PyErr>(values.into_pyarray(py).reshape(shape)?.into_any());
        Ok((decided.actions.into_pyarray(py), square(decided.mean)?, square(decided.width)?))
    }
}

impl Policy {
    fn decided(&self, log: &ArrayLog<'_>, explain: bool) -> Result<Decided, Refusal> {
        let (preparation, n, k) = (self.0.preparation(), log.n_rounds, self.0.preparation().actions().len());
        let pairs = if explain { n * k } else { 0 };
        let mut out =
            Decided { actions: Vec::with_capacity(n), mean: vec![f64::NAN; pairs], width: vec![f64::NAN; pairs] };
        for rounds in log.ranges() {
            let contexts = preparation.contexts(&log.block(rounds.clone())?)?;
            let decisions = self.0.decide(&contexts)?;
            for (t, round) in rounds.enumerate() {
                let chosen = decisions.choices.as_ref().map(|choices| contexts.action(t, choices[t] as usize) as i64);
                out.actions.push(chosen.unwrap_or(-1));
                let Some(estimates) = decisions.estimates.as_ref().filter(|_| explain) else { continue };
                for (place, pair) in contexts.pairs(t).enumerate() {
                    let at = round * k + contexts.action(t, place);
                    (out.mean[at], out.width[at]) = (estimates.mean[pair], estimates.width[pair]);
                }
            }
        }
        Ok(out)
    }
}

/// What a policy would have earned on rounds in memory, as the JSON of a report and of what was unseen.
#[pyfunction]
#[pyo3(signature = (policy, model, rounds, options, progress=None))]
pub fn evaluate_policy(
    py: Python<'_>,
    policy: &Policy,
    model: Option<&Policy>,
    rounds: &Bound<'_, PyDict>,
    options: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Option<String>)> {
    let (input, options) = (Input::new(rounds)?, settings::<EvaluateOptions>(options)?);
    let log = input.log()?;
    let (policy, model) = (&policy.0, model.map(|model| &model.0));
    work::run(py, progress, |watch| {
        watch.set_total(3 * log.n_rounds as u64);
        let log = watch.rounds(&log);
        let found = evaluate(policy, model, &log, &options, &mut |_| {})?;
        Ok((json(&found)?, found.unseen_words))
    })
}

/// What a policy would have done with rounds in memory: weights, rewards, and the model's values q and v.
#[pyfunction]
pub fn weigh<'py>(
    py: Python<'py>,
    policy: &Policy,
    model: Option<&Policy>,
    rounds: &Bound<'py, PyDict>,
) -> PyResult<Vec<Option<Bound<'py, PyArray1<f64>>>>> {
    let input = Input::new(rounds)?;
    let log = input.log()?;
    let (policy, model) = (&policy.0, model.map(|model| &model.0));
    let samples = work::run(py, None, |watch| {
        let mut samples = Vec::with_capacity(log.n_rounds);
        for block in watch.rounds(&log).read() {
            watch.go_on()?;
            samples.extend(weigh_block(policy, model, &block?)?);
        }
        Ok(samples)
    })?;
    let column = |value: fn(&Sample) -> Option<f64>| {
        let values: Option<Vec<f64>> = samples.iter().map(value).collect();
        values.map(|values| values.into_pyarray(py))
    };
    Ok(vec![column(|s| Some(s.weight)), column(|s| Some(s.reward)), column(|s| s.q), column(|s| s.v)])
}
