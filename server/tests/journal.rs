//! The decision log through its public interface: what was answered is there, whatever the disk does.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use neuralcb_server::journal::{
    Disk, DiskFile, Durability, End, Folder, Frames, Journal, JournalError, Options, RealDisk, Unlogged, segments,
};
use tokio::runtime::Runtime;

mod common;
use common::Broken;

fn options(durability: Durability) -> Options {
    let (segment_bytes, segment_age) = (1 << 30, Duration::from_secs(3600));
    Options { durability, segment_bytes, segment_age, server: "test".to_owned() }
}

fn start(path: &Path, options: Options) -> Journal {
    Journal::start(Folder::open(path).unwrap().0, Box::new(RealDisk), options).unwrap()
}

fn text(i: usize) -> Vec<Vec<u8>> {
    vec![format!("{{\"reward\":{{\"event\":\"{i}\",\"at\":1,\"value\":1}}}}").into_bytes()]
}

/// All records but the first of each segment, and how the segments end.
fn read(path: &Path) -> (Vec<String>, Vec<End>) {
    let (mut texts, mut ends) = (Vec::new(), Vec::new());
    for (_, segment) in segments(path).unwrap() {
        let mut frames = Frames::new(BufReader::new(File::open(segment).unwrap())).unwrap().unwrap();
        while let Some(text) = frames.next_text().unwrap() {
            let text = String::from_utf8(text.to_vec()).unwrap();
            texts.extend((!text.starts_with("{\"opened\"")).then_some(text));
        }
        ends.push(frames.end().unwrap().clone());
    }
    (texts, ends)
}

#[test]
fn what_is_answered_is_there_and_segments_are_closed_by_size() {
    for durability in [Durability::Sync, Durability::Batch] {
        let folder = tempfile::tempdir().unwrap();
        let journal = start(folder.path(), Options { segment_bytes: 2000, ..options(durability) });
        Runtime::new().unwrap().block_on(async {
            let appends: Vec<_> = (0..200).map(text).collect();
            for some in appends.chunks(20) {
                let waiting: Vec<_> = some.iter().map(|texts| journal.append(texts)).collect();
                for done in waiting {
                    done.await.unwrap();
                }
            }
        });
        // Before it is stopped, all is there to be read.
        assert_eq!(read(folder.path()).0.len(), 200);
        journal.stop();
        let (texts, ends) = read(folder.path());
        assert_eq!(texts, (0..200).flat_map(text).map(|t| String::from_utf8(t).unwrap()).collect::<Vec<_>>());
        assert!(ends.len() > 3 && ends.iter().all(|end| *end == End::Closed), "{ends:?}");
    }
}

#[test]
fn a_segment_is_closed_by_its_age() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Options { segment_age: Duration::from_millis(50), ..options(Durability::Sync) });
    Runtime::new().unwrap().block_on(journal.append(&text(1))).unwrap();
    let started = Instant::now();
    while read(folder.path()).1.first() != Some(&End::Closed) {
        assert!(started.elapsed() < Duration::from_secs(20), "the segment stays open");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_server_at_a_time_writes_to_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), options(Durability::Sync));
    assert!(matches!(Folder::open(folder.path()), Err(JournalError::InUse { .. })));
    drop(journal);
    assert!(Folder::open(folder.path()).is_ok());
    assert!(segments(folder.path()).unwrap().is_empty(), "a start without a decision leaves no segment");
}

#[test]
fn a_torn_tail_is_cut_and_the_segment_closed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), options(Durability::Sync));
    Runtime::new().unwrap().block_on(journal.append(&text(1))).unwrap();
    let path = segments(folder.path()).unwrap()[0].1.clone();
    let alive = fs::read(&path).unwrap(); // as a killed server leaves it
    drop(journal);
    fs::write(&path, &alive).unwrap();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(&[40, 0, 0, 0, 1, 2, 3, 4, b'{']).unwrap();
    assert_eq!(read(folder.path()).1, [End::Torn(9)]);

    let (opened, recovered) = Folder::open(folder.path()).unwrap();
    assert_eq!((recovered.segments, recovered.torn), (1, 9));
    assert_eq!(fs::read(path.with_extension("torn")).unwrap().len(), 9);
    drop(opened);
    let (texts, ends) = read(folder.path());
    assert_eq!((texts.len(), ends), (1, vec![End::Closed]));
    assert_eq!(Folder::open(folder.path()).unwrap().1.segments, 0, "mended once");
}

#[test]
fn a_segment_cut_within_its_first_bytes_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("segment-00000001.ncb"), b"NCB").unwrap();
    assert_eq!(Folder::open(folder.path()).unwrap().1.torn, 3);
    assert!(segments(folder.path()).unwrap().is_empty());
    fs::write(folder.path().join("segment-00000001.ncb"), b"PAR1 and more").unwrap();
    assert!(matches!(Folder::open(folder.path()), Err(JournalError::NoSegment { .. })));
}

fn broken() -> (tempfile::TempDir, Broken, Journal) {
    let (folder, disk) = (tempfile::tempdir().unwrap(), Broken::new());
    let journal =
        Journal::start(Folder::open(folder.path()).unwrap().0, Box::new(disk.clone()), options(Durability::Sync));
    (folder, disk, journal.unwrap())
}

