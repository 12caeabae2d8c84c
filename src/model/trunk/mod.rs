//! Learners on a shared trunk: `choice`, `regression`, the clones and their kin.
//!
//! One network reads the context; output k of it is z_k, the number of action k. Where every action has its own vector
//! one output is taken of each ([`network`]). What z is trained for is the [`Objective`]; [`objective`] has the losses.
//!
//! Several passes over the rounds in batches, Adam with a step that falls linearly to zero. Passes, penalty and size
//! are chosen by the loss on held-out rounds of the same log ([`capacity`]). Some members are trained alike, from other
//! initial weights and in another order:
//!
//! ```text
//! mean(x, a)  = 1/M Σ_i f_i(x, a)          f_i: what member i says, in units of the reward
//! width(x, a) = spread of the f_i, or another one ([`Width`])
//! ```
//!
//! A pass over n rounds costs O(n·(d·m + m·K)) for each member, or O(n·K·d·m) where every action has its own vector.

mod capacity;
mod learner;
mod network;
mod objective;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use capacity::Capacity;
pub use learner::TrunkLearner;
pub(crate) use network::{Training, Trunk};
pub use objective::Objective;
pub(crate) use objective::Targets;
use objective::Units;

use super::{Estimates, Learner, Linear, LinearConfig, RewardModel};
use crate::archive::Archive;
use crate::data::{Contexts, Layout, LoggedData, Pair};
use crate::error::{Error, at_least, not_negative, positive};
use crate::linalg::vectors::{Job, dispatch};
use crate::net::Towards;
use crate::seed::Seed;
use crate::watch::Watch;

/// What the width of an estimate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// The standard deviation over the members.
    Spread,
    /// Mean less least over the members: at β = 1 the bound is the least, as in VIPeR.
    Least,
    /// −σ_r·log(μ̂(a|x) + 1e-6), with μ̂ a clone of the log: pessimism towards what the log does.
    Log,
    /// σ_r·√(hᵀΛ⁻¹h) in the last hidden layer h of the first member, Λ = I + Σ h hᵀ over the rounds of the action.
    LastLayer,
}

/// What differs between members beside initial weights and order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Perturbation {
    /// Nothing.
    None,
    /// Each learns from n rounds drawn with replacement.
    Bootstrap,
    /// Each learns from rewards with N(0, σ²) added, σ in units of the rewards' standard deviation.
    Rewards(f64),
}

/// Settings of a learner on a shared trunk.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `objective` | choice | what it is trained for | see [`Objective`] |
/// | `capacity` | chosen by held-out rounds | passes, penalty, size of the network | see [`Capacity`] |
/// | `lr` | 0.003 | Adam's learning rate, which falls linearly to zero | > 0 |
/// | `batch` | 64, less on short logs | rounds per step | ≥ 1 |
/// | `members` | 3 | networks | ≥ 1 |
/// | `perturbation` | none | what differs between members | σ ≥ 0 |
/// | `towards` | zero | what the penalty pulls towards | zero, initial |
/// | `width` | spread | what the width is | |
/// | `rewards` | the log's | the range of rewards | first < second |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrunkConfig {
    /// What it is trained for.
    pub objective: Objective,
    /// Passes, penalty and size; `None` chooses by held-out rounds.
    pub capacity: Option<Capacity>,
    /// Adam's learning rate at the start.
    pub lr: f64,
    /// Rounds per step; `None` is 64, 32 below 3,200 rounds and 16 below 1,600.
    pub batch: Option<usize>,
    /// Networks.
    pub members: usize,
    /// What differs between them.
    pub perturbation: Perturbation,
    /// What the penalty pulls towards.
    pub towards: Towards,
    /// What the width is.
    pub width: Width,
    /// The least and the largest reward there can be; `None` takes the log's.
    pub rewards: Option<[f64; 2]>,
}

