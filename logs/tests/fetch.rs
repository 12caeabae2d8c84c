//! Fetching from a folder with local copies, by the public interface. Downloads are tested beside their code.

mod common;

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use common::data_folder;
use neuralcb_logs::datasets::{Arrival, DataError, Preparation, Presence, RealData, Source, fetch};

fn copy(data: RealData, cache: &Path, folder: &Path) -> Result<Vec<Arrival>, DataError> {
    fetch(data, cache, &Source::Folder(folder.to_path_buf()), &|_, _| ())
}

/// A folder with one file of the given content in the place of mushroom's.
fn mushroom_folder(content: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("mushroom")).unwrap();
    fs::write(folder.path().join(RealData::Mushroom.files()[0].path), content).unwrap();
    folder
}

#[test]
fn local_copies_are_installed_once_and_can_be_loaded() {
    let Some(folder) = data_folder() else { return };
    let root = tempfile::tempdir().unwrap();
    let cache = root.path().join("made/on/the/way");
    for &data in RealData::ALL {
        assert_eq!(data.presence(&cache), Presence::No);
        let told = RefCell::new(Vec::new());
        let from = Source::Folder(folder.clone());
        let arrivals = fetch(data, &cache, &from, &|done, total| told.borrow_mut().push((done, total))).unwrap();
        assert_eq!(arrivals, vec![Arrival::Installed; data.files().len()]);
        let total: u64 = data.files().iter().map(|file| file.bytes).sum();
        let told = told.into_inner();
        assert!(told.is_sorted() && told.last() == Some(&(total, total)), "{told:?}");

        assert_eq!(data.presence(&cache), Presence::Yes);
        assert_eq!(copy(data, &cache, Path::new("nowhere")).unwrap(), vec![Arrival::AlreadyHere; arrivals.len()]);
        for file in data.files() {
            assert_eq!(fs::metadata(cache.join(file.path)).unwrap().len(), file.bytes);
        }
    }
    assert!(RealData::Mushroom.load(&Preparation::default(), &cache).is_ok());
    let names: Vec<_> = fs::read_dir(cache.join("mnist")).unwrap().collect();
    assert_eq!(names.len(), 4);
}

#[test]
fn what_is_whole_needs_no_write_access() {
    let Some(folder) = data_folder() else { return };
    // The cache is the folder itself, which may be read-only.
    assert_eq!(copy(RealData::Adult, &folder, Path::new("nowhere")).unwrap(), [Arrival::AlreadyHere; 2]);
}

#[test]
fn a_damaged_file_is_noticed_and_replaced() {
    let Some(folder) = data_folder() else { return };
    let cache = mushroom_folder(b"e,x\n");
    assert_eq!(RealData::Mushroom.presence(cache.path()), Presence::Damaged);
    assert_eq!(copy(RealData::Mushroom, cache.path(), &folder).unwrap(), [Arrival::Installed]);
    assert_eq!(RealData::Mushroom.presence(cache.path()), Presence::Yes);
}

#[test]
fn a_data_set_with_some_of_its_files_is_partly_here() {
    let Some(folder) = data_folder() else { return };
    let cache = tempfile::tempdir().unwrap();
    fs::create_dir(cache.path().join("adult")).unwrap();
    let [first, second] = RealData::Adult.files() else { panic!("adult has two files") };
    fs::copy(folder.join(first.path), cache.path().join(first.path)).unwrap();
    assert_eq!(RealData::Adult.presence(cache.path()), Presence::Partly);
    let error = RealData::Adult.load(&Preparation::default(), cache.path()).unwrap_err();
    assert!(matches!(error, DataError::Missing { file, .. } if file == second.path), "{error}");
    // The released code reads the first file only.
    assert!(RealData::Adult.load(&Preparation::released_code(RealData::Adult), cache.path()).is_ok());
    let arrivals = copy(RealData::Adult, cache.path(), &folder).unwrap();
    assert_eq!(arrivals, [Arrival::AlreadyHere, Arrival::Installed]);
}

#[test]
fn wrong_local_copies_are_refused_with_both_hashes_and_nothing_is_installed() {
    let (cache, folder) = (tempfile::tempdir().unwrap(), mushroom_folder(b"abc"));
    let error = copy(RealData::Mushroom, cache.path(), folder.path()).unwrap_err().to_string();
    for part in [
        "mushroom/agaricus-lepiota.data",
        "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
        // Of "abc": the first test vector of FIPS 180-2.
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);

    let folder = mushroom_folder(&vec![b'x'; 3_000_000]);
    let error = copy(RealData::Mushroom, cache.path(), folder.path()).unwrap_err();
    assert!(matches!(error, DataError::TooLong { .. }), "{error}");
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_without_the_file_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let (cache, folder) = (root.path().join("cache"), root.path().join("absent"));
    let error = copy(RealData::Statlog, &cache, &folder).unwrap_err().to_string();
    let want = format!("file `shuttle/shuttle.trn` of data set `statlog` is not in `{}`", folder.display());
    assert_eq!(error, want);
    assert!(!cache.exists());
}

#[test]
fn a_cache_that_cannot_be_made_is_refused_by_name() {
    let Some(folder) = data_folder() else { return };
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, b"x").unwrap();
    let error = copy(RealData::Mushroom, &file, &folder).unwrap_err();
    assert!(matches!(error, DataError::File(_)) && error.to_string().contains("file/mushroom"), "{error}");
}
