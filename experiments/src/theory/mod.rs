//! The paper's theory at work on a bandit or a log: what H, d̃, λ_0, κ and Theorem 4.1 say, and figures in which the
//! theorem can be seen.
//!
//! [`Settings`] is data, [`run`] measures, [`write`](fn@write) makes tables, SVG figures and one self-contained page of
//! it.

mod convergence;
mod cost;
mod coverage;
mod dimension;
mod fit;
mod lemmas;
mod page;
mod plot;
mod quantities;
mod rate;
mod settings;
mod study;

pub use fit::exponent;
pub use page::{table, write};
pub use plot::{Line, Look, Panel};
pub use quantities::Quantities;
pub use settings::{Figure, Settings};
pub use study::{Study, Truth};

use crate::error::ExperimentError;
use crate::problem::Library;

/// One figure: panels of lines with a sentence of explanation and the numbers to remember.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Which.
    pub figure: Figure,
    /// The sentence.
    pub sentence: String,
    /// What was found, in a line each.
    pub findings: Vec<String>,
    /// The pictures.
    pub panels: Vec<Panel>,
}

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// The theory's quantities.
    pub quantities: Quantities,
    /// The figures.
    pub figures: Vec<Shown>,
    /// The settings, as JSON.
    pub settings: String,
}

/// Draws the bandit that the settings name and measures; `talk` hears what is being done.
pub fn run(settings: &Settings, library: &Library, talk: &dyn Fn(&str)) -> Result<Report, ExperimentError> {
    let study = Study::draw(settings, library, 0, settings.epsilon)?;
    run_study(settings, &study, Some(library), talk)
}

/// As [`run`], for a log (without a [`Truth`]) or for a bandit of one's own: figures that need the truth or other logs
/// of the same bandit are left out.
pub fn run_study(
    settings: &Settings,
    study: &Study,
    library: Option<&Library>,
    talk: &dyn Fn(&str),
) -> Result<Report, ExperimentError> {
    settings.check()?;
    talk("H, its smallest eigenvalue and the effective dimension");
    let spectra = quantities::spectra(settings, study)?;
    let quantities = Quantities::of(settings, study, &spectra)?;
    let mut figures = Vec::new();
    for &figure in &settings.figures {
        let shown = match (figure, library) {
            (Figure::Kernel, _) => Some(convergence::measure(settings, study)),
            (Figure::Dimension, _) => Some(Ok(dimension::measure(settings, &spectra))),
            (Figure::Rate, Some(library)) => Some(rate::measure(settings, library, &spectra)),
            (Figure::Coverage, Some(library)) => Some(coverage::measure(settings, library)),
            (Figure::Cost, _) => Some(cost::measure(settings, study)),
            (Figure::Lemmas, _) => Some(lemmas::measure(settings, study, &quantities)),
            (Figure::Rate | Figure::Coverage, None) => None,
        };
        if let Some(shown) = shown {
            talk(figure.title());
            figures.push(shown?);
        }
    }
    let settings = serde_json::to_string_pretty(settings).expect("settings are plain data");
    Ok(Report { title: format!("Theory on {}", study.name), quantities, figures, settings })
}