impl Default for TrunkConfig {
    fn default() -> Self {
        TrunkConfig {
            objective: Objective::Choice,
            capacity: None,
            lr: 3e-3,
            batch: None,
            members: 3,
            perturbation: Perturbation::None,
            towards: Towards::Zero,
            width: Width::Spread,
            rewards: None,
        }
    }
}

/// More members say nothing more, and each takes memory.
const MOST_MEMBERS: usize = 1000;

impl TrunkConfig {
    /// VIPeR (Nguyen-Tang & Arora, ICLR 2023): the least of M networks, each fitted by squared loss to rewards with
    /// noise and pulled towards its own initial weights.
    pub fn viper() -> TrunkConfig {
        TrunkConfig {
            objective: Objective::Regression,
            members: 10,
            perturbation: Perturbation::Rewards(0.1),
            towards: Towards::Initial,
            width: Width::Least,
            ..TrunkConfig::default()
        }
    }

    /// The same settings with the capacity that held-out rounds of a log choose.
    pub fn sized(&self, log: &LoggedData, seed: Seed, watch: &Watch) -> Result<TrunkConfig, Error> {
        self.check()?;
        let (units, targets) = taught(self, log, seed, watch)?;
        let capacity = capacity_of(self, log, &units, &targets, seed, watch)?;
        Ok(TrunkConfig { capacity: Some(capacity), ..self.clone() })
    }

    /// Refuses what cannot work.
    fn check(&self) -> Result<(), Error> {
        at_least("members", 1, "at least 1", self.members)?;
        if self.members > MOST_MEMBERS {
            return Err(Error::Param { name: "members", range: "at most 1000", got: self.members as f64 });
        }
        positive("lr", self.lr)?;
        if let Some(batch) = self.batch {
            at_least("batch", 1, "at least 1", batch)?;
        }
        if let Perturbation::Rewards(sigma) = self.perturbation {
            not_negative("perturbation", sigma)?;
        }
        if let Some([lo, hi]) = self.rewards
            && !(lo.is_finite() && hi.is_finite() && lo < hi)
        {
            return Err(Error::Param { name: "rewards", range: "two finite numbers, the first below", got: lo });
        }
        if self.width == Width::LastLayer && self.capacity.is_some_and(|capacity| capacity.layers == 0) {
            let range = "at least 1 where the width is that of the last hidden layer";
            return Err(Error::Param { name: "layers", range, got: 0.0 });
        }
        self.capacity.map_or(Ok(()), |capacity| capacity.check())
    }

    /// Rounds per step on a log of that length.
    fn batch(&self, n: usize) -> usize {
        self.batch.unwrap_or(match n {
            0..1600 => 16,
            1600..3200 => 32,
            _ => 64,
        })
    }

    /// Rounds that one network is trained on, over all passes.
    fn planned(&self, capacity: Capacity, n: usize) -> usize {
        capacity.passes_over(n) * n
    }

    /// How one network is trained with that capacity.
    fn training(&self, capacity: Capacity, n: usize, s: f64) -> Training {
        Training {
            passes: capacity.passes_over(n),
            batch: self.batch(n),
            lr: self.lr,
            l2: capacity.l2 * s,
            towards: self.towards,
        }
    }
}

/// What a log teaches: its units, and the target of every round.
fn taught(config: &TrunkConfig, log: &LoggedData, seed: Seed, watch: &Watch) -> Result<(Units, Targets), Error> {
    let units = Units::of(config.objective, log, config.rewards);
    let targets = Targets::new(config.objective, log, &units, direct(config, log, seed, watch)?);
    Ok((units, targets))
}

/// The capacity of the settings, or the one that held-out rounds choose.
fn capacity_of(
    config: &TrunkConfig,
    log: &LoggedData,
    units: &Units,
    targets: &Targets,
    seed: Seed,
    watch: &Watch,
) -> Result<Capacity, Error> {
    match config.capacity {
        Some(capacity) => Ok(capacity),
        None => capacity::choose(config, log, targets, units.s, seed.child("capacity"), watch),
    }
}

