//! Off-policy evaluation of weights, rewards and a model's values.

use std::sync::{Mutex, PoisonError};

use neuralcb::ope::{self, OpeConfig};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{Refusal, json, settings};
use crate::samples::Held;
use crate::work;

/// Rounds that become samples at a time.
const BLOCK: usize = 1 << 17;

/// An evaluation under way: fed with parts of a log, cut and merged anywhere.
#[pyclass(frozen, module = "neuralcb._neuralcb")]
pub struct Evaluation(Mutex<ope::Evaluation>);

#[pymethods]
impl Evaluation {
    #[new]
    #[pyo3(signature = (config, first_round=0))]
    fn new(config: &str, first_round: u64) -> PyResult<Self> {
        let evaluation = ope::Evaluation::new(settings::<OpeConfig>(config)?, first_round).map_err(Refusal::from)?;
        Ok(Evaluation(Mutex::new(evaluation)))
    }

    /// Takes the rounds that follow.
    fn extend(&self, py: Python<'_>, rounds: &Bound<'_, PyDict>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let held = Held::new(rounds)?;
        let given = held.given();
        let n = given.check()?;
        work::run(py, progress, |watch| {
            watch.set_total(n as u64);
            let mut evaluation = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // on an error or an interruption nothing is taken
            let mut next = evaluation.clone();
            let mut samples = Vec::new();
            for first in (0..n).step_by(BLOCK) {
                watch.go_on()?;
                given.samples(first..(first + BLOCK).min(n), &mut samples)?;
                next.extend(&samples)?;
                watch.add(samples.len() as u64);
            }
            *evaluation = next;
            Ok(())
        })
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.lock().unwrap_or_else(PoisonError::into_inner).to_bytes())
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(Evaluation(Mutex::new(ope::Evaluation::from_bytes(bytes).map_err(Refusal::from)?)))
    }

    /// Takes the rounds of another part.
    fn merge(&self, other: &Evaluation) -> PyResult<()> {
        let other = other.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(own.merge(&other).map_err(Refusal::from)?)
    }

    /// What the rounds so far say, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        work::run(py, None, |_| json(&self.0.lock().unwrap_or_else(PoisonError::into_inner).report()))
    }
}
