//! A network over the rounds of a log: one number z for every eligible pair of a round.
//!
//! With one context per round it is a shared trunk with an output per action; where every action has its own vector, one
//! output is taken of each. It is trained on batches of rounds with any loss that is given by its slopes at the z of a
//! round, with Adam, whose step falls linearly to zero.
//!
//! A pass over n rounds costs O(n·(d·m + m·K)), or O(n·K·d·m) where every action has its own vector.

use rand::seq::SliceRandom;

use crate::archive::Archive;
use crate::data::{Contexts, Encoding, Layout};
use crate::error::{Error, at_least, not_negative, positive};
use crate::net::{
    Batch, Init, Net, NetConfig, Number, Optimiser, OutputScale, Outputs, OutputsOf, Params, Stepper, Towards, Work,
};
use crate::seed::{Seed, Stream};

/// Hidden layers of the trunk: He's initialisation, biases, no layer norm.
pub(crate) fn config(hidden: usize, width: usize, layout: Layout) -> NetConfig {
    NetConfig {
        depth: 1 + hidden,
        width: width.max(1),
        layer_norm: false,
        biases: true,
        outputs: if layout.encoding == Encoding::Disjoint { Outputs::PerAction } else { Outputs::One },
        output_scale: OutputScale::One,
        init: Init::He,
        ..NetConfig::default()
    }
}

/// How a trunk is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Training {
    /// Passes over the rounds.
    pub(crate) passes: usize,
    /// Rounds per step.
    pub(crate) batch: usize,
    /// Adam's learning rate at the start.
    pub(crate) lr: f64,
    /// Weight of ½‖W‖².
    pub(crate) l2: f64,
}

impl Training {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<(), Error> {
        at_least("epochs", 1, "at least 1", self.passes)?;
        at_least("batch size", 1, "at least 1", self.batch)?;
        positive("lr", self.lr)?;
        not_negative("l2", self.l2)
    }
}

/// Rounds scored at a time.
const BLOCK: usize = 256;

/// The network and the scale of its inputs.
#[derive(Debug, Clone)]
pub(crate) struct Trunk {
    net: Net,
    layout: Layout,
    weights: Params<f32>,
    /// Inputs are multiplied by it: 1 / root mean square, so that rows of unit norm and standardised rows train alike.
    scale: f32,
}

impl Trunk {
    /// A trunk with W⁽⁰⁾ (stream `weights`), for contexts like those given.
    pub(crate) fn new(config: NetConfig, contexts: &Contexts, seed: Seed) -> Result<Self, Error> {
        let layout = contexts.layout();
        let net = Net::new(config, layout)?;
        let weights = net.init(&mut seed.stream("weights"));
        let x = contexts.rows(0..contexts.n_rounds());
        let square = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / x.len().max(1) as f64;
        let scale = if square > 0.0 { square.sqrt().recip() as f32 } else { 1.0 };
        Ok(Trunk { net, layout, weights, scale })
    }

    /// A trunk that has learned nothing, to be filled by [`Trunk::archive`].
    pub(crate) fn blank(config: NetConfig, layout: Layout) -> Result<Self, Error> {
        let net = Net::new(config, layout)?;
        Ok(Trunk { weights: net.zeros(), net, layout, scale: 1.0 })
    }

    /// The contexts it understands.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Goes through what was learned under `name.`: `scale`, and the parameters.
    pub(crate) fn archive(&mut self, name: &str, archive: &mut Archive) -> Result<(), Error> {
        archive.array(&format!("{name}.scale"), &[1], std::slice::from_mut(&mut self.scale))?;
        self.net.archive(name, &mut self.weights, archive)
    }

