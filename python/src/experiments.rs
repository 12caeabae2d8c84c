//! The paper's bandits and experiments.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::Instant;

use neuralcb::Encoding;
use neuralcb_experiments::report::{RunInfo, table};
use neuralcb_experiments::{
    Figure, Journal, Library, Plan, Preset, Problem, Record, Results, Selection, Settings, run, write_results,
    write_settings,
};
use neuralcb_logs::OutDir;
use neuralcb_logs::datasets::cache_dir;
use neuralcb_logs::log::LogError;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use crate::error::{Refusal, settings};
use crate::pool::pool;
use crate::work;

/// The preset's settings with some of them changed.
fn changed(settings: Settings, changes: Map<String, Value>) -> Result<Settings, Refusal> {
    let mut all = serde_json::to_value(settings)?;
    for (name, value) in changes {
        match all.get_mut(&name) {
            Some(field) => *field = value,
            None => return Err(Refusal(format!("unknown setting `{name}` of an experiment"))),
        }
    }
    Ok(serde_json::from_value(all)?)
}

fn preset(name: &str) -> Result<Preset, Refusal> {
    Ok(serde_json::from_value(Value::from(name))?)
}

/// A log of a bandit: contexts (n × d, or n × K × d), actions, rewards and propensities.
#[pyfunction]
pub fn simulate<'py>(
    py: Python<'py>,
    changes: &str,
    preset: &str,
    n: usize,
    seed: u64,
    data_dir: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let figures = [Figure::Fig1, Figure::Fig2];
    let base = Settings { test_contexts: 1, ..Settings::of(&figures, self::preset(preset)?) };
    let base = Settings { synthetic_rounds: n, real_rounds: n, ..base };
    let settings = changed(base, settings(changes)?)?;
    let log = work::run(py, None, |_| {
        settings.check()?;
        let library = Library::new(data_dir.unwrap_or_else(cache_dir));
        Ok(Problem::draw(&settings.problems().remove(0), &library, 0, seed)?.log)
    })?;
    let (contexts, out) = (log.contexts(), PyDict::new(py));
    let layout = contexts.layout();
    let x = contexts.rows(0..n).to_vec().into_pyarray(py);
    match layout.encoding {
        Encoding::Disjoint => out.set_item("contexts", x.reshape([n, layout.dim])?)?,
        Encoding::PerAction => out.set_item("contexts", x.reshape([n, layout.n_actions, layout.dim])?)?,
    }
    out.set_item("actions", log.actions().iter().map(|&a| i64::from(a)).collect::<Vec<_>>().into_pyarray(py))?;
    out.set_item("rewards", log.rewards().to_vec().into_pyarray(py))?;
    out.set_item("propensities", log.propensities().map(|p| p.to_vec().into_pyarray(py)))?;
    out.set_item("n_actions", layout.n_actions)?;
    Ok(out)
}

/// What ends a run from within: it is unwound without a word, and what the journal holds is kept.
struct Stopped;

/// Figures of the paper, as `neuralcb reproduce` makes them, into a folder; the tables for people.
#[pyfunction]
#[pyo3(signature = (figures, quick, changes, preset, machine, data_dir, out, progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn reproduce(
    py: Python<'_>,
    figures: Vec<String>,
    quick: bool,
    changes: &str,
    preset: &str,
    machine: String,
    data_dir: Option<PathBuf>,
    out: PathBuf,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let figures: Vec<Figure> = serde_json::from_value(Value::from(figures)).map_err(Refusal::from)?;
    let base = Settings::of(&figures, self::preset(preset)?);
    let settings = changed(if quick { base.quick() } else { base }, settings(changes)?)?;
    let (plan, start) = (Plan::new(settings).map_err(Refusal::from)?, Instant::now());
    let dir = OutDir::prepare(&out).map_err(Refusal::from)?;
    let records = work::run(py, progress, |watch| {
        watch.set_total(plan.work());
        let library = Library::new(data_dir.unwrap_or_else(cache_dir));
        library.load(&plan.problems)?;
        let journal = Journal::open(&out)?;
        write_settings(&dir, &plan.settings)?;
        let tell = |done| {
            watch.add(done);
            if watch.go_on().is_err() {
                resume_unwind(Box::new(Stopped));
            }
        };
        let runs = AssertUnwindSafe(|| run(&plan, &library, Some(&journal), &tell));
        match catch_unwind(runs) {
            Ok(records) => Ok(records?),
            Err(reason) if reason.is::<Stopped>() => Err(LogError::Interrupted.into()),
            Err(reason) => resume_unwind(reason),
        }
    })?;
    let seconds = |r: &Record| r.train_seconds.last().unwrap_or(&0.0) + r.score_seconds.iter().sum::<f64>();
    let now =
        py.import("time")?.call_method1("strftime", ("%Y-%m-%d %H:%M", py.import("time")?.call_method0("gmtime")?))?;
    let info = RunInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        threads: pool()?.current_num_threads(),
        finished: now.extract()?,
        wall_seconds: start.elapsed().as_secs_f64(),
        compute_seconds: records.iter().map(seconds).sum(),
    };
    work::run(py, None, |_| {
        let results = Results::new(&plan, records.iter().map(Some));
        let figures = write_results(&dir, &plan, &results, info)?;
        let of_figure = |(figure, curves): &(Figure, Vec<_>)| {
            let headline: Vec<_> = curves
                .iter()
                .filter(|c: &&neuralcb_experiments::summary::Curve| c.selection != Selection::OracleOverTime)
                .cloned()
                .collect();
            format!("{}\n\n{}", figure.title(), table(&headline))
        };
        Ok(figures.iter().map(of_figure).collect::<Vec<_>>().join("\n"))
    })
}
