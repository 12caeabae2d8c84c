//! A network over the rounds of a log: one number z for every eligible pair of a round.
//!
//! With one context per round it is a shared trunk with an output per action; where every action has its own vector,
//! one output is taken of each. It is trained on batches of rounds with any loss that is given by its slopes at the z
//! of a round, with Adam, whose step falls linearly to zero.
//!
//! A pass over n rounds costs O(n·(d·m + m·K)), or O(n·K·d·m) where every action has its own vector.

use std::ops::Range;

use rand::seq::SliceRandom;

use super::objective::Targets;
use crate::archive::Archive;
use crate::data::{Contexts, Eligible, Encoding, Layout};
use crate::error::{Error, at_least, not_negative, positive};
use crate::linalg::vectors::{Job, dispatch};
use crate::net::{Batch, Net, NetConfig, Number, Optimiser, OutputsOf, Params, Stepper, Towards, Work};
use crate::seed::{Seed, Stream};
use crate::watch::Watch;

/// How a trunk is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Training {
    /// Passes over the rounds.
    pub(crate) passes: usize,
    /// Rounds per step.
    pub(crate) batch: usize,
    /// Adam's learning rate at the start.
    pub(crate) lr: f64,
    /// Weight of the penalty.
    pub(crate) l2: f64,
    /// What it pulls towards.
    pub(crate) towards: Towards,
}

impl Training {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<(), Error> {
        at_least("passes", 1, "at least 1", self.passes)?;
        at_least("batch size", 1, "at least 1", self.batch)?;
        positive("lr", self.lr)?;
        not_negative("l2", self.l2)
    }
}

