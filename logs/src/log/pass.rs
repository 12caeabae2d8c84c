//! One reading of a log, from its start: blocks of rounds, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use super::block::{Block, Place};
use super::columnar::Columnar;
use super::error::{LogError, Problem};
use super::json_lines::JsonLines;
use super::json_rows::JsonRows;
use super::open::Inner;
use super::options::Format;
use super::partition::Parted;
use super::rounds;
use super::separated::Separated;
use super::table::{Column, Table, TableReader};

/// The most rounds of a block.
pub const BLOCK: usize = 8192;

/// Rows of a long table that are held at a time.
const LONG_ROWS: usize = 1 << 16;

/// Numbers and words of a table that are held at a time, so that many columns make for fewer rows.
const CELLS: usize = 1 << 23;

/// Blocks that wait to be used while the next is read.
const AHEAD: usize = 2;

/// Bad rows that are kept word for word.
const KEPT: usize = 5;

/// Rows that were left out of a reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Skipped {
    /// Bad rows; in a long table, bad rounds.
    pub bad_rows: u64,
    /// What was wrong with the first of them.
    pub first: Vec<String>,
    /// Lines that are no decisions, which is no fault.
    pub not_decisions: u64,
    /// Values of features that the schema does not know.
    pub unknown_features: u64,
}

/// The state of a reading, on whichever thread it happens.
pub(crate) struct Pass {
    log: Arc<Inner>,
    next_file: usize,
    reader: Option<Box<dyn TableReader>>,
    /// Rows of a round whose end has not been seen.
    rest: Option<Table>,
    ready: VecDeque<Block>,
    skipped: Skipped,
    ended: bool,
}

impl Pass {
    pub fn new(log: Arc<Inner>) -> Pass {
        log.read.store(0, Ordering::Relaxed);
        log.report(&Skipped::default());
        Pass {
            log,
            next_file: 0,
            reader: None,
            rest: None,
            ready: VecDeque::new(),
            skipped: Skipped::default(),
            ended: false,
        }
    }

    /// The next block that has rounds in it; none at the end.
    pub fn next_block(&mut self) -> Result<Option<Block>, LogError> {
        loop {
            if let Some(block) = self.ready.pop_front() {
                return Ok(Some(block));
            }
            if self.ended {
                return Ok(None);
            }
            match self.log.plan.long {
                true => self.read_long()?,
                false => self.read_flat()?,
            }
        }
    }

    fn read_flat(&mut self) -> Result<(), LogError> {
        let mut table = Table::new(&self.log.plan.columns);
        self.fill(&mut table, rows_of(BLOCK, self.log.plan.columns.len()))?;
        self.take(table)
    }

    fn read_long(&mut self) -> Result<(), LogError> {
        let log = Arc::clone(&self.log);
        let columns = &log.plan.columns;
        let mut table = self.rest.take().unwrap_or_else(|| Table::new(columns));
        self.fill(&mut table, rows_of(LONG_ROWS, columns.len()))?;
        let mut starts = rounds::boundaries(&table, &log.plan);
        if !self.ended {
            starts.pop();
            let last = starts.last().copied().unwrap_or(0);
            if last == 0 {
                let want = "a round of fewer rows than are held at a time";
                let problem = Problem::Value {
                    column: log.schema.roles.round.clone(),
                    want,
                    got: format!("at least {}", table.n_rows()),
                    cure: "",
                };
                return Err(self.row_error(table.places[0], problem));
            }
            self.rest = Some(table.select(columns, |row| row >= last));
        }
        self.skipped.not_decisions += std::mem::take(&mut table.not_decisions);
        self.skipped.unknown_features += std::mem::take(&mut table.unknown);
        let n_rounds = starts.len() - 1;
        if n_rounds <= BLOCK && self.rest.is_none() {
            return self.take(table);
        }
        for first in (0..n_rounds).step_by(BLOCK) {
            let rows = starts[first]..starts[(first + BLOCK).min(n_rounds)];
            self.take(table.select(columns, |row| rows.contains(&row)))?;
        }
        Ok(())
    }

    /// Reads until the table has `rows` rows, from one file after another.
    fn fill(&mut self, table: &mut Table, rows: usize) -> Result<(), LogError> {
        while table.n_rows() < rows {
            if self.reader.is_none() {
                if self.next_file == self.log.sources.files.len() {
                    self.ended = true;
                    return Ok(());
                }
                self.next_file += 1;
                // A part without a byte has not even a header.
                if self.log.sources.files[self.next_file - 1].size == 0 {
                    continue;
                }
                self.reader = Some(open_table(&self.log, self.next_file - 1)?);
            }
            if let Some(reader) = &mut self.reader
                && !reader.fill(table, rows)?
            {
                self.reader = None;
            }
        }
        Ok(())
    }

