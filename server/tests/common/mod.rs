//! What several tests need: a small policy, and a disk that fails.
#![allow(dead_code)] // each test uses some of it

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use neuralcb_logs::log::{Log, LogOptions, Want};
use neuralcb_logs::policy::{Algorithm, Recipe};
use neuralcb_logs::train::train;
use neuralcb_server::journal::{Disk, DiskFile, RealDisk};

/// Actions of [`policy`].
pub const ACTIONS: [&str; 4] = ["a", "b", "c", "d"];
/// Different contexts, `{"x": "c0"}` and so on.
pub const CONTEXTS: usize = 6;

/// The expected reward of an action in a context.
pub fn truth(context: usize, action: usize) -> f64 {
    0.1 + 0.8 * ((context * 3 + action * 5) % 7) as f64 / 6.0
}

/// A policy that learned the truth from a small log, in a file of that folder.
pub fn policy(folder: &Path) -> PathBuf {
    let mut rows = "x,action,reward,propensity\n".to_owned();
    for i in 0..CONTEXTS * ACTIONS.len() * 5 {
        let (context, action) = (i % CONTEXTS, i / CONTEXTS % ACTIONS.len());
        rows += &format!("c{context},{},{},0.25\n", ACTIONS[action], truth(context, action));
    }
    let (log, path) = (folder.join("log.csv"), folder.join("policy.safetensors"));
    fs::write(&log, rows).unwrap();
    let log = Log::open(&[log], &LogOptions::default(), Want::OUTCOMES).unwrap();
    let recipe = Recipe { algorithm: Algorithm::LinLcb, ..Recipe::default() };
    train(&log, &recipe, None, &mut |_| {}).unwrap().save(&path).unwrap();
    path
}

/// A disk that fails when it is told to.
#[derive(Clone)]
pub struct Broken {
    pub flush_fails: Arc<AtomicBool>,
    /// Bytes that are left before the disk is full.
    pub room: Arc<AtomicU64>,
}

impl Broken {
    pub fn new() -> Broken {
        Broken { flush_fails: Arc::default(), room: Arc::new(AtomicU64::new(1 << 30)) }
    }
}

struct BrokenFile {
    disk: Broken,
    file: Box<dyn DiskFile>,
}

impl Disk for Broken {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(BrokenFile { disk: self.clone(), file: RealDisk.create(path)? }))
    }
}

impl DiskFile for BrokenFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = self.disk.room.load(Ordering::SeqCst);
        if (bytes.len() as u64) > room {
            self.file.append(&bytes[..room as usize])?; // as much as fits, as a full disk does
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.disk.room.fetch_sub(bytes.len() as u64, Ordering::SeqCst);
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.disk.flush_fails.load(Ordering::SeqCst) {
            true => Err(io::Error::other("input/output error")),
            false => self.file.sync(),
        }
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.cut(length)
    }
}
