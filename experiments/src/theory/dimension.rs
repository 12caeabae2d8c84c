//! (b) d̃ and λ_0 against n.

use super::Shown;
use super::fit::exponent;
use super::plot::{Line, Look, Panel};
use super::quantities::{MAX_EXACT, Spectrum};
use super::settings::{Figure, Settings};

pub(super) fn measure(settings: &Settings, spectra: &[Spectrum]) -> Shown {
    let of = |f: &dyn Fn(&Spectrum) -> Option<f64>| -> Vec<(f64, f64)> {
        spectra.iter().filter_map(|s| Some((s.n as f64, f(s)?))).collect()
    };
    let dimension = of(&|s| Some(s.effective_dimension));
    let lambda_0 = of(&|s| s.lambda_0.clone().ok());
    let contexts = of(&|s| Some(s.n_contexts as f64));
    let mut findings = vec![format!("d̃ grows like n^{:.2} here", exponent(&dimension))];
    for s in spectra {
        let dimension = match s.half_width {
            None => format!("d̃ = {:.2}", s.effective_dimension),
            Some(half) => format!("d̃ = {:.2} ± {half:.2} (stochastic Lanczos)", s.effective_dimension),
        };
        let smallest = s.lambda_0.as_ref().map_or_else(|e| format!("λ_0: {e}"), |v| format!("λ_0 = {v:.5}"));
        findings.push(format!("n = {}, {} contexts: {dimension}, {smallest}", s.n, s.n_contexts));
    }
    let panel = |title: &str, lines| Panel {
        title: title.into(),
        x_label: "number of logged rounds n".into(),
        y_label: title.into(),
        lines,
    };
    Shown {
        figure: Figure::Dimension,
        sentence: format!(
            "The effective dimension d̃ = log det(I + H/λ)/log(1 + nK/λ), λ = {:.3}, stays far below the number of contexts; the \
             smallest eigenvalue λ_0 of H falls as contexts come closer to each other. Exact up to {MAX_EXACT} contexts.",
            settings.lambda()
        ),
        findings,
        panels: vec![
            panel(
                "effective dimension d̃",
                vec![
                    Line::new("d̃", Look::Measured, dimension),
                    Line::new("number of contexts nK", Look::Bound, contexts),
                ],
            ),
            panel("smallest eigenvalue λ₀", vec![Line::new("λ₀", Look::Measured, lambda_0)]),
        ],
    }
}