    /// Puts rows into rounds, and counts those that are bad.
    fn take(&mut self, table: Table) -> Result<(), LogError> {
        self.skipped.not_decisions += table.not_decisions;
        self.skipped.unknown_features += table.unknown;
        let plan = &self.log.plan;
        let (block, bad) = if plan.long { rounds::long(table, plan) } else { rounds::flat(table, plan) };
        for (place, problem) in bad {
            self.skip(place, problem)?;
        }
        self.log.report(&self.skipped);
        if block.n_rounds() > 0 {
            self.ready.push_back(block);
        }
        Ok(())
    }

    fn skip(&mut self, place: Place, problem: Problem) -> Result<(), LogError> {
        let error = self.row_error(place, problem);
        let allowed = self.log.max_bad_rows;
        if self.skipped.bad_rows == allowed {
            return Err(match allowed {
                0 => error,
                _ => LogError::TooManyBadRows { allowed, last: Box::new(error) },
            });
        }
        self.skipped.bad_rows += 1;
        if self.skipped.first.len() < KEPT {
            self.skipped.first.push(error.to_string());
        }
        Ok(())
    }

    fn row_error(&self, place: Place, problem: Problem) -> LogError {
        let path = self.log.sources.files[place.file as usize].path.clone();
        let unit = if self.log.sources.format == Format::Parquet { "row" } else { "line" };
        LogError::Row { path, unit, line: place.line, problem: Box::new(problem) }
    }
}

/// How many of `most` rows are held where they have so many columns.
fn rows_of(most: usize, columns: usize) -> usize {
    most.min(CELLS / columns.max(1)).max(64)
}

fn open_table(log: &Inner, file: usize) -> Result<Box<dyn TableReader>, LogError> {
    let source = &log.sources.files[file];
    Parted::open(&log.plan.columns, &source.partition, |columns| open_file(log, file, columns))
}

fn open_file(log: &Inner, file: usize, columns: &[Column]) -> Result<Box<dyn TableReader>, LogError> {
    let source = &log.sources.files[file];
    let (format, number, read) = (log.sources.format, file as u32, Arc::clone(&log.read));
    Ok(match format {
        Format::Csv | Format::Tsv | Format::OpenBandit => {
            Box::new(Separated::open(source, number, format, columns, &log.plan.options, read)?)
        }
        Format::JsonLines => Box::new(JsonLines::open(source, number, columns, read)?),
        Format::JsonRounds | Format::Dsjson => Box::new(JsonRows::open(source, number, format, &log.plan, read)?),
        Format::Parquet => Box::new(Columnar::open(source, number, columns, read)?),
    })
}

/// The blocks of a log, read ahead on a thread of their own.
pub struct Blocks {
    blocks: Option<Receiver<Result<Block, LogError>>>,
    thread: Option<JoinHandle<()>>,
    failed: Option<LogError>,
}

impl Blocks {
    pub(crate) fn start(log: Arc<Inner>) -> Blocks {
        let (to, blocks) = sync_channel(AHEAD);
        let path = log.sources.files[0].path.clone();
        let read = move || {
            let mut pass = Pass::new(log);
            loop {
                let (last, item) = match pass.next_block() {
                    Ok(Some(block)) => (false, Ok(block)),
                    Ok(None) => return,
                    Err(error) => (true, Err(error)),
                };
                // Nobody waits for more once the receiver is gone.
                if to.send(item).is_err() || last {
                    return;
                }
            }
        };
        match thread::Builder::new().name("neuralcb-log".to_string()).spawn(read) {
            Ok(thread) => Blocks { blocks: Some(blocks), thread: Some(thread), failed: None },
            Err(source) => {
                let failed = LogError::File(crate::FileError::Read { path, source });
                Blocks { blocks: None, thread: None, failed: Some(failed) }
            }
        }
    }
}

impl Iterator for Blocks {
    type Item = Result<Block, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(item) = self.blocks.as_ref().and_then(|blocks| blocks.recv().ok()) {
            return Some(item);
        }
        self.blocks = None;
        // A reader that panicked must not look like the end of the log.
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        self.failed.take().map(Err)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.blocks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
