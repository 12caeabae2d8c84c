//! Logs in files: what the command line does with them.

use std::path::PathBuf;

use neuralcb_logs::card::{About, Kind, html};
use neuralcb_logs::evaluate::{EvaluateOptions, check_segments, evaluate, evaluate_columns};
use neuralcb_logs::log::{Feature, Log, LogOptions, ReadLog, Want};
use neuralcb_logs::policy::{Origin, Recipe};
use neuralcb_logs::score::{ScoreOptions, score as score_log};
use neuralcb_logs::tune::{Tried, TuneOptions, Tuning, held_out};
use neuralcb_logs::{diagnose as diagnosis, train as training};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::error::{Refusal, json, settings};
use crate::policy::Policy;
use crate::training::recipe;
use crate::work;

/// The policy that a tuning found, if that was asked for and is to be written, and what it found as JSON.
pub type Tuned = (Option<Policy>, String);

/// Trains a policy as `neuralcb train` does.
#[pyfunction]
#[pyo3(signature = (paths, log_options, recipe, progress=None))]
pub fn train(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    log_options: &str,
    recipe: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Policy> {
    let (options, recipe): (LogOptions, Recipe) = (settings(log_options)?, self::recipe(recipe)?);
    work::run(py, progress, |watch| {
        let log = Log::open(&paths, &options, Want::OUTCOMES)?;
        Ok(Policy(training::train(&watch.bytes(&log), &recipe, None, &mut |_| {})?))
    })
}

/// Scores records as `neuralcb score` does; what was done, as JSON.
#[pyfunction]
#[pyo3(signature = (policy, paths, log_options, out, explain=false, progress=None))]
pub fn score(
    py: Python<'_>,
    policy: &Policy,
    paths: Vec<PathBuf>,
    log_options: &str,
    out: PathBuf,
    explain: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (options, policy) = (settings::<LogOptions>(log_options)?, &policy.0);
    work::run(py, progress, |watch| {
        let log = Log::open_as(&paths, &options, Want::CONTEXTS, policy.preparation().schema())?;
        watch.set_total(log.bytes());
        let scored = score_log(policy, &log, &out, ScoreOptions { explain }, &mut || watch.set(log.bytes_read()))?;
        Ok(json!({
            "rounds": scored.rounds,
            "chosen": scored.chosen,
            "unseen": scored.unseen,
        })
        .to_string())
    })
}

/// Evaluates as `neuralcb evaluate` does: a policy, or columns of the log that hold what a policy does. The report as
/// JSON, and what the policy had not seen.
#[pyfunction]
#[pyo3(signature = (policy, columns, paths, log_options, options, progress=None))]
pub fn evaluate_log(
    py: Python<'_>,
    policy: Option<&Policy>,
    columns: Vec<String>,
    paths: Vec<PathBuf>,
    log_options: &str,
    options: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Option<String>)> {
    let (log_options, options): (LogOptions, EvaluateOptions) = (settings(log_options)?, settings(options)?);
    let policy = policy.map(|policy| &policy.0);
    work::run(py, progress, |watch| {
        let Some(policy) = policy else {
            let log_options = LogOptions { extra: columns.clone(), ..log_options };
            let log = Log::open(&paths, &log_options, Want::OUTCOMES)?;
            watch.set_total(log.bytes());
            let found = evaluate_columns(&log, &columns, &options, &mut |_| watch.set(log.bytes_read()))?;
            return Ok((json(&found)?, None));
        };
        let log = Log::open_as(&paths, &log_options, Want::OUTCOMES, policy.preparation().schema())?;
        let found = evaluate(policy, None, &watch.bytes(&log), &options, &mut |_| {})?;
        Ok((json(&found)?, found.unseen_words))
    })
}

/// Is this log fit to learn from? As JSON, and in words.
#[pyfunction]
#[pyo3(signature = (paths, log_options, segments, progress=None))]
pub fn diagnose(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    log_options: &str,
    segments: Vec<String>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let options = settings::<LogOptions>(log_options)?;
    work::run(py, progress, |watch| {
        let log = Log::open(&paths, &options, Want::OUTCOMES)?;
        check_segments(&log, &segments)?;
        let (schema, watched) = (log.schema(), watch.bytes(&log));
        let blocks = watched.read().map(|block| watch.go_on().and(block));
        let names = |features: &[Feature]| features.iter().map(|feature| feature.name.clone()).collect::<Vec<_>>();
        let found = diagnosis::diagnose(blocks, &names(&schema.shared), &names(&schema.per_action), &segments)?;
        let mut report = serde_json::to_value(&found)?;
        let skipped = log.skipped();
        report["unwise"] = json!(found.unwise());
        report["schema"] = serde_json::to_value(schema)?;
        report["skipped"] = json!({ "bad_rows": skipped.bad_rows, "not_decisions": skipped.not_decisions });
        report["about"] = serde_json::to_value(About::new(Origin::of(&log)?, &[], &schema.to_options()))?;
        Ok((report.to_string(), format!("{schema}\n\n{found}")))
    })
}

/// What is asked of a tuning: all of it, or the part that one worker of many does.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Everything.
    All,
    /// Which candidates are tried together.
    Groups,
    /// To try a group of candidates.
    Group(Vec<usize>),
    /// To certify the best of all that was tried.
    Finish(Vec<Tried>),
}

/// Chooses algorithm and settings from the log alone, as `neuralcb tune` does.
#[pyfunction]
#[pyo3(signature = (paths, log_options, options, part, segments, progress=None))]
pub fn tune(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    log_options: &str,
    options: &str,
    part: &str,
    segments: Vec<String>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Tuned> {
    let (log_options, options): (LogOptions, TuneOptions) = (settings(log_options)?, settings(options)?);
    let part = settings::<Part>(part)?;
    work::run(py, progress, |watch| {
        let log = Log::open(&paths, &log_options, Want::OUTCOMES)?;
        tuned(&watch.bytes(&log), &options, part, &segments)
    })
}

/// A part of a tuning, on its way to Python.
pub fn tuned(log: &dyn ReadLog, options: &TuneOptions, part: Part, segments: &[String]) -> Result<Tuned, Refusal> {
    check_segments(log, segments)?;
    let tuning = || Tuning::new(log, options, None, &mut |_| {});
    let found = match part {
        Part::All => neuralcb_logs::tune::tune(log, options, &mut |_| {})?,
        Part::Groups => return Ok((None, serde_json::to_string(&tuning()?.groups())?)),
        Part::Group(group) => {
            return Ok((None, serde_json::to_string(&tuning()?.try_group(&group, &mut |_| {})?)?));
        }
        Part::Finish(tried) => tuning()?.finish(tried, &mut |_| {})?,
    };
    let mut report = found.to_json();
    report["evaluation"] = serde_json::to_value(held_out(log, &found, options, segments)?)?;
    Ok((found.policy.map(Policy), report.to_string()))
}

/// The card of what a command found, from its JSON.
#[pyfunction]
pub fn card(kind: &str, found: &str) -> PyResult<String> {
    let kind = match kind {
        "diagnose" => Kind::Diagnose,
        "tune" => Kind::Tune,
        _ => Kind::Evaluate,
    };
    Ok(html(kind, &settings(found)?).map_err(Refusal::from)?)
}
