//! Writing that is never half done.
//!
//! A file is written under a temporary name in its own folder, flushed to the disk and renamed over its target. A
//! process that is killed leaves the old file or the new one. [`OutDir`] asks the other question early: can the
//! results of an hour of work be written at all?

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use crate::error::FileError;
use crate::faults;

/// Writes `bytes` to `path`, replacing what was there in one step. The folder must exist.
///
/// A symbolic link is followed. A device or pipe (`/dev/stdout`) cannot be replaced by a rename and is written
/// directly.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_with(path, |to| to.write_all(bytes))
}

/// As [`write`](fn@write), for content that is made piece by piece.
pub fn write_with(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), FileError> {
    stream(path, |to| content(to).map_err(|source| FileError::Write { path: path.to_path_buf(), source }))
}

/// As [`write_with`], for work that can fail in its own ways and returns something. That the file can be written is
/// proved before the work starts.
pub fn stream<T, E: From<FileError>>(
    path: &Path,
    work: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, E>,
) -> Result<T, E> {
    let failed = |source| E::from(FileError::Write { path: path.to_path_buf(), source });
    let mut target = Target::open(path).map_err(failed)?;
    let done = work(target.writer())?;
    target.close().map_err(failed)?;
    Ok(done)
}

/// Proves that a file can be written before the work starts whose result it will hold; what is there stays as it is.
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    Target::open(path).map(drop).map_err(|source| FileError::Write { path: path.to_path_buf(), source })
}

/// Refuses to write over a file that is read: what would be lost by it, under whatever name.
pub fn check_distinct<P: AsRef<Path>>(path: &Path, inputs: impl IntoIterator<Item = P>) -> Result<(), FileError> {
    for input in inputs {
        if let (Some(to), Some(from)) = (identity(path), identity(input.as_ref()))
            && to == from
        {
            return Err(FileError::SameFile { path: path.to_path_buf(), input: input.as_ref().to_path_buf() });
        }
    }
    Ok(())
}

/// What tells a file from every other: device and number on Unix, elsewhere the path without links.
fn identity(path: &Path) -> Option<(u64, u64, PathBuf)> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((found.dev(), found.ino(), PathBuf::new()))
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        Some((0, 0, fs::canonicalize(path).ok()?))
    }
}

/// A file that is being written.
enum Target {
    /// A device or a pipe.
    Direct(BufWriter<Disk>),
    /// A temporary file and the name it will have.
    Temporary(BufWriter<Disk>, Temporary, PathBuf),
}

impl Target {
    fn writer(&mut self) -> &mut (dyn Write + Send) {
        match self {
            Target::Direct(file) | Target::Temporary(file, ..) => file,
        }
    }

    fn open(path: &Path) -> io::Result<Target> {
        // Asked of the path as it is: where `/dev/stdout` leads when it is a pipe has no name in any folder.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let file = fs::OpenOptions::new().write(true).open(path)?;
            return Ok(Target::Direct(BufWriter::new(Disk(file))));
        }
        let target = followed(path);
        let (file, temporary) = temporary(folder_of(&target))?;
        Ok(Target::Temporary(BufWriter::new(Disk(file)), temporary, target))
    }

    fn close(self) -> io::Result<()> {
        match self {
            Target::Direct(mut file) => file.flush(),
            Target::Temporary(file, temporary, target) => {
                let Disk(file) = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                faults::step()?;
                file.sync_all()?;
                let folder = folder_of(&target);
                let named = match temporary {
                    Temporary::Named(path) => path,
                    Temporary::Unnamed => name(&file, folder)?,
                };
                faults::step()?;
                named.persist(&target)?;
                flush_folder(folder)
            }
        }
    }
}

/// Removes a file whose content is now elsewhere, and makes that last.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Where links lead, even if there is nothing yet.
fn followed(path: &Path) -> PathBuf {
    const MOST: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MOST {
        match fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            Err(_) => break,
        }
    }
    path
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A renamed file lasts when its folder has been flushed.
fn flush_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        faults::step()?;
        match fs::File::open(folder).and_then(|folder| folder.sync_all()) {
            // Some file systems cannot flush a folder, and some folders may be written and not read.
            Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied) => Ok(()),
            done => done,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

/// A file without a name, for what does not fit into memory; nothing is left of it, however the process ends.
pub fn scratch(folder: &Path) -> io::Result<Disk> {
    faults::step()?;
    Ok(Disk(tempfile::tempfile_in(folder)?))
}