/// No input is farther from zero, in units of the root mean square: a few outliers and rare words would otherwise steer
/// the whole first layer. Of 3 and nothing, 3 measured better on every set of tables (docs/LEARNERS.md).
const FARTHEST: f32 = 3.0;

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
                inputs.extend(contexts.rows(t..t + 1).iter().map(|x| self.input(*x)));
            }
            z.resize(inputs.len() / self.layout.dim * self.net.n_outputs(), 0.0);
            f32::outputs(OutputsOf {
                net: &self.net,
                weights: &self.weights,
                inputs: &inputs,
                work: &mut work,
                out: &mut z,
                hidden: &mut [],
            });
            let mut row = 0;
            for &t in rounds {
                match self.all_outputs(contexts, t, row) {
                    Some(own) => out.extend_from_slice(&z[own]),
                    None => {
                        out.extend((0..contexts.pairs(t).len()).map(|place| z[self.output(contexts, t, row, place)]))
                    }
                }
                row += self.rows(contexts, t);
            }
        }
    }

    /// Numbers of the last hidden layer.
    pub(super) fn features(&self) -> usize {
        self.net.width()
    }

    /// The last hidden layer of every input row of the rounds.
    pub(super) fn hidden(&self, contexts: &Contexts, rounds: Range<usize>) -> Vec<f32> {
        let (mut work, m, d) = (Work::new(&self.net), self.features(), self.layout.dim);
        let inputs: Vec<f32> = contexts.rows(rounds).iter().map(|x| self.input(*x)).collect();
        let (mut z, mut hidden) = (vec![0.0; inputs.len() / d * self.net.n_outputs()], vec![0.0; inputs.len() / d * m]);
        f32::outputs(OutputsOf {
            net: &self.net,
            weights: &self.weights,
            inputs: &inputs,
            work: &mut work,
            out: &mut z,
            hidden: &mut hidden,
        });
        hidden
    }

    /// The input rows of each round, counted from the first one's.
    pub(super) fn rows_of(&self, contexts: &Contexts, rounds: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut row = 0;
        rounds.map(move |t| {
            row += self.rows(contexts, t);
            row - self.rows(contexts, t)..row
        })
    }

    /// A number of a context as the network sees it.
    #[inline(always)]
    fn input(&self, x: f32) -> f32 {
        (x * self.scale).clamp(-FARTHEST, FARTHEST)
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

    /// The outputs of all places of a round whose first input row is `row`, where they lie side by side.
    fn all_outputs(&self, contexts: &Contexts, t: usize, row: usize) -> Option<Range<usize>> {
        let (n, k) = (contexts.pairs(t).len(), self.net.n_outputs());
        match (self.layout.encoding, contexts.eligible()) {
            (Encoding::PerAction, _) => Some(row..row + n),
            (Encoding::Disjoint, Eligible::All) => Some(row * k..(row + 1) * k),
            (Encoding::Disjoint, Eligible::Some { .. }) => None,
        }
    }

    /// Trains on some rounds. They were planned before.
    pub(crate) fn train(
        &mut self,
        contexts: &Contexts,
        rounds: &[u32],
        training: Training,
        order: &mut Stream,
        targets: &Targets,
        watch: &Watch,
    ) -> Result<(), Error> {
        training.check()?;
        let adam = Optimiser::Adam { lr: training.lr, l2: training.l2, towards: training.towards };
        let mut stepper = Stepper::new(adam, &self.net, &self.weights, 1.0)?;
        let mut batch = Batch::new(&self.net);
        let (mut rounds, mut z) = (rounds.to_vec(), Vec::new());
        let n_steps = training.passes * rounds.len().div_ceil(training.batch);
        let mut t = 0;
        for _ in 0..training.passes {
            rounds.shuffle(order);
            for some in rounds.chunks(training.batch) {
                let rate = 1.0 - t as f64 / n_steps as f64;
                t += 1;
                self.enter(&mut batch, contexts, some);
                batch.forth(&self.net, &self.weights);
                dispatch(Slopes { trunk: self, batch: &mut batch, contexts, rounds: some, targets, z: &mut z });
                batch.back(&self.net, &mut self.weights, &mut stepper, t, rate);
                watch.tick(some.len())?;
            }
        }
        Ok(())
    }

    /// Writes the inputs of some rounds.
    fn enter(&self, batch: &mut Batch<f32>, contexts: &Contexts, rounds: &[u32]) {
        let n_rows = rounds.iter().map(|&t| self.rows(contexts, t as usize)).sum();
        batch.begin(&self.net, n_rows, std::iter::repeat_n(0, n_rows));
        let mut row = 0;
        for &t in rounds {
            let t = t as usize;
            for x in contexts.rows(t..t + 1).chunks_exact(self.layout.dim) {
                let input = batch.input_mut(row);
                input.iter_mut().zip(x).for_each(|(input, x)| *input = self.input(*x));
                row += 1;
            }
        }
    }

    /// The mean loss over some rounds.
    pub(super) fn loss(&self, contexts: &Contexts, rounds: &[u32], targets: &Targets) -> f64 {
        let mut z = Vec::new();
        self.outputs(contexts, rounds.iter().map(|&t| t as usize), &mut z);
        let (mut sum, mut from) = (0.0, 0);
        for &t in rounds {
            let pairs = contexts.pairs(t as usize);
            let own = from..from + pairs.len();
            from = own.end;
            sum += targets.value(t as usize, pairs.start, &mut z[own]);
        }
        sum / rounds.len() as f64
    }
}

/// The slopes of the mean loss of some rounds.
struct Slopes<'a> {
    trunk: &'a Trunk,
    batch: &'a mut Batch<f32>,
    contexts: &'a Contexts,
    rounds: &'a [u32],
    targets: &'a Targets,
    /// Memory for the outputs of a round.
    z: &'a mut Vec<f32>,
}

impl Job for Slopes<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Slopes { trunk, batch, contexts, rounds, targets, z } = self;
        let (f, slopes) = batch.outputs_and_slopes();
        slopes.fill(0.0);
        let (share, mut row) = (1.0 / rounds.len() as f32, 0);
        for &t in rounds {
            let (t, pairs) = (t as usize, contexts.pairs(t as usize));
            if let Some(own) = trunk.all_outputs(contexts, t, row) {
                let slopes = &mut slopes[own.clone()];
                slopes.copy_from_slice(&f[own]);
                targets.slopes(t, pairs.start, slopes);
                slopes.iter_mut().for_each(|slope| *slope *= share);
            } else {
                z.clear();
                z.extend((0..pairs.len()).map(|place| f[trunk.output(contexts, t, row, place)]));
                targets.slopes(t, pairs.start, z);
                for (place, z) in z.iter().enumerate() {
                    slopes[trunk.output(contexts, t, row, place)] = z * share;
                }
            }
            row += trunk.rows(contexts, t);
        }
    }
}
