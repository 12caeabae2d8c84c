//! From a log to a policy: one pass that fits the preparation, one that trains.
//!
//! Training reads the log block by block and keeps none of it in S-mode, so memory does not grow with the log. A
//! checkpoint holds the learner's whole memory: a training that was killed goes on from it and ends with the same bits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use neuralcb::archive::{Archive, Array, Keep};
use neuralcb::{Eligible, Learner, LoggedData, ModelConfig, Seed, Watch};
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::auto;
use crate::error::FileError;
use crate::lambda_0::lambda_0;
use crate::log::{Block, LogError, LogSummary, Preparation, ReadLog};
use crate::memory;
use crate::policy::{Algorithm, Description, Method, Origin, Policy, PolicyError, Recipe, RewardScale, file};

/// Where and how often a training is kept.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The file.
    pub path: PathBuf,
    /// Time between two of them.
    pub every: Duration,
}

impl Checkpoint {
    /// Removes the file. That is for whoever saves the policy, once it is saved: until then the training is nowhere
    /// else.
    pub fn remove(&self) -> Result<(), FileError> {
        atomic::remove(&self.path).map_err(|source| FileError::Remove { path: self.path.clone(), source })
    }
}

/// What is being done, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The first pass: means, scales, words.
    Preparing,
    /// The second pass.
    Training,
    /// So many rounds of so many have been learned from; told often, because a round of B-mode takes milliseconds.
    Learned(u64, u64),
    /// Networks are being fitted: so many rounds of those planned so far, over all passes.
    Fitted(u64, u64),
    /// Something else, by name: so many rounds of so many.
    Doing(&'static str, u64, u64),
}

/// Says how far the work is: called before each block of rounds with what is being done.
pub type Progress<'a> = &'a mut (dyn FnMut(Step) + Send);

/// Trains a policy on a log. The checkpoint stays where it is: [`Checkpoint::remove`].
pub fn train(
    log: &dyn ReadLog,
    recipe: &Recipe,
    checkpoint: Option<&Checkpoint>,
    progress: Progress<'_>,
) -> Result<Policy, PolicyError> {
    if let Some(checkpoint) = checkpoint {
        atomic::check_writable(&checkpoint.path)?;
    }
    let prepared = prepare(log, recipe, progress)?;
    train_as(log, prepared, checkpoint, progress)
}

/// What a recipe makes of a log, before anything is learned.
pub(crate) struct Prepared {
    pub description: Description,
    /// The rounds of the log, where they had to be read.
    pub rounds: Option<LoggedData>,
}

/// Prepares for a log. `auto` chooses its learner here.
pub(crate) fn prepare(log: &dyn ReadLog, recipe: &Recipe, progress: Progress<'_>) -> Result<Prepared, PolicyError> {
    recipe.check_names()?;
    progress(Step::Preparing);
    let (preparation, summary) = Preparation::fit(log, &recipe.prepares())?;
    if recipe.algorithm == Algorithm::Auto {
        return auto::prepare(log, recipe, preparation, summary, progress);
    }
    let lambda_0 = recipe.asks_lambda_0().map(|depth| lambda_0(log, &preparation, depth)).transpose()?;
    let method = recipe.method(&summary, preparation.actions(), lambda_0)?;
    let description = describe(method, preparation, summary, Origin::of(log)?, recipe.seed);
    // Before the work: a policy that no file can hold.
    file::check(&description)?;
    Ok(Prepared { description, rounds: None })
}

/// What the file will say.
pub(crate) fn describe(
    method: Method,
    preparation: Preparation,
    training: LogSummary,
    log: Origin,
    seed: u64,
) -> Description {
    Description {
        method,
        preparation,
        seed,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        log,
        training,
        chosen: None,
        certified: None,
    }
}

/// Trains the policy that a description asks for.
pub(crate) fn train_as(
    log: &dyn ReadLog,
    prepared: Prepared,
    checkpoint: Option<&Checkpoint>,
    progress: Progress<'_>,
) -> Result<Policy, PolicyError> {
    let arrays = match &prepared.description.method {
        Method::Model { config, scale, .. } => train_model(log, &prepared, config, *scale, checkpoint, progress)?,
        Method::Clone { .. } | Method::Constant { .. } | Method::Uniform => BTreeMap::new(),
    };
    Ok(Policy::new(prepared.description, arrays)?)
}

/// All rounds of a log, in blocks.
pub(crate) fn read_all(log: &dyn ReadLog, preparation: &Preparation) -> Result<Vec<LoggedData>, PolicyError> {
    let (mut rounds, mut held) = (Vec::new(), 0u128);
    for block in log.read() {
        log.go_on()?;
        let block = preparation.logged(&block?)?;
        // They are held a second time when they are put together.
        held += bytes(&block);
        memory::check(held, "the log", "sample its rounds, or choose an algorithm that streams it, such as lin-lcb")?;
        rounds.push(block);
    }
    Ok(rounds)
}

/// What rounds take in memory.
fn bytes(rounds: &LoggedData) -> u128 {
    let contexts = rounds.contexts();
    let pairs = if matches!(contexts.eligible(), Eligible::All) { 0 } else { contexts.n_pairs() };
    (contexts.rows(0..contexts.n_rounds()).len() * 4 + pairs * 4 + rounds.n_rounds() * 20) as u128
}

/// How far a checkpoint is.
#[derive(Serialize, Deserialize)]
struct Reached {
    description: Description,
    rounds: u64,
}

