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

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::draws::Draws;
use super::lambda::{Covariance, Lambda};
use super::replay::Replay;
use super::scorer::Scorer;
use super::{Learner, RewardModel};
use crate::archive::{Archive, Keep};
use crate::data::{Layout, Pair};
use crate::error::{Error, at_least, positive};
use crate::linalg::scalar::Scalar;
use crate::linalg::simd::{Arch, Job, dispatch};
use crate::net::optim::Stepper;
use crate::net::{Batch, BatchStep, Gathered, Net, NetConfig, Optimiser, Params, Round, Tangents, Towards};
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
}

/// Memory that every step uses again.
#[derive(Debug, Clone)]
struct Work<T> {
    one: Tangents<T>,
    batch: Batch<T>,
    gathered: Gathered<T>,
    /// The rounds of this step's batch, sorted by block, and where they lie.
    sorted: Vec<u32>,
    places: Vec<usize>,
    /// The blocks that have any, and which rounds of `sorted` these are.
    blocks: Vec<(usize, Range<usize>)>,
    /// Where each block begins in `sorted`, while it is sorted.
    starts: Vec<usize>,
}

impl<T: Scalar> Neural<T> {
    /// Checks the settings and draws W⁽⁰⁾ (stream `init`).
    pub fn new(config: NeuralConfig, layout: Layout, seed: Seed) -> Result<Self, Error> {
        let net = Net::new(config.net.clone(), layout)?;
        let weights = net.init(&mut seed.stream("init"));
        Self::with_weights(config, layout, seed, weights)
    }