/// A fitted learner, frozen.
#[derive(Clone)]
pub struct TrunkModel {
    config: TrunkConfig,
    layout: Layout,
    units: Units,
    members: Vec<Trunk>,
    /// The clone that the width needs.
    clone: Option<Trunk>,
    /// Ridge regression on the last hidden layer, for its width.
    last: Option<(Linear, Arc<dyn RewardModel>)>,
}

impl TrunkModel {
    /// Fits to a log. The seed decides initial weights, order and held-out rounds.
    pub fn fit(config: &TrunkConfig, log: &LoggedData, seed: Seed, watch: &Watch) -> Result<TrunkModel, Error> {
        config.check()?;
        at_least("rounds in the log", 1, "at least 1", log.n_rounds())?;
        let (contexts, layout) = (log.contexts(), log.contexts().layout());
        let (units, targets) = taught(config, log, seed, watch)?;
        let capacity = capacity_of(config, log, &units, &targets, seed, watch)?;
        let config = TrunkConfig { capacity: Some(capacity), ..config.clone() };
        watch.plan(config.members * config.planned(capacity, targets.rounds().len()));
        let member = |i: usize| {
            let seed = seed.child("members").nth(i as u64);
            let (mut rounds, mut own) = (targets.rounds(), None);
            match config.perturbation {
                Perturbation::None => {}
                Perturbation::Bootstrap => rounds = resample(&rounds, seed),
                Perturbation::Rewards(sigma) => {
                    own.insert(targets.clone()).perturb(sigma, &units, &mut seed.stream("rewards"));
                }
            }
            let mut trunk = Trunk::new(capacity.network(layout), contexts, seed)?;
            let training = config.training(capacity, rounds.len(), units.s);
            let order = &mut seed.stream("order");
            trunk.train(contexts, &rounds, training, order, own.as_ref().unwrap_or(&targets), watch)?;
            Ok(trunk)
        };
        let members = (0..config.members).into_par_iter().map(member).collect::<Result<Vec<Trunk>, Error>>()?;
        let mut model = TrunkModel { config, layout, units, members, clone: None, last: None };
        match model.config.width {
            Width::Spread | Width::Least => {}
            Width::Log => model.clone = Some(clone_of(log, &model.config, seed, watch)?),
            Width::LastLayer => model.fit_last(log)?,
        }
        Ok(model)
    }

    /// The settings, with the capacity that was chosen.
    pub fn config(&self) -> &TrunkConfig {
        &self.config
    }

    /// A model that has learned nothing.
    fn blank(config: TrunkConfig, layout: Layout) -> Result<TrunkModel, Error> {
        config.check()?;
        let capacity = config.capacity.expect("known in a fitted model");
        let blank = || Trunk::blank(capacity.network(layout), layout);
        let members = (0..config.members).map(|_| blank()).collect::<Result<_, Error>>()?;
        let clone = if config.width == Width::Log { Some(blank()?) } else { None };
        let units = Units { lo: 0.0, hi: 1.0, mean: 0.0, deviation: 1.0, s: 1.0 };
        let mut model = TrunkModel { layout, units, members, clone, last: None, config };
        if model.config.width == Width::LastLayer {
            let mut linear = model.last_layer()?;
            let fitted = linear.model()?;
            model.last = Some((linear, fitted));
        }
        Ok(model)
    }

    /// The model that a policy's arrays hold.
    pub(super) fn restore(config: &TrunkConfig, layout: Layout, archive: &mut Archive) -> Result<TrunkModel, Error> {
        config.check()?;
        let capacity = Capacity::default().archived(archive)?;
        capacity.check()?;
        let config = TrunkConfig { capacity: Some(capacity), ..config.clone() };
        let (claimed, held) = (Self::n_numbers(&config, layout), archive.n_numbers());
        if claimed > held {
            let (want, got) = (format!("of at most {held} numbers, which the file holds"), claimed.to_string());
            return Err(Error::Array { name: "capacity".to_owned(), want, got });
        }
        let mut model = TrunkModel::blank(config, layout)?;
        model.archive(archive)?;
        Ok(model)
    }

