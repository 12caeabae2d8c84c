//! (a) ‖empirical NTK − limit‖_max against m.

use neuralcb::net::Net;
use neuralcb::theory::{Limit, Ntk, NtkConfig, Points};
use rayon::prelude::*;

use super::Shown;
use super::fit::exponent;
use super::plot::{Line, Look, Panel};
use super::settings::{Figure, Settings};
use super::study::Study;
use crate::error::ExperimentError;

/// Contexts that the matrices are made over.
const CONTEXTS: usize = 24;
/// Draws of W⁽⁰⁾ per width.
const DRAWS: u64 = 5;

pub(super) fn measure(settings: &Settings, study: &Study) -> Result<Shown, ExperimentError> {
    let contexts = study.log.contexts();
    let rounds = (1..=contexts.n_rounds()).find(|&n| contexts.first_pair(n) >= CONTEXTS).unwrap_or(contexts.n_rounds());
    let points = Points::all(&contexts.slice(0..rounds))?.normalised().distinct();
    let largest = if settings.depth == 2 { 4096 } else { 1024 };
    let widths: Vec<usize> = (5..).map(|power| 1usize << power).take_while(|m| *m <= largest).collect();
    // limit, factor of the output weights, name
    let cases = [
        (Limit::Algorithm1, 1.0, "output weights N(0, 2/m) as in Algorithm 1, against H̃"),
        (Limit::Definition, 0.5f64.sqrt(), "output weights N(0, 1/m), against H"),
        (Limit::Definition, 1.0, "output weights N(0, 2/m) as in Algorithm 1, against H"),
    ];
    let mut lines = Vec::new();
    let mut findings = Vec::new();
    for (limit, output, name) in cases {
        let h = Ntk::new(&points, &NtkConfig { depth: settings.depth, limit, ..NtkConfig::default() })?;
        let error = |&width: &usize| {
            let net = Net::new(settings.net(width), contexts.layout())?;
            let draw = |i: u64| {
                let mut tensors = net.unpack(&net.init::<f64>(&mut study.seed.child("kernel").nth(i).stream("init")));
                tensors.output.iter_mut().for_each(|w| *w *= output);
                Ntk::empirical(&net, &net.pack::<f64>(&tensors)?, &points)?.max_difference(&h)
            };
            let all = (0..DRAWS).map(draw).collect::<Result<Vec<f64>, _>>()?;
            Ok((width as f64, all.iter().sum::<f64>() / DRAWS as f64))
        };
        let found = widths.par_iter().map(error).collect::<Result<Vec<(f64, f64)>, neuralcb::Error>>()?;
        findings.push(format!("{name}: fitted exponent {:.3}", exponent(&found)));
        lines.push(Line::new(name, Look::Measured, found));
    }
    lines.push(Line::guide("m^(−1/2)", -0.5, &lines[0].points));
    Ok(Shown {
        figure: Figure::Kernel,
        sentence: format!(
            "The largest entry of the difference between ⟨∇f, ∇f⟩/m at initialisation and its limit, over {} contexts, mean of \
             {DRAWS} draws: it falls like m^(−1/2) (Lemma C.1). With Algorithm 1's own output weights N(0, 2/m) the limit is H̃ \
             and not the H of Definition 4.1, which belongs to N(0, 1/m).",
            points.len()
        ),
        findings,
        panels: vec![Panel {
            title: format!("L = {}", settings.depth),
            x_label: "width m".into(),
            y_label: "max |empirical NTK − limit|".into(),
            lines,
        }],
    })
}
