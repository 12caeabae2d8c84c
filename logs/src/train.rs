//! From a log to a policy: one pass that fits the preparation, one that trains.
//!
//! Training reads the log block by block and keeps none of it in S-mode, so memory does not grow with the log. A
//! checkpoint holds the learner's whole memory: a training that was killed goes on from it and ends with the same bits.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use neuralcb::archive::{Archive, Array, Keep};
use neuralcb::policy::{Imitation, ImitationConfig};
use neuralcb::{Learner, LoggedData, ModelConfig, Seed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::atomic;
use crate::error::FileError;
use crate::lambda_0::lambda_0;
use crate::log::{LogError, LogSummary, Preparation, ReadLog};
use crate::policy::{Description, Method, Origin, Policy, PolicyError, Recipe, RewardScale, file};

/// Where and how often a training is kept.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The file; it is removed when the training is done.
    pub path: PathBuf,
    /// Time between two of them.
    pub every: Duration,
}

/// What is being done, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The first pass: means, scales, words.
    Preparing,
    /// The second pass.
    Training,
}

/// Says how far the work is: called before each block of rounds with what is being done.
pub type Progress<'a> = &'a mut dyn FnMut(Step);

/// Trains a policy on a log.
pub fn train(
    log: &dyn ReadLog,
    recipe: &Recipe,
    checkpoint: Option<&Checkpoint>,
    progress: Progress<'_>,
) -> Result<Policy, PolicyError> {
    let description = prepare(log, recipe, progress)?;
    train_as(log, description, checkpoint, progress)
}

/// What a recipe makes of a log, before anything is learned.
pub(crate) fn prepare(log: &dyn ReadLog, recipe: &Recipe, progress: Progress<'_>) -> Result<Description, PolicyError> {
    recipe.check_names()?;
    progress(Step::Preparing);
    let (preparation, summary) = Preparation::fit(log, &recipe.preparation)?;
    let lambda_0 = recipe.asks_lambda_0().map(|depth| lambda_0(log, &preparation, depth)).transpose()?;
    let method = recipe.method(&summary, preparation.actions(), lambda_0)?;
    Ok(describe(method, preparation, summary, Origin::of(log)?, recipe.seed))
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
        certified: None,
    }
}

/// Trains the policy that a description asks for.
pub(crate) fn train_as(
    log: &dyn ReadLog,
    description: Description,
    checkpoint: Option<&Checkpoint>,
    progress: Progress<'_>,
) -> Result<Policy, PolicyError> {
    let arrays = match &description.method {
        Method::Model { config, scale, .. } => train_model(log, &description, config, *scale, checkpoint, progress)?,
        Method::Clone { config, rewarded } => {
            progress(Step::Training);
            let rounds = LoggedData::concat(read_all(log, &description.preparation)?)?;
            fit_clone(config, *rewarded, &rounds, Seed::new(description.seed))?
        }
        Method::Constant { .. } | Method::Uniform => BTreeMap::new(),
    };
    Ok(Policy::new(description, arrays)?)
}

/// All rounds of a log, in blocks.
pub(crate) fn read_all(log: &dyn ReadLog, preparation: &Preparation) -> Result<Vec<LoggedData>, PolicyError> {
    let prepared = |block: Result<_, LogError>| {
        log.go_on()?;
        Ok(preparation.logged(&block?)?)
    };
    log.read().map(prepared).collect()
}

/// The arrays of a clone of the logged actions, or of those with a reward above the mean.
pub(crate) fn fit_clone(
    config: &ImitationConfig,
    rewarded: bool,
    log: &LoggedData,
    seed: Seed,
) -> Result<BTreeMap<String, Array>, PolicyError> {
    let mut clone = if rewarded {
        let mean = log.rewards().iter().sum::<f64>() / log.n_rounds() as f64;
        let good: Vec<usize> = (0..log.n_rounds()).filter(|&t| log.rewards()[t] > mean).collect();
        // where all rewards are the same, all rounds are as good
        let chosen = if good.is_empty() { log.clone() } else { log.select(&good) };
        Imitation::fit(config, &chosen, 0..chosen.n_rounds(), seed)?
    } else {
        Imitation::fit(config, log, 0..log.n_rounds(), seed)?
    };
    let mut archive = Archive::writer(Keep::Policy);
    clone.archive(&mut archive)?;
    Ok(archive.into_arrays())
}

/// How far a checkpoint is.
#[derive(Serialize, Deserialize)]
struct Reached {
    description: Description,
    rounds: u64,
}

fn train_model(
    log: &dyn ReadLog,
    description: &Description,
    config: &ModelConfig,
    scale: RewardScale,
    checkpoint: Option<&Checkpoint>,
    progress: Progress<'_>,
) -> Result<BTreeMap<String, Array>, PolicyError> {
    let mut learner = config.learner(description.preparation.layout(), Seed::new(description.seed))?;
    let mut done = match checkpoint {
        Some(checkpoint) if checkpoint.path.exists() => resume(&checkpoint.path, description, learner.as_mut())?,
        _ => 0,
    };
    let (mut seen, mut written) = (0u64, Instant::now());
    for block in log.read() {
        progress(Step::Training);
        let block = block?;
        seen += block.n_rounds() as u64;
        if seen <= done {
            continue;
        }
        let rounds = description.preparation.logged(&block)?;
        observe(learner.as_mut(), &rounds, scale, &|| log.go_on())?;
        done = seen;
        if let Some(checkpoint) = checkpoint.filter(|c| written.elapsed() >= c.every) {
            let arrays = arrays(learner.as_mut(), Keep::Training)?;
            let reached = Reached { description: description.clone(), rounds: done };
            atomic::write(&checkpoint.path, &file::write(&reached, &arrays, "checkpoint"))?;
            written = Instant::now();
        }
    }
    let arrays = arrays(learner.as_mut(), Keep::Policy)?;
    if let Some(checkpoint) = checkpoint.filter(|c| c.path.exists()) {
        std::fs::remove_file(&checkpoint.path)
            .map_err(|source| FileError::Write { path: checkpoint.path.clone(), source })?;
    }
    Ok(arrays)
}

/// Rounds between two questions whether to go on: a round of B-mode takes milliseconds.
const PATIENCE: usize = 16;

/// Reads rounds into a learner.
pub(crate) fn observe(
    learner: &mut dyn Learner,
    rounds: &LoggedData,
    scale: RewardScale,
    go_on: &dyn Fn() -> Result<(), LogError>,
) -> Result<(), LogError> {
    for t in 0..rounds.n_rounds() {
        if t % PATIENCE == 0 {
            go_on()?;
        }
        let round = rounds.round(t);
        learner.observe(round.chosen, scale.apply(round.reward));
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
    restored.map_err(|e| PolicyError::Damaged { path: path.to_path_buf(), reason: e.to_string() })?;
    Ok(reached.rounds)
}
