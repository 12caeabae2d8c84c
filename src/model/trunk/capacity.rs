//! Passes, penalty and size of a network, chosen by the loss on held-out rounds.
//!
//! The likelihood of held-out rounds judges capacity far better than any off-policy estimate: it uses every round, not
//! only those in which policy and log agree. Between objectives it says nothing.
//!
//! A random fifth is held out; on short logs this is done several times. Costs as much as ten to twenty members.

use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::TrunkConfig;
use super::network::Trunk;
use super::objective::Targets;
use crate::archive::Archive;
use crate::data::{Encoding, Layout, LoggedData};
use crate::error::{Error, at_least, not_negative};
use crate::net::{Init, NetConfig, OutputScale, Outputs};
use crate::seed::Seed;
use crate::watch::Watch;

/// How much a learner can learn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Capacity {
    /// Passes over the log, ≥ 1; fewer on logs of more than a million rounds.
    pub passes: usize,
    /// Weight of ½‖W‖², ≥ 0.
    pub l2: f64,
    /// Hidden layers; 0 is a model linear in the context.
    pub layers: usize,
    /// Units of each, ≥ 1.
    pub width: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity { passes: 10, l2: 1e-3, layers: 1, width: 100 }
    }
}

/// A long schedule, for clean logs.
const LONG: Capacity = Capacity { passes: 30, l2: 1e-3, layers: 1, width: 100 };

/// What is tried first; few passes or a strong penalty are for noisy logs.
const SMALL: [Capacity; 4] =
    [Capacity { passes: 10, ..LONG }, Capacity { passes: 5, ..LONG }, LONG, Capacity { passes: 10, l2: 1e-2, ..LONG }];

/// What is tried beside the long schedule where that is the best.
const LARGE: [Capacity; 2] = [Capacity { width: 256, ..LONG }, Capacity { layers: 2, ..LONG }];

/// Rounds that all passes together read at most, on long logs.
const MOST_READ: usize = 10_000_000;

/// Rounds that the choice learns from at most.
const MOST_LEARNED: usize = 10_000;

impl Capacity {
    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<(), Error> {
        at_least("passes", 1, "at least 1", self.passes)?;
        at_least("width", 1, "at least 1", self.width)?;
        not_negative("l2", self.l2)
    }

    /// Goes through an archive as the array `capacity`.
    pub(super) fn archived(self, archive: &mut Archive) -> Result<Capacity, Error> {
        let mut numbers = [self.passes as f64, self.l2, self.layers as f64, self.width as f64];
        archive.array("capacity", &[4], &mut numbers)?;
        let [passes, l2, layers, width] = numbers;
        Ok(Capacity { passes: passes as usize, l2, layers: layers as usize, width: width as usize })
    }

    /// Passes over a log of n rounds.
    pub(super) fn passes_over(&self, n: usize) -> usize {
        self.passes.min((MOST_READ / n.max(1)).max(1))
    }

    /// The network: He's initialisation, biases, no layer norm.
    pub(crate) fn network(&self, layout: Layout) -> NetConfig {
        NetConfig {
            depth: 1 + self.layers,
            width: self.width,
            layer_norm: false,
            biases: true,
            outputs: if layout.encoding == Encoding::Disjoint { Outputs::PerAction } else { Outputs::One },
            output_scale: OutputScale::One,
            init: Init::He,
            ..NetConfig::default()
        }
    }
}

/// The best of the grid. Large networks are tried only where a long schedule is the best for a small one: where it is
/// not, they learn the noise.
pub(super) fn choose(
    config: &TrunkConfig,
    log: &LoggedData,
    targets: &Targets,
    s: f64,
    seed: Seed,
    watch: &Watch,
) -> Result<Capacity, Error> {
    if targets.rounds().len() < 10 {
        return Ok(SMALL[0]);
    }
    let (small, loss) = least(SMALL, losses(&SMALL, config, log, targets, s, seed, watch)?);
    if small != LONG {
        return Ok(small);
    }
    let (large, other) = least(LARGE, losses(&LARGE, config, log, targets, s, seed, watch)?);
    Ok(if other < loss { large } else { small })
}

/// The point with the least loss, the first of equals; a loss that is not finite is never less.
fn least<const N: usize>(grid: [Capacity; N], losses: Vec<f64>) -> (Capacity, f64) {
    let finite = |loss: f64| if loss.is_finite() { loss } else { f64::INFINITY };
    let mut points = grid.into_iter().zip(losses.into_iter().map(finite));
    let first = points.next().expect("a grid has points");
    points.fold(first, |best, point| if point.1 < best.1 { point } else { best })
}

/// The loss of each point of a grid on held-out rounds, summed over the divisions.
fn losses(
    grid: &[Capacity],
    config: &TrunkConfig,
    log: &LoggedData,
    targets: &Targets,
    s: f64,
    seed: Seed,
    watch: &Watch,
) -> Result<Vec<f64>, Error> {
    let rounds = targets.rounds();
    let splits = match rounds.len() {
        0..1000 => 5,
        1000..4000 => 3,
        _ => 1,
    };
    let contexts = log.contexts();
    let learned = (rounds.len() - (rounds.len() / 5).min(MOST_LEARNED / 4)).min(MOST_LEARNED);
    watch.plan(splits * grid.iter().map(|&capacity| config.planned(capacity, learned)).sum::<usize>());
    let trial = |i: usize| {
        let (capacity, seed) = (grid[i / splits], seed.nth((i % splits) as u64));
        let mut rounds = rounds.clone();
        rounds.shuffle(&mut seed.stream("held-out"));
        let held_out = (rounds.len() / 5).min(MOST_LEARNED / 4);
        let (judge, learn) = rounds.split_at(held_out);
        let learn = &learn[..learn.len().min(MOST_LEARNED)];
        let mut trunk = Trunk::new(capacity.network(contexts.layout()), contexts, seed)?;
        let training = config.training(capacity, learn.len(), s);
        trunk.train(contexts, learn, training, &mut seed.stream("order"), targets, watch)?;
        Ok(trunk.loss(contexts, judge, targets))
    };
    let losses = (0..grid.len() * splits).into_par_iter().map(trial).collect::<Result<Vec<f64>, Error>>()?;
    Ok(losses.chunks(splits).map(|own| own.iter().sum()).collect())
}
