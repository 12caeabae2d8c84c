//! The threads that compute: one pool per process, so that a child made by fork, which inherits none of its parent's
//! threads, starts its own instead of waiting for ever.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Refusal;

struct Owned {
    process: u32,
    threads: ThreadPool,
}

static POOL: AtomicPtr<Owned> = AtomicPtr::new(ptr::null_mut());

/// This process' pool.
pub fn pool() -> Result<&'static ThreadPool, Refusal> {
    let process = std::process::id();
    let known = POOL.load(Ordering::Acquire);
    // SAFETY: what is stored comes from `Box::leak` and is never freed
    if let Some(owned) = unsafe { known.as_ref() }
        && owned.process == process
    {
        return Ok(&owned.threads);
    }
    let threads = ThreadPoolBuilder::new().build().map_err(|e| Refusal(format!("cannot start threads: {e}")))?;
    // two threads that come here at once make a pool each; both are used, and neither is freed
    let owned: &'static mut Owned = Box::leak(Box::new(Owned { process, threads }));
    let owned = ptr::from_mut(owned);
    POOL.store(owned, Ordering::Release);
    // SAFETY: as above
    Ok(unsafe { &(*owned).threads })
}
