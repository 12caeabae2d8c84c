//! Where the published files are, if they are here.

use std::path::{Path, PathBuf};

/// `$NEURALCB_SHARED/data`, else `../../shared/data` seen from this crate's folder; `None`, and a line that says so,
/// where that folder is absent.
pub fn data_folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("NEURALCB_SHARED").map_or(here.join("../../shared"), PathBuf::from);
    let folder = shared.join("data");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: the data sets are not in `{}`", folder.display());
    None
}
