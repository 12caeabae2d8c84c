//! Work that may take long: done on other threads without the interpreter's lock, while this one looks after signals and
//! tells how far it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use neuralcb_logs::log::LogError;
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

    fn tell(&self, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        callback.call1((self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed)))?;
        Ok(())
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
                    Err(RecvTimeoutError::Disconnected) => return Err(crate::error::NeuralcbError::new_err("panicked")),
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
