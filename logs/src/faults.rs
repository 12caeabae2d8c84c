//! Faults on purpose.
//!
//! Every step by which a file is made (its opening, each write, both flushes, the renaming) asks here first. In builds
//! with debug assertions, as tests are, the environment variable `NEURALCB_FAIL_AT=N` lets the N-th step of the process
//! and all after it fail as on a full disk, so that a test can try every N; in a release nothing is asked.

use std::io;

/// Fails where a test wants it.
#[cfg(debug_assertions)]
pub(crate) fn step() -> io::Result<()> {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static FIRST: OnceLock<u64> = OnceLock::new();
    static STEPS: AtomicU64 = AtomicU64::new(0);
    let wanted = || std::env::var("NEURALCB_FAIL_AT").ok().and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    let first = *FIRST.get_or_init(wanted);
    match STEPS.fetch_add(1, Ordering::Relaxed) + 1 >= first {
        true => Err(io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    }
}

#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn step() -> io::Result<()> {
    Ok(())
}
