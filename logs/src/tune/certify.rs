//! The certificate of a policy file.

use neuralcb::LoggedData;
use neuralcb::ope::{BoundConfig, Certificate, Paired, importance_weights};
use serde::{Deserialize, Serialize};

use super::TuneOptions;
use crate::policy::{Origin, Policy, PolicyError};

/// What a certificate speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certifies {
    /// The very policy in the file.
    ThisFile,
    /// The way it was made: the file was learned anew, from the rounds of the certificate as well.
    Procedure,
}

/// A certificate as a policy file keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certified {
    /// The bounds and what they take for granted.
    pub certificate: Certificate,
    /// What it speaks of.
    pub certifies: Certifies,
    /// The log of which some rounds were held out for it.
    pub log: Origin,
    /// The settings, with the seed.
    pub settings: TuneOptions,
    /// Candidates that the policy was chosen from.
    pub candidates: usize,
}

/// The certificate of a policy on rounds that it has not seen. Both policies know them by the same preparation.
pub(super) fn certify(
    policy: &Policy,
    clone: &Policy,
    rounds: &LoggedData,
    config: &BoundConfig,
    share: f64,
) -> Result<Certificate, PolicyError> {
    let contexts = rounds.contexts();
    let choices = |policy: &Policy| policy.decide(contexts).map(|decisions| decisions.choices.expect("it chooses"));
    let (own, other) = (choices(policy)?, choices(clone)?);
    let weights = [importance_weights(rounds, &own)?, importance_weights(rounds, &other)?];
    let paired = |t: usize| Paired {
        reward: rounds.rewards()[t],
        weight: weights[0][t],
        other: weights[1][t],
        apart: f64::from(u8::from(own[t] != other[t])),
    };
    let paired: Vec<Paired> = (0..rounds.n_rounds()).map(paired).collect();
    Ok(Certificate::sharing(config, &paired, share)?)
}
