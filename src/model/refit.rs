//! Networks that are fitted from scratch, by repeated passes over all rounds so far. Two systems of the paper's Table 1 and
//! Section 5, told apart by [`When`]:
//!
//! * **on demand** (Nguyen-Tang et al. 2021): a narrow network fitted to the whole log when a model is asked for, played
//!   greedily (β = 0). Λ is made of the gradients of the fitted network.
//! * **every round** (NeuralUCB, Zhou et al. 2020): W ← W⁽⁰⁾ and `passes` passes over 𝒟_t, at every t. Λ takes the gradient
//!   of each round at the weights that the round met. A pass costs O(t·p), so that reading a log costs O(n²·p): the
//!   counterpart of NeuraLCB's O(n·p).
//!
//! The loss is that of [`super::Neural`]; a pass visits the rounds in a new random order (stream `passes`), `batch` at a time.

use std::sync::Arc;

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::lambda::{Covariance, Lambda};
use super::scorer::Scorer;
use super::{Learner, RewardModel};
use crate::archive::{Archive, Keep};
use crate::data::{Layout, Pair};
use crate::error::{Error, at_least, positive};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::memory::Ahead;
use crate::linalg::simd::{Arch, Job, RowList, dispatch};
use crate::net::optim::Stepper;
use crate::net::{Batch, BatchStep, Gathered, Net, NetConfig, Optimiser, Params, Tangents, Towards};
use crate::seed::Seed;

/// When the network is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// When a model is asked for and rounds have come since the last.
    OnDemand,
    /// After every round.
    EveryRound,
}

/// Settings of a network that is fitted from scratch.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `net` | L = 2, m = 20, layer norm | the network | see [`NetConfig`] |
/// | `optimiser` | Adam, lr 1e-3, l2 1e-4 towards 0 | how the weights move | see [`Optimiser`] |
/// | `when` | on demand | when it is fitted | |
/// | `passes` | 20 | passes over all rounds so far | ≥ 1 |
/// | `batch` | 32 | samples per step | ≥ 1 |
/// | `lambda` | 0.1 | λ, the start of Λ, and SGD's penalty | > 0 |
/// | `covariance` | diagonal | the form of Λ | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefitConfig {
    /// The network.
    pub net: NetConfig,
    /// How the weights move.
    pub optimiser: Optimiser,
    /// When it is fitted.
    pub when: When,
    /// Passes over all rounds so far.
    pub passes: usize,
    /// Samples per step.
    pub batch: usize,
    /// λ.
    pub lambda: f64,
    /// The form of Λ.
    pub covariance: Covariance,
}

impl Default for RefitConfig {
    fn default() -> Self {
        RefitConfig {
            net: NetConfig::default(),
            optimiser: Optimiser::Adam { lr: 1e-3, l2: 1e-4, towards: Towards::Zero },
            when: When::OnDemand,
            passes: 20,
            batch: 32,
            lambda: 0.1,
            covariance: Covariance::Diagonal,
        }
    }
}

/// The network and the rounds it is fitted to.
#[derive(Debug, Clone)]
pub struct Refit<T> {
    config: RefitConfig,
    net: Net,
    layout: Layout,
    initial: Params<T>,
    weights: Params<T>,
    lambda: Lambda<T>,
    /// Of the order of rounds; each fit takes a stream of its own, so that none depends on those before.
    order: Seed,
    x: Vec<f32>,
    actions: Vec<u32>,
    rewards: Vec<f64>,
    /// Rounds that the weights were fitted to.
    fitted: usize,
    one: Tangents<T>,
}

impl<T: Scalar> Refit<T> {
    /// Checks the settings and draws W⁽⁰⁾ (stream `init`).
    pub fn new(config: RefitConfig, layout: Layout, seed: Seed) -> Result<Self, Error> {
        positive("lambda", config.lambda)?;
        at_least("passes", 1, "at least 1", config.passes)?;
        at_least("batch size", 1, "at least 1", config.batch)?;
        let net = Net::new(config.net.clone(), layout)?;
        let initial: Params<T> = net.init(&mut seed.stream("init"));
        Stepper::new(config.optimiser, &net, &initial, config.lambda)?; // the door of the optimiser
        Ok(Refit {
            lambda: Refit::new_lambda(&config, &net, layout),
            order: seed.child("passes"),
            weights: initial.clone(),
            one: Tangents::new(&net, 1),
            x: Vec::new(),
            actions: Vec::new(),
            rewards: Vec::new(),
            fitted: 0,
            config,
            net,
            layout,
            initial,
        })
    }

    fn new_lambda(config: &RefitConfig, net: &Net, layout: Layout) -> Lambda<T> {
        Lambda::new(config.covariance, net, layout, config.lambda, 1.0 / (net.width() as f64).sqrt())
    }

    /// The weights as last fitted.
    pub fn weights(&self) -> &Params<T> {
        &self.weights
    }
}

