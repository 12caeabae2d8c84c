//! The folder that holds the files.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{DataError, DataFile, RealData};

/// Where data sets are kept: `NEURALCB_DATA`, else `neuralcb` in the platform's cache folder (`$XDG_CACHE_HOME` or
/// `~/.cache`, on macOS `~/Library/Caches`, on Windows `%LOCALAPPDATA%`), else, without a home, `neuralcb-data` here.
pub fn cache_dir() -> PathBuf {
    choose(|name| env::var_os(name).filter(|value| !value.is_empty()), env::home_dir())
}

fn choose(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> PathBuf {
    if let Some(folder) = variable("NEURALCB_DATA") {
        return PathBuf::from(folder);
    }
    let platform = if cfg!(windows) {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library/Caches"))
    } else {
        // The XDG rules: a relative folder is to be ignored.
        let xdg = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        xdg.or_else(|| home.map(|home| home.join(".cache")))
    };
    platform.map_or_else(|| PathBuf::from("neuralcb-data"), |folder| folder.join("neuralcb"))
}

/// The cache folder, read on behalf of one data set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cache<'a> {
    pub data: RealData,
    pub folder: &'a Path,
}

impl Cache<'_> {
    /// Opens a file; one that is absent is an error of its own, with the cure.
    pub fn open(&self, file: &DataFile) -> Result<(PathBuf, File), DataError> {
        let path = self.folder.join(file.path);
        match File::open(&path) {
            Ok(opened) => Ok((path, opened)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(DataError::Missing { data: self.data, file: file.path, cache: self.folder.to_path_buf() })
            }
            Err(source) => Err(DataError::Read { path, source }),
        }
    }

    /// The text of a file.
    pub fn text(&self, file: &DataFile) -> Result<(PathBuf, String), DataError> {
        let (path, mut opened) = self.open(file)?;
        let mut text = String::new();
        match opened.read_to_string(&mut text) {
            Ok(_) => Ok((path, text)),
            Err(source) => Err(DataError::Read { path, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], home: Option<&str>) -> PathBuf {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        choose(find, home.map(PathBuf::from))
    }

    #[test]
    fn the_variable_wins_over_the_platform() {
        assert_eq!(chosen(&[("NEURALCB_DATA", "../data"), ("XDG_CACHE_HOME", "/c")], Some("/h")), Path::new("../data"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_platforms_cache_follows_the_xdg_rules() {
        assert_eq!(chosen(&[("XDG_CACHE_HOME", "/c")], Some("/h")), Path::new("/c/neuralcb"));
        assert_eq!(chosen(&[("XDG_CACHE_HOME", "relative")], Some("/h")), Path::new("/h/.cache/neuralcb"));
        assert_eq!(chosen(&[], Some("/h")), Path::new("/h/.cache/neuralcb"));
        assert_eq!(chosen(&[], None), Path::new("neuralcb-data"));
    }
}
