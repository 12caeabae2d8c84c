//! The prepared rounds of a log, read as often as it takes: in memory where they are few, otherwise from a file.
//!
//! The file holds the blocks one after another, each as columns: contexts (f32), actions, rewards, propensities and,
//! where they vary, the eligible actions. Where a block begins is kept beside it ([`Index`]). What is read again goes
//! through the same door as any log.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use neuralcb::{Contexts, Eligible, Layout, LoggedData, Seed};
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::FileError;
use crate::log::{Preparation, ReadLog};
use crate::policy::PolicyError;

/// Some of the parts of a log: bit p is part p.
pub(super) type Parts = u8;

/// Rounds that take less than this, in bytes, are kept in memory.
const SMALL: usize = 64 << 20;

/// Where a block lies in the file and how much it holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Place {
    at: u64,
    rounds: usize,
    rows: usize,
    /// Eligible actions; none where all are.
    pairs: Option<usize>,
}

/// All blocks of a file.
pub(super) type Index = Vec<Place>;

/// Where the rounds are.
enum Held {
    Memory(Vec<LoggedData>),
    File { path: PathBuf, index: Index, layout: Layout },
}

/// The prepared rounds of a log, each with the part it is in.
pub(super) struct Rounds {
    held: Held,
    parts: Vec<u8>,
}

type Blocks<'a> = Box<dyn Iterator<Item = Result<Cow<'a, LoggedData>, PolicyError>> + 'a>;

impl Rounds {
    /// Reads all rounds into memory.
    pub fn in_memory(blocks: Vec<LoggedData>) -> Rounds {
        Rounds { held: Held::Memory(blocks), parts: Vec::new() }
    }

    /// Those that a file holds.
    pub fn in_file(path: &Path, index: Index, layout: Layout) -> Rounds {
        Rounds { held: Held::File { path: path.to_path_buf(), index, layout }, parts: Vec::new() }
    }

    /// Says which part each round is in.
    pub fn divide(&mut self, parts: Vec<u8>) {
        self.parts = parts;
    }

    /// How many rounds those parts have.
    pub fn count(&self, of: Parts) -> usize {
        self.parts.iter().filter(|&&part| of >> part & 1 == 1).count()
    }

    /// The rounds of some parts in their order, block by block.
    pub fn of(&self, of: Parts) -> Blocks<'_> {
        self.kept(move |t| of >> self.parts[t] & 1 == 1)
    }

    /// The rounds that are to be kept, block by block. Blocks of which none is are not read.
    fn kept<'a>(&'a self, keep: impl Fn(usize) -> bool + 'a) -> Blocks<'a> {
        let cut = move |first: usize, n: usize| -> Vec<usize> { (0..n).filter(|i| keep(first + i)).collect() };
        let select = |block: Cow<'a, LoggedData>, kept: Vec<usize>| {
            if kept.len() == block.n_rounds() { block } else { Cow::Owned(block.select(&kept)) }
        };
        let mut first = 0;
        match &self.held {
            Held::Memory(blocks) => Box::new(blocks.iter().filter_map(move |block| {
                let kept = cut(first, block.n_rounds());
                first += block.n_rounds();
                (!kept.is_empty()).then(|| Ok(select(Cow::Borrowed(block), kept)))
            })),
            Held::File { path, index, layout } => {
                let mut file = None;
                Box::new(index.iter().filter_map(move |place| {
                    let kept = cut(first, place.rounds);
                    first += place.rounds;
                    (!kept.is_empty()).then(|| {
                        if file.is_none() {
                            file = Some(File::open(path).map_err(|e| unread(path, e))?);
                        }
                        let block = read(file.as_mut().expect("just opened"), place, *layout, path)?;
                        Ok(select(Cow::Owned(block), kept))
                    })
                }))
            }
        }
    }

    /// At most so many rounds of some parts, drawn at random, in their order.
    pub fn sample(&self, of: Parts, most: usize, seed: Seed) -> Result<LoggedData, PolicyError> {
        let n = self.count(of);
        let taken: Vec<Cow<'_, LoggedData>> = if n <= most {
            self.of(of).collect::<Result<_, _>>()?
        } else {
            let drawn = rand::seq::index::sample(&mut seed.stream("sample"), n, most);
            let mut takes = vec![false; n];
            drawn.into_iter().for_each(|i| takes[i] = true);
            let mut takes = takes.into_iter();
            let mut keep = vec![false; self.parts.len()];
            for (keep, part) in keep.iter_mut().zip(&self.parts) {
                *keep = of >> part & 1 == 1 && takes.next() == Some(true);
            }
            self.kept(move |t| keep[t]).collect::<Result<_, _>>()?
        };
        Ok(LoggedData::concat(taken.into_iter().map(Cow::into_owned).collect())?)
    }

    /// What a round takes in memory, in bytes, on the average.
    pub fn bytes_per_round(&self) -> usize {
        let (bytes, n) = match &self.held {
            Held::Memory(blocks) => (blocks.iter().map(bytes).sum::<usize>(), self.parts.len()),
            Held::File { index, layout, .. } => {
                let of = |p: &Place| p.rows * layout.dim * 4 + p.pairs.unwrap_or(0) * 12 + p.rounds * 20;
                (index.iter().map(of).sum(), self.parts.len())
            }
        };
        bytes / n.max(1) + 1
    }
}

