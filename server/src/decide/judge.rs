//! A policy that decides request by request, exactly as `neuralcb score` decides the records of a file.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use neuralcb::Contexts;
use neuralcb::{Eligible, Encoding};
use neuralcb_logs::FileError;
use neuralcb_logs::log::{JsonRound, Missing, OneByOne};
use neuralcb_logs::policy::{Policy, PolicyError};
use neuralcb_logs::score::{Explained, Rows};
use sha2::{Digest, Sha256};

use super::DecideError;
use crate::journal::hex;

/// A policy by the name under which it is served.
pub struct Model {
    name: String,
    path: PathBuf,
    policy: Policy,
    digest: String,
    rounds: OneByOne,
}

/// What a policy thinks of one round. Places are those of the round's actions.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The place that it would choose; none where it has no choice of its own.
    pub choice: Option<usize>,
    /// Whether the policy knows the action at each place; it can play no other.
    pub known: Vec<bool>,
    /// Mean, width and bound at each place, where there is a reward model.
    pub explained: Vec<Option<Explained>>,
}

impl Model {
    /// Loads a policy file.
    pub fn load(name: &str, path: &Path, missing: Missing) -> Result<Model, DecideError> {
        let bytes = fs::read(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source });
        Model::from_bytes(name, path, &bytes.map_err(PolicyError::from)?, missing)
    }

    /// As [`Model::load`], from bytes; `path` is where it belongs. The policy has decided once before it is returned.
    pub fn from_bytes(name: &str, path: &Path, bytes: &[u8], missing: Missing) -> Result<Model, DecideError> {
        let policy = Policy::from_bytes(bytes, path)?;
        let rounds = OneByOne::new(policy.preparation().schema(), missing);
        let digest = hex(&Sha256::digest(bytes))[..16].to_owned();
        let layout = policy.preparation().layout();
        let rows = if layout.encoding == Encoding::PerAction { layout.n_actions } else { 1 };
        let blank = Contexts::new(layout, vec![0.0; rows * layout.dim], Eligible::All).map_err(PolicyError::from)?;
        policy.decide(&blank).map_err(PolicyError::from)?;
        Ok(Model { name: name.to_owned(), path: path.to_path_buf(), policy, digest, rounds })
    }

    /// The name under which it is served.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first 16 digits of the SHA-256 of its file.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The policy itself.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The names of the actions that it knows.
    pub fn actions(&self) -> &[String] {
        self.policy.preparation().actions()
    }

    /// What the policy thinks of a round, with its own β or another.
    pub fn judge(&self, round: JsonRound, beta: Option<f64>) -> Result<Judged, DecideError> {
        let rounds = [round];
        let (block, _) = self.rounds.block(&rounds).map_err(|(_, problem)| DecideError::request(problem))?;
        let [round] = rounds;
        let preparation = self.policy.preparation();
        let contexts = preparation.contexts(&block).map_err(|e| DecideError::request(plain(&e.to_string())))?;
        let decisions = self.policy.decide_at(&contexts, beta).map_err(DecideError::request)?;
        let beta = self.policy.beta().map(|own| beta.unwrap_or(own));
        let rows = Rows { preparation, block: &block, first: 0, contexts: &contexts, decisions: &decisions, beta };

        let names = round.actions.iter().enumerate().map(|(i, a)| (a.name.as_deref().unwrap_or_default(), i));
        let places: HashMap<&str, usize> = names.collect();
        let n = round.actions.len();
        let mut judged = Judged { choice: None, known: vec![false; n], explained: vec![None; n] };
        for (i, name) in rows.offered(0).enumerate() {
            let Some(&place) = places.get(name) else { continue };
            judged.known[place] = true;
            judged.explained[place] = rows.explained(0, contexts.action(0, i));
        }
        judged.choice = rows.name(0).and_then(|name| places.get(name).copied());
        Ok(judged)
    }
}

/// A message without the place in a file, which a request does not have.
fn plain(message: &str) -> &str {
    message.strip_prefix("line 1: ").unwrap_or(message)
}
