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
use crate::measure::{Figures, Meter, pool, seconds};
use crate::task::{Task, Training, learner};
use crate::tasks::{mnist_config, synthetic_config, synthetic_score};

/// Learners that are trained side by side, few beside the hundreds of passes of an experiment.
const LEARNERS: usize = 24;

/// Runs of a repeat.
const RUNS: usize = 4;

/// Times of some work with one thread and with two, in turn, so that both see the same machine.
struct TwoCores<W> {
    work: W,
    pools: [ThreadPool; 2],
    least: [f64; 2],
}

/// Work that threads share, and the time of a run.
trait SharedWork: Send {
    fn seconds(&mut self) -> Result<f64, Error>;
}

impl<W: SharedWork> TwoCores<W> {
    fn new(work: W) -> Result<Self, Error> {
        Ok(TwoCores { work, pools: [pool(1)?, pool(2)?], least: [f64::INFINITY; 2] })
    }
}

impl<W: SharedWork> Meter for TwoCores<W> {
    fn turn(&mut self) -> Result<(), Error> {
        for (pool, least) in self.pools.iter().zip(&mut self.least) {
            for _ in 0..RUNS {
                *least = least.min(pool.install(|| self.work.seconds())?);
            }
        }
        Ok(())
    }

    fn figures(&self) -> Figures {
        let [one, two] = self.least;
        let more = [("seconds_one_thread", Some(one)), ("speedup", Some(one / two))];
        Figures { seconds: two, more: BTreeMap::from(more) }
    }
}

/// Independent learners.
struct Repetitions(Vec<Training>);

impl SharedWork for Repetitions {
    fn seconds(&mut self) -> Result<f64, Error> {
        self.0.iter_mut().try_for_each(Training::fresh)?;
        Ok(seconds(|| self.0.par_iter_mut().for_each(Training::run)).0)
    }
}

/// Learners that know nothing of each other.
pub(crate) fn two_cores_repetitions() -> Result<Box<dyn Meter>, Error> {
    let rounds = synthetic_rounds(ROUNDS)?;
    let config = ModelConfig::Neural(synthetic_config(None));
    let learners = (0..LEARNERS).map(|_| Training::new(config.clone(), rounds.clone()));
    Ok(Box::new(TwoCores::new(Repetitions(learners.collect::<Result<_, _>>()?))?))
}

impl SharedWork for Task {
    fn seconds(&mut self) -> Result<f64, Error> {
        let (time, done) = seconds(|| self.run());
        done?;
        Ok(time)
    }
}

/// One scoring.
pub(crate) fn two_cores_score() -> Result<Box<dyn Meter>, Error> {
    Ok(Box::new(TwoCores::new(synthetic_score(ROUNDS, CONTEXTS)?)?))
}

/// Rounds of the long log.
const LONG: usize = 1_000_000;
/// Rounds that are timed at a time.
const CHUNK: usize = 1000;
/// Chunks that are timed in a row, and how often in a repeat.
const IN_A_ROW: usize = 2;
const ROWS_OF_CHUNKS: usize = 8;

/// A long log held in memory: the least time of a chunk of rounds before round 10,000, of learners at their start, and
/// of chunks after the last round, of one that has read all before. They are timed in turns, so that a busy machine
/// disturbs both alike.
struct Growth {
    config: ModelConfig,
    rounds: Rounds,
    old: Box<dyn Learner>,
    /// What `old` reads next; after the last round of the log come its first ones again.
    t: usize,
    pool: ThreadPool,
    first: f64,
    last: f64,
}

/// S-mode.
pub(crate) fn growth_s() -> Result<Box<dyn Meter>, Error> {
    growth(None)
}

/// B-mode. One step per round: the learner has to read all rounds.
pub(crate) fn growth_b() -> Result<Box<dyn Meter>, Error> {
    growth(Some(1))
}

fn growth(steps: Option<usize>) -> Result<Box<dyn Meter>, Error> {
    let rounds = random_rounds(Layout { dim: 20, n_actions: 1, encoding: Encoding::PerAction }, LONG);
    let config = ModelConfig::Neural(synthetic_config(steps));
    let (mut old, pool) = (learner(&config, &rounds)?, pool(1)?);
    pool.install(|| read(&mut *old, &rounds, 0, LONG));
    Ok(Box::new(Growth { config, rounds, old, t: LONG, pool, first: f64::INFINITY, last: f64::INFINITY }))
}

impl Meter for Growth {
    fn turn(&mut self) -> Result<(), Error> {
        let Growth { config, rounds, old, t, pool, first, last } = self;
        pool.install(|| {
            for _ in 0..ROWS_OF_CHUNKS {
                let (mut young, from) = (learner(config, rounds)?, ROUNDS - IN_A_ROW * CHUNK);
                read(&mut *young, rounds, 0, from);
                *first = first.min(least_chunk(&mut *young, rounds, from));
                *last = last.min(least_chunk(&mut **old, rounds, *t));
                *t += IN_A_ROW * CHUNK;
            }
            Ok(())
        })
    }

    fn figures(&self) -> Figures {
        let more = [("seconds_at_10000", Some(self.first)), ("growth", Some(self.last / self.first))];
        Figures { seconds: self.last, more: BTreeMap::from(more) }
    }
}

fn read(learner: &mut dyn Learner, rounds: &Rounds, from: usize, to: usize) {
    for t in from..to {
        let (chosen, reward) = rounds.round(t % rounds.n());
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
struct MnistRun {
    seconds: f64,
    peak_mb: Option<f64>,
}

pub(crate) fn mnist_run_memory() -> Result<Box<dyn Meter>, Error> {
    Ok(Box::new(MnistRun { seconds: f64::INFINITY, peak_mb: None }))
}

impl Meter for MnistRun {
    fn turn(&mut self) -> Result<(), Error> {
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
        (self.seconds, self.peak_mb) = (time, peak_mb());
        Ok(())
    }

    fn figures(&self) -> Figures {
        Figures { seconds: self.seconds, more: BTreeMap::from([("peak_mb", self.peak_mb)]) }
    }
}

/// The most memory the process has had so far, where the system tells: Linux's `VmHWM`, in 10⁶ bytes.
fn peak_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
