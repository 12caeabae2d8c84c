//! Is a data set in the cache, and is it the published one?

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{DataFile, RealData};
use crate::hex::hex;

/// What the cache holds of a file or a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Whole, with the published hash.
    Yes,
    /// Nothing of it.
    No,
    /// Some of its files, each with the published hash.
    Partly,
    /// A file that is not the published one, or that cannot be read.
    Damaged,
}

impl Presence {
    /// The spelling in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Presence::Yes => "yes",
            Presence::No => "no",
            Presence::Partly => "partly",
            Presence::Damaged => "damaged",
        }
    }
}

impl DataFile {
    /// Whether the cache holds it. The file is read and hashed.
    pub fn presence(&self, cache: &Path) -> Presence {
        match hash_file(&cache.join(self.path)) {
            Ok(hash) if hash == self.sha256 => Presence::Yes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => Presence::No,
            _ => Presence::Damaged,
        }
    }
}

impl RealData {
    /// Whether the cache holds it. Its files are read and hashed.
    pub fn presence(self, cache: &Path) -> Presence {
        summary(self.files().iter().map(|file| file.presence(cache)))
    }
}

fn summary(files: impl Iterator<Item = Presence>) -> Presence {
    files
        .reduce(|a, b| match (a, b) {
            (Presence::Damaged, _) | (_, Presence::Damaged) => Presence::Damaged,
            (a, b) if a == b => a,
            _ => Presence::Partly,
        })
        .unwrap_or(Presence::No)
}

/// The SHA-256 of bytes, in lower-case hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes))
}

fn hash_file(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha_256() {
        // The first test vector of FIPS 180-2.
        assert_eq!(hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_data_set_is_what_its_files_are() {
        use Presence::{Damaged, No, Partly, Yes};
        for (files, want) in [
            (vec![Yes, Yes], Yes),
            (vec![No, No], No),
            (vec![Yes, No, Yes], Partly),
            (vec![No, Yes, No], Partly),
            (vec![Yes, No, Damaged], Damaged),
            (vec![Damaged, No], Damaged),
        ] {
            assert_eq!(summary(files.iter().copied()), want, "{files:?}");
        }
    }
}