impl<T: Scalar> Refit<T> {
    /// Fits to the rounds that have come since the last fit, where that has been put off.
    fn fit_on_demand(&mut self) {
        if self.config.when == When::OnDemand && self.fitted < self.rewards.len() {
            T::fit(self);
            self.lambda = Refit::new_lambda(&self.config, &self.net, self.layout);
            for i in 0..self.rewards.len() {
                T::learn(self, i);
            }
        }
    }

    /// W ← W⁽⁰⁾, then the passes.
    pub(crate) fn fit(&mut self) {
        dispatch(Fit(self));
    }

    /// Λ ← Λ + φφᵀ of round i, at the current weights.
    pub(crate) fn learn(&mut self, i: usize) {
        dispatch(Learn { refit: self, i });
    }
}

struct Learn<'a, T> {
    refit: &'a mut Refit<T>,
    i: usize,
}

impl<T: Scalar> Job for Learn<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let (Refit { net, weights, one, lambda, layout, x, actions, rewards, .. }, i) = (self.refit, self.i);
        let (d, action) = (layout.dim, actions[i] as usize);
        let block = layout.block(action);
        net.tangents_of::<T, A>(weights, block, &x[i * d..(i + 1) * d], one);
        lambda.add::<A>(net, one, block, action, rewards[i]);
    }
}

struct Fit<'a, T>(&'a mut Refit<T>);

impl<T: Scalar> Job for Fit<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let refit = self.0;
        let n = refit.rewards.len();
        let mut weights = refit.initial.clone();
        let RefitConfig { optimiser, passes, batch: size, lambda, .. } = refit.config;
        let mut stepper = Stepper::new(optimiser, &refit.net, &weights, lambda).expect("the settings were checked");
        let mut order: Vec<usize> = (0..n).collect();
        let (mut whole, mut rest) = (Batch::new(&refit.net, size.min(n)), Batch::new(&refit.net, (n % size).max(1)));
        let (mut gathered, mut places) = (Gathered::new(&refit.net, size.min(n)), Vec::new());
        let (mut t, mut stream) = (0, refit.order.nth(n as u64).stream("order"));
        for _ in 0..passes {
            order.shuffle(&mut stream);
            for rows in order.chunks_mut(size) {
                rows.sort_by_key(|&i| refit.layout.block(refit.actions[i] as usize));
                let batch = if rows.len() == size.min(n) { &mut whole } else { &mut rest };
                let mut blocks: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
                for (row, &i) in rows.iter().enumerate() {
                    let block = refit.layout.block(refit.actions[i] as usize);
                    match blocks.last_mut() {
                        Some((known, range)) if *known == block => range.end += 1,
                        _ => blocks.push((block, row..row + 1)),
                    }
                }
                batch.set_rewards(rows.iter().map(|&i| refit.rewards[i]));
                t += 1;
                let (net, dim) = (&refit.net, refit.layout.dim);
                places.clear();
                places.extend(rows.iter().map(|i| i * dim));
                A::call(BatchStep {
                    net,
                    weights: &mut weights,
                    stepper: &mut stepper,
                    t,
                    inputs: gathered.gather::<A>(net, RowList::new(&refit.x, dim, &places)),
                    blocks: &blocks,
                    batch,
                    ahead: Ahead::nothing(),
                });
            }
        }
        refit.weights = weights;
        refit.fitted = n;
    }
}

impl<T: Scalar> Learner for Refit<T> {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        self.x.extend_from_slice(chosen.x);
        self.actions.push(chosen.action as u32);
        self.rewards.push(reward);
        if self.config.when == When::EveryRound {
            let i = self.rewards.len() - 1;
            T::learn(self, i);
            T::fit(self);
        }
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        if archive.keep() == Keep::Policy && !archive.is_reading() {
            self.fit_on_demand();
        }
        self.net.archive("weights", &mut self.weights, archive)?;
        self.lambda.archive(&self.net, archive)?;
        if archive.keep() == Keep::Policy {
            return Ok(());
        }
        archive.list("replay.context", self.layout.dim, &mut self.x)?;
        archive.list("replay.action", 1, &mut self.actions)?;
        archive.list("replay.reward", 1, &mut self.rewards)?;
        let n = self.rewards.len();
        for got in [self.x.len() / self.layout.dim, self.actions.len()] {
            if got != n {
                return Err(Error::Shape { what: "rounds to fit to", expected: n, got });
            }
        }
        if let Some(&action) = self.actions.iter().find(|&&a| a as usize >= self.layout.n_actions) {
            let (name, want) = ("replay.action".to_owned(), format!("below {}", self.layout.n_actions));
            return Err(Error::Array { name, want, got: action.to_string() });
        }
        if archive.is_reading() {
            self.fitted = if self.config.when == When::EveryRound { n } else { 0 };
        }
        Ok(())
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        self.fit_on_demand();
        Ok(Arc::new(Scorer::new(&self.net, self.layout, &self.weights, &mut self.lambda, None, false)?))
    }
}