/// What rounds take in memory.
fn bytes(rounds: &LoggedData) -> usize {
    let contexts = rounds.contexts();
    let pairs = if matches!(contexts.eligible(), Eligible::All) { 0 } else { contexts.n_pairs() };
    contexts.rows(0..contexts.n_rounds()).len() * 4 + pairs * 12 + rounds.n_rounds() * 20
}

/// What became of a log that was read.
pub(super) enum Kept {
    Memory(Vec<LoggedData>),
    File(Index),
}

/// Reads a log: into memory while it is small, otherwise into the file.
pub(super) fn read_log(
    log: &dyn ReadLog,
    preparation: &Preparation,
    path: &Path,
    always: bool,
    tell: &mut dyn FnMut(u64),
) -> Result<Kept, PolicyError> {
    let (mut held, mut taken, mut done) = (Vec::new(), 0, 0);
    let mut blocks = log.read().map(|block| -> Result<LoggedData, PolicyError> {
        log.go_on()?;
        let block = preparation.logged(&block?)?;
        done += block.n_rounds() as u64;
        tell(done);
        Ok(block)
    });
    if !always {
        for block in blocks.by_ref() {
            let block = block?;
            taken += bytes(&block);
            held.push(block);
            if taken > SMALL {
                break;
            }
        }
        if taken <= SMALL {
            return Ok(Kept::Memory(held));
        }
    }
    if let Some(folder) = path.parent() {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|source| FileError::CreateFolder { path: folder.to_path_buf(), source })?;
    }
    let failed = |source| PolicyError::from(FileError::Write { path: path.to_path_buf(), source });
    atomic::stream(path, |to| {
        let (mut index, mut at) = (Index::new(), 0);
        for block in held.into_iter().map(Ok).chain(blocks) {
            let block = block?;
            let bytes = packed(&block);
            to.write_all(&bytes).map_err(failed)?;
            let contexts = block.contexts();
            let rows = contexts.rows(0..contexts.n_rounds()).len() / contexts.layout().dim;
            let pairs = matches!(contexts.eligible(), Eligible::Some { .. }).then(|| contexts.n_pairs());
            index.push(Place { at, rounds: block.n_rounds(), rows, pairs });
            at += bytes.len() as u64;
        }
        Ok(Kept::File(index))
    })
}

/// A block as bytes. Every round has a propensity.
fn packed(block: &LoggedData) -> Vec<u8> {
    let contexts = block.contexts();
    let mut to = Vec::with_capacity(bytes(block));
    contexts.rows(0..contexts.n_rounds()).iter().for_each(|x| to.extend(x.to_le_bytes()));
    block.actions().iter().for_each(|a| to.extend(a.to_le_bytes()));
    block.rewards().iter().for_each(|r| to.extend(r.to_le_bytes()));
    block.propensities().unwrap_or_default().iter().for_each(|p| to.extend(p.to_le_bytes()));
    if let Eligible::Some { offsets, actions } = contexts.eligible() {
        offsets.iter().for_each(|o| to.extend((*o as u64).to_le_bytes()));
        actions.iter().for_each(|a| to.extend(a.to_le_bytes()));
    }
    to
}

fn unread(path: &Path, source: std::io::Error) -> PolicyError {
    FileError::Read { path: path.to_path_buf(), source }.into()
}

fn read(file: &mut File, place: &Place, layout: Layout, path: &Path) -> Result<LoggedData, PolicyError> {
    let Place { at, rounds, rows, pairs } = place.clone();
    file.seek(SeekFrom::Start(at)).map_err(|e| unread(path, e))?;
    let x: Vec<f32> = column(file, rows * layout.dim, f32::from_le_bytes, path)?;
    let actions = column(file, rounds, u32::from_le_bytes, path)?;
    let rewards = column(file, rounds, f64::from_le_bytes, path)?;
    let propensities = column(file, rounds, f64::from_le_bytes, path)?;
    let eligible = match pairs {
        None => Eligible::All,
        Some(pairs) => {
            let offsets = column(file, rounds + 1, u64::from_le_bytes, path)?;
            let offsets = offsets.into_iter().map(|o| o as usize).collect();
            Eligible::Some { offsets, actions: column(file, pairs, u32::from_le_bytes, path)? }
        }
    };
    Ok(LoggedData::new(Contexts::new(layout, x, eligible)?, actions, rewards, Some(propensities))?)
}

/// The next n numbers of a file.
fn column<T, const B: usize>(
    file: &mut File,
    n: usize,
    number: fn([u8; B]) -> T,
    path: &Path,
) -> Result<Vec<T>, PolicyError> {
    let mut bytes = vec![0; n * B];
    file.read_exact(&mut bytes).map_err(|e| unread(path, e))?;
    Ok(bytes.chunks_exact(B).map(|b| number(b.try_into().expect("of that length"))).collect())
}
