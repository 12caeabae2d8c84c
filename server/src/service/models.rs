//! The models that are served: the first decides, the others decide in its shadow.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use neuralcb_logs::atomic;
use neuralcb_logs::log::Missing;
use neuralcb_logs::policy::PolicyError;
use serde::Serialize;

use super::Refused;
use crate::decide::{DecideError, Exploration, Explore, Model};

/// Models that can be swapped while they serve.
pub struct Models {
    served: RwLock<Arc<[Arc<Model>]>>,
    /// What each file was when it was last looked at.
    seen: RwLock<Vec<Stamp>>,
    missing: Missing,
    exploration: Exploration,
}

/// A file's length and time.
type Stamp = Option<(u64, SystemTime)>;

/// What is told of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Its name.
    pub name: String,
    /// `champion` or `challenger`.
    pub role: &'static str,
    /// The first 16 digits of the SHA-256 of its file.
    pub policy: String,
    /// The kind of policy.
    pub kind: String,
    /// β, where it has one.
    pub beta: Option<f64>,
    /// The actions that it knows.
    pub actions: Vec<String>,
    /// The features of a round that it reads.
    pub context_features: Vec<String>,
    /// The features of an action that it reads.
    pub action_features: Vec<String>,
}

fn stamp(path: &Path) -> Stamp {
    let about = fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()?))
}

impl Models {
    /// Loads the files; the first is the champion.
    pub fn load(
        files: &[(String, PathBuf)],
        missing: Missing,
        exploration: Exploration,
    ) -> Result<Models, DecideError> {
        let seen = files.iter().map(|(_, path)| stamp(path)).collect();
        let mut served = Vec::new();
        for (i, (name, path)) in files.iter().enumerate() {
            let model = Model::load(name, path, missing)?;
            if i == 0 {
                check(&model, exploration)?;
            }
            served.push(Arc::new(model));
        }
        Ok(Models { served: RwLock::new(served.into()), seen: RwLock::new(seen), missing, exploration })
    }

    /// All of them, the champion first.
    pub fn all(&self) -> Arc<[Arc<Model>]> {
        self.served.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is told of each.
    pub fn about(&self) -> Vec<ModelInfo> {
        let info = |(i, model): (usize, &Arc<Model>)| {
            let schema = model.policy().preparation().schema();
            ModelInfo {
                name: model.name().to_owned(),
                role: if i == 0 { "champion" } else { "challenger" },
                policy: model.digest().to_owned(),
                kind: model.policy().description().method.name().to_owned(),
                beta: model.policy().beta(),
                actions: model.actions().to_vec(),
                context_features: schema.shared.iter().map(|feature| feature.name.clone()).collect(),
                action_features: schema.per_action.iter().map(|feature| feature.name.clone()).collect(),
            }
        };
        self.all().iter().enumerate().map(info).collect()
    }

    /// Puts a policy in the place of the model of that name, and into its file. A bad one is refused and the old one
    /// stays.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<ModelInfo, Refused> {
        let all = self.all();
        let Some(at) = all.iter().position(|model| model.name() == name) else {
            let known: Vec<&str> = all.iter().map(|model| model.name()).collect();
            return Err(Refused::NoModel { name: name.to_owned(), known: known.join(", ") });
        };
        let model = self.checked(at, &all[at], bytes)?;
        atomic::write(all[at].path(), bytes).map_err(|e| DecideError::Policy(PolicyError::from(e)))?;
        self.swap(at, model);
        Ok(self.about().swap_remove(at))
    }

    /// Looks whether files have changed, and swaps the models that have. What was swapped, or why it was not, by name.
    pub fn refresh(&self) -> Vec<(String, Result<String, DecideError>)> {
        let mut done = Vec::new();
        for (at, model) in self.all().iter().enumerate() {
            let found = stamp(model.path());
            let before = {
                let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
                std::mem::replace(&mut seen[at], found)
            };
            // A file that is gone is about to be replaced, or the model goes on without it.
            if found.is_none() || found == before {
                continue;
            }
            let Ok(bytes) = fs::read(model.path()) else { continue };
            match self.checked(at, model, &bytes) {
                Ok(new) if new.digest() == model.digest() => {}
                Ok(new) => {
                    done.push((model.name().to_owned(), Ok(new.digest().to_owned())));
                    self.swap(at, new);
                }
                Err(error) => done.push((model.name().to_owned(), Err(error))),
            }
        }
        done
    }

    fn checked(&self, at: usize, old: &Model, bytes: &[u8]) -> Result<Model, DecideError> {
        let new = Model::from_bytes(old.name(), old.path(), bytes, self.missing)?;
        if at == 0 {
            check(&new, self.exploration)?;
        }
        Ok(new)
    }

    fn swap(&self, at: usize, model: Model) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = served.to_vec();
        all[at] = Arc::new(model);
        *served = all.into();
    }
}

/// Refuses a champion that cannot explore as it is asked to.
fn check(model: &Model, exploration: Exploration) -> Result<(), DecideError> {
    match exploration.explore {
        Explore::Softmax(_) if model.policy().beta().is_none() => {
            Err(DecideError::NoBounds { name: model.name().to_owned() })
        }
        _ => Ok(()),
    }
}
