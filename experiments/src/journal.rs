//! The journal of a folder: finished runs, one line of JSON each, appended as they come.
//!
//! A line is found again by its task, which holds everything that the numbers depend on: settings, seed, repetition,
//! program version and the processor's instructions. So a run that was killed goes on where it was, a grid that grows
//! keeps what it has, and a run of other settings in the same folder is simply not found. A line that was cut off by a
//! kill is dropped; any other line that cannot be read is refused by number.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use neuralcb_logs::FileError;
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;
use crate::names::Algorithm;

/// The file's name in its folder.
const NAME: &str = "runs.jsonl";

/// What one pass over one log gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Everything the numbers depend on, as JSON.
    pub task: String,
    /// Rounds read at each checkpoint.
    pub n: Vec<usize>,
    /// One entry per algorithm and β of the pass.
    pub outputs: Vec<Output>,
    /// Seconds of training up to each checkpoint.
    pub train_seconds: Vec<f64>,
    /// Seconds of scoring at each checkpoint.
    pub score_seconds: Vec<f64>,
}

/// One policy of a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// β, where it has one.
    pub beta: Option<f64>,
    /// Sub-optimality at each checkpoint.
    pub suboptimality: Vec<f64>,
    /// Share of optimal actions at each checkpoint.
    pub accuracy: Vec<f64>,
    /// The off-policy estimate on the held-out fifth of the log and its lower bound, where the policy was learned.
    pub validation: Option<(f64, f64)>,
}

/// The journal of a folder, held by one process at a time.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    known: HashMap<String, Record>,
}

impl Journal {
    /// Opens or makes the journal and locks it: a second process is refused until this one ends, however it ends.
    pub fn open(folder: &Path) -> Result<Self, ExperimentError> {
        let path = folder.join(NAME);
        let unwritable = |source| FileError::Write { path: path.clone(), source };
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(&path).map_err(unwritable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ExperimentError::Busy { path: folder.to_path_buf() }),
            Err(TryLockError::Error(source)) => return Err(unwritable(source).into()),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| FileError::Read { path: path.clone(), source })?;
        // What follows the last end of line was cut off.
        let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
        let mut known = HashMap::new();
        for (i, line) in bytes[..whole].split(|&b| b == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            let record: Record = serde_json::from_slice(line).map_err(|reason| ExperimentError::Journal {
                path: path.clone(),
                line: i + 1,
                reason,
            })?;
            known.insert(record.task.clone(), record);
        }
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(unwritable)?;
        Ok(Journal { path, file: Mutex::new(file), known })
    }

    /// A finished run that was there when the journal was opened.
    pub fn find(&self, task: &str) -> Option<&Record> {
        self.known.get(task)
    }

    /// Number of finished runs that were there.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Adds a finished run: when this returns, it is on the disk.
    pub fn append(&self, record: &Record) -> Result<(), ExperimentError> {
        let mut line = serde_json::to_vec(record).expect("records are plain data");
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let written = file.write_all(&line).and_then(|()| file.sync_data());
        written.map_err(|source| FileError::Write { path: self.path.clone(), source }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn record(task: &str) -> Record {
        let output = Output {
            algorithm: Algorithm::Neuralcb,
            beta: Some(0.1),
            suboptimality: vec![0.1 + 0.2, 1e-300],
            accuracy: vec![0.5, 1.0 / 3.0],
            validation: Some((0.7, 0.6)),
        };
        let (n, seconds) = (vec![10, 20], vec![0.5, 1.0]);
        Record { task: task.into(), n, outputs: vec![output], train_seconds: seconds.clone(), score_seconds: seconds }
    }

    #[test]
    fn finished_runs_are_found_again_to_the_bit_and_a_line_cut_off_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        journal.append(&record("a")).unwrap();
        journal.append(&record("b")).unwrap();
        drop(journal);
        let path = folder.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for cut in [whole.len() - 1, whole.len() - 20, whole.len() / 2 + 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            let journal = Journal::open(folder.path()).unwrap();
            assert_eq!(journal.len(), 1, "cut at {cut}");
            assert_eq!(journal.find("a"), Some(&record("a")));
            journal.append(&record("b")).unwrap();
            drop(journal);
            assert_eq!(fs::read(&path).unwrap(), whole, "what is appended follows the last whole line");
        }
    }

    #[test]
    fn a_second_process_is_refused_and_a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        journal.append(&record("a")).unwrap();
        let busy = Journal::open(folder.path()).unwrap_err().to_string();
        assert!(busy.starts_with("another run is at work in"), "{busy}");
        drop(journal);
        let path = folder.path().join(NAME);
        fs::write(&path, format!("{}not json\n", fs::read_to_string(&path).unwrap())).unwrap();
        let refused = Journal::open(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("runs.jsonl`, line 2: ") && refused.contains("remove that line"), "{refused}");
    }
}