    /// Goes through all that was learned but for the capacity.
    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        let Units { lo, hi, mean, deviation, s } = &mut self.units;
        let mut units = [*lo, *hi, *mean, *deviation, *s];
        archive.array("units", &[5], &mut units)?;
        [*lo, *hi, *mean, *deviation, *s] = units;
        for (i, member) in self.members.iter_mut().enumerate() {
            member.archive(&format!("member.{i}"), archive)?;
        }
        if let Some(clone) = &mut self.clone {
            clone.archive("clone", archive)?;
        }
        if let Some((linear, fitted)) = &mut self.last {
            linear.archive(archive)?;
            *fitted = linear.model()?;
        }
        Ok(())
    }

    /// How many numbers such a model keeps at least.
    fn n_numbers(config: &TrunkConfig, layout: Layout) -> u128 {
        let product = |sizes: &[usize]| sizes.iter().fold(1u128, |n, &size| n.saturating_mul(size as u128));
        let Some(Capacity { layers, width, .. }) = config.capacity else { return 0 };
        let (d, k) = (layout.dim, if layout.n_blocks() > 1 { layout.n_actions } else { 1 });
        let own = match layers {
            0 => product(&[d, k]),
            _ => product(&[d, width]) + product(&[layers - 1, width, width]) + product(&[width, k]),
        };
        own.saturating_mul(config.members as u128)
    }

    /// The most probable, or most promising, action of every round: the estimates without widths.
    pub fn means(&self, contexts: &Contexts) -> Result<Vec<f64>, Error> {
        let mut out = Estimates::default();
        self.estimate_into(contexts, &mut out)?;
        Ok(out.mean)
    }

    /// A ridge regression on the last hidden layer.
    fn last_layer(&self) -> Result<Linear, Error> {
        let layout = Layout { dim: self.members[0].features(), ..self.layout };
        Linear::new(LinearConfig { lambda: 1.0, ..LinearConfig::default() }, layout)
    }

    fn fit_last(&mut self, log: &LoggedData) -> Result<(), Error> {
        let (contexts, mut linear, trunk) = (log.contexts(), self.last_layer()?, &self.members[0]);
        let m = trunk.features();
        for start in (0..log.n_rounds()).step_by(1024) {
            let rounds = start..(start + 1024).min(log.n_rounds());
            let hidden = trunk.hidden(contexts, rounds.clone());
            for (t, own) in rounds.clone().zip(trunk.rows_of(contexts, rounds)) {
                let action = log.actions()[t] as usize;
                let place = contexts.place(t, action).expect("checked at the door");
                let row = if own.len() == 1 { own.start } else { own.start + place };
                linear.observe(Pair { x: &hidden[row * m..(row + 1) * m], action }, 0.0);
            }
        }
        let fitted = linear.model()?;
        self.last = Some((linear, fitted));
        Ok(())
    }

    /// The width of the last layer, of every pair.
    fn last_width(&self, contexts: &Contexts, rounds: Range<usize>, width: &mut [f64]) {
        let (Some((_, fitted)), trunk) = (&self.last, &self.members[0]) else { return };
        let hidden = trunk.hidden(contexts, rounds.clone());
        let eligible = contexts.slice(rounds).eligible().clone();
        let hidden = Contexts::new(fitted.layout(), hidden, eligible).expect("finite, and a row for each row");
        let mut mean = vec![0.0; width.len()];
        fitted.estimate_rounds(&hidden, 0..hidden.n_rounds(), &mut mean, width);
        width.iter_mut().for_each(|w| *w *= self.units.deviation);
    }
}

