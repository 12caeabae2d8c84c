//! The certificate of a policy file.

use neuralcb::ope::{BoundConfig, Certificate};
use serde::{Deserialize, Serialize};

use super::TuneOptions;
use super::judge::pair;
use super::parts::CERTIFY;
use super::rounds::Rounds;
use crate::policy::{Origin, Policy, PolicyError};
use crate::train::Progress;

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

/// The certificate of a policy on the third part.
pub(super) fn certify(
    rounds: &Rounds,
    policy: &Policy,
    clone: &Policy,
    config: &BoundConfig,
    share: f64,
    range_given: bool,
    progress: Progress<'_>,
) -> Result<Certificate, PolicyError> {
    let paired = pair(rounds, CERTIFY, [policy, clone], progress)?;
    let mut certificate = Certificate::sharing(config, &paired, share)?;
    certificate.assumptions.reward_range_from_log = !range_given;
    Ok(certificate)
}