fn train_model(
    log: &dyn ReadLog,
    prepared: &Prepared,
    config: &ModelConfig,
    scale: RewardScale,
    checkpoint: Option<&Checkpoint>,
    progress: Progress<'_>,
) -> Result<BTreeMap<String, Array>, PolicyError> {
    let description = &prepared.description;
    let mut learner = memory::learner(config, description.preparation.layout(), Seed::new(description.seed))?;
    let done = match checkpoint {
        Some(checkpoint) if checkpoint.path.exists() => resume(&checkpoint.path, description, learner.as_mut())?,
        _ => 0,
    };
    let mut written = Instant::now();
    read_into(learner.as_mut(), log, prepared, scale, done, progress, &mut |learner, done| {
        if let Some(checkpoint) = checkpoint.filter(|c| written.elapsed() >= c.every) {
            let arrays = arrays(learner, Keep::Training)?;
            let reached = Reached { description: description.clone(), rounds: done };
            atomic::write(&checkpoint.path, &file::write(&reached, &arrays, "checkpoint"))?;
            written = Instant::now();
        }
        Ok(())
    })?;
    watched(log, progress, |watch| {
        learner.watch(watch);
        arrays(learner.as_mut(), Keep::Policy)
    })
}

/// Reads the rounds of a log into a learner that knows the first `done` of them. After each block `and_then` hears how
/// many it knows now.
pub(crate) fn read_into(
    learner: &mut dyn Learner,
    log: &dyn ReadLog,
    Prepared { description, rounds }: &Prepared,
    scale: RewardScale,
    done: u64,
    progress: Progress<'_>,
    and_then: &mut dyn FnMut(&mut dyn Learner, u64) -> Result<(), PolicyError>,
) -> Result<(), PolicyError> {
    let prepare =
        |block: Result<Block, LogError>| Ok::<_, PolicyError>(Cow::Owned(description.preparation.logged(&block?)?));
    let blocks: Box<dyn Iterator<Item = Result<Cow<'_, LoggedData>, PolicyError>>> = match rounds {
        Some(rounds) => Box::new(std::iter::once(Ok(Cow::Borrowed(rounds)))),
        None => Box::new(log.read().map(prepare)),
    };
    let mut seen = 0u64;
    for rounds in blocks {
        progress(Step::Training);
        let (rounds, before) = (rounds?, seen);
        seen += rounds.n_rounds() as u64;
        if seen <= done {
            continue;
        }
        observe(learner, &rounds, scale, &mut |t| {
            progress(Step::Learned(before + t as u64, description.training.rounds));
            log.go_on()
        })?;
        and_then(learner, seen)?;
    }
    Ok(())
}

/// Does work that may take long, beside a thread that tells how far it is and asks the log whether to go on.
pub(crate) fn watched<T>(
    log: &dyn ReadLog,
    progress: Progress<'_>,
    work: impl FnOnce(&Arc<Watch>) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    let (watch, done) = (Arc::new(Watch::default()), AtomicBool::new(false));
    let result = thread::scope(|scope| {
        let looker = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                if log.go_on().is_err() {
                    watch.stop();
                }
                let (fitted, planned) = watch.progress();
                if planned > 0 {
                    progress(Step::Fitted(fitted, planned));
                }
                thread::park_timeout(LOOK);
            }
        });
        let result = work(&watch);
        done.store(true, Ordering::Release);
        looker.thread().unpark();
        result
    });
    log.go_on()?;
    result
}

/// Between two looks at work that takes long.
const LOOK: Duration = Duration::from_millis(100);

/// Rounds between two questions whether to go on: a round of B-mode takes milliseconds.
const PATIENCE: usize = 16;

/// Reads rounds into a learner.
pub(crate) fn observe(
    learner: &mut dyn Learner,
    rounds: &LoggedData,
    scale: RewardScale,
    go_on: &mut dyn FnMut(usize) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let scaled;
    let rounds = if scale == RewardScale::NONE {
        rounds
    } else {
        scaled = rounds.with_rewards(|r| scale.apply(r));
        &scaled
    };
    let n = rounds.n_rounds();
    for from in (0..n).step_by(PATIENCE) {
        go_on(from)?;
        learner.read(rounds, from..n.min(from + PATIENCE));
    }
    Ok(())
}

/// What a learner has learned.
pub(crate) fn arrays(learner: &mut dyn Learner, keep: Keep) -> Result<BTreeMap<String, Array>, PolicyError> {
    let mut archive = Archive::writer(keep);
    learner.archive(&mut archive)?;
    Ok(archive.into_arrays())
}

/// Puts the learner where a checkpoint was; returns how many rounds it has read.
fn resume(path: &Path, description: &Description, learner: &mut dyn Learner) -> Result<u64, PolicyError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source })?;
    let (reached, arrays) = file::read::<Reached>(&bytes, path, "checkpoint")?;
    let other = |differs| Err(PolicyError::OtherCheckpoint { path: path.to_path_buf(), differs });
    let there = &reached.description;
    match () {
        () if there.log.sha256 != description.log.sha256 => return other("the log"),
        () if there.method != description.method => return other("the method"),
        () if there.preparation != description.preparation => return other("the preparation"),
        () if there.seed != description.seed => return other("the seed"),
        () if there.program != description.program => return other("the program's version"),
        () => {}
    }
    let mut archive = Archive::reader(arrays, Keep::Training);
    let restored = learner.archive(&mut archive).and_then(|()| archive.finish());
    restored.map_err(|e| {
        let (path, kind) = (path.to_path_buf(), "checkpoint");
        PolicyError::Damaged { path, kind, reason: e.to_string() }
    })?;
    Ok(reached.rounds)
}
