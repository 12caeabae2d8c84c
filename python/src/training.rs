//! A training that more rounds may follow.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use neuralcb_logs::policy::Recipe;
use neuralcb_logs::tune::TuneOptions;
use neuralcb_logs::{Training as Inner, policy::PolicyError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Map, Value};

use crate::error::{Refusal, settings};
use crate::files::{Part, Tuned, tuned};
use crate::input::Input;
use crate::policy::Policy;
use crate::work;

/// A reward model in training. After an interruption it is empty, and says so.
#[pyclass(frozen, module = "neuralcb._neuralcb")]
pub struct Training(Mutex<Option<Inner>>);

/// A recipe from its JSON; `net` may name some of the network's fields, and the others are the preset's.
pub fn recipe(text: &str) -> Result<Recipe, Refusal> {
    let mut fields: Map<String, Value> = settings(text)?;
    let net = fields.remove("net").filter(|net| !net.is_null());
    let mut recipe: Recipe = serde_json::from_value(Value::from(fields))?;
    if let Some(changes) = net {
        let mut net = serde_json::to_value(recipe.net())?;
        let (Value::Object(all), Value::Object(changes)) = (&mut net, changes) else {
            return Err(Refusal("`net` must be a dictionary of the network's settings".to_owned()));
        };
        all.extend(changes);
        recipe.net = Some(serde_json::from_value(net)?);
    }
    Ok(recipe)
}

#[pymethods]
impl Training {
    #[staticmethod]
    #[pyo3(signature = (recipe, rounds, progress=None))]
    fn start(
        py: Python<'_>,
        recipe: &str,
        rounds: &Bound<'_, PyDict>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (recipe, input) = (self::recipe(recipe)?, Input::new(rounds)?);
        let log = input.log()?;
        let training = work::run(py, progress, |watch| {
            watch.set_total(2 * log.n_rounds as u64);
            let log = watch.rounds(&log);
            Ok(Inner::start(&log, &recipe, &mut |_| {})?)
        })?;
        Ok(Training(Mutex::new(Some(training))))
    }

    #[pyo3(signature = (rounds, progress=None))]
    fn go_on(&self, py: Python<'_>, rounds: &Bound<'_, PyDict>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let input = Input::new(rounds)?;
        let log = input.log()?;
        work::run(py, progress, |watch| {
            watch.set_total(2 * log.n_rounds as u64);
            let log = watch.rounds(&log);
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // what fails midway is neither the old training nor the new one
            let mut training = slot.take().ok_or_else(given_up)?;
            training.go_on(&log, &mut |_| {})?;
            *slot = Some(training);
            Ok(())
        })
    }

    fn policy(&self, py: Python<'_>) -> PyResult<Policy> {
        work::run(py, None, |_| self.with(Inner::policy)).map(Policy)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &work::run(py, None, |_| self.with(Inner::to_bytes))?))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let training = Inner::from_bytes(bytes, Path::new("(bytes)")).map_err(Refusal::from)?;
        Ok(Training(Mutex::new(Some(training))))
    }

    /// Chooses among algorithms and settings, or does a part of that; the policy to write, and what was found as JSON.
    #[staticmethod]
    #[pyo3(signature = (rounds, options, part, segments, progress=None))]
    fn tune(
        py: Python<'_>,
        rounds: &Bound<'_, PyDict>,
        options: &str,
        part: &str,
        segments: Vec<String>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tuned> {
        let (input, options) = (Input::new(rounds)?, settings::<TuneOptions>(options)?);
        let part = settings::<Part>(part)?;
        let log = input.log()?;
        work::run(py, progress, |watch| {
            watch.set_total(3 * log.n_rounds as u64);
            tuned(&watch.rounds(&log), &options, part, &segments)
        })
    }
}

impl Training {
    fn with<T>(&self, use_it: impl FnOnce(&mut Inner) -> Result<T, PolicyError>) -> Result<T, Refusal> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(use_it(slot.as_mut().ok_or_else(given_up)?)?)
    }
}

fn given_up() -> Refusal {
    Refusal("the training was interrupted while it read rounds: fit it anew".to_owned())
}
