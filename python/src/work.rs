//! Work that may take long: done on other threads without the interpreter's lock, while this one looks after signals
//! and tells how far it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use neuralcb_logs::log::{Log, LogError, ReadBlocks, ReadLog, Schema};
use pyo3::prelude::*;

use crate::error::Refusal;
use crate::pool::pool;

/// Between two looks at signals.
const PATIENCE: Duration = Duration::from_millis(100);

/// What worker and watcher share.
#[derive(Default)]
pub struct Watch {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Watch {
    /// An error once the work is to end.
    pub fn go_on(&self) -> Result<(), LogError> {
        if self.stop.load(Ordering::Relaxed) { Err(LogError::Interrupted) } else { Ok(()) }
    }

    /// How much there is to do.
    pub fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// That much more is done.
    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    /// So much is done in all.
    pub fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// A log in memory, watched.
    pub fn rounds<'a>(&'a self, log: &'a dyn ReadLog) -> Watched<'a> {
        Watched { log, bytes: None, watch: self }
    }

    /// A log in files, watched.
    pub fn bytes<'a>(&'a self, log: &'a Log) -> Watched<'a> {
        Watched { log, bytes: Some(log), watch: self }
    }

    fn tell(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        callback.call1((self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed)))?;
        Ok(())
    }
}

/// A log whose reading ends when it is to, and is counted: in bytes if it is in files, otherwise in rounds.
pub struct Watched<'a> {
    log: &'a dyn ReadLog,
    bytes: Option<&'a Log>,
    watch: &'a Watch,
}

impl ReadLog for Watched<'_> {
    fn schema(&self) -> &Schema {
        self.log.schema()
    }

    fn read(&self) -> ReadBlocks<'_> {
        self.bytes.inspect(|log| self.watch.set_total(log.bytes()));
        Box::new(self.log.read().inspect(|block| match (self.bytes, block) {
            (Some(log), _) => self.watch.set(log.bytes_read()),
            (None, Ok(block)) => self.watch.add(block.n_rounds() as u64),
            (None, Err(_)) => {}
        }))
    }

    fn actions(&self) -> Vec<String> {
        self.log.actions()
    }

    fn bad_rows(&self) -> u64 {
        self.log.bad_rows()
    }

    fn parts(&self) -> Vec<String> {
        self.log.parts()
    }

    fn digest(&self) -> Result<String, LogError> {
        self.log.digest()
    }

    fn go_on(&self) -> Result<(), LogError> {
        self.watch.go_on()
    }
}

/// Does the work; Ctrl-C and exceptions of the callback (which is told what is done, and of how much) end it.
pub fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T, Refusal> + Send,
) -> PyResult<T> {
    let (threads, watch) = (pool()?, Watch::default());
    let callback = progress.map(|callback| callback.clone().unbind());
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (to, from) = sync_channel(1);
            let watched = &watch;
            scope.spawn(move || to.send(threads.install(|| work(watched))));
            let mut raised = None;
            loop {
                match from.recv_timeout(PATIENCE) {
                    Ok(done) => return raised.map_or(Ok(done), Err),
                    // the worker has panicked; leaving the scope passes it on
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(crate::error::NeuralcbError::new_err("panicked"));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let look = |py: Python<'_>| {
                    py.check_signals()?;
                    callback.as_ref().map_or(Ok(()), |callback| watch.tell(callback.bind(py)))
                };
                if raised.is_none()
                    && let Err(error) = Python::attach(look)
                {
                    watch.stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
        })
    })?;
    let done = done?;
    if let Some(callback) = progress {
        watch.tell(callback)?;
    }
    Ok(done)
}
