//! The segments of a folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::JournalError;
use super::disk::sync_folder;
use super::frame::{End, Frames, frame, hex};
use super::record::{Closed, Record};
use crate::clock::now;
use sha2::Digest;

/// How the text of a closing record begins.
const CLOSED: &[u8] = b"{\"closed\":";

const PREFIX: &str = "segment-";
const ENDING: &str = ".ncb";

/// The segments of a folder, in the order of their numbers.
pub fn segments(folder: &Path) -> Result<Vec<(u64, PathBuf)>, JournalError> {
    let failed = |e| JournalError::disk("read", folder)(e);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(ENDING));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// What was found and mended when a folder was opened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recovered {
    /// Segments that had no end.
    pub segments: u64,
    /// Bytes of torn records that were cut.
    pub torn: u64,
}

/// A folder that this process alone writes to.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held as long as the folder is.
    _lock: File,
    next: u64,
}

impl Folder {
    /// Opens the folder, makes it where it is missing, cuts torn records and closes what a killed server left.
    pub fn open(path: &Path) -> Result<(Folder, Recovered), JournalError> {
        fs::create_dir_all(path).map_err(JournalError::disk("make", path))?;
        let lock_path = path.join("lock");
        let lock = OpenOptions::new().create(true).write(true).truncate(false).open(&lock_path);
        let lock = lock.map_err(JournalError::disk("write", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: path.to_path_buf() }),
            Err(TryLockError::Error(e)) => return Err(JournalError::disk("lock", &lock_path)(e)),
        }
        let mut recovered = Recovered::default();
        let segments = segments(path)?;
        for (_, segment) in &segments {
            if let Some(torn) = close(segment)? {
                recovered.segments += 1;
                recovered.torn += torn;
            }
        }
        let next = segments.last().map_or(1, |(number, _)| number + 1);
        Ok((Folder { path: path.to_path_buf(), _lock: lock, next }, recovered))
    }

    /// The number and the path of the next segment.
    pub fn next_segment(&mut self) -> (u64, PathBuf) {
        let number = self.next;
        self.next += 1;
        (number, self.path.join(format!("{PREFIX}{number:08}{ENDING}")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether the last bytes are a closing record: a start must not read all that was ever logged.
pub(crate) fn has_end(file: &mut File) -> io::Result<bool> {
    const MOST: u64 = 512;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut tail = Vec::new();
    file.take(MOST).read_to_end(&mut tail)?;
    file.seek(SeekFrom::Start(0))?;
    let text = tail.windows(CLOSED.len()).rposition(|bytes| bytes == CLOSED).filter(|&at| at >= 8);
    Ok(text.is_some_and(|at| {
        let mut expected = Vec::new();
        frame(&tail[at..], &mut expected);
        tail[at - 8..] == expected
    }))
}

/// Copies what follows the last whole record to a file of its own.
fn keep_torn(path: &Path, good: u64) -> io::Result<()> {
    let mut from = File::open(path)?;
    from.seek(SeekFrom::Start(good))?;
    let mut to = File::create(path.with_extension("torn"))?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()
}

/// Closes a segment that has no end; tells how many bytes were cut, or none where there was nothing to do.
///
/// A closed segment is left as it is, a damaged one too: reading it tells.
fn close(path: &Path) -> Result<Option<u64>, JournalError> {
    let failed = |what| move |e| JournalError::disk(what, path)(e);
    let mut file = File::open(path).map_err(failed("read"))?;
    if has_end(&mut file).map_err(failed("read"))? {
        return Ok(None);
    }
    let length = file.metadata().map_err(failed("read"))?.len();
    let Some(mut frames) = Frames::new(BufReader::with_capacity(1 << 18, file)).map_err(failed("read"))? else {
        // Killed before the magic was written: nothing was acknowledged. Another file of that name is not ours.
        if length >= super::MAGIC.len() as u64 {
            let reason = "it does not begin as one".to_owned();
            return Err(JournalError::NoSegment { path: path.to_path_buf(), reason });
        }
        fs::remove_file(path).map_err(failed("remove"))?;
        return Ok(Some(length));
    };
    while frames.next_text().map_err(failed("read"))?.is_some() {}
    let torn = match frames.end() {
        Some(End::Open) => 0,
        Some(End::Torn(bytes)) => *bytes,
        _ => return Ok(None),
    };
    let (good, records) = (frames.good(), frames.records());
    let end = Closed { records, sha256: hex(&frames.sha256().finalize()), at: now() };
    let mut bytes = Vec::new();
    frame(&serde_json::to_vec(&Record::Closed(end)).expect("plain data"), &mut bytes);
    if torn > 0 {
        // Nothing that was acknowledged can be in it. Should the disk have lied, here it is.
        keep_torn(path, good).map_err(failed("keep the torn end of"))?;
    }
    let mut file = OpenOptions::new().append(true).open(path).map_err(failed("write"))?;
    file.set_len(good).map_err(failed("cut"))?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failed("write"))?;
    if let Some(folder) = path.parent() {
        sync_folder(folder).map_err(failed("write"))?;
    }
    Ok(Some(torn))
}