/// r̂₀₁ of every pair of a log, which a doubly robust objective begins with.
fn direct(config: &TrunkConfig, log: &LoggedData, seed: Seed, watch: &Watch) -> Result<Option<Vec<f32>>, Error> {
    if config.objective != Objective::DoublyRobust {
        return Ok(None);
    }
    let regression = TrunkConfig { objective: Objective::Regression, members: 1, ..config.clone() };
    let model = TrunkModel::fit(&regression, log, seed.child("direct"), watch)?;
    let units = Units::of(Objective::DoublyRobust, log, config.rewards);
    Ok(Some(model.means(log.contexts())?.into_iter().map(|r| units.share(r) as f32).collect()))
}

/// The clone whose probabilities make a width, of the same size as the members.
fn clone_of(log: &LoggedData, config: &TrunkConfig, seed: Seed, watch: &Watch) -> Result<Trunk, Error> {
    let size = config.capacity.expect("chosen before");
    let (seed, targets) = (seed.child("clone"), Targets::clone_of(log));
    let usual = Capacity { layers: size.layers, width: size.width, ..Capacity::default() };
    let config = TrunkConfig { towards: Towards::Zero, ..config.clone() };
    let mut trunk = Trunk::new(size.network(log.contexts().layout()), log.contexts(), seed)?;
    let training = config.training(usual, log.n_rounds(), 1.0);
    watch.plan(config.planned(usual, log.n_rounds()));
    trunk.train(log.contexts(), &targets.rounds(), training, &mut seed.stream("order"), &targets, watch)?;
    Ok(trunk)
}

/// As many rounds, drawn with replacement.
fn resample(rounds: &[u32], seed: Seed) -> Vec<u32> {
    use rand::RngExt;
    let mut stream = seed.stream("bootstrap");
    (0..rounds.len()).map(|_| rounds[stream.random_range(0..rounds.len())]).collect()
}

impl RewardModel for TrunkModel {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn estimate_rounds(&self, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
        let (objective, n) = (self.config.objective, self.members.len() as f64);
        let numbers_of = |trunk: &Trunk, objective: Objective| {
            let mut z = Vec::new();
            trunk.outputs(contexts, rounds.clone(), &mut z);
            dispatch(Numbers { objective, contexts, rounds: rounds.clone(), z: &mut z });
            z
        };
        let own: Vec<Vec<f32>> = self.members.iter().map(|trunk| numbers_of(trunk, objective)).collect();
        for (pair, (mean, width)) in mean.iter_mut().zip(width.iter_mut()).enumerate() {
            let member = || own.iter().map(|numbers| f64::from(numbers[pair]));
            let (average, least) = (member().sum::<f64>() / n, member().fold(f64::INFINITY, f64::min));
            *mean = self.units.reward(objective, average);
            *width = match self.config.width {
                Width::Spread => {
                    let spread = (member().map(|v| (v - average).powi(2)).sum::<f64>() / n).sqrt();
                    self.units.reward(objective, average + spread) - *mean
                }
                Width::Least => *mean - self.units.reward(objective, least),
                Width::Log | Width::LastLayer => 0.0,
            };
        }
        if let Some(clone) = &self.clone {
            for (width, p) in width.iter_mut().zip(numbers_of(clone, Objective::Clone)) {
                *width = -self.units.deviation * (f64::from(p) + 1e-6).ln().min(0.0);
            }
        }
        self.last_width(contexts, rounds, width);
    }
}

/// z of some rounds becomes what the objective says of each pair.
struct Numbers<'a> {
    objective: Objective,
    contexts: &'a Contexts,
    rounds: Range<usize>,
    z: &'a mut [f32],
}

impl Job for Numbers<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let mut from = 0;
        for t in self.rounds {
            let own = self.contexts.pairs(t).len();
            objective::numbers(self.objective, &mut self.z[from..from + own]);
            from += own;
        }
    }
}