/// Appends until it is taken again: all is refused for a second after a failure.
async fn append_again(journal: &Journal, i: usize) {
    let started = Instant::now();
    while journal.append(&text(i)).await.is_err() {
        assert!(started.elapsed() < Duration::from_secs(20), "the journal does not recover");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_failed_flush_is_refused_and_leaves_no_trace_and_the_next_segment_goes_on() {
    let (folder, disk, journal) = broken();
    Runtime::new().unwrap().block_on(async {
        journal.append(&text(1)).await.unwrap();
        disk.flush_fails.store(true, Ordering::SeqCst);
        let refused = journal.append(&text(2)).await.unwrap_err();
        assert_eq!(refused, Unlogged::Disk { reason: "input/output error".to_owned() });
        assert!(refused.to_string().contains("tries again every second"));
        assert!(journal.failing().is_some());
        assert!(journal.append(&text(3)).await.is_err());
        disk.flush_fails.store(false, Ordering::SeqCst);
        append_again(&journal, 4).await;
        assert!(journal.failing().is_none());
    });
    journal.stop();
    let (texts, ends) = read(folder.path());
    let expected: Vec<String> = [1, 4].into_iter().flat_map(text).map(|t| String::from_utf8(t).unwrap()).collect();
    assert_eq!(texts, expected);
    assert_eq!(ends, [End::Open, End::Closed]);
}

#[test]
fn a_full_disk_refuses_and_what_was_written_in_part_is_cut() {
    let (folder, disk, journal) = broken();
    Runtime::new().unwrap().block_on(async {
        journal.append(&text(1)).await.unwrap();
        disk.room.store(5, Ordering::SeqCst);
        let refused = journal.append(&text(2)).await.unwrap_err().to_string();
        assert!(refused.contains("cannot be written") && refused.contains("space"), "{refused}");
        assert_eq!(read(folder.path()).1, [End::Open], "the torn record is cut");
        disk.room.store(1 << 30, Ordering::SeqCst);
        append_again(&journal, 3).await;
    });
    journal.stop();
    let (texts, ends) = read(folder.path());
    let expected: Vec<String> = [1, 3].into_iter().flat_map(text).map(|t| String::from_utf8(t).unwrap()).collect();
    assert_eq!((texts, ends), (expected, vec![End::Closed]));
}

/// A disk whose N-th step fails, and perhaps all after it.
#[derive(Clone)]
struct Counted {
    steps: Arc<AtomicU64>,
    fails: u64,
    for_good: bool,
}

struct CountedFile {
    disk: Counted,
    file: Box<dyn DiskFile>,
}

impl Counted {
    fn step(&self) -> io::Result<()> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        match step == self.fails || (self.for_good && step > self.fails) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl Disk for Counted {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.step()?;
        Ok(Box::new(CountedFile { disk: self.clone(), file: RealDisk.create(path)? }))
    }
}

impl DiskFile for CountedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Half of it is there before the disk is full.
        self.disk.step().inspect_err(|_| drop(self.file.append(&bytes[..bytes.len() / 2])))?;
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.step()?;
        self.file.sync()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.disk.step()?;
        self.file.cut(length)
    }
}

/// Twenty records in segments of a few, on a disk that fails; whether it came to that step.
fn with_fault(fails: u64, for_good: bool, durability: Durability) -> bool {
    let (folder, steps) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(0)));
    let disk = Counted { steps: Arc::clone(&steps), fails, for_good };
    let opened = Folder::open(folder.path()).unwrap().0;
    let mut answered = Vec::new();
    if let Ok(journal) = Journal::start(opened, Box::new(disk), Options { segment_bytes: 400, ..options(durability) }) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for i in 0..20 {
            if runtime.block_on(journal.append(&text(i))).is_ok() {
                answered.extend(text(i).into_iter().map(|t| String::from_utf8(t).unwrap()));
            }
        }
        journal.stop();
    }
    // The next server mends what can be mended, and nothing that was answered is lost, in order, or there twice.
    drop(Folder::open(folder.path()).unwrap());
    let (texts, ends) = read(folder.path());
    assert!(ends.iter().all(|end| *end == End::Closed), "step {fails}: {ends:?}");
    let kept: Vec<&String> = texts.iter().filter(|text| answered.contains(text)).collect();
    assert_eq!(kept, answered.iter().collect::<Vec<_>>(), "step {fails}, {durability:?}");
    let mut once = texts.clone();
    once.dedup();
    assert_eq!(once, texts, "step {fails}");
    steps.load(Ordering::SeqCst) >= fails
}

#[test]
fn whichever_step_of_the_disk_fails_nothing_that_was_answered_is_lost() {
    for durability in [Durability::Sync, Durability::Batch] {
        for for_good in [false, true] {
            let steps = (1..).take_while(|&step| with_fault(step, for_good, durability)).count();
            println!("{durability:?}, for good {for_good}: each of {steps} steps was made to fail");
            assert!(steps > 20, "{steps} steps");
        }
    }
}
