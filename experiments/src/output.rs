//! The result files of experiments, in one folder.

use neuralcb_logs::OutDir;

use crate::error::ExperimentError;
use crate::known;
use crate::names::{Algorithm, Figure, Selection};
use crate::plan::Plan;
use crate::problem::{ProblemConfig, behaviour_name};
use crate::report::{ReportChoice, ReportCurve, ReportData, ReportFigure, ReportProblem, RunInfo};
use crate::results::Results;
use crate::rows::{ResultRow, ValidationRow};
use crate::settings::Settings;
use crate::summary::{Curve, Point};
use crate::{chart, png, report, rows, summary};

/// Writes `results.csv`, `validation.csv`, `timings.csv`, `summary.csv`, `figures/*` and `report.html`, each
/// whole or not at all, and returns the curves of each figure.
pub fn write_results(
    dir: &OutDir,
    plan: &Plan,
    results: &Results,
    run: RunInfo,
) -> Result<Vec<(Figure, Vec<Curve>)>, ExperimentError> {
    let settings = &plan.settings;
    dir.write("results.csv", rows::to_csv(&results.rows).as_bytes())?;
    dir.write("validation.csv", rows::validations_to_csv(&results.validations).as_bytes())?;
    dir.write("timings.csv", rows::timings_to_csv(&results.timings).as_bytes())?;
    let panels: Vec<Panel> = plan.problems.iter().map(|problem| Panel::new(problem, results)).collect();
    let figures: Vec<(Figure, Vec<Curve>)> =
        settings.figures.iter().map(|&figure| (figure, figure_curves(settings, figure, &panels))).collect();
    dir.write("summary.csv", summary::to_csv(figures.iter().map(|(f, c)| (f.name(), c.as_slice()))).as_bytes())?;
    for &figure in &settings.figures {
        write_charts(dir, settings, figure, &panels)?;
    }
    let data = report_data(plan, &panels, results, run);
    dir.write("report.html", report::html(&data).as_bytes())?;
    Ok(figures)
}

/// Writes `settings.json`, by which a folder is understood later.
pub fn write_settings(dir: &OutDir, settings: &Settings) -> Result<(), ExperimentError> {
    let text = serde_json::to_string_pretty(settings).expect("settings are plain data");
    Ok(dir.write("settings.json", format!("{text}\n").as_bytes())?)
}

/// A problem with its rows.
struct Panel<'a> {
    problem: &'a ProblemConfig,
    rows: Vec<&'a ResultRow>,
    /// Curves of each way of choosing, free and within each mode.
    curves: Vec<Curve>,
}

impl<'a> Panel<'a> {
    fn new(problem: &'a ProblemConfig, results: &'a Results) -> Self {
        let (dataset, behaviour) = (problem.dataset.name(), behaviour_name(&problem.behaviour));
        let rows: Vec<&ResultRow> =
            results.rows.iter().filter(|r| r.key.dataset == dataset && r.key.behaviour == behaviour).collect();
        let own = |v: &&ValidationRow| v.key.dataset == dataset && v.key.behaviour == behaviour;
        let validations: Vec<&ValidationRow> = results.validations.iter().filter(own).collect();
        let mut curves = Vec::new();
        for &selection in Selection::ALL {
            for mode in [None, Some("S"), Some("B")] {
                curves.extend(summary::select_mode(&rows, &validations, selection, mode));
            }
        }
        Panel { problem, rows, curves }
    }

    /// The lines of a figure under one way of choosing, in the order of the algorithms.
    fn lines(&self, settings: &Settings, figure: Figure, selection: Selection) -> Vec<&Curve> {
        let mut lines: Vec<&Curve> = self
            .curves
            .iter()
            .filter(|c| c.selection == selection)
            .filter(|c| Algorithm::parse(&c.algorithm).is_some_and(|a| settings.shows(figure, a)))
            .filter(|c| c.only_mode.is_some() == (figure == Figure::Fig4 && has_modes(c)))
            .collect();
        lines.sort_by(|a, b| crate::names::compare_algorithms(&a.algorithm, &b.algorithm));
        lines
    }
}

fn has_modes(curve: &Curve) -> bool {
    [Algorithm::Neuralcb, Algorithm::NeuralGreedy].iter().any(|a| a.name() == curve.algorithm)
}