    /// z of every pair of the rounds, round after round.
    pub(crate) fn outputs(&self, contexts: &Contexts, rounds: impl Iterator<Item = usize>, out: &mut Vec<f32>) {
        let (mut work, mut inputs, mut z) = (Work::new(&self.net), Vec::new(), Vec::new());
        let rounds: Vec<usize> = rounds.collect();
        for rounds in rounds.chunks(BLOCK) {
            inputs.clear();
            for &t in rounds {
                inputs.extend(contexts.rows(t..t + 1).iter().map(|x| x * self.scale));
            }
            z.resize(inputs.len() / self.layout.dim * self.net.n_outputs(), 0.0);
            f32::outputs(OutputsOf {
                net: &self.net,
                weights: &self.weights,
                inputs: &inputs,
                work: &mut work,
                out: &mut z,
            });
            let mut row = 0;
            for &t in rounds {
                let places = 0..contexts.pairs(t).len();
                out.extend(places.map(|place| z[self.output(contexts, t, row, place)]));
                row += self.rows(contexts, t);
            }
        }
    }

    /// Input rows of a round.
    fn rows(&self, contexts: &Contexts, t: usize) -> usize {
        if self.layout.encoding == Encoding::Disjoint { 1 } else { contexts.pairs(t).len() }
    }

    /// The output that belongs to a place of a round whose first input row is `row`.
    fn output(&self, contexts: &Contexts, t: usize, row: usize, place: usize) -> usize {
        match self.layout.encoding {
            Encoding::Disjoint => row * self.net.n_outputs() + contexts.action(t, place),
            Encoding::PerAction => row + place,
        }
    }

    /// Trains on some rounds. `loss` is given a round's number and its z, and turns them into slopes.
    pub(crate) fn train(
        &mut self,
        contexts: &Contexts,
        rounds: &[u32],
        training: Training,
        order: &mut Stream,
        mut loss: impl FnMut(usize, &mut [f32]),
    ) -> Result<(), Error> {
        training.check()?;
        let adam = Optimiser::Adam { lr: training.lr, l2: training.l2, towards: Towards::Zero };
        let mut stepper = Stepper::new(adam, &self.net, &self.weights, 1.0)?;
        let mut step = Step { batch: Batch::new(&self.net), z: Vec::new() };
        let mut rounds = rounds.to_vec();
        let n_steps = training.passes * rounds.len().div_ceil(training.batch);
        let mut t = 0;
        for _ in 0..training.passes {
            rounds.shuffle(order);
            for some in rounds.chunks(training.batch) {
                let rate = 1.0 - t as f64 / n_steps as f64;
                t += 1;
                step.forth(self, contexts, some);
                step.slopes(self, contexts, some, &mut loss);
                step.batch.back(&self.net, &mut self.weights, &mut stepper, t, rate);
            }
        }
        Ok(())
    }
}

/// Memory that every step uses again.
struct Step {
    batch: Batch<f32>,
    z: Vec<f32>,
}

impl Step {
    /// The outputs of some rounds.
    fn forth(&mut self, trunk: &Trunk, contexts: &Contexts, rounds: &[u32]) {
        let n_rows = rounds.iter().map(|&t| trunk.rows(contexts, t as usize)).sum();
        self.batch.begin(&trunk.net, n_rows, std::iter::repeat_n(0, n_rows));
        let mut row = 0;
        for &t in rounds {
            let t = t as usize;
            for x in contexts.rows(t..t + 1).chunks_exact(trunk.layout.dim) {
                let input = self.batch.input_mut(row);
                input.iter_mut().zip(x).for_each(|(input, x)| *input = x * trunk.scale);
                row += 1;
            }
        }
        self.batch.forth(&trunk.net, &trunk.weights);
    }

    /// The slopes of the mean loss of some rounds.
    fn slopes(&mut self, trunk: &Trunk, contexts: &Contexts, rounds: &[u32], loss: &mut impl FnMut(usize, &mut [f32])) {
        let (f, slopes) = self.batch.outputs_and_slopes();
        slopes.fill(0.0);
        let (share, mut row) = (1.0 / rounds.len() as f32, 0);
        for &t in rounds {
            let t = t as usize;
            let places = 0..contexts.pairs(t).len();
            self.z.clear();
            self.z.extend(places.clone().map(|place| f[trunk.output(contexts, t, row, place)]));
            loss(t, &mut self.z);
            for (place, z) in places.zip(&self.z) {
                slopes[trunk.output(contexts, t, row, place)] = z * share;
            }
            row += trunk.rows(contexts, t);
        }
    }
}
