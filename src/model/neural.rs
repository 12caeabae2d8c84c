//! NeuraLCB (Algorithm 1; B-mode: Algorithm 7) and, at β = 0, NeuralGreedy (Algorithm 6).
//!
//! For t = 1, …, n:
//!
//! ```text
//! L_t(u) = f_{W^(t−1)}(u) − β ‖∇f_{W^(t−1)}(u)·m^{−1/2}‖_{Λ_{t−1}^{−1}}        mean and width of round t's policy
//! Λ_t    = Λ_{t−1} + ∇f_{W^(t−1)}(x_{t,a_t}) ∇f_{W^(t−1)}(x_{t,a_t})ᵀ / m      before the step
//! W^(t)  = W^(t−1) − η_t ∇ℒ_t(W^(t−1))                                         S-mode: one step on round t
//!          or J such steps, each on B samples drawn from 𝒟_t                   B-mode
//! ```
//!
//! with ℒ_t = ½(f_W(x_{t,a_t}) − r_t)² + (mλ/2)‖W − W⁽⁰⁾‖², or the experiments' Adam with an l2 penalty.
//! Per round O(p) in S-mode and O(J·B·p) in B-mode, whatever n: the whole pass is O(n).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::draws::Draws;
use super::lambda::{Covariance, Lambda};
use super::replay::{Replay, Training, Work};
use super::scorer::{self, Scorer};
use super::{Learner, RewardModel};
use crate::archive::{Archive, Keep};
use crate::data::{Layout, Pair};
use crate::error::{Error, at_least, regularisation};
use crate::net::{Net, NetConfig, Number, Observe, Optimiser, Params, Stepper, Tangents, Towards};
use crate::seed::Seed;

/// What the network is trained on in each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// S-mode: one step on the newest sample.
    Single,
    /// B-mode: `steps` steps, each on `batch` samples drawn from all rounds so far, with replacement.
    Batch {
        /// J, steps per round, ≥ 1.
        steps: usize,
        /// B, samples per step, ≥ 1.
        batch: usize,
    },
}

impl Mode {
    /// Steps per round on a batch, and the size of a batch: none in S-mode.
    fn steps_and_size(self) -> (usize, usize) {
        match self {
            Mode::Single => (1, 0),
            Mode::Batch { steps, batch } => (steps, batch),
        }
    }
}

/// When Λ learns of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateOrder {
    /// With the gradient at W^(t−1), before the step: the paper.
    BeforeStep,
    /// With the gradient at W^(t), after the step: the released code.
    AfterStep,
}

/// Settings of NeuraLCB.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `net` | L = 2, m = 20, layer norm | the network | see [`NetConfig`] |
/// | `optimiser` | Adam, lr 1e-3, l2 1e-4 towards 0 | how the weights move | see [`Optimiser`] |
/// | `mode` | S | what each round trains on | |
/// | `lambda` | 0.1 | λ, the start of Λ, and Algorithm 1's penalty | > 0 |
/// | `covariance` | diagonal | the form of Λ | |
/// | `order` | before the step | when Λ learns of a round | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NeuralConfig {
    /// The network.
    pub net: NetConfig,
    /// How the weights move.
    pub optimiser: Optimiser,
    /// What each round trains on.
    pub mode: Mode,
    /// λ.
    pub lambda: f64,
    /// The form of Λ.
    pub covariance: Covariance,
    /// When Λ learns of a round.
    pub order: UpdateOrder,
}

impl Default for NeuralConfig {
    fn default() -> Self {
        NeuralConfig {
            net: NetConfig::default(),
            optimiser: Optimiser::Adam { lr: 1e-3, l2: 1e-4, towards: Towards::Zero },
            mode: Mode::Single,
            lambda: 0.1,
            covariance: Covariance::Diagonal,
            order: UpdateOrder::BeforeStep,
        }
    }
}

