//! The writer of a folder: one thread that appends what many requests give it, with one flush for all that came
//! meanwhile.
//!
//! | durability | an append is answered after | a crash of the machine loses | of the program |
//! |---|---|---|---|
//! | `sync` | write and flush | nothing that was answered | nothing that was answered |
//! | `batch` | write | up to 100 ms | nothing that was answered |
//!
//! Where the disk refuses, the appends of that turn are cut off again and refused, and so is all that comes within the
//! next second. After a failed flush nobody knows what the disk holds: the segment is given up, and the next begins.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io, mem};

use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::sync::oneshot;

use super::JournalError;
use super::disk::{Disk, DiskFile};
use super::folder::Folder;
use super::frame::{MAGIC, frame, hex};
use super::record::{Closed, Opened, Record};
use crate::clock::now;

/// When an append is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it is on the disk.
    #[default]
    Sync,
    /// When it is written; it is on the disk within 100 ms.
    Batch,
}

/// How a folder is written.
#[derive(Debug, Clone)]
pub struct Options {
    /// When an append is answered.
    pub durability: Durability,
    /// Bytes after which a segment is closed.
    pub segment_bytes: u64,
    /// Time after which a segment is closed.
    pub segment_age: Duration,
    /// The name of the server.
    pub server: String,
}

/// How far the disk may be behind under [`Durability::Batch`].
const BEHIND: Duration = Duration::from_millis(100);
/// How long all is refused after the disk has.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes that may wait to be written.
const WAITING: usize = 64 << 20;

/// Why something was not logged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unlogged {
    /// The disk refused.
    #[error(
        "the decision log cannot be written: {reason}; free space or mend the disk, the server tries again every second"
    )]
    Disk {
        /// What the disk said.
        reason: String,
    },
    /// More is waiting than the disk takes.
    #[error("the disk is behind by {waiting} bytes; send less, or give the log a faster disk")]
    Behind {
        /// Bytes that wait.
        waiting: usize,
    },
    /// The server stops.
    #[error("the server stops: ask another")]
    Stopping,
}

