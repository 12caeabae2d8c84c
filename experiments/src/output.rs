//! The result files of an experiment, in one folder.

use neuralcb_logs::{FileError, OutDir};

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
        panels.push((dataset.title().to_owned(), svg));
        groups.push((dataset.title().to_owned(), own));
    }
    dir.write(&format!("figures/{}.svg", settings.figure), chart::figure(&groups).as_bytes())?;
    let title = format!("{} of the NeuraLCB paper, preset {}", settings.title(), settings.preset);
    dir.write("report.html", report::html(&title, &settings_text, &curves, &panels).as_bytes())?;
    Ok(curves)
}
