//! Off-policy evaluation of weights, rewards and a model's values.

use std::sync::{Mutex, PoisonError};

use neuralcb::ope::{self, OpeConfig, Sample};
use numpy::PyReadonlyArray1;
use numpy::ndarray::ArrayView1;
use pyo3::prelude::*;

use crate::error::{Refusal, json, settings};
use crate::input::len;
use crate::work;

/// Rounds that become samples at a time.
const BLOCK: usize = 1 << 16;

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
    #[pyo3(signature = (weights, rewards, q=None, v=None, progress=None))]
    fn extend(
        &self,
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        rewards: PyReadonlyArray1<'_, f64>,
        q: Option<PyReadonlyArray1<'_, f64>>,
        v: Option<PyReadonlyArray1<'_, f64>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let n = len(&weights);
        for (what, array) in [("rewards", Some(&rewards)), ("q", q.as_ref()), ("v", v.as_ref())] {
            if let Some(got) = array.map(len).filter(|&got| got != n) {
                return Err(Refusal::from(neuralcb::Error::Shape { what, expected: n, got }).into());
            }
        }
        let (weights, rewards) = (weights.as_array(), rewards.as_array());
        let (q, v) = (q.as_ref().map(|q| q.as_array()), v.as_ref().map(|v| v.as_array()));
        let at = |values: &Option<ArrayView1<'_, f64>>, t: usize| values.as_ref().map(|values| values[t]);
        work::run(py, progress, |watch| {
            watch.set_total(n as u64);
            let mut evaluation = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // on an error or an interruption nothing is taken
            let mut next = evaluation.clone();
            for first in (0..n).step_by(BLOCK) {
                watch.go_on()?;
                let sample = |t| Sample { q: at(&q, t), v: at(&v, t), ..Sample::new(weights[t], rewards[t]) };
                let samples: Vec<Sample> = (first..(first + BLOCK).min(n)).map(sample).collect();
                next.extend(&samples)?;
                watch.add(samples.len() as u64);
            }
            *evaluation = next;
            Ok(())
        })
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
