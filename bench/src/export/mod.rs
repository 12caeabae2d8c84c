//! Inputs and results of the jobs as arrays, so that other programs can do the same work and compare.
//!
//! `DIR/<job>/<array>.npy`. Inputs: contexts, blocks, rewards, initial weights (`…_0`), drawn batches; results: final
//! weights, the diagonal of Λ, means and widths.

pub(crate) mod kernel;
pub(crate) mod linear;
pub(crate) mod neural;

use std::fs;
use std::path::Path;

use neuralcb::{Contexts, Estimates};

use crate::data::Rounds;
use crate::error::Error;
use crate::jobs::{Job, Work};
use crate::npy::{Element, encode};

/// Writes a file by its name within the folder of the export.
pub type Write<'a> = &'a dyn Fn(&str, &[u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Writes the arrays of the jobs; `begin` is told of each job before it starts.
pub fn export(jobs: &[&'static Job], begin: &mut dyn FnMut(&Job), write: Write<'_>) -> Result<(), Error> {
    if let Some(job) = jobs.iter().find(|job| !job.has_arrays()) {
        return Err(Error::NoArrays { name: job.name });
    }
    for job in jobs {
        begin(job);
        if let Work::Task { export: Some(export), .. } = job.work {
            export(&Folder { write, job: job.name })?;
        }
    }
    Ok(())
}

/// Refuses a folder with anything in it but arrays of earlier exports, which will be replaced. What cannot be read is
/// left to the writer to refuse.
pub fn check_folder(dir: &Path) -> Result<(), Error> {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    let occupied = |found: &Path| Err(Error::Occupied { folder: dir.to_path_buf(), found: found.to_path_buf() });
    for path in entries(dir) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !path.is_dir() || crate::job(&name).is_none() {
            return occupied(&path);
        }
        if let Some(other) = entries(&path).iter().find(|p| p.extension().is_none_or(|e| e != "npy")) {
            return occupied(other);
        }
    }
    Ok(())
}

/// The folder of one job.
pub(crate) struct Folder<'a> {
    write: Write<'a>,
    job: &'static str,
}

impl Folder<'_> {
    /// Writes one array.
    fn write<T: Element>(&self, name: &str, shape: &[usize], data: &[T]) -> Result<(), Error> {
        Ok((self.write)(&format!("{}/{name}.npy", self.job), &encode(shape, data))?)
    }

    /// Writes the chosen vectors and the rewards under that name.
    fn rounds(&self, rounds: &Rounds, reward: &str) -> Result<(), Error> {
        self.write("x", &[rounds.n(), rounds.layout.dim], &rounds.x)?;
        self.write(reward, &[rounds.n()], &rounds.rewards)
    }

    /// Writes all vectors of the contexts.
    fn contexts(&self, name: &str, contexts: &Contexts) -> Result<(), Error> {
        let (x, d) = (contexts.rows(0..contexts.n_rounds()), contexts.layout().dim);
        self.write(name, &[x.len() / d, d], x)
    }

    /// Writes mean and width.
    fn estimates(&self, shape: &[usize], estimates: &Estimates) -> Result<(), Error> {
        self.write("mean", shape, &estimates.mean)?;
        self.write("width", shape, &estimates.width)
    }
}
