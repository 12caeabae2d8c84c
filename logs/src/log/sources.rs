//! The files of a log: found, told apart by format, opened as often as needed.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};
use std::time::SystemTime;

use flate2::read::MultiGzDecoder;

use super::error::LogError;
use super::extent::{Extent, Reading};
use super::obd;
use super::options::Format;
use super::partition::{self, Partition};
use super::summed::Summed;
use crate::atomic::scratch;
use crate::error::FileError;

/// Bytes read at once.
const BUFFER: usize = 1 << 18;

/// One file of a log. Only the bytes that it had when it was opened are read, however often, and however it grows.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name that messages use; `-` for standard input.
    pub path: PathBuf,
    /// What came through a pipe is kept in a file without a name, because a log is read more than once.
    spool: Option<Extent>,
    packed: Packed,
    /// What its folders say of all its rows.
    pub partition: Partition,
    /// Length in bytes, as it lies on the disk.
    pub size: u64,
    /// Bytes of the files before it, and the sum over all; none where nobody wants one.
    summed: (u64, Option<Arc<Summed>>),
    changed: Option<SystemTime>,
}

/// How a text is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packed {
    No,
    Gzip,
    Zstd,
    /// No text: Parquet packs its own pages.
    Never,
}

impl Packed {
    fn of(start: &[u8]) -> Packed {
        match start {
            [0x1f, 0x8b, ..] => Packed::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Packed::Zstd,
            b"PAR1" => Packed::Never,
            _ => Packed::No,
        }
    }
}

impl Source {
    fn new(path: &Path) -> Result<Source, LogError> {
        let failed = |e| read_error(path, e);
        let spool = spooled(path)?;
        let mut source = Source {
            path: path.to_path_buf(),
            spool,
            packed: Packed::No,
            partition: Vec::new(),
            size: 0,
            summed: (0, None),
            changed: None,
        };
        source.size = match &source.spool {
            Some(spool) => spool.size(),
            None => {
                let found = fs::metadata(path).map_err(failed)?;
                source.changed = found.modified().ok();
                found.len()
            }
        };
        let mut start = Vec::new();
        source.bytes()?.reading(0).take(4).read_to_end(&mut start).map_err(failed)?;
        source.packed = Packed::of(&start);
        Ok(source)
    }

    pub fn is_file(&self) -> bool {
        self.spool.is_none()
    }

    /// The bytes as they lie on the disk; refused if they are others than at first.
    pub fn bytes(&self) -> Result<Extent, LogError> {
        if let Some(spool) = &self.spool {
            return Ok(spool.clone());
        }
        let file = File::open(&self.path).map_err(|e| read_error(&self.path, e))?;
        let found = file.metadata().map_err(|e| read_error(&self.path, e))?;
        let bytes = Extent::new(file, self.size);
        let same = match found.len().cmp(&self.size) {
            Ordering::Less => false,
            Ordering::Equal => found.modified().ok() == self.changed,
            // A log that is being written: what it had at first were whole lines.
            Ordering::Greater => self.packed == Packed::No && self.ends_a_line(&bytes)?,
        };
        if same { Ok(bytes) } else { Err(LogError::Changed { path: self.path.clone() }) }
    }

    fn ends_a_line(&self, bytes: &Extent) -> Result<bool, LogError> {
        let mut last = [0];
        let read = bytes.reading(self.size.saturating_sub(1)).read(&mut last);
        Ok(read.map_err(|e| read_error(&self.path, e))? == 0 || last == *b"\n")
    }

    /// The text in it, unpacked where it is compressed; `read` counts the bytes of the file, and the sum takes them in.
    pub fn text(&self, read: Arc<AtomicU64>) -> Result<Box<dyn Read + Send>, LogError> {
        let counted = Counted { inner: self.bytes()?.reading(0), read, summed: self.summed.clone() };
        Ok(match self.packed {
            Packed::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, counted))),
            Packed::Zstd => {
                let inner = BufReader::with_capacity(BUFFER, counted);
                let decoder = zstd::stream::read::Decoder::with_buffer(inner);
                Box::new(decoder.map_err(|e| read_error(&self.path, e))?)
            }
            Packed::No | Packed::Never => Box::new(counted),
        })
    }

    /// The first bytes of the text.
    pub fn beginning(&self) -> Result<Vec<u8>, LogError> {
        let mut start = Vec::new();
        let text = self.text(Arc::default())?;
        text.take(1 << 16).read_to_end(&mut start).map_err(|e| read_error(&self.path, e))?;
        Ok(start)
    }

    fn format(&self) -> Result<Format, LogError> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().to_ascii_lowercase();
        let name = unpacked(&name);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending {
            "csv" => Ok(Format::Csv),
            "tsv" => Ok(Format::Tsv),
            "parquet" => Ok(Format::Parquet),
            "dsjson" => Ok(Format::Dsjson),
            "jsonl" | "ndjson" | "json" => Ok(json_format(&self.beginning()?)),
            _ if self.spool.is_some() => Ok(sniffed(&self.beginning()?)),
            _ => Err(LogError::UnknownFormat { path: self.path.clone() }),
        }
    }
}

