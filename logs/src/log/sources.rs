//! The files of a log: found, told apart by format, opened as often as needed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};
use tempfile::TempPath;

use super::error::LogError;
use super::obd;
use super::options::Format;
use crate::error::FileError;

/// Bytes read at once.
const BUFFER: usize = 1 << 18;

/// One file of a log.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name that messages use; `-` for standard input.
    pub path: PathBuf,
    /// Where the bytes are: what comes through a pipe is kept in a file, because a log is read more than once.
    spool: Option<TempPath>,
    gzip: bool,
    /// Length in bytes, as it lies on the disk.
    pub size: u64,
}

impl Source {
    fn new(path: &Path) -> Result<Source, LogError> {
        let spool = spooled(path).map_err(|e| read_error(path, e))?;
        let mut source = Source { path: path.to_path_buf(), spool, gzip: false, size: 0 };
        let mut start = [0; 2];
        let mut file = source.file()?;
        source.size = file.metadata().map_err(|e| read_error(path, e))?.len();
        source.gzip = file.read_exact(&mut start).is_ok() && start == [0x1f, 0x8b];
        Ok(source)
    }

    /// The file as it lies on the disk.
    pub fn file(&self) -> Result<File, LogError> {
        File::open(self.spool.as_deref().unwrap_or(&self.path)).map_err(|e| read_error(&self.path, e))
    }

    /// The text in it, unpacked where it is compressed; `read` counts the bytes of the file.
    pub fn text(&self, read: Arc<AtomicU64>) -> Result<Box<dyn Read + Send>, LogError> {
        let counted = Counted { inner: self.file()?, read };
        Ok(match self.gzip {
            true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, counted))),
            false => Box::new(counted),
        })
    }

    /// As [`Source::text`], by lines.
    pub fn lines(&self, read: Arc<AtomicU64>) -> Result<Box<dyn BufRead + Send>, LogError> {
        Ok(Box::new(BufReader::with_capacity(BUFFER, self.text(read)?)))
    }

    /// The first bytes of the text.
    fn beginning(&self) -> Result<Vec<u8>, LogError> {
        let mut start = Vec::new();
        let text = self.text(Arc::default())?;
        text.take(1 << 16).read_to_end(&mut start).map_err(|e| read_error(&self.path, e))?;
        Ok(start)
    }

    fn format(&self) -> Result<Format, LogError> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
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

/// A copy of what comes through standard input or another pipe; none for a file.
fn spooled(path: &Path) -> io::Result<Option<TempPath>> {
    let mut pipe: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false if fs::metadata(path)?.is_file() => return Ok(None),
        false => Box::new(File::open(path)?),
    };
    let mut file = tempfile::Builder::new().prefix("neuralcb-").suffix(".log").tempfile()?;
    io::copy(&mut pipe, &mut file)?;
    Ok(Some(file.into_temp_path()))
}

/// Counts the bytes that pass.
struct Counted {
    inner: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
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
            let found = files_of(path)?;
            if found.is_empty() {
                return Err(LogError::NoFiles { path: path.clone() });
            }
            for file in &found {
                files.push(Source::new(file)?);
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

    /// SHA-256 of the files' bytes, one after another, in hexadecimal.
    pub fn sha256(&self) -> Result<String, LogError> {
        let mut hash = Sha256::new();
        let mut buffer = vec![0; BUFFER];
        for source in &self.files {
            let mut file = source.file()?;
            loop {
                match file.read(&mut buffer).map_err(|e| read_error(&source.path, e))? {
                    0 => break,
                    n => hash.update(&buffer[..n]),
                }
            }
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The files of a folder that can be logs: visible, with an ending that names a format.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, LogError> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let mut files: Vec<PathBuf> =
        entries.map_err(|e| read_error(folder, e))?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let ending = name.strip_suffix(".gz").unwrap_or(&name).rsplit('.').next().unwrap_or_default().to_string();
        let known = ["csv", "tsv", "jsonl", "ndjson", "json", "dsjson", "parquet"].contains(&ending.as_str());
        known && !name.starts_with(['.', '_']) && path.is_file()
    });
    files.sort();
    Ok(files)
}
