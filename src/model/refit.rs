//! Networks that are fitted from scratch, by repeated passes over all rounds so far. Two systems of the paper's Table 1
//! and Section 5, told apart by [`When`]:
//!
//! * **on demand** (Nguyen-Tang et al. 2021): a narrow network fitted to the whole log when a model is asked for,
//!   played greedily (β = 0). Λ is made of the gradients of the fitted network.
//! * **every round** (NeuralUCB, Zhou et al. 2020): W ← W⁽⁰⁾ and `passes` passes over 𝒟_t, at every t. Λ takes the
//!   gradient of each round at the weights that the round met. A pass costs O(t·p), so that reading a log costs
//!   O(n²·p): the counterpart of NeuraLCB's O(n·p).
//!
//! The loss is that of [`super::Neural`]; a pass visits the rounds in a new random order (stream `passes`), `batch` at
//! a time.

use std::sync::Arc;

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::lambda::{Covariance, Lambda};
use super::replay::{Replay, Training, Work};
use super::scorer::{self, Scorer};
use super::{Learner, RewardModel};
use crate::archive::{Archive, Keep};
use crate::data::{Layout, Pair};
use crate::error::{Error, at_least, regularisation};
use crate::net::{Net, NetConfig, Number, Optimiser, Params, Stepper, Tangents, Towards};
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

impl RefitConfig {
    /// Refuses what cannot work, but for the network.
    fn check(&self) -> Result<(), Error> {
        regularisation(self.lambda)?;
        at_least("passes", 1, "at least 1", self.passes)?;
        at_least("batch size", 1, "at least 1", self.batch)?;
        self.optimiser.check()
    }

    /// Λ at its start.
    fn lambda_0<T: Number>(&self, net: &Net, layout: Layout) -> Lambda<T> {
        Lambda::new(self.covariance, net, layout, self.lambda, 1.0 / (net.width() as f64).sqrt())
    }

    /// The frozen model that a policy's arrays hold.
    pub(super) fn restore<T: Number>(&self, layout: Layout, archive: &mut Archive) -> Result<Scorer<T>, Error> {
        self.check()?;
        let net = Net::new(self.net.clone(), layout)?;
        let lambda = self.lambda_0(&net, layout);
        Scorer::restore(net, layout, "weights", lambda, None, false, archive)
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
    replay: Replay,
    /// Rounds that the weights were fitted to.
    fitted: usize,
    one: Tangents<T>,
}

impl<T: Number> Refit<T> {
    /// Checks the settings and draws W⁽⁰⁾ (stream `init`).
    pub fn new(config: RefitConfig, layout: Layout, seed: Seed) -> Result<Self, Error> {
        config.check()?;
        let net = Net::new(config.net.clone(), layout)?;
        let initial: Params<T> = net.init(&mut seed.stream("init"));
        Ok(Refit {
            lambda: config.lambda_0(&net, layout),
            order: seed.child("passes"),
            weights: initial.clone(),
            one: Tangents::new(&net),
            replay: Replay::new(layout),
            fitted: 0,
            config,
            net,
            layout,
            initial,
        })
    }

    /// The weights as last fitted.
    pub fn weights(&self) -> &Params<T> {
        &self.weights
    }
}

impl<T: Number> Refit<T> {
    /// Fits to the rounds that have come since the last fit, where that has been put off.
    fn fit_on_demand(&mut self) {
        if self.config.when == When::OnDemand && self.fitted < self.replay.len() {
            self.fit();
            self.lambda = self.config.lambda_0(&self.net, self.layout);
            (0..self.replay.len()).for_each(|round| self.learn(round));
        }
    }

    /// W ← W⁽⁰⁾, then the passes.
    fn fit(&mut self) {
        let Refit { config: RefitConfig { optimiser, passes, batch, lambda, .. }, net, replay, .. } = self;
        let n = replay.len();
        let mut weights = self.initial.clone();
        let mut stepper = Stepper::new(*optimiser, net, &weights, *lambda).expect("the settings were checked");
        let mut work = Work::new(net);
        let mut order: Vec<u32> = (0..n as u32).collect();
        let (mut t, mut stream) = (0, self.order.nth(n as u64).stream("order"));
        for _ in 0..*passes {
            order.shuffle(&mut stream);
            for rounds in order.chunks(*batch) {
                t += 1;
                let (stepper, work) = (&mut stepper, &mut work);
                replay.step(rounds, t, Training { net, weights: &mut weights, stepper, work });
            }
        }
        self.weights = weights;
        self.fitted = n;
    }

    /// Λ ← Λ + φφᵀ of a round, at the current weights.
    fn learn(&mut self, round: usize) {
        let Refit { net, weights, one, lambda, replay, .. } = self;
        let action = replay.action(round);
        let place = net.place(action);
        net.tangents_of(weights, place, replay.context(round), one);
        lambda.add(net, one, place.0, action, replay.reward(round));
    }
}

impl<T: Number> Learner for Refit<T> {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        self.replay.push(chosen, reward);
        if self.config.when == When::EveryRound {
            self.learn(self.replay.len() - 1);
            self.fit();
        }
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        if archive.keep() == Keep::Policy && !archive.is_reading() {
            self.fit_on_demand();
        }
        scorer::archive(&self.net, ("weights", &mut self.weights), &mut self.lambda, None, archive)?;
        if archive.keep() == Keep::Policy {
            return Ok(());
        }
        self.replay.archive("action", archive)?;
        if archive.is_reading() {
            self.fitted = if self.config.when == When::EveryRound { self.replay.len() } else { 0 };
        }
        Ok(())
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        self.fit_on_demand();
        let (net, weights) = (self.net.clone(), self.weights.clone());
        Ok(Arc::new(Scorer::new(net, self.layout, weights, &mut self.lambda, None, false)?))
    }
}
