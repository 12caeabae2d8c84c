//! (f) Both sides of the recorded lemmas along a run of Algorithm 1.

use neuralcb::Learner;
use neuralcb::model::Neural;
use neuralcb::policy::{Rounding, pessimistic};
use neuralcb::theory::{Recorder, Sides, online_to_batch};

use super::Shown;
use super::plot::{Line, Look, Panel};
use super::quantities::Quantities;
use super::settings::{Figure, Settings};
use super::study::Study;
use crate::error::ExperimentError;

/// Policies π̂_t whose sub-optimality on x_t and on the test contexts is taken.
const POLICIES: usize = 100;

pub(super) fn measure(settings: &Settings, study: &Study, known: &Quantities) -> Result<Shown, ExperimentError> {
    let n = settings.n.min(study.log.n_rounds());
    let lambda_0 = known.lambda_0.as_ref().map_or(1.0, |&(value, _)| value);
    let theorem = settings.theorem(n, study.pairs(n).max(n), lambda_0);
    let layout = study.log.contexts().layout();
    let config = settings.algorithm_1(settings.step.optimiser(&theorem));
    let mut model = Neural::<f64>::new(config, layout, study.seed.child("model"))?;
    let mut recorder = Recorder::new(&model, settings.lambda())?;
    let (mut sides, mut norms) = (Vec::<Sides>::new(), Vec::new());
    let (mut observed, mut batch) = (Vec::new(), Vec::new()); // (t, mean so far and its bound), (t, mean on the test)
    let (mut on_x, mut on_test) = (Vec::new(), 0.0);
    for t in 0..n {
        if let Some(truth) = study.truth.as_ref().filter(|_| t.is_multiple_of(n.div_ceil(POLICIES))) {
            let (frozen, beta) = (model.model()?, settings.beta.beta(&theorem, t));
            let here = study.log.contexts().slice(t..t + 1);
            let place = pessimistic(&here, &frozen.estimate(&here)?, beta, Rounding::None)?[0] as usize;
            let expected = &truth.expected[study.log.contexts().pairs(t)];
            on_x.push(expected.iter().copied().fold(f64::NEG_INFINITY, f64::max) - expected[place]);
            let some = truth.test.contexts();
            on_test +=
                truth.test.judge(&pessimistic(some, &frozen.estimate(some)?, beta, Rounding::None)?).suboptimality;
            observed.push(((t + 1) as f64, online_to_batch(&on_x, settings.constants.delta)));
            batch.push(((t + 1) as f64, on_test / on_x.len() as f64));
        }
        let round = study.log.round(t);
        let block = layout.block(round.chosen.action);
        sides.push(recorder.observe(&mut model, block, round.chosen, round.reward)?);
        if (t + 1).is_power_of_two() || t + 1 == n {
            norms.push(((t + 1) as f64, recorder.lambda_norm()));
        }
    }
    let mut panels = panels(settings, &sides, norms);
    if !batch.is_empty() {
        let bound = Line::new("mean of SubOpt(π̂_t; x_t) + √((2/n) log(1/δ))", Look::Bound, observed);
        let lines = vec![Line::new("mean of SubOpt(π̂_t)", Look::Measured, batch), bound];
        panels.push(panel("Online to batch (A.3)", "sub-optimality", lines));
    }
    Ok(Shown {
        figure: Figure::Lemmas,
        sentence: format!(
            "Left sides (full) and right sides (dashed) along one run of Algorithm 1 with exact Λ, m = {}, λ = {:.3}, C_3 = {:.3}: \
             each full line must stay below its dashed one.",
            settings.width,
            settings.lambda(),
            settings.constants.c3
        ),
        findings: findings(settings, &sides, known),
        panels,
    })
}

fn panel(title: &str, y_label: &str, lines: Vec<Line>) -> Panel {
    Panel { title: title.into(), x_label: "round t".into(), y_label: y_label.into(), lines }
}

fn panels(settings: &Settings, sides: &[Sides], norms: Vec<(f64, f64)>) -> Vec<Panel> {
    let line = |name: &str, look, f: &dyn Fn(&Sides) -> f64| {
        Line::new(name, look, sides.iter().map(|s| (s.t as f64, f(s))).collect())
    };
    let (m, l, lambda) = (settings.width as f64, settings.depth as f64, settings.lambda());
    let (c2, c3) = (settings.constants.c2, settings.constants.c3);
    let moved = move |s: &Sides| {
        2.0 * c2
            * c3.powi(2)
            * (s.t as f64).powf(1.5)
            * m.powf(-1.0 / 6.0)
            * m.ln().sqrt()
            * l.powf(23.0 / 6.0)
            * lambda.powf(-1.0 / 6.0)
    };
    vec![
        panel(
            "Elliptical potential (B.5)",
            "potential",
            vec![
                line("Σ ‖∇f·m^(−1/2)‖² in Λ⁻¹", Look::Measured, &|s| s.potential),
                line("2 log(det Λ_t / det λI)", Look::Bound, &|s| 2.0 * s.log_det),
            ],
        ),
        panel(
            "Moving against fixed features (B.5)",
            "|log det Λ_t − log det Λ̄_t|",
            vec![
                line("|log det Λ_t − log det Λ̄_t|", Look::Measured, &|s| (s.log_det - s.log_det_initial).abs()),
                line("its bound with C_2", Look::Bound, &moved),
            ],
        ),
        panel(
            "Distance from the start (B.2)",
            "max_l ‖W_l − W_l⁽⁰⁾‖",
            vec![
                line("max_l ‖W_l^(t) − W_l^(0)‖", Look::Measured, &|s| s.distance),
                line("√(t/(mλL))", Look::Bound, &|s| (s.t as f64 / (m * lambda * l)).sqrt()),
            ],
        ),
        panel(
            "Largest eigenvalue of Λ (B.2)",
            "‖Λ_t‖",
            vec![
                Line::new("‖Λ_t‖", Look::Measured, norms),
                line("λ + C_3² t L", Look::Bound, &|s| lambda + c3.powi(2) * s.t as f64 * l),
            ],
        ),
    ]
}

fn findings(settings: &Settings, sides: &[Sides], known: &Quantities) -> Vec<String> {
    let Some(last) = sides.last() else { return Vec::new() };
    let (m, l, lambda) = (settings.width as f64, settings.depth as f64, settings.lambda());
    let broken = sides.iter().filter(|s| !s.potential_holds()).count();
    let far = sides.iter().filter(|s| s.distance > (s.t as f64 / (m * lambda * l)).sqrt()).count();
    let mut out = vec![
        format!(
            "elliptical potential: broken in {broken} of {} rounds; at the end {:.4} ≤ {:.4}",
            last.t,
            last.potential,
            2.0 * last.log_det
        ),
        format!("distance from the start: beyond its bound in {far} of {} rounds", last.t),
        format!("C_3 as this run has it: {:.3}; the settings say {:.3}", last.c_3, settings.constants.c3),
    ];
    if let Some(at) = sides.iter().find(|s| s.t == known.n) {
        let right = known.effective_dimension.0 * (known.n_contexts.1 as f64 / lambda).ln_1p() + 1.0;
        out.push(format!(
            "log(det Λ̄_n / det λI) = {:.3} ≤ d̃ log(1 + nK/λ) + 1 = {right:.3} at n = {}: {}",
            at.log_det_initial,
            known.n,
            if at.log_det_initial <= right { "holds" } else { "broken" }
        ));
    }
    out
}
