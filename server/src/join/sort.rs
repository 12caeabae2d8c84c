//! Sorting more than fits into memory: sorted runs on the disk, then merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use neuralcb_logs::atomic;

/// Runs that are merged at once: as many files are open.
const FAN_IN: usize = 64;
/// What an entry costs beside its bytes.
const OVERHEAD: usize = 64;

/// A key and what belongs to it. Entries are ordered by both.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// Takes entries in any order and gives them back sorted.
pub(super) struct Sorter {
    folder: PathBuf,
    memory: usize,
    used: usize,
    entries: Vec<Entry>,
    runs: Vec<File>,
}

impl Sorter {
    /// Sorts with that much memory, and with files without names in that folder.
    pub fn new(folder: &Path, memory: usize) -> Sorter {
        Sorter { folder: folder.to_path_buf(), memory, used: 0, entries: Vec::new(), runs: Vec::new() }
    }

    /// Adds an entry.
    pub fn push(&mut self, key: Vec<u8>, value: Vec<u8>) -> io::Result<()> {
        self.used += key.len() + value.len() + OVERHEAD;
        self.entries.push((key, value));
        if self.used > self.memory { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.entries.sort_unstable();
        let run = written(&self.folder, std::mem::take(&mut self.entries).into_iter().map(Ok))?;
        self.runs.push(run);
        self.used = 0;
        Ok(())
    }

    /// All entries in order.
    pub fn finish(mut self) -> io::Result<Merged> {
        while self.runs.len() >= FAN_IN {
            let rest = self.runs.split_off(FAN_IN);
            let some = std::mem::replace(&mut self.runs, rest);
            let run = written(&self.folder, Merged::new(some, Vec::new())?)?;
            self.runs.push(run);
        }
        self.entries.sort_unstable();
        Merged::new(self.runs, self.entries)
    }
}

fn written(folder: &Path, entries: impl Iterator<Item = io::Result<Entry>>) -> io::Result<File> {
    let mut to = BufWriter::with_capacity(1 << 18, atomic::scratch(folder)?);
    for entry in entries {
        let (key, value) = entry?;
        for part in [&key, &value] {
            to.write_all(&(part.len() as u64).to_le_bytes())?;
            to.write_all(part)?;
        }
    }
    let mut file = to.into_inner().map_err(io::IntoInnerError::into_error)?.into_file();
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Where sorted entries come from.
enum Source {
    Run(BufReader<File>),
    Memory(std::vec::IntoIter<Entry>),
}

impl Source {
    fn next(&mut self) -> io::Result<Option<Entry>> {
        let from = match self {
            Source::Memory(entries) => return Ok(entries.next()),
            Source::Run(from) => from,
        };
        let mut length = [0; 8];
        let mut part = |first: bool| -> io::Result<Option<Vec<u8>>> {
            match from.read_exact(&mut length) {
                Err(e) if first && e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                done => done?,
            }
            let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
            from.read_exact(&mut bytes)?;
            Ok(Some(bytes))
        };
        let Some(key) = part(true)? else { return Ok(None) };
        Ok(part(false)?.map(|value| (key, value)))
    }
}

/// Entries in order.
pub(super) struct Merged {
    sources: Vec<Source>,
    next: BinaryHeap<Reverse<(Entry, usize)>>,
}

impl Merged {
    fn new(runs: Vec<File>, entries: Vec<Entry>) -> io::Result<Merged> {
        let runs = runs.into_iter().map(|run| Source::Run(BufReader::with_capacity(1 << 16, run)));
        let sources = runs.chain([Source::Memory(entries.into_iter())]).collect();
        let mut merged = Merged { sources, next: BinaryHeap::new() };
        (0..merged.sources.len()).try_for_each(|i| merged.pull(i))?;
        Ok(merged)
    }

    fn pull(&mut self, i: usize) -> io::Result<()> {
        self.next.extend(self.sources[i].next()?.map(|entry| Reverse((entry, i))));
        Ok(())
    }
}

impl Iterator for Merged {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<io::Result<Entry>> {
        let Reverse((entry, i)) = self.next.pop()?;
        Some(self.pull(i).map(|()| entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_runs_gives_the_order_of_sorting_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for memory in [0, 300, 1 << 20] {
            let mut sorter = Sorter::new(folder.path(), memory);
            let entry = |i: u64| ((i * 7919 % 1009).to_be_bytes().to_vec(), vec![i as u8; (i % 5) as usize]);
            let mut expected: Vec<Entry> = (0..500).map(entry).collect();
            (0..500).map(entry).try_for_each(|(key, value)| sorter.push(key, value)).unwrap();
            expected.sort();
            assert_eq!(sorter.finish().unwrap().collect::<io::Result<Vec<_>>>().unwrap(), expected, "{memory} bytes");
        }
    }
}
