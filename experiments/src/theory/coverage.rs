//! (d) Sub-optimality against κ, for the pessimistic policy and its greedy twin.

use neuralcb::ModelConfig;
use neuralcb::model::{Mode, NeuralConfig};
use neuralcb::net::NetConfig;
use neuralcb::policy::{Rounding, pessimistic};
use rayon::prelude::*;

use super::Shown;
use super::plot::{Line, Look, Panel};
use super::settings::{Figure, Settings};
use super::study::Study;
use crate::error::ExperimentError;
use crate::problem::Library;

/// ε of the behaviour policy: from hardly any exploration to none of the best action's weight.
const EPSILONS: [f64; 7] = [0.05, 0.3, 0.6, 0.8, 0.9, 0.96, 1.0];
/// The greedy twin and two degrees of pessimism, all from one pass.
const BETAS: [f64; 3] = [0.0, 0.1, 1.0];

pub(super) fn measure(settings: &Settings, library: &Library) -> Result<Shown, ExperimentError> {
    let jobs: Vec<(f64, usize)> =
        EPSILONS.iter().flat_map(|&epsilon| (0..settings.reps).map(move |rep| (epsilon, rep))).collect();
    let found = jobs
        .par_iter()
        .map(|&(epsilon, rep)| one(settings, library, epsilon, rep))
        .collect::<Result<Vec<(f64, [f64; 3])>, ExperimentError>>()?;
    let means: Vec<(f64, [f64; 3])> = found
        .chunks(settings.reps)
        .map(|own| {
            let n = own.len() as f64;
            let mean = |i: usize| own.iter().map(|(_, values)| values[i]).sum::<f64>() / n;
            (own.iter().map(|(kappa, _)| kappa).sum::<f64>() / n, [mean(0), mean(1), mean(2)])
        })
        .collect();
    let line = |i: usize| means.iter().map(|(kappa, values)| (*kappa, values[i])).collect::<Vec<(f64, f64)>>();
    let names = ["greedy twin, β = 0", "pessimistic, β = 0.1", "pessimistic, β = 1"];
    let lines: Vec<Line> = (0..3).map(|i| Line::new(names[i], Look::Measured, line(i))).collect();
    let findings = means.iter().map(|(kappa, [greedy, weak, strong])| {
        format!("κ = {kappa:.2}: greedy {greedy:.4}, β = 0.1 {weak:.4}, β = 1 {strong:.4}")
    });
    Ok(Shown {
        figure: Figure::Coverage,
        sentence: format!(
            "Logs of ε-greedy policies with growing ε show the best action ever less often (κ = 1/(1 − ε + ε/K)). NeuraLCB \
             (experiments' network, 20 Adam steps on batches of 32 per round) and its greedy twin from the same passes, n = {}, mean \
             of {} repetitions.",
            settings.n, settings.reps
        ),
        findings: findings.collect(),
        panels: vec![Panel {
            title: "Coverage".into(),
            x_label: "κ".into(),
            y_label: "sub-optimality, rewards in [0, 1]".into(),
            lines,
        }],
    })
}

fn one(settings: &Settings, library: &Library, epsilon: f64, rep: usize) -> Result<(f64, [f64; 3]), ExperimentError> {
    let study = Study::draw(settings, library, rep, epsilon)?;
    let truth = study.truth.as_ref().expect("a drawn study knows the truth");
    let config = ModelConfig::Neural(NeuralConfig {
        net: NetConfig { width: settings.width, ..NetConfig::default() },
        mode: Mode::Batch { steps: 20, batch: 32 },
        ..NeuralConfig::default()
    });
    let mut learner = config.learner(study.log.contexts().layout(), study.seed.child("model"))?;
    for t in 0..study.log.n_rounds() {
        let round = study.log.round(t);
        learner.observe(round.chosen, round.reward);
    }
    let contexts = truth.test.contexts();
    let estimates = learner.model()?.estimate(contexts)?;
    let mut out = [0.0; 3];
    for (out, beta) in out.iter_mut().zip(BETAS) {
        *out = truth.test.judge(&pessimistic(contexts, &estimates, beta, Rounding::None)?).suboptimality;
    }
    Ok((truth.coverage.kappa, out))
}
