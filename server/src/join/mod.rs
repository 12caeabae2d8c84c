//! Decisions joined with their rewards: from segments of any number of servers to a log that can be learned from.
//!
//! Records are sorted by event on the disk, whatever their number, then each event becomes a row or is left out:
//!
//! * the reward is the aggregate of those that came within the window after the decision (where it was deferred: after
//!   its activation), or the default;
//! * rewards that came later, or for no known decision, go to a side file;
//! * an event whose window is still open is left for a later run; a deferred one that was never activated is left out;
//! * of a decision that was logged twice the first counts; rewards of one `rewardId` count once.
//!
//! Rows are sorted by time and event, so that the result does not depend on the order of segments, to the byte.

mod event;
mod parquet;
mod read;
mod sort;

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use neuralcb_logs::log::{JsonRound, RowProblem, json_rounds};
use neuralcb_logs::{FileError, atomic};
use serde::Serialize;
use thiserror::Error;

use crate::journal::JournalError;
use event::Event;
use parquet::{Columns, Table};
use sort::Sorter;

/// How many rewards of one decision become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// The one that came first.
    #[default]
    First,
    /// The one that came last.
    Last,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl FromStr for Aggregate {
    type Err = String;

    fn from_str(text: &str) -> Result<Aggregate, String> {
        Ok(match text {
            "first" => Aggregate::First,
            "last" => Aggregate::Last,
            "sum" => Aggregate::Sum,
            "mean" => Aggregate::Mean,
            "min" => Aggregate::Min,
            "max" => Aggregate::Max,
            _ => return Err("must be first, last, sum, mean, min or max".to_owned()),
        })
    }
}

/// How to join.
#[derive(Debug, Clone)]
pub struct JoinConfig {
    /// How long rewards are waited for.
    pub wait: Duration,
    /// The reward of a decision that earned none by then.
    pub default_reward: f64,
    /// How many rewards become one.
    pub aggregate: Aggregate,
    /// The present, in milliseconds since 1970: windows that end later are open.
    pub until: u64,
    /// Bytes to hold in memory.
    pub memory: usize,
}

/// What was joined and what was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Joined {
    /// Rows.
    pub rows: u64,
    /// Rows with a reward of their own, not the default.
    pub rewarded: u64,
    /// Decisions whose window is still open.
    pub open: u64,
    /// Deferred decisions that were never activated.
    pub inactive: u64,
    /// Decisions that were logged again under the same name.
    pub repeated: u64,
    /// Of these, those that chose another action than the first.
    pub contradicted: u64,
    /// Rewards that came after their window.
    pub late: u64,
    /// Rewards of events without a decision.
    pub unknown: u64,
    /// Segments that have no end: they are growing, or their server was killed.
    pub growing: u64,
}

/// Why segments cannot be joined.
#[derive(Debug, Error)]
pub enum JoinError {
    /// A folder or segment cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The result cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Disk space for sorting.
    #[error("cannot sort in `{folder}`: {source}; free space there")]
    Sort {
        /// Where the runs are.
        folder: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// A record that cannot be one of ours.
    #[error("`{path}`, record {record}: {reason}")]
    Record {
        /// The segment.
        path: PathBuf,
        /// The record, from 1.
        record: u64,
        /// What is wrong.
        reason: String,
    },
    /// A row that its own reader refuses.
    #[error("{problem} in the joined row {line}…")]
    Row {
        /// How the row begins.
        line: String,
        /// What is wrong.
        problem: RowProblem,
    },
    /// Nowhere to write.
    #[error("`{path}` must end with .jsonl or .parquet: the ending tells the format")]
    Ending {
        /// The file.
        path: PathBuf,
    },
}

/// Where late rewards and those of unknown events go: the log's name with another ending.
pub fn late_path(out: &Path) -> PathBuf {
    out.with_extension("late.jsonl")
}

/// Joins the segments of some folders into a log, `.jsonl` or `.parquet`.
pub fn join(folders: &[PathBuf], out: &Path, config: &JoinConfig) -> Result<Joined, JoinError> {
    let ending = out.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let as_table = match ending.as_str() {
        "jsonl" | "ndjson" | "json" => false,
        "parquet" => true,
        _ => return Err(JoinError::Ending { path: out.to_path_buf() }),
    };
    atomic::check_writable(out)?;
    let temporary = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let sorting = |source| JoinError::Sort { folder: temporary.to_path_buf(), source };
    let mut joined = Joined::default();
    let mut records = Sorter::new(temporary, config.memory / 2);
    for folder in folders {
        read::folder(folder, &mut joined, &mut |key, text| records.push(key, text).map_err(sorting))?;
    }

    let mut rows = Sorter::new(temporary, config.memory / 2);
    let mut columns = Columns::default();
    let mut late = Vec::new();
    let mut side = BufWriter::new(atomic::scratch(temporary).map_err(sorting)?);
    let mut settle = |event: Event, joined: &mut Joined| -> Result<(), JoinError> {
        let name = event.name().unwrap_or_default().to_vec();
        if let Some(row) = event.settle(config, joined, &mut late) {
            if as_table {
                columns.see(&parsed(&row.line)?);
            }
            rows.push([&row.at.to_be_bytes()[..], &name].concat(), row.line).map_err(sorting)?;
        }
        side.write_all(&late).map_err(sorting)?;
        late.clear();
        Ok(())
    };
    let mut event = Event::default();
    for entry in records.finish().map_err(sorting)? {
        let (key, text) = entry.map_err(sorting)?;
        if event.name().is_some_and(|name| name != read::event_of(&key)) {
            settle(std::mem::take(&mut event), &mut joined)?;
        }
        event.add(&key, serde_json::from_slice(&text).expect("it was read before"));
    }
    if event.name().is_some() {
        settle(event, &mut joined)?;
    }

    let failed = |source| JoinError::File(FileError::Write { path: out.to_path_buf(), source });
    let sorted = rows.finish().map_err(sorting)?;
    atomic::stream(out, |to| match as_table {
        true => {
            let mut table = Table::new(to, &columns).map_err(failed)?;
            for row in sorted {
                table.write(&parsed(&row.map_err(sorting)?.1)?).map_err(failed)?;
            }
            table.finish().map_err(failed)
        }
        false => sorted.into_iter().try_for_each(|row| to.write_all(&row.map_err(sorting)?.1).map_err(failed)),
    })?;
    let side = side.into_inner().map_err(|e| sorting(e.into_error()))?.into_file();
    write_side(&late_path(out), side)?;
    Ok(joined)
}

/// Writes the side file; an empty one is taken away.
fn write_side(path: &Path, mut lines: File) -> Result<(), JoinError> {
    let failed = |source| FileError::Write { path: path.to_path_buf(), source };
    if lines.stream_position().map_err(failed)? == 0 {
        return match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(e).into()),
            _ => Ok(()),
        };
    }
    lines.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(atomic::write_with(path, |to| io::copy(&mut lines, to).map(drop))?)
}

/// The round of a joined line, as a reader of logs sees it.
fn parsed(line: &[u8]) -> Result<JsonRound, JoinError> {
    json_rounds::parse(line).map_err(|problem| {
        let beginning = String::from_utf8_lossy(line).chars().take(120).collect();
        JoinError::Row { line: beginning, problem }
    })
}
