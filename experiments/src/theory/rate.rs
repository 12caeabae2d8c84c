//! (c) The sub-optimality of Algorithm 1 against n, with the bound of Theorem 4.1.

use neuralcb::Learner;
use neuralcb::model::Neural;
use neuralcb::net::Optimiser;
use neuralcb::policy::{Rounding, pessimistic};
use neuralcb::theory::Rule;
use rayon::prelude::*;

use super::Shown;
use super::fit::exponent;
use super::plot::{Line, Look, Panel};
use super::quantities::{Spectrum, lambda_0};
use super::settings::{Figure, Settings};
use super::study::Study;
use crate::error::ExperimentError;
use crate::problem::Library;

/// Policies π̂_t, evenly spread over t = 1, …, n, by which the mean over all n of them is estimated.
const POLICIES: usize = 8;

/// The schedules that stand beside the theorem's: β, and η times m.
const BY_HAND: (f64, f64) = (0.1, 0.1);

pub(super) fn measure(settings: &Settings, library: &Library, spectra: &[Spectrum]) -> Result<Shown, ExperimentError> {
    let studies: Vec<Study> = (0..settings.reps)
        .map(|rep| Study::draw(settings, library, rep, settings.epsilon))
        .collect::<Result<_, _>>()?;
    let by_hand = (Rule::Fixed(BY_HAND.0), Rule::Fixed(BY_HAND.1 / settings.width as f64));
    let own = (settings.beta, settings.step);
    let mut rules = vec![(name(own.0, own.1), own)];
    if own != by_hand {
        rules.push((format!("{} (by hand)", name(by_hand.0, by_hand.1)), by_hand));
    }
    let mut lines = Vec::new();
    let mut findings = Vec::new();
    for (name, (beta, step)) in rules {
        let jobs: Vec<(usize, usize)> =
            settings.halves().into_iter().flat_map(|n| (0..settings.reps).map(move |rep| (n, rep))).collect();
        let values = jobs
            .par_iter()
            .map(|&(n, rep)| mean_suboptimality(settings, &studies[rep], spectra, n, beta, step))
            .collect::<Result<Vec<f64>, neuralcb::Error>>()?;
        let means = values.chunks(settings.reps).map(|own| own.iter().sum::<f64>() / own.len() as f64);
        let points: Vec<(f64, f64)> = settings.halves().iter().map(|&n| n as f64).zip(means).collect();
        findings.push(format!("{name}: fitted exponent {:.2}", exponent(&points)));
        lines.push(Line::new(name, Look::Measured, points));
    }
    let kappa = studies[0].truth.as_ref().map_or(f64::NAN, |truth| truth.coverage.kappa);
    let bound = |finite: bool| {
        let value = |s: &Spectrum| {
            let theorem = settings.theorem(s.n, s.n_contexts.max(s.n), lambda_0(spectra, s.n).ok()?);
            let d = s.effective_dimension;
            Some((s.n as f64, if finite { theorem.finite_width(d, kappa) } else { theorem.bound(d, kappa) }))
        };
        spectra.iter().filter_map(value).collect::<Vec<(f64, f64)>>()
    };
    let clean = bound(false);
    findings.push(format!("the bound of Theorem 4.1: fitted exponent {:.2}", exponent(&clean)));
    if let Some((n, value)) = bound(true).last() {
        findings
            .push(format!("the bound of the proof for m = {}, before m → ∞: {value:.3e} at n = {n}", settings.width));
    }
    lines.push(Line::new("bound of Theorem 4.1 (m → ∞)", Look::Bound, clean));
    lines.push(Line::guide("n^(−1/2)", -0.5, &lines[lines.len() - 2].points));
    Ok(Shown {
        figure: Figure::Rate,
        sentence: format!(
            "E[SubOpt(π̂)] of Algorithm 1 as written (S-mode SGD, exact Λ, penalty towards W⁽⁰⁾, π̂ drawn from π̂_1, …, π̂_n), rewards \
             scaled to [0, 1], mean of {} repetitions: it stays below the bound. The theorem's own schedules are so careful that \
             little is learned at such n (the bound is above 1, the worst there is); the line with schedules by hand is the same algorithm.",
            settings.reps
        ),
        findings,
        panels: vec![Panel {
            title: format!("Algorithm 1 on {}", studies[0].name),
            x_label: "number of logged rounds n".into(),
            y_label: "E[SubOpt(π̂)], rewards in [0, 1]".into(),
            lines,
        }],
    })
}

fn name(beta: Rule, step: Rule) -> String {
    match (beta, step) {
        (Rule::Theory, Rule::Theory) => "β and η of Theorem 4.1".into(),
        (Rule::Theory, Rule::Fixed(eta)) => format!("β of Theorem 4.1, η = {eta:.2e}"),
        (Rule::Fixed(beta), Rule::Theory) => format!("β = {beta}, η of Theorem 4.1"),
        (Rule::Fixed(beta), Rule::Fixed(eta)) => format!("β = {beta}, η = {eta:.2e}"),
    }
}

/// The mean over t of SubOpt(π̂_t), where π̂_t has read t − 1 rounds and uses β_{t−1}.
fn mean_suboptimality(
    settings: &Settings,
    study: &Study,
    spectra: &[Spectrum],
    n: usize,
    beta: Rule,
    step: Rule,
) -> Result<f64, neuralcb::Error> {
    let truth = study.truth.as_ref().expect("a drawn study knows the truth");
    let needs_lambda_0 = beta == Rule::Theory;
    let smallest = if needs_lambda_0 { lambda_0(spectra, n)? } else { 1.0 };
    let theorem = settings.theorem(n, study.pairs(n), smallest);
    let optimiser: Optimiser = step.optimiser(&theorem);
    let layout = study.log.contexts().layout();
    let mut model = Neural::<f64>::new(settings.algorithm_1(optimiser), layout, study.seed.child("model"))?;
    let (mut read, mut sum) = (0, 0.0);
    for i in 0..POLICIES {
        let t = i * (n - 1) / (POLICIES - 1); // rounds read: 0, …, n − 1
        while read < t {
            let round = study.log.round(read);
            model.observe(round.chosen, round.reward);
            read += 1;
        }
        let estimates = model.model()?.estimate(truth.test.contexts())?;
        let choices = pessimistic(truth.test.contexts(), &estimates, beta.beta(&theorem, t), Rounding::None)?;
        sum += truth.test.judge(&choices).suboptimality;
    }
    Ok(sum / POLICIES as f64)
}
