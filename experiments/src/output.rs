//! The result files of an experiment, in one folder.

use neuralcb_logs::{FileError, OutDir};

use crate::report::{ReportChoice, ReportData, ReportFigure, ReportProblem, RunInfo};
use crate::runner::Results;
use crate::settings::Settings;
use crate::summary::Curve;
use crate::{chart, report, rows, summary};

/// Writes `results.csv`, `timings.csv`, `summary.csv`, `settings.json`, `figures/*.svg` and `report.html`, each whole
/// or not at all, and returns the curves that the summary is made of.
pub fn write_results(dir: &OutDir, settings: &Settings, results: &Results) -> Result<Vec<Curve>, FileError> {
    let curves = summary::select(&results.rows);
    let settings_text = serde_json::to_string_pretty(settings).expect("settings are plain data");
    dir.write("results.csv", rows::to_csv(&results.rows).as_bytes())?;
    dir.write("timings.csv", rows::timings_to_csv(&results.timings).as_bytes())?;
    dir.write("summary.csv", summary::to_csv(&settings.figure, &curves).as_bytes())?;
    dir.write("settings.json", format!("{settings_text}\n").as_bytes())?;
    let mut panels = Vec::new();
    let mut groups = Vec::new();
    for dataset in &settings.datasets {
        let own: Vec<&Curve> = curves.iter().filter(|c| c.dataset == dataset.name()).collect();
        let svg = chart::panel(dataset.title(), &own);
        dir.write(&format!("figures/{}-{dataset}.svg", settings.figure), svg.as_bytes())?;
        panels.push(ReportProblem {
            dataset: dataset.name().to_owned(),
            title: dataset.title().to_owned(),
            behaviour: "the behaviour policy".to_owned(),
            split: None,
            curves: Vec::new(),
            choices: own.iter().map(|curve| choice(curve)).collect(),
        });
        groups.push((dataset.title().to_owned(), own));
    }
    dir.write(&format!("figures/{}.svg", settings.figure), chart::figure(&groups).as_bytes())?;
    let title = format!("{} of the NeuraLCB paper, preset {}", settings.title(), settings.preset);
    let figure = ReportFigure {
        id: settings.figure.clone(),
        title: settings.title().to_string(),
        caption: String::new(),
        panels: (0..panels.len()).collect(),
        by_mode: false,
    };
    let run = RunInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: std::env::consts::ARCH.to_owned(),
        threads: rayon::current_num_threads(),
        finished: String::new(),
        wall_seconds: 0.0,
        compute_seconds: results.timings.iter().map(|row| row.train_seconds + row.score_seconds).sum(),
    };
    let data = ReportData {
        title,
        figures: vec![figure],
        problems: panels,
        comparison: Vec::new(),
        settings: settings_text,
        run,
    };
    dir.write("report.html", report::html(&data).as_bytes())?;
    Ok(curves)
}

fn choice(curve: &Curve) -> ReportChoice {
    ReportChoice {
        selection: curve.selection.name().to_owned(),
        algorithm: curve.algorithm.clone(),
        mode: None,
        setting: curve.setting.to_string(),
        reps: curve.points.last().map_or(0, |point| point.reps),
        points: curve.points.iter().map(|point| [point.n as f64, point.mean, point.low, point.high]).collect(),
    }
}