    /// As [`Neural::new`], from given initial weights.
    pub fn with_weights(config: NeuralConfig, layout: Layout, seed: Seed, weights: Params<T>) -> Result<Self, Error> {
        positive("lambda", config.lambda)?;
        let net = Net::new(config.net.clone(), layout)?;
        let rows = match config.mode {
            Mode::Single => 1,
            Mode::Batch { steps, batch } => {
                at_least("steps per round", 1, "at least 1", steps)?;
                at_least("batch size", 1, "at least 1", batch)?;
                batch
            }
        };
        let scale = 1.0 / (net.width() as f64).sqrt();
        Ok(Neural {
            lambda: Lambda::new(config.covariance, &net, layout, config.lambda, scale),
            stepper: Stepper::new(config.optimiser, &net, &weights, config.lambda)?,
            t: 0,
            seed,
            replay: Replay::new(layout),
            draws: Draws::new(seed.stream("batches"), config.mode.steps_and_size(), 0),
            work: Work {
                one: Tangents::new(&net, 1),
                batch: Batch::new(&net, rows),
                gathered: Gathered::new(&net, rows),
                sorted: vec![0; rows],
                places: vec![0; rows],
                blocks: vec![(0, 0..rows)],
                starts: vec![0; layout.n_blocks() + 1],
            },
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

    /// The steps of a round, which is in `replay` already.
    pub(crate) fn train(&mut self, chosen: Pair<'_>, reward: f64) {
        dispatch(Observe { neural: self, chosen, reward });
    }

    /// f and ∇f of one pair at the current weights, into `work.one`.
    #[inline(always)]
    fn tangents_of<A: Arch>(&mut self, chosen: Pair<'_>) {
        let block = self.layout.block(chosen.action);
        self.net.tangents_of::<T, A>(&self.weights, block, chosen.x, &mut self.work.one);
    }

    #[inline(always)]
    fn update_lambda<A: Arch>(&mut self, chosen: Pair<'_>, reward: f64) {
        let block = self.layout.block(chosen.action);
        self.lambda.add::<A>(&self.net, &self.work.one, block, chosen.action, reward);
    }

    /// The step of S-mode; Λ learns of the round on the way, if it is to before the step.
    #[inline(always)]
    fn step_single<A: Arch>(&mut self, chosen: Pair<'_>, reward: f64) {
        let Pair { x, action } = chosen;
        let (block, before) = (self.layout.block(action), self.config.order == UpdateOrder::BeforeStep);
        let exact = before && self.lambda.is_exact();
        let in_memory = exact || !A::ROWS_IN_REGISTERS || !self.net.is_small();
        if in_memory {
            self.tangents_of::<A>(chosen);
        }
        if exact {
            self.update_lambda::<A>(chosen, reward);
        }
        let growth = if before { self.lambda.growth(&self.net, block, action) } else { None };
        let step = self.stepper.begin(self.t, &mut self.weights);
        if in_memory {
            let e = self.work.one.f()[0] - T::of(reward);
            self.net.step_one::<T, A>(&self.work.one, block, e, step, growth);
        } else {
            self.net.single_step::<T, A>(Round { x, block, reward }, step, growth);
        }
    }

    /// One step of B-mode on the batch that was drawn for it.
    #[inline(always)]
    fn step_batch<A: Arch>(&mut self) {
        self.sort_batch();
        let (replay, Work { batch, gathered, sorted, places, blocks, .. }) = (&self.replay, &mut self.work);
        let records = replay.records(sorted, places);
        batch.set_rewards(records.iter().map(|record| replay.reward(record)));
        let ahead = replay.ahead(self.draws.next(), batch.pauses());
        A::call(BatchStep {
            net: &self.net,
            weights: &mut self.weights,
            stepper: &mut self.stepper,
            t: self.t,
            inputs: gathered.gather::<A>(&self.net, records),
            blocks,
            batch,
            ahead,
        });
    }

    /// Sorts the drawn rounds by block.
    #[inline(always)]
    fn sort_batch(&mut self) {
        let (drawn, Work { sorted, blocks, starts, .. }) = (self.draws.now(), &mut self.work);
        if self.layout.n_blocks() == 1 {
            sorted.copy_from_slice(drawn);
            return;
        }
        let block = |i: u32| self.replay.block(i as usize);
        starts.fill(0);
        drawn.iter().for_each(|&i| starts[block(i)] += 1);
        let mut end = 0;
        for start in starts.iter_mut() {
            end += *start;
            *start = end;
        }
        for &i in drawn.iter().rev() {
            let at = &mut starts[block(i)];
            *at -= 1;
            sorted[*at] = i;
        }
        blocks.clear();
        blocks.extend(starts.windows(2).map(|w| w[0]..w[1]).enumerate().filter(|(_, rows)| !rows.is_empty()));
    }
}

struct Observe<'a, 'b, T> {
    neural: &'a mut Neural<T>,
    chosen: Pair<'b>,
    reward: f64,
}

impl<T: Scalar> Job for Observe<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arch>(self) {
        let Observe { neural, chosen, reward } = self;
        match neural.config.mode {
            Mode::Single => neural.step_single::<A>(chosen, reward),
            Mode::Batch { steps, .. } => {
                if neural.config.order == UpdateOrder::BeforeStep {
                    neural.tangents_of::<A>(chosen);
                    neural.update_lambda::<A>(chosen, reward);
                }
                for _ in 0..steps {
                    neural.draws.turn();
                    neural.step_batch::<A>();
                }
            }
        }
        if neural.config.order == UpdateOrder::AfterStep {
            neural.tangents_of::<A>(chosen);
            neural.update_lambda::<A>(chosen, reward);
        }
    }
}

impl<T: Scalar> Learner for Neural<T> {
    fn observe(&mut self, chosen: Pair<'_>, reward: f64) {
        self.t += 1;
        if self.config.mode != Mode::Single {
            self.replay.push(chosen.x, self.layout.block(chosen.action), reward);
        }
        T::train(self, chosen, reward);
    }

    fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        self.net.archive("weights", &mut self.weights, archive)?;
        self.lambda.archive(&self.net, archive)?;
        if archive.keep() == Keep::Policy {
            return Ok(());
        }
        self.stepper.archive(&self.net, archive)?;
        let mut t = [self.t as u64];
        archive.array("rounds", &[1], &mut t)?;
        self.t = t[0] as usize;
        if let Mode::Batch { steps, .. } = self.config.mode {
            self.replay.archive(archive)?;
            let (expected, got) = (self.t, self.replay.len());
            if expected != got {
                return Err(Error::Shape { what: "rounds that batches are drawn from", expected, got });
            }
            if archive.is_reading() {
                let sizes = self.config.mode.steps_and_size();
                self.draws = Draws::new(self.seed.stream("batches"), sizes, self.t * steps);
            }
        }
        Ok(())
    }

    fn model(&mut self) -> Result<Arc<dyn RewardModel>, Error> {
        let scorer = Scorer::new(&self.net, self.layout, &self.weights, &mut self.lambda, None, false)?;
        Ok(Arc::new(scorer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::simd::Portable;
    use crate::net::{Init, OutputScale, Tensors};
    use serde_json::Value;

    fn pairs(v: &Value) -> Vec<(Vec<f32>, usize, f64)> {
        let numbers = |v: &Value| v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect();
        let pair =
            |p: &Value| (numbers(&p["x"]), p["action"].as_u64().unwrap() as usize, p["reward"].as_f64().unwrap());
        v.as_array().unwrap().iter().map(pair).collect()
    }

    struct Step<'a>(&'a mut Neural<f64>);

    impl Job for Step<'_> {
        type Out = ();
        #[inline(always)]
        fn run<A: Arch>(self) {
            self.0.step_batch::<A>();
        }
    }

    /// Three Adam steps on one fixed batch, against JAX, with the processor's best instructions and without.
    #[test]
    fn batch_steps_work_like_jax_on_every_path() {
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
                duplicate_input: false,
            };
            let rounds = pairs(&case["rounds"]);
            let mode = Mode::Batch { steps: 3, batch: rounds.len() };
            let optimiser = Optimiser::Adam { lr: 0.01, l2: 0.01, towards: Towards::Zero };
            let config = NeuralConfig { net, mode, optimiser, ..NeuralConfig::default() };
            let initial: Tensors = serde_json::from_value(case["params"].clone()).unwrap();
            let want: Tensors = serde_json::from_value(case["batch"]["final_params"].clone()).unwrap();
            for best in [true, false] {
                let weights = Net::new(config.net.clone(), layout).unwrap().pack(&initial).unwrap();
                let mut model = Neural::<f64>::with_weights(config.clone(), layout, Seed::new(0), weights).unwrap();
                for (x, action, reward) in &rounds {
                    model.replay.push(x, layout.block(*action), *reward);
                }
                model.draws.set_now((0..rounds.len() as u32).collect());
                for _ in 0..3 {
                    if best { dispatch(Step(&mut model)) } else { model.step_batch::<Portable>() }
                }
                let want: Params<f64> = model.net.pack(&want).unwrap();
                let distance = model.weights.distance_squared(&want).sqrt();
                assert!(distance < 1e-12, "{}: {distance}", case["name"]);
            }
        }
    }
}