impl NeuralConfig {
    /// Refuses what cannot work, but for the network.
    fn check(&self) -> Result<(), Error> {
        regularisation(self.lambda)?;
        if let Mode::Batch { steps, batch } = self.mode {
            at_least("steps per round", 1, "at least 1", steps)?;
            at_least("batch size", 1, "at least 1", batch)?;
        }
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

/// The neural model in training.
#[derive(Debug, Clone)]
pub struct Neural<T> {
    config: NeuralConfig,
    net: Net,
    layout: Layout,
    weights: Params<T>,
    lambda: Lambda<T>,
    stepper: Stepper<T>,
    /// Rounds read so far.
    t: usize,
    seed: Seed,
    /// What batches are drawn from; S-mode keeps nothing.
    replay: Replay,
    draws: Draws,
    work: Work<T>,
    one: Tangents<T>,
    scratch: Vec<T>,
}

impl<T: Number> Neural<T> {
    /// Checks the settings and draws W⁽⁰⁾ (stream `init`).
    pub fn new(config: NeuralConfig, layout: Layout, seed: Seed) -> Result<Self, Error> {
        let net = Net::new(config.net.clone(), layout)?;
        let weights = net.init(&mut seed.stream("init"));
        Self::with_weights(config, layout, seed, weights)
    }

    /// As [`Neural::new`], from given initial weights.
    pub fn with_weights(config: NeuralConfig, layout: Layout, seed: Seed, weights: Params<T>) -> Result<Self, Error> {
        config.check()?;
        let net = Net::new(config.net.clone(), layout)?;
        Ok(Neural {
            lambda: config.lambda_0(&net, layout),
            stepper: Stepper::new(config.optimiser, &net, &weights, config.lambda)?,
            t: 0,
            seed,
            replay: Replay::new(layout),
            draws: Draws::new(seed.stream("batches"), config.mode.steps_and_size().1, 0),
            work: Work::new(&net),
            one: Tangents::new(&net),
            scratch: Vec::new(),
            config,
            net,
            layout,
            weights,
        })
    }

    /// The network's shape.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// W^(t) after the t rounds read so far.
    pub fn weights(&self) -> &Params<T> {
        &self.weights
    }

    /// Λ_t where it is one diagonal over all parameters.
    pub fn lambda_diagonal(&self) -> Option<Params<T>> {
        match &self.lambda {
            Lambda::Diagonal(d) if !d.by_action => Some(Params { first: d.first.clone(), rest: d.rest.clone() }),
            _ => None,
        }
    }

    /// f and ∇f of one pair at the current weights, into `one`.
    fn pass(&mut self, chosen: Pair<'_>) {
        self.net.tangents_of(&self.weights, self.net.place(chosen.action), chosen.x, &mut self.one);
    }

    fn update_lambda(&mut self, chosen: Pair<'_>, reward: f64) {
        let block = self.net.place(chosen.action).0;
        self.lambda.add(&self.net, &self.one, block, chosen.action, reward);
    }

    /// The step of S-mode, after [`Neural::pass`]; a diagonal Λ learns of the round on the way, if it is to before the
    /// step.
    fn step_single(&mut self, Pair { action, .. }: Pair<'_>, reward: f64) {
        let before = self.config.order == UpdateOrder::BeforeStep;
        let Neural { net, weights, stepper, lambda, one, scratch, t, .. } = self;
        let (block, output) = net.place(action);
        T::observe(Observe {
            net,
            tangents: one,
            block,
            e: one.f()[output] - T::of(reward),
            weights,
            stepper,
            t: *t,
            growth: if before { lambda.growth(net, block, action) } else { None },
            scratch,
        });
    }

    /// One step of B-mode on a batch drawn from all rounds so far.
    fn step_batch(&mut self) {
        let Neural { net, weights, stepper, work, draws, replay, t, .. } = self;
        replay.step(draws.draw(*t), *t, Training { net, weights, stepper, work });
    }
}

impl<T: Number> Learner for Neural<T> {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        self.t += 1;
        let before = self.config.order == UpdateOrder::BeforeStep;
        match self.config.mode {
            Mode::Single => {
                self.pass(chosen);
                if before && self.lambda.is_exact() {
                    self.update_lambda(chosen, reward);
                }
                self.step_single(chosen, reward);
            }
            Mode::Batch { steps, .. } => {
                // a batch needs no more of an action than its block
                self.replay.push(Pair { action: self.layout.block(chosen.action), ..chosen }, reward);
                if before {
                    self.pass(chosen);
                    self.update_lambda(chosen, reward);
                }
                (0..steps).for_each(|_| self.step_batch());
            }
        }
        if !before {
            self.pass(chosen);
            self.update_lambda(chosen, reward);
        }
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        scorer::archive(&self.net, ("weights", &mut self.weights), &mut self.lambda, None, archive)?;
        if archive.keep() == Keep::Policy {
            return Ok(());
        }
        self.stepper.archive(&self.net, archive)?;
        let mut t = [self.t as u64];
        archive.array("rounds", &[1], &mut t)?;
        self.t = t[0] as usize;
        if let Mode::Batch { steps, .. } = self.config.mode {
            self.replay.archive("block", archive)?;
            let (expected, got) = (self.t, self.replay.len());
            if expected != got {
                return Err(Error::Shape { what: "rounds that batches are drawn from", expected, got });
            }
            if archive.is_reading() {
                let size = self.config.mode.steps_and_size().1;
                self.draws = Draws::new(self.seed.stream("batches"), size, self.t * steps);
            }
        }
        Ok(())
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        let (net, weights) = (self.net.clone(), self.weights.clone());
        Ok(Arc::new(Scorer::new(net, self.layout, weights, &mut self.lambda, None, false)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Init, OutputScale, Tensors};
    use serde_json::Value;

    fn pairs(v: &Value) -> Vec<(Vec<f32>, usize, f64)> {
        let numbers = |v: &Value| v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect();
        let pair =
            |p: &Value| (numbers(&p["x"]), p["action"].as_u64().unwrap() as usize, p["reward"].as_f64().unwrap());
        v.as_array().unwrap().iter().map(pair).collect()
    }

    /// Three Adam steps on one fixed batch, against JAX.
    #[test]
    fn batch_steps_work_like_jax() {
        let golden: Value = serde_json::from_str(include_str!("../../tests/golden/net.json")).unwrap();
        for case in golden["cases"].as_array().unwrap() {
            let size = |key: &str| case[key].as_u64().unwrap() as usize;
            let encoding = serde_json::from_value(case["encoding"].clone()).unwrap();
            let layout = Layout { dim: size("dim"), n_actions: size("n_actions"), encoding };
            let one = case["output_scale"] == "one";
            let net = NetConfig {
                depth: size("depth"),
                width: size("width"),
                layer_norm: case["layer_norm"].as_bool().unwrap(),
                biases: case["biases"].as_bool().unwrap(),
                output_scale: if one { OutputScale::One } else { OutputScale::SqrtWidth },
                init: Init::Block,
                ..NetConfig::default()
            };
            let rounds = pairs(&case["rounds"]);
            let mode = Mode::Batch { steps: 3, batch: rounds.len() };
            let optimiser = Optimiser::Adam { lr: 0.01, l2: 0.01, towards: Towards::Zero };
            let config = NeuralConfig { net, mode, optimiser, ..NeuralConfig::default() };
            let initial: Tensors = serde_json::from_value(case["params"].clone()).unwrap();
            let want: Tensors = serde_json::from_value(case["batch"]["final_params"].clone()).unwrap();
            let weights = Net::new(config.net.clone(), layout).unwrap().pack(&initial).unwrap();
            let mut model = Neural::<f64>::with_weights(config.clone(), layout, Seed::new(0), weights).unwrap();
            for (x, action, reward) in &rounds {
                model.replay.push(Pair { x, action: *action }, *reward);
            }
            let all: Vec<u32> = (0..rounds.len() as u32).collect();
            for t in 1..=3 {
                let Neural { net, weights, stepper, work, replay, .. } = &mut model;
                replay.step(&all, t, Training { net, weights, stepper, work });
            }
            let want: Params<f64> = model.net.pack(&want).unwrap();
            let distance = model.weights.distance_squared(&want).sqrt();
            assert!(distance < 1e-12, "{}: {distance}", case["name"]);
        }
    }
}