/// What waits to be written.
struct Waiting {
    framed: Vec<u8>,
    records: u64,
    done: oneshot::Sender<Result<(), Unlogged>>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    bytes: usize,
    stop: bool,
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Counters {
    /// Records written.
    pub records: AtomicU64,
    /// Bytes written.
    pub bytes: AtomicU64,
    /// Flushes.
    pub flushes: AtomicU64,
    /// Records refused.
    pub refused: AtomicU64,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    come: Condvar,
    /// Why the disk refuses, as long as it does.
    failing: Mutex<Option<String>>,
    counters: Counters,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writer of a folder. Dropped, it writes what waits and closes the segment.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Journal {
    /// Starts to write; the first segment is made at once, so that a folder that cannot be written is known now.
    pub fn start(folder: Folder, disk: Box<dyn Disk>, options: Options) -> Result<Journal, JournalError> {
        let shared = Arc::new(Shared::default());
        let mut writer = Writer { folder, disk, options, shared: shared.clone(), segment: None, paused: None };
        writer.open().map_err(|e| JournalError::disk("write", writer.folder.path())(e))?;
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run());
        let thread = Mutex::new(Some(thread.map_err(|e| JournalError::disk("write", "journal".as_ref())(e))?));
        Ok(Journal { shared, thread })
    }

    /// Appends records, all or none, and waits until they are as durable as was asked for.
    pub async fn append(&self, texts: &[Vec<u8>]) -> Result<(), Unlogged> {
        let mut framed = Vec::with_capacity(texts.iter().map(|text| text.len() + 8).sum());
        texts.iter().for_each(|text| frame(text, &mut framed));
        let (done, answer) = oneshot::channel();
        {
            let mut queue = locked(&self.shared.queue);
            let refused = match queue.stop {
                true => Some(Unlogged::Stopping),
                false if queue.bytes > WAITING => Some(Unlogged::Behind { waiting: queue.bytes }),
                false => None,
            };
            if let Some(refused) = refused {
                self.shared.counters.refused.fetch_add(texts.len() as u64, Ordering::Relaxed);
                return Err(refused);
            }
            queue.bytes += framed.len();
            queue.waiting.push(Waiting { framed, records: texts.len() as u64, done });
        }
        self.shared.come.notify_one();
        answer.await.unwrap_or(Err(Unlogged::Stopping))
    }

    /// Why the disk refuses, as long as it does.
    pub fn failing(&self) -> Option<String> {
        locked(&self.shared.failing).clone()
    }

    /// What was written and refused so far.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Writes what waits, closes the segment and refuses what comes later.
    pub fn stop(&self) {
        locked(&self.shared.queue).stop = true;
        self.shared.come.notify_one();
        if let Some(thread) = locked(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The segment that is being written.
struct Segment {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    opened: Instant,
    /// Length up to the last record that was answered.
    good: u64,
    records: u64,
    sha256: Sha256,
    /// When the first write came that is not yet flushed.
    dirty: Option<Instant>,
}

struct Writer {
    folder: Folder,
    disk: Box<dyn Disk>,
    options: Options,
    shared: Arc<Shared>,
    segment: Option<Segment>,
    paused: Option<Instant>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let (waiting, stop) = self.next();
            if !waiting.is_empty() {
                self.answer(waiting);
            }
            self.keep();
            if stop {
                break;
            }
        }
        if let Err(error) = self.close() {
            self.fail(&error);
        }
    }

    /// What has come; waits for it until there is other work.
    fn next(&self) -> (Vec<Waiting>, bool) {
        let mut queue = locked(&self.shared.queue);
        if queue.waiting.is_empty() && !queue.stop {
            let until = self.segment.as_ref().filter(|_| self.paused.is_none()).map_or(PAUSE, |segment| {
                let age = self.options.segment_age.saturating_sub(segment.opened.elapsed());
                segment.dirty.map_or(age, |dirty| age.min(BEHIND.saturating_sub(dirty.elapsed())))
            });
            queue = self.shared.come.wait_timeout(queue, until).unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.bytes = 0;
        (mem::take(&mut queue.waiting), queue.stop)
    }

    fn answer(&mut self, waiting: Vec<Waiting>) {
        let records: u64 = waiting.iter().map(|one| one.records).sum();
        let mut bytes = Vec::with_capacity(waiting.iter().map(|one| one.framed.len()).sum());
        waiting.iter().for_each(|one| bytes.extend_from_slice(&one.framed));
        let paused = self.paused.is_some_and(|since| since.elapsed() < PAUSE);
        let done = match paused {
            true => Err(Unlogged::Disk { reason: locked(&self.shared.failing).clone().unwrap_or_default() }),
            false => self.write(&bytes, records).map_err(|error| {
                self.fail(&error);
                Unlogged::Disk { reason: error.to_string() }
            }),
        };
        match &done {
            Ok(()) => {
                self.well();
                let counters = &self.shared.counters;
                counters.records.fetch_add(records, Ordering::Relaxed);
                counters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            Err(_) => {
                self.shared.counters.refused.fetch_add(records, Ordering::Relaxed);
            }
        }
        // Whoever no longer listens has gone; what is logged is logged.
        waiting.into_iter().for_each(|one| drop(one.done.send(done.clone())));
    }

    fn write(&mut self, bytes: &[u8], records: u64) -> io::Result<()> {
        if self.segment.is_none() {
            self.open()?;
        }
        let durability = self.options.durability;
        let segment = self.segment.as_mut().expect("it was just opened");
        if let Err(error) = segment.file.append(bytes) {
            // What was written in part must not stand in the way of what comes next.
            if segment.file.cut(segment.good).is_err() {
                self.segment = None;
            }
            return Err(error);
        }
        if durability == Durability::Sync {
            self.shared.counters.flushes.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = segment.file.sync() {
                let _ = segment.file.cut(segment.good);
                self.segment = None;
                return Err(error);
            }
        } else {
            segment.dirty.get_or_insert_with(Instant::now);
        }
        segment.good += bytes.len() as u64;
        segment.records += records;
        segment.sha256.update(bytes);
        Ok(())
    }

    /// Flushes what is due, and closes a segment that is large or old.
    fn keep(&mut self) {
        if self.paused.is_some_and(|since| since.elapsed() >= PAUSE) {
            // Whoever watches the server's health sends nothing until it is well again: find out without being asked.
            match if self.segment.is_none() { self.open() } else { Ok(()) } {
                Ok(()) => self.well(),
                Err(error) => self.fail(&error),
            }
        }
        let Some(segment) = &mut self.segment else { return };
        if segment.dirty.is_some_and(|dirty| dirty.elapsed() >= BEHIND) {
            segment.dirty = None;
            self.shared.counters.flushes.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = segment.file.sync() {
                self.segment = None;
                return self.fail(&error);
            }
        }
        let old = segment.opened.elapsed() >= self.options.segment_age && segment.records > 1;
        if (old || segment.good >= self.options.segment_bytes)
            && let Err(error) = self.close()
        {
            self.fail(&error);
        }
    }

    fn well(&mut self) {
        if self.paused.take().is_some() {
            *locked(&self.shared.failing) = None;
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.paused = Some(Instant::now());
        *locked(&self.shared.failing) = Some(error.to_string());
    }

    fn open(&mut self) -> io::Result<()> {
        let (number, path) = self.folder.next_segment();
        let opened = Opened { version: 1, server: self.options.server.clone(), number, at: now() };
        let mut bytes = MAGIC.to_vec();
        frame(&serde_json::to_vec(&Record::Opened(opened)).expect("plain data"), &mut bytes);
        let made = self.disk.create(&path).and_then(|mut file| {
            file.append(&bytes)?;
            file.sync()?;
            Ok(file)
        });
        let file = made.inspect_err(|_| drop(fs::remove_file(&path)))?;
        let (good, sha256) = (bytes.len() as u64, Sha256::new_with_prefix(&bytes));
        self.segment = Some(Segment { file, path, opened: Instant::now(), good, records: 1, sha256, dirty: None });
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(mut segment) = self.segment.take() else { return Ok(()) };
        if segment.records == 1 {
            // Nothing happened: an empty segment would be left for every start.
            return fs::remove_file(&segment.path);
        }
        let end = Closed { records: segment.records, sha256: hex(&segment.sha256.finalize()), at: now() };
        let mut bytes = Vec::new();
        frame(&serde_json::to_vec(&Record::Closed(end)).expect("plain data"), &mut bytes);
        segment.file.append(&bytes)?;
        segment.file.sync()
    }
}
