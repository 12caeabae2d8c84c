//! How far a long fit is, and whether it is to end: shared with whoever waits for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Error;

/// A count of the rounds that networks have been trained on, and a wish to end.
#[derive(Debug, Default)]
pub struct Watch {
    done: AtomicU64,
    planned: AtomicU64,
    stop: AtomicBool,
}

impl Watch {
    /// Rounds done, and rounds planned so far. The plan grows where a choice leads to more work.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.planned.load(Ordering::Relaxed))
    }

    /// Ends the fit: it returns [`Error::Stopped`] within a batch.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// So many rounds more are to come.
    pub(crate) fn plan(&self, rounds: usize) {
        self.planned.fetch_add(rounds as u64, Ordering::Relaxed);
    }

    /// So many rounds more are done. An error once the work is to end.
    pub(crate) fn tick(&self, rounds: usize) -> Result<(), Error> {
        self.done.fetch_add(rounds as u64, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_stopped_hears_of_it_at_the_next_batch() {
        let watch = Watch::default();
        watch.plan(10);
        watch.tick(4).unwrap();
        assert_eq!(watch.progress(), (4, 10));
        watch.stop();
        assert!(matches!(watch.tick(1), Err(Error::Stopped)));
    }
}
