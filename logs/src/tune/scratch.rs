//! What a tuning keeps on the disk while it runs: the rounds of a log that is too large for memory, and what has been
//! tried. Whoever gives the same command again goes on from there.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::rounds::Index;
use super::{Tried, TuneOptions};
use crate::atomic;
use crate::error::FileError;
use crate::hex::hex;
use crate::log::{LogSummary, Preparation};
use crate::policy::PolicyError;

/// The folder for it.
#[derive(Debug, Clone)]
pub struct Scratch {
    /// Where it is. It is made when it is needed.
    pub folder: PathBuf,
    /// Whether it is used for any log, and not only for large ones.
    pub always: bool,
}

/// How far the tuning is.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    /// What it depends on.
    pub key: String,
    pub preparation: Preparation,
    pub summary: LogSummary,
    pub index: Index,
}

/// Settings, log and program in one word.
pub(super) fn key(options: &TuneOptions, log: &str) -> String {
    let text = serde_json::to_string(&(options, log, env!("CARGO_PKG_VERSION"))).expect("settings are data");
    hex(Sha256::digest(text))
}

impl Scratch {
    /// The prepared rounds.
    pub(super) fn rounds(&self) -> PathBuf {
        self.folder.join("neuralcb-rounds")
    }

    fn state(&self) -> PathBuf {
        self.folder.join("neuralcb-tuning.json")
    }

    fn tried(&self) -> PathBuf {
        self.folder.join("neuralcb-tried.jsonl")
    }

    /// What another run has left there, if anything.
    pub(super) fn load(&self) -> Option<State> {
        serde_json::from_slice(&fs::read(self.state()).ok()?).ok()
    }

    /// The rounds are there and whole: nothing has been tried yet.
    pub(super) fn save(&self, state: &State) -> Result<(), PolicyError> {
        remove(&self.tried())?;
        let json = serde_json::to_vec(state).expect("a preparation is data");
        Ok(atomic::write(&self.state(), &json)?)
    }

    /// What has been tried; a line that was cut off is none.
    pub(super) fn all_tried(&self) -> Vec<Vec<Tried>> {
        let text = fs::read_to_string(self.tried()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Some more candidates have been tried.
    pub(super) fn add(&self, tried: &[Tried]) -> Result<(), PolicyError> {
        let path = self.tried();
        let failed = |source| FileError::Write { path: path.clone(), source };
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        let line = serde_json::to_string(tried).expect("numbers are data");
        // on a line of its own, whatever a run that was killed has left
        Ok(file.write_all(format!("\n{line}\n").as_bytes()).map_err(failed)?)
    }

    /// Takes all of it away: for whoever has saved the policy.
    pub fn remove(&self) -> Result<(), FileError> {
        [self.tried(), self.state(), self.rounds()].iter().try_for_each(|path| remove(path))?;
        // others' files stay
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }
}

fn remove(path: &Path) -> Result<(), FileError> {
    if !path.exists() {
        return Ok(());
    }
    atomic::remove(path).map_err(|source| FileError::Remove { path: path.to_path_buf(), source })
}
