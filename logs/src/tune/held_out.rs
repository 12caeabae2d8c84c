//! What the rounds of the certificate say of the written policy, by every estimator: for its card.

use neuralcb::ope::OpeConfig;

use super::parts::certified;
use super::{TuneOptions, Tuned};
use crate::evaluate::{EvaluateOptions, Evaluated, evaluate};
use crate::log::{ReadLog, SomeRounds};
use crate::policy::{Origin, PolicyError};

/// Evaluates what a tuning found on the rounds of its certificate; none where no policy was to be written. The
/// policy's own reward model is the one behind `dm` and `dr`, where it has one: it has not seen these rounds. After a
/// refit it has, which the report's warnings say.
pub fn held_out(
    log: &dyn ReadLog,
    tuned: &Tuned,
    options: &TuneOptions,
    segments: &[String],
) -> Result<Option<Evaluated>, PolicyError> {
    let Some(policy) = &tuned.policy else { return Ok(None) };
    let kept = certified(tuned.rounds as usize, options);
    let some = SomeRounds::new(log, &kept);
    let settings = EvaluateOptions {
        ope: OpeConfig {
            confidence: options.confidence,
            reward_range: options.reward_range,
            seed: options.base.seed,
            ..OpeConfig::default()
        },
        propensities: options.propensities.clone(),
        segments: segments.to_vec(),
        ..EvaluateOptions::default()
    };
    let model = policy.beta().is_some().then_some(policy);
    let mut found = evaluate(policy, model, &some, &settings, &mut |_| {})?;
    if let Some(about) = &mut found.about {
        about.log = Origin::of(log)?;
        about.settings = serde_json::to_value(options).unwrap_or_default();
    }
    Ok(Some(found))
}
