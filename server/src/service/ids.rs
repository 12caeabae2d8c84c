//! Names for events whose callers give none: different for every start of every server.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::TryRng;
use rand::rngs::SysRng;

use crate::clock::now;

/// Where names of events come from.
pub(crate) struct Ids {
    start: u64,
    next: AtomicU64,
}

impl Ids {
    pub fn new() -> Ids {
        // The library's streams are seeded; what must never come twice is drawn by the system.
        Ids { start: SysRng.try_next_u64().unwrap_or_else(|_| now()), next: AtomicU64::new(0) }
    }

    /// The name of this start of the server.
    pub fn server(&self) -> String {
        format!("{:016x}", self.start)
    }

    pub fn event(&self) -> String {
        format!("{:016x}-{:08x}", self.start, self.next.fetch_add(1, Ordering::Relaxed))
    }
}