fn panels_of<'a, 'b>(settings: &'a Settings, figure: Figure, panels: &'a [Panel<'b>]) -> Vec<(usize, &'a Panel<'b>)> {
    let place = |problem: &ProblemConfig| panels.iter().position(|panel| panel.problem == problem);
    settings.panels(figure).filter_map(|problem| place(&problem)).map(|i| (i, &panels[i])).collect()
}

fn figure_curves(settings: &Settings, figure: Figure, panels: &[Panel<'_>]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (_, panel) in panels_of(settings, figure, panels) {
        for &selection in Selection::ALL {
            curves.extend(panel.lines(settings, figure, selection).into_iter().cloned());
        }
    }
    curves
}

/// Per panel one picture with the oracle's choice, as the paper shows it, and one with the log's own.
fn write_charts(
    dir: &OutDir,
    settings: &Settings,
    figure: Figure,
    panels: &[Panel<'_>],
) -> Result<(), ExperimentError> {
    for (selection, suffix) in [(Selection::Oracle, ""), (Selection::LogOnly, "-log-only")] {
        let own: Vec<(String, Vec<&Curve>)> = panels_of(settings, figure, panels)
            .into_iter()
            .map(|(_, panel)| (panel.problem.title(), panel.lines(settings, figure, selection)))
            .collect();
        let names = settings.panels(figure).map(|problem| problem.dataset.name());
        for (name, (title, lines)) in names.zip(&own) {
            write_picture(dir, &format!("{figure}-{name}{suffix}"), &chart::panel(title, lines))?;
        }
        write_picture(dir, &format!("{figure}{suffix}"), &chart::figure(&own))?;
    }
    Ok(())
}

fn write_picture(dir: &OutDir, name: &str, svg: &str) -> Result<(), ExperimentError> {
    dir.write(&format!("figures/{name}.svg"), svg.as_bytes())?;
    Ok(dir.write(&format!("figures/{name}.png"), &png::render(svg)?)?)
}

fn report_data(plan: &Plan, panels: &[Panel<'_>], results: &Results, run: RunInfo) -> ReportData {
    let settings = &plan.settings;
    let figures = settings.figures.iter().map(|&figure| ReportFigure {
        id: figure.name().to_owned(),
        title: figure.title().to_owned(),
        caption: caption(settings, figure),
        panels: panels_of(settings, figure, panels).into_iter().map(|(i, _)| i).collect(),
        by_mode: figure == Figure::Fig4,
    });
    ReportData {
        title: format!("The NeuraLCB paper reproduced, preset {}", settings.preset),
        figures: figures.collect(),
        problems: panels.iter().map(report_problem).collect(),
        comparison: known::compare(settings, results),
        settings: serde_json::to_string_pretty(settings).expect("settings are plain data"),
        run,
    }
}

fn caption(settings: &Settings, figure: Figure) -> String {
    let log = |behaviour| match behaviour_name(behaviour).split_once(':') {
        Some(("epsilon-greedy", e)) => format!("Logs are made by an ε-greedy policy on the true rewards, ε = {e}."),
        Some(("linucb", e)) => format!(
            "Logs are dependent: with probability {e} LinUCB plays, which learns from the log it makes, else the best action."
        ),
        _ => format!("Logs are made by the policy {}.", behaviour_name(behaviour)),
    };
    let what = match figure {
        Figure::Fig1 => "Synthetic rewards, d = 20, K = 30.",
        Figure::Fig2 => "Classification data as bandits, one context per round.",
        Figure::Fig3 => "The same data sets under a behaviour policy that adapts.",
        Figure::Fig4 => "One gradient step per round (S) against a hundred on batches of all rounds so far (B).",
    };
    let behaviour = if figure == Figure::Fig3 { &settings.dependent } else { &settings.behaviour };
    format!("{what} {}", log(behaviour))
}

fn report_problem(panel: &Panel<'_>) -> ReportProblem {
    let numbers = |points: &[Point]| points.iter().map(|p| [p.n as f64, p.mean, p.low, p.high]).collect();
    let reps = |points: &[Point]| points.last().map_or(0, |point| point.reps);
    let mut curves = Vec::new();
    for rows in panel.rows.chunk_by(|a, b| a.key.algorithm == b.key.algorithm) {
        curves.extend(summary::settings(rows).into_iter().map(|(setting, points)| ReportCurve {
            algorithm: rows[0].key.algorithm.clone(),
            mode: setting.mode,
            learning_rate: setting.learning_rate,
            sigma: setting.sigma,
            beta: setting.beta,
            reps: reps(&points),
            points: numbers(&points),
        }));
    }
    let choices = panel.curves.iter().map(|curve| ReportChoice {
        selection: curve.selection.name().to_owned(),
        algorithm: curve.algorithm.clone(),
        mode: curve.only_mode.clone(),
        setting: curve.chosen.to_string(),
        reps: reps(&curve.points),
        points: numbers(&curve.points),
    });
    ReportProblem {
        dataset: panel.problem.dataset.name().to_owned(),
        title: panel.problem.title(),
        behaviour: behaviour_name(&panel.problem.behaviour),
        split: panel.problem.split().map(|split| split.name().to_owned()),
        choices: choices.collect(),
        curves,
    }
}