/// Which of the JSON formats a text is, by its first line.
fn json_format(start: &[u8]) -> Format {
    let line = start.split(|&b| b == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let has = |key: &str| line.windows(key.len()).any(|w| w == key.as_bytes());
    if has("\"_label_cost\"") || has("\"_multi\"") {
        Format::Dsjson
    } else if has("\"actions\"") {
        Format::JsonRounds
    } else {
        Format::JsonLines
    }
}

/// The format of a text without a name.
fn sniffed(start: &[u8]) -> Format {
    let line = start.split(|&b| b == b'\n').next().unwrap_or_default();
    match start.trim_ascii_start().first() {
        _ if start.starts_with(b"PAR1") => Format::Parquet,
        Some(b'{') => json_format(start),
        _ if line.contains(&b'\t') => Format::Tsv,
        _ => Format::Csv,
    }
}

fn read_error(path: &Path, source: io::Error) -> LogError {
    LogError::File(FileError::Read { path: path.to_path_buf(), source })
}

/// A copy of what comes through standard input or another pipe; none for a file. The copy has no name, so that nothing
/// is left of it however the process ends.
fn spooled(path: &Path) -> Result<Option<Extent>, LogError> {
    let failed = |e| read_error(path, e);
    let mut pipe: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false if fs::metadata(path).map_err(failed)?.is_file() => return Ok(None),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    let mut start = Vec::new();
    (&mut pipe).take(BUFFER as u64).read_to_end(&mut start).map_err(failed)?;
    // Before it fills the disk: a device such as /dev/zero has no end.
    if Packed::of(&start[..start.len().min(4)]) == Packed::No && start.contains(&0) {
        return Err(LogError::NoText { path: path.to_path_buf() });
    }
    let folder = std::env::temp_dir();
    let full = |source| LogError::File(FileError::Write { path: folder.clone(), source });
    let mut file = BufWriter::with_capacity(BUFFER, scratch(&folder).map_err(full)?);
    file.write_all(&start).map_err(full)?;
    let size = start.len() as u64 + io::copy(&mut pipe, &mut file).map_err(full)?;
    let file = file.into_inner().map_err(|e| full(e.into_error()))?.into_file();
    Ok(Some(Extent::new(file, size)))
}

/// Counts the bytes that pass, and shows them to the sum.
struct Counted {
    inner: Reading,
    read: Arc<AtomicU64>,
    summed: (u64, Option<Arc<Summed>>),
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, atomic::Ordering::Relaxed);
        if let (at, Some(summed)) = &mut self.summed {
            summed.show(*at, &buffer[..n]);
            *at += n as u64;
        }
        Ok(n)
    }
}

/// The files of a log, in the order in which they are read.
#[derive(Debug)]
pub(crate) struct Sources {
    pub format: Format,
    pub files: Vec<Source>,
}

impl Sources {
    /// Finds the files that `paths` name: a file, a folder (its files, by name) or `-`.
    pub fn find(paths: &[PathBuf], format: Option<Format>) -> Result<Sources, LogError> {
        let mut files = Vec::new();
        let mut format = format;
        for path in paths {
            if !path.is_dir() {
                files.push(Source::new(path)?);
                continue;
            }
            if let Some(log) = obd::campaign(path)? {
                format = format.or(Some(Format::OpenBandit));
                files.push(Source::new(&log)?);
                continue;
            }
            let found = files_of(path, &Vec::new())?;
            if found.is_empty() {
                return Err(LogError::NoFiles { path: path.clone() });
            }
            for (file, partition) in found {
                files.push(Source { partition, ..Source::new(&file)? });
            }
        }
        let Some(first) = files.first() else { return Err(LogError::NoFiles { path: PathBuf::new() }) };
        let format = match format {
            Some(format) => format,
            None => {
                let want = first.format()?;
                for file in &files[1..] {
                    let got = file.format()?;
                    if got != want {
                        return Err(LogError::MixedFormats { path: file.path.clone(), want, got });
                    }
                }
                want
            }
        };
        Ok(Sources { format, files })
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// From now on whoever reads the files also makes their sum.
    pub fn sum_on_the_way(&mut self) {
        let (summed, mut before) = (Arc::new(Summed::default()), 0);
        for source in &mut self.files {
            source.summed = (before, Some(Arc::clone(&summed)));
            before += source.size;
        }
    }

    /// SHA-256 of the files' bytes, one after another, in hexadecimal. Only what no reading has shown is read for it:
    /// nothing of texts that were read to their end; all of Parquet, which is not read in order.
    pub fn sha256(&self) -> Result<String, LogError> {
        let summed = self.files[0].summed.1.clone().unwrap_or_default();
        let (mut buffer, mut before) = (vec![0; BUFFER], 0);
        for source in &self.files {
            let end = before + source.size;
            let mut at = summed.n().clamp(before, end);
            let mut file = source.bytes()?.reading(at - before);
            while at < end {
                let n = file.read(&mut buffer).map_err(|e| read_error(&source.path, e))?;
                summed.show(at, &buffer[..n]);
                at += n as u64;
            }
            before = end;
        }
        Ok(summed.hex())
    }
}

/// A name without the ending of its compression.
fn unpacked(name: &str) -> &str {
    name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name)
}

/// The files of a folder that can be logs: visible, with an ending that names a format. Where it has none, those of its
/// folders `key=value`.
fn files_of(folder: &Path, above: &Partition) -> Result<Vec<(PathBuf, Partition)>, LogError> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let mut all: Vec<PathBuf> =
        entries.map_err(|e| read_error(folder, e))?.into_iter().map(|entry| entry.path()).collect();
    all.sort();
    let is_log = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let ending = unpacked(&name).rsplit('.').next().unwrap_or_default().to_string();
        let known = ["csv", "tsv", "jsonl", "ndjson", "json", "dsjson", "parquet"].contains(&ending.as_str());
        known && !name.starts_with(['.', '_']) && path.is_file()
    };
    let files: Vec<_> = all.iter().filter(is_log).map(|path| (path.clone(), above.clone())).collect();
    if !files.is_empty() {
        return Ok(files);
    }
    let mut below = Vec::new();
    for path in all.iter().filter(|path| path.is_dir()) {
        if let Some(pair) = partition::of_folder(path) {
            let partition: Partition = above.iter().cloned().chain([pair]).collect();
            below.extend(files_of(path, &partition)?);
        }
    }
    Ok(below)
}
