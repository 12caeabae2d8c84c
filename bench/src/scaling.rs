//! How time and memory grow: with threads, with the length of the log, over a long run.

use std::collections::BTreeMap;
use std::fs;

use neuralcb::policy::{Rounding, pessimistic};
use neuralcb::{Encoding, Layout, Learner, ModelConfig};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::data::{MNIST, MNIST_DENSITY, Rounds, random_rounds, shared_contexts, synthetic_rounds};
use crate::error::Error;
use crate::jobs::{CONTEXTS, ROUNDS};
use crate::measure::{Figures, least_seconds, pool, seconds};
use crate::task::{Training, learner};
use crate::tasks::{mnist_config, synthetic_config, synthetic_score};

/// Learners that are trained side by side.
const LEARNERS: usize = 8;

/// Eight independent learners.
pub(crate) fn two_cores_repetitions(repeats: usize) -> Result<Figures, Error> {
    let rounds = synthetic_rounds(ROUNDS)?;
    let config = ModelConfig::Neural(synthetic_config(None));
    let mut learners = Vec::new();
    for _ in 0..LEARNERS {
        learners.push(Training::new(config.clone(), rounds.clone())?);
    }
    two_cores(repeats, |pool| {
        learners.iter_mut().try_for_each(Training::fresh)?;
        Ok(pool.install(|| seconds(|| learners.par_iter_mut().for_each(Training::run)).0))
    })
}

/// One scoring.
pub(crate) fn two_cores_score(repeats: usize) -> Result<Figures, Error> {
    let mut task = synthetic_score(ROUNDS, CONTEXTS)?;
    two_cores(repeats, |pool| pool.install(|| least_seconds(&mut task, 1)))
}

/// Times the work in turn with one and with two threads, so that both see the same machine.
fn two_cores(repeats: usize, mut time: impl FnMut(&ThreadPool) -> Result<f64, Error>) -> Result<Figures, Error> {
    let pools = [pool(1)?, pool(2)?];
    let mut least = [f64::INFINITY; 2];
    for _ in 0..repeats.max(1) + 1 {
        for (pool, least) in pools.iter().zip(&mut least) {
            *least = least.min(time(pool)?);
        }
    }
    let more = [("seconds_one_thread", Some(least[0])), ("speedup", Some(least[0] / least[1]))];
    Ok(Figures { seconds: least[1], more: BTreeMap::from(more) })
}

/// Rounds of the long log.
const LONG: usize = 1_000_000;
/// Rounds that are timed at a time.
const CHUNK: usize = 1000;
/// Chunks of the long log that are timed in a row.
const IN_A_ROW: usize = 2;

/// S-mode.
pub(crate) fn growth_s(repeats: usize) -> Result<Figures, Error> {
    growth(None, repeats)
}

/// B-mode. One step per round: the learner has to read all rounds.
pub(crate) fn growth_b(repeats: usize) -> Result<Figures, Error> {
    growth(Some(1), repeats)
}

/// A long log held in memory: the least time of a chunk of rounds before round 10,000, of learners at their start, and of
/// the last chunks, of one that has read all before. They are timed in turns, so that a busy machine disturbs both alike.
fn growth(steps: Option<usize>, repeats: usize) -> Result<Figures, Error> {
    let rounds = random_rounds(Layout { dim: 20, n_actions: 1, encoding: Encoding::PerAction }, LONG);
    let config = ModelConfig::Neural(synthetic_config(steps));
    let turns = (8 * repeats).clamp(1, LONG / 4 / (IN_A_ROW * CHUNK));
    pool(1)?.install(|| {
        let mut old = learner(&config, &rounds)?;
        let mut t = LONG - turns * IN_A_ROW * CHUNK;
        read(&mut *old, &rounds, 0, t);
        let (mut first, mut last) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..turns {
            let (mut young, from) = (learner(&config, &rounds)?, ROUNDS - IN_A_ROW * CHUNK);
            read(&mut *young, &rounds, 0, from);
            first = first.min(least_chunk(&mut *young, &rounds, from));
            last = last.min(least_chunk(&mut *old, &rounds, t));
            t += IN_A_ROW * CHUNK;
        }
        let more = [("seconds_at_10000", Some(first)), ("growth", Some(last / first))];
        Ok(Figures { seconds: last, more: BTreeMap::from(more) })
    })
}

fn read(learner: &mut dyn Learner, rounds: &Rounds, from: usize, to: usize) {
    for t in from..to {
        let (chosen, reward) = rounds.round(t);
        learner.observe(chosen, reward);
    }
}

/// Reads the next chunks; the least time of a round.
fn least_chunk(learner: &mut dyn Learner, rounds: &Rounds, from: usize) -> f64 {
    let start = |i: usize| from + i * CHUNK;
    let chunk = |i: usize| seconds(|| read(learner, rounds, start(i), start(i + 1))).0;
    (0..IN_A_ROW).map(chunk).fold(f64::INFINITY, f64::min) / CHUNK as f64
}

/// A run as an experiment does it: train, and evaluate thirty times. Memory does not depend on the steps per round.
pub(crate) fn mnist_run_memory(_repeats: usize) -> Result<Figures, Error> {
    const RUN: usize = 15_000;
    const EVALUATIONS: usize = 30;
    const BETAS: [f64; 7] = [0.0, 0.01, 0.05, 0.1, 1.0, 5.0, 10.0];
    let rounds = random_rounds(MNIST, RUN);
    let contexts = shared_contexts(MNIST, CONTEXTS, MNIST_DENSITY)?;
    let mut learner = learner(&ModelConfig::Neural(mnist_config(Some(1))), &rounds)?;
    let (time, done) = pool(1)?.install(|| {
        seconds(|| -> Result<(), Error> {
            for part in 0..EVALUATIONS {
                read(&mut *learner, &rounds, part * RUN / EVALUATIONS, (part + 1) * RUN / EVALUATIONS);
                let estimates = learner.model()?.estimate(&contexts)?;
                for beta in BETAS {
                    std::hint::black_box(pessimistic(&contexts, &estimates, beta, Rounding::None)?);
                }
            }
            Ok(())
        })
    });
    done?;
    Ok(Figures { seconds: time, more: BTreeMap::from([("peak_mb", peak_mb())]) })
}

/// The most memory the process has had so far, where the system tells: Linux's `VmHWM`, in 10⁶ bytes.
fn peak_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