/// A file through which all is written, so that a test can let any step fail.
#[derive(Debug)]
pub struct Disk(fs::File);

impl Disk {
    /// The file itself, to be read.
    pub fn into_file(self) -> fs::File {
        self.0
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        faults::step()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A file that is not yet in its place.
enum Temporary {
    /// Nothing is left of it, however the process ends.
    Unnamed,
    Named(tempfile::TempPath),
}

/// A temporary file that ends up with the permissions of any other new file; the default would be private to its owner.
/// It has no name where the system allows that.
fn temporary(folder: &Path) -> io::Result<(fs::File, Temporary)> {
    faults::step()?;
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
        let opened = fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(folder);
        if let Ok(file) = opened
            && linkable(&file).exists()
        {
            return Ok((file, Temporary::Unnamed));
        }
    }
    let mut builder = names();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let (file, path) = builder.tempfile_in(folder)?.into_parts();
    Ok((file, Temporary::Named(path)))
}

fn names() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".neuralcb-").suffix(".tmp");
    builder
}

/// Where the system lists the open file.
#[cfg(target_os = "linux")]
fn linkable(file: &fs::File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a file without a name one for the moment before it is renamed: a link cannot replace what is there.
fn name(file: &fs::File, folder: &Path) -> io::Result<tempfile::TempPath> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, CWD, linkat};
        let from = linkable(file);
        let linked = names().make_in(folder, |to| Ok(linkat(CWD, &from, CWD, to, AtFlags::SYMLINK_FOLLOW)?))?;
        Ok(linked.into_temp_path())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, folder);
        unreachable!("files without a name are made on Linux only")
    }
}

/// A folder for results, proved writable before the work starts.
///
/// Folders that [`OutDir::prepare`] made and that are still empty when it is dropped are removed again, so that a run
/// which fails early leaves no trace.
#[derive(Debug)]
pub struct OutDir {
    path: PathBuf,
    _made: MadeFolders,
}

