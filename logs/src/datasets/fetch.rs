//! Bringing the published files into the cache.
//!
//! Whatever the source, a file is installed in one step and only if its content has the pinned SHA-256. A download that
//! breaks off leaves `NAME.part`, which the next one continues.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use super::download::{Client, Order};
use super::presence::hash;
use super::{DataError, DataFile, Packing, Presence, RealData, lzw};
use crate::{FileError, OutDir};

/// Where files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Each file's public home.
    Home,
    /// A folder with local copies, in the layout of the cache.
    Folder(PathBuf),
    /// The address of a mirror with the layout of the cache, files named as at home (`BASE/shuttle/shuttle.trn.Z`).
    Base(String),
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It was there with the right hash, and was left alone.
    AlreadyHere,
    /// It is there now.
    Installed,
}

/// Brings the files of a data set into the cache, and tells what became of each, in the order of [`RealData::files`].
///
/// `progress` is told the bytes done and their total. Files that are here with the right hash are not touched; others
/// are replaced.
pub fn fetch(
    data: RealData,
    cache: &Path,
    from: &Source,
    progress: &dyn Fn(u64, u64),
) -> Result<Vec<Arrival>, DataError> {
    let total = data.files().iter().map(|file| file.bytes).sum();
    let (client, mut before) = (Client::new(), 0);
    let mut arrivals = Vec::new();
    for file in data.files() {
        let report = |done: u64| progress(before + done.min(file.bytes), total);
        report(0);
        arrivals.push(match from {
            _ if file.presence(cache) == Presence::Yes => Arrival::AlreadyHere,
            Source::Folder(folder) => copy(data, file, folder, cache)?,
            Source::Home => download(&client, file, file.home, cache, &report)?,
            Source::Base(base) => download(&client, file, &file.at(base), cache, &report)?,
        });
        report(file.bytes);
        before += file.bytes;
    }
    Ok(arrivals)
}

/// Takes a file from a folder with local copies, packed or not.
fn copy(data: RealData, file: &DataFile, folder: &Path, cache: &Path) -> Result<Arrival, DataError> {
    let candidates = [folder.join(file.path), folder.join(file.path).with_file_name(file.served_name())];
    for path in candidates {
        let mut opened = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(|source| DataError::Read { path: path.clone(), source })?,
        };
        let content = file.content(&path.display().to_string(), read(&mut opened, file, &path)?)?;
        let (out, name) = file.place(cache)?;
        out.write(name, &content)?;
        return Ok(Arrival::Installed);
    }
    Err(DataError::NotInFolder { data, file: file.path, folder: folder.to_path_buf() })
}

/// Downloads a file, or the rest of it.
fn download(
    client: &Client,
    file: &DataFile,
    url: &str,
    cache: &Path,
    report: &dyn Fn(u64),
) -> Result<Arrival, DataError> {
    let (out, name) = file.place(cache)?;
    let mut part = Part::open(out.path().join(format!("{}.part", file.served_name())), file.limit())?;
    if file.presence(cache) == Presence::Yes {
        part.empty()?; // another process was faster
        return Ok(Arrival::AlreadyHere);
    }
    // All of it may be here: a process can end between the last byte and the installation.
    let mut content = file.content(url, read(&mut part.file, file, &part.path)?);
    if content.is_err() {
        let bytes = (file.packing == Packing::Plain).then_some(file.bytes);
        let progress = |done: u64, total: Option<u64>| match (file.packing, total) {
            (Packing::UnixCompress, Some(total)) if total > 0 => report(file.bytes * done / total),
            _ => report(done),
        };
        let order = Order { url, part: &part.path, bytes, limit: file.limit(), progress: &progress };
        client.download(order, &mut part.file)?;
        content = file.content(url, read(&mut part.file, file, &part.path)?);
    }
    // Wrong content is not worth continuing, and right content is about to have its own name.
    let installed = content.and_then(|content| Ok(out.write(name, &content)?));
    part.empty()?;
    installed.map(|()| Arrival::Installed)
}

impl DataFile {
    /// Its name at its home.
    fn served_name(&self) -> &'static str {
        self.home.rsplit('/').next().unwrap_or(self.home)
    }

    /// Its address at a mirror.
    fn at(&self, base: &str) -> String {
        let folder = self.path.split('/').next().unwrap_or_default();
        format!("{}/{folder}/{}", base.trim_end_matches('/'), self.served_name())
    }

    /// Its folder in the cache, made where it is missing, and its name there.
    fn place(&self, cache: &Path) -> Result<(OutDir, &'static str), FileError> {
        let (folder, name) = self.path.split_once('/').unwrap_or((".", self.path));
        Ok((OutDir::prepare(&cache.join(folder))?, name))
    }

    /// Bytes beyond which something is certainly not this file; wrong content below them has its hash shown.
    fn limit(&self) -> u64 {
        2 * self.bytes + (1 << 20)
    }

    /// The content of what was served, if it is the published one.
    fn content(&self, from: &str, served: Vec<u8>) -> Result<Vec<u8>, DataError> {
        let packed = self.packing == Packing::UnixCompress && served.starts_with(&lzw::MAGIC);
        let content = if packed {
            lzw::decode(&served, self.limit() as usize).map_err(|reason| {
                let source = io::Error::new(io::ErrorKind::InvalidData, reason);
                DataError::Unpack { path: PathBuf::from(from), source }
            })?
        } else {
            served
        };
        match hash(&content) {
            got if got == self.sha256 => Ok(content),
            got => Err(DataError::Hash { from: from.to_owned(), want: self.sha256, got }),
        }
    }
}

/// All bytes of a file, from its beginning, if there are not too many.
fn read(from: &mut File, file: &DataFile, path: &Path) -> Result<Vec<u8>, DataError> {
    let limit = file.limit();
    let mut bytes = Vec::new();
    from.rewind()
        .and_then(|()| from.take(limit + 1).read_to_end(&mut bytes))
        .map_err(|source| DataError::Read { path: path.to_path_buf(), source })?;
    match bytes.len() as u64 > limit {
        true => Err(DataError::TooLong { from: path.display().to_string(), limit }),
        false => Ok(bytes),
    }
}

/// A file that is not whole yet. It stays for the next attempt, unless it is empty in the end.
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    /// Opens what an earlier attempt left, or begins anew. One process at a time.
    fn open(path: PathBuf, limit: u64) -> Result<Part, DataError> {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|source| FileError::Write { path: path.clone(), source })?;
        // A file system without locks is no reason to fetch nothing: the hash is checked all the same.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(DataError::Busy { path });
        }
        let mut part = Part { path, file };
        if part.file.metadata().is_ok_and(|found| found.len() > limit) {
            part.empty()?;
        }
        Ok(part)
    }

    fn empty(&mut self) -> Result<(), FileError> {
        self.file.set_len(0).map_err(|source| FileError::Write { path: self.path.clone(), source })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|found| found.len() == 0) {
            let _ = fs::remove_file(&self.path); // an empty file left behind does no harm
        }
    }
}

#[cfg(test)]
mod tests;
