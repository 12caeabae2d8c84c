//! (e) Training time against n: one pass, and retraining from scratch at every round.

use std::time::Instant;

use neuralcb::ModelConfig;
use neuralcb::model::{NeuralConfig, RefitConfig, When};
use neuralcb::net::NetConfig;

use super::Shown;
use super::fit::exponent;
use super::plot::{Line, Look, Panel};
use super::settings::{Figure, Settings};
use super::study::Study;
use crate::error::ExperimentError;

/// Rounds that NeuraLCB reads.
const ONE_PASS: [usize; 4] = [4_000, 8_000, 16_000, 32_000];
/// Rounds that the model reads which is retrained at each of them.
const RETRAINED: [usize; 4] = [150, 300, 600, 1_200];
/// Measurements of which the fastest counts: others share the machine.
const TRIES: usize = 3;

pub(super) fn measure(settings: &Settings, study: &Study) -> Result<Shown, ExperimentError> {
    let net = NetConfig { width: settings.width, ..NetConfig::default() };
    let once = ModelConfig::Neural(NeuralConfig { net: net.clone(), ..NeuralConfig::default() });
    let again = RefitConfig { net, when: When::EveryRound, passes: 2, ..RefitConfig::default() };
    let again = ModelConfig::Refit(again);
    let time = |config: &ModelConfig, rounds: &[usize]| {
        rounds.iter().map(|&n| Ok((n as f64, seconds(config, study, n)?))).collect::<Result<Vec<_>, ExperimentError>>()
    };
    let (once, again) = (time(&once, &ONE_PASS)?, time(&again, &RETRAINED)?);
    let findings = vec![
        format!("NeuraLCB, S-mode: fitted exponent {:.3}", exponent(&once)),
        format!("retraining from scratch: fitted exponent {:.3}", exponent(&again)),
    ];
    let guides = [Line::guide("n", 1.0, &once), Line::guide("n²", 2.0, &again)];
    let mut lines = vec![
        Line::new("NeuraLCB: one step per round", Look::Measured, once),
        Line::new("two passes over all rounds so far, at every round", Look::Measured, again),
    ];
    lines.extend(guides);
    Ok(Shown {
        figure: Figure::Cost,
        sentence: format!(
            "Seconds of one thread to read n rounds, the fastest of {TRIES} tries: NeuraLCB's single pass is O(n), a network that is \
             retrained from scratch at every round, as NeuralUCB's, O(n²) (Section 5)."
        ),
        findings,
        panels: vec![Panel {
            title: format!("m = {}", settings.width),
            x_label: "number of logged rounds n".into(),
            y_label: "seconds".into(),
            lines,
        }],
    })
}

/// The fastest of some readings of n rounds; a log that is too short is read again.
fn seconds(config: &ModelConfig, study: &Study, n: usize) -> Result<f64, ExperimentError> {
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let mut learner = config.learner(study.log.contexts().layout(), study.seed.child("cost"))?;
        let start = Instant::now();
        for t in 0..n {
            let round = study.log.round(t % study.log.n_rounds());
            learner.observe(round.chosen, round.reward);
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