impl OutDir {
    /// Makes the folder and its parents where they are missing, and proves that a file can be written in it.
    pub fn prepare(path: &Path) -> Result<OutDir, FileError> {
        if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
            return Err(FileError::NotAFolder { path: path.to_path_buf() });
        }
        let made = MadeFolders::make(path)?;
        temporary(path).map_err(|source| FileError::Unwritable { path: path.to_path_buf(), source })?;
        Ok(OutDir { path: path.to_path_buf(), _made: made })
    }

    /// Writes the file `relative` (such as `figures/fig1.svg`) in one step, making sub-folders where needed.
    pub fn write(&self, relative: &str, bytes: &[u8]) -> Result<(), FileError> {
        let inside = Path::new(relative).components().all(|part| matches!(part, Component::Normal(_)));
        if relative.is_empty() || !inside {
            return Err(FileError::Outside { folder: self.path.clone(), name: relative.to_string() });
        }
        let target = self.path.join(relative);
        // Held until the end: if the write fails, the sub-folders made for it are empty and go away.
        let _made = MadeFolders::make(target.parent().unwrap_or(&self.path))?;
        write(&target, bytes)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Folders made by us, outermost first; on drop those that are empty are removed.
#[derive(Debug, Default)]
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(path: &Path) -> Result<MadeFolders, FileError> {
        let missing: Vec<&Path> =
            path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
        let mut made = MadeFolders::default();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => made.0.push(folder.to_path_buf()),
                // Another process was faster, or the path has a `..` in it.
                Err(_) if folder.is_dir() => {}
                Err(source) => return Err(FileError::CreateFolder { path: path.to_path_buf(), source }),
            }
        }
        Ok(made)
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // Removes only empty folders; a folder that holds results stays, and that is no error.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FileError, OutDir, check_distinct, check_writable, fs, stream, write};
    use std::path::Path;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn whether_a_file_can_be_written_is_known_before_the_work_and_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        check_writable(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write(&path, b"old").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let nowhere = check_writable(&folder.path().join("none/file")).unwrap_err().to_string();
        assert!(nowhere.contains("none"), "{nowhere}");
        assert!(check_writable(folder.path()).is_err(), "a folder is no file");
    }

    #[test]
    fn a_written_file_replaces_the_old_one_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        write(&path, b"old and longer").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["results.csv"]);
    }

    #[test]
    fn a_failed_write_keeps_the_old_state_and_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("taken")).unwrap();
        let error = write(&folder.path().join("taken"), b"x").unwrap_err();
        assert!(error.to_string().starts_with("cannot write file `"), "{error}");
        assert!(error.to_string().contains("taken"), "{error}");
        let error = write(&folder.path().join("absent/file"), b"x").unwrap_err();
        assert!(matches!(error, FileError::Write { .. }));
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_written_file_has_the_permissions_of_any_new_file_and_links_are_followed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (plain, ours, link) = (folder.path().join("plain"), folder.path().join("ours"), folder.path().join("link"));
        fs::write(&plain, b"x").unwrap();
        write(&ours, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        write(&link, b"through").unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"through");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_that_is_not_there_yet_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("store")).unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        std::os::unix::fs::symlink("second", &first).unwrap();
        std::os::unix::fs::symlink("store/policy", &second).unwrap();
        write(&first, b"through").unwrap();
        assert!(fs::symlink_metadata(&first).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("store/policy")).unwrap(), b"through");
    }

    #[test]
    fn a_file_that_is_read_is_not_written_over_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let (log, other) = (folder.path().join("log.csv"), folder.path().join("other.csv"));
        fs::write(&log, b"x").unwrap();
        fs::write(&other, b"x").unwrap();
        let again = folder.path().join("sub/../log.csv");
        fs::create_dir(folder.path().join("sub")).unwrap();
        let message = check_distinct(&again, [&other, &log]).unwrap_err().to_string();
        assert!(message.contains("sub/../log.csv") && message.contains("same file"), "{message}");
        check_distinct(&other, [&log]).unwrap();
        check_distinct(&folder.path().join("new"), [&log]).unwrap();
        #[cfg(unix)]
        {
            fs::hard_link(&log, folder.path().join("twin")).unwrap();
            assert!(check_distinct(&folder.path().join("twin"), [&log]).is_err());
            check_distinct(Path::new("/dev/null"), [Path::new("/dev/null")]).unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_has_no_name_until_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let seen = stream::<_, FileError>(&folder.path().join("file"), |to| {
            to.write_all(&[7; 100_000]).unwrap();
            Ok(names(folder.path()))
        });
        assert!(seen.unwrap().is_empty());
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn results_and_their_folders_stay_after_the_drop() {
        let root = tempfile::tempdir().unwrap();
        let out = OutDir::prepare(&root.path().join("a/b")).unwrap();
        out.write("figures/fig1.svg", b"<svg/>").unwrap();
        assert_eq!(out.path(), root.path().join("a/b"));
        drop(out);
        assert_eq!(fs::read(root.path().join("a/b/figures/fig1.svg")).unwrap(), b"<svg/>");
        assert_eq!(names(&root.path().join("a/b")), ["figures"]);
    }

    #[test]
    fn an_unused_folder_goes_away_only_if_it_was_made_here() {
        let root = tempfile::tempdir().unwrap();
        drop(OutDir::prepare(&root.path().join("a/b")).unwrap());
        assert!(names(root.path()).is_empty());
        fs::create_dir(root.path().join("mine")).unwrap();
        drop(OutDir::prepare(&root.path().join("mine")).unwrap());
        assert_eq!(names(root.path()), ["mine"]);
    }

    #[test]
    fn a_file_in_the_way_is_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file.txt");
        fs::write(&file, b"x").unwrap();
        assert!(matches!(OutDir::prepare(&file).unwrap_err(), FileError::NotAFolder { .. }));
        let error = OutDir::prepare(&file.join("sub/deeper")).unwrap_err();
        assert!(matches!(error, FileError::CreateFolder { .. }));
        assert!(error.to_string().contains("file.txt/sub/deeper"), "{error}");
        assert_eq!(names(root.path()), ["file.txt"]);
    }

    #[test]
    fn a_preparation_that_fails_half_way_removes_what_it_made() {
        let root = tempfile::tempdir().unwrap();
        // The first two folders can be made; the name of the third is longer than any file system allows.
        let path = root.path().join("a").join("b").join("c".repeat(5000));
        assert!(OutDir::prepare(&path).is_err());
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn a_failed_write_removes_the_sub_folders_made_for_it() {
        let root = tempfile::tempdir().unwrap();
        let out = OutDir::prepare(&root.path().join("out")).unwrap();
        assert!(out.write(&format!("figures/{}", "x".repeat(5000)), b"x").is_err());
        drop(out);
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn a_name_that_leaves_the_folder_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let out = OutDir::prepare(root.path()).unwrap();
        for name in ["../x", "/x", "a/../../x", ""] {
            assert!(matches!(out.write(name, b"x"), Err(FileError::Outside { .. })), "{name}");
        }
    }
}
