//! The first bytes of a file, for any number of readers at once.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::reader::{ChunkReader, Length};

/// The first `size` bytes of an open file, whatever it becomes.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    file: Arc<File>,
    size: u64,
}

impl Extent {
    pub fn new(file: File, size: u64) -> Extent {
        Extent { file: Arc::new(file), size }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes from a place on.
    pub fn reading(&self, at: u64) -> Reading {
        Reading { bytes: self.clone(), at }
    }
}

/// Reads an extent. Readers of one extent do not move each other.
#[derive(Debug)]
pub(crate) struct Reading {
    bytes: Extent,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.size.saturating_sub(self.at);
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = read_at(&self.bytes.file, &mut buffer[..most], self.at)?;
        if n == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is shorter than when it was opened"));
        }
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

impl Length for Extent {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Extent {
    type T = BufReader<Reading>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(self.reading(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // Room only for what can be there.
        let within = start.checked_add(length as u64).is_some_and(|end| end <= self.size);
        let mut bytes = vec![0; if within { length } else { 0 }];
        match within {
            true => self.reading(start).read_exact(&mut bytes)?,
            false => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
        Ok(bytes.into())
    }
}
