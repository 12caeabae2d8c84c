//! Reading a text on several threads: one cuts it into pieces, others make tables of them, and all come in order.
//!
//! Where the text is cut and in which order its rows come does not depend on the number of threads.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::error::LogError;
use super::pieces::{Piece, Pieces};
use super::table::{Table, TableReader};

/// Makes a table of some rows of a text.
pub(crate) trait Parse: Send + Sync + 'static {
    fn parse(&self, piece: &Piece) -> Table;
}

/// The threads that parse, shared by all readings. A pool of their own: what they do waits for nothing, so that whoever
/// waits for them, on whichever thread, does not wait for ever.
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let made = || rayon::ThreadPoolBuilder::new().thread_name(|i| format!("neuralcb-parse-{i}")).build().ok();
    POOL.get_or_init(made).as_ref()
}

/// The rows of a text, parsed ahead.
pub(crate) struct Ahead<P> {
    parser: Arc<P>,
    pieces: Pieces,
    /// Tables of the pieces that were cut, in order.
    under_way: VecDeque<Receiver<thread::Result<Table>>>,
    /// What came after the last piece: the end, or an error.
    ended: Option<Result<(), LogError>>,
    /// The table whose rows are being taken, from this row on.
    table: Table,
    row: usize,
}

impl<P: Parse> Ahead<P> {
    pub fn new(pieces: Pieces, parser: P) -> Ahead<P> {
        let (under_way, table) = (VecDeque::new(), Table::default());
        Ahead { parser: Arc::new(parser), pieces, under_way, ended: None, table, row: 0 }
    }

    /// The next table; none at the end.
    fn next(&mut self) -> Result<Option<Table>, LogError> {
        let most = pool().map_or(1, |pool| pool.current_num_threads() + 2);
        while self.ended.is_none() && self.under_way.len() < most {
            match self.pieces.next() {
                Ok(Some(piece)) => self.start(piece),
                Ok(None) => self.ended = Some(Ok(())),
                Err(error) => self.ended = Some(Err(error)),
            }
        }
        let Some(table) = self.under_way.pop_front() else {
            return self.ended.replace(Ok(())).unwrap_or(Ok(())).map(|()| None);
        };
        match table.recv().expect("a table or a panic is sent for every piece") {
            Ok(table) => Ok(Some(table)),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn start(&mut self, piece: Piece) {
        let (to, table) = sync_channel(1);
        let parser = Arc::clone(&self.parser);
        // Nobody may wait for it any more.
        let work = move || drop(to.send(catch_unwind(AssertUnwindSafe(|| parser.parse(&piece)))));
        match pool() {
            // A text of one piece needs no other thread.
            Some(pool) if !(self.pieces.at_end() && self.under_way.is_empty()) => pool.spawn(work),
            _ => work(),
        }
        self.under_way.push_back(table);
    }
}

impl<P: Parse> TableReader for Ahead<P> {
    fn fill(&mut self, table: &mut Table, rows: usize) -> Result<bool, LogError> {
        while table.n_rows() < rows {
            if self.row == self.table.n_rows() {
                let Some(next) = self.next()? else { return Ok(false) };
                (self.table, self.row) = (next, 0);
                table.not_decisions += self.table.not_decisions;
                table.unknown += self.table.unknown;
            }
            let n = (rows - table.n_rows()).min(self.table.n_rows() - self.row);
            table.push_rows(&self.table, self.row..self.row + n);
            self.row += n;
        }
        Ok(true)
    }
}
