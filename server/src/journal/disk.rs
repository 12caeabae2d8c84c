//! What the writer asks of a disk, so that tests can let it fail.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Makes files to append to.
pub trait Disk: Send + Sync {
    /// Makes a file that must not exist yet, and makes its name durable.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
}

/// A file that is appended to.
pub trait DiskFile: Send {
    /// Appends all bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Puts what was appended on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file to a length.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// The machine's own.
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        if let Some(folder) = path.parent() {
            sync_folder(folder)?;
        }
        Ok(Box::new(file))
    }
}

/// Makes new names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}
