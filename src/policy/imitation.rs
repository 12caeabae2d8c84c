//! Imitation: a classifier of the logged actions, the clone of the policy that made the log.
//!
//! μ̂(a | x) = softmax over the eligible actions of f_a(x),  f = W_2 max(W_1 x + b_1, 0) + b_2
//!
//! (with `width` 0 there is no hidden layer: f = W x + b, the multinomial logistic model)
//!
//! fitted by maximum likelihood with Adam on batches of 64 rounds. With one vector per round f has an output per action;
//! with a vector per action one output is taken of each (a conditional logit). Every tenth round is held out: the weights
//! with the best likelihood there are kept, and training ends when it has not risen for some epochs.
//!
//! A log of a good policy is a strong teacher even without rewards: whoever learns from rewards should beat its clone.

use std::ops::Range;

use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::pessimism::Choices;
use crate::archive::Archive;
use crate::data::{Contexts, Encoding, Layout, LoggedData};
use crate::error::{Error, at_least, not_negative, positive};
use crate::linalg::gemm::{Matrix, product};
use crate::seed::{Seed, Stream};

/// Settings of the clone.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `width` | 100 | hidden units; 0 is the multinomial logistic model | ≥ 0 |
/// | `lr` | 0.001 | Adam's learning rate | > 0 |
/// | `l2` | 0.0001 | weight of ½‖W‖² | ≥ 0 |
/// | `epochs` | 50 | passes over the log at most (more on a log of a few batches) | ≥ 1 |
/// | `patience` | 5 | epochs without a better held-out likelihood before training ends | ≥ 1 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImitationConfig {
    /// Hidden units; 0 for none.
    pub width: usize,
    /// Adam's learning rate.
    pub lr: f64,
    /// Weight of ½‖W‖².
    pub l2: f64,
    /// Passes over the log at most.
    pub epochs: usize,
    /// Epochs without improvement before training ends.
    pub patience: usize,
}

impl Default for ImitationConfig {
    fn default() -> Self {
        ImitationConfig { width: 100, lr: 1e-3, l2: 1e-4, epochs: 50, patience: 5 }
    }
}

/// Rounds per step of Adam.
const BATCH: usize = 64;

/// Steps that a short log is given at least.
const LEAST_STEPS: usize = 300;

/// One round in this many is held out.
const HELD_OUT: usize = 10;

/// A log with fewer rounds than this is too short to hold any out.
const SHORT: usize = 100;

/// A fitted clone.
#[derive(Debug, Clone)]
pub struct Imitation {
    shape: Shape,
    weights: Vec<f32>,
}

impl Imitation {
    /// Fits the clone to the given rounds of a log. The seed decides initial weights and batches.
    pub fn fit(config: &ImitationConfig, log: &LoggedData, rounds: Range<usize>, seed: Seed) -> Result<Self, Error> {
        at_least("epochs", 1, "at least 1", config.epochs)?;
        at_least("patience", 1, "at least 1", config.patience)?;
        at_least("rounds in the log", 1, "at least 1", rounds.len())?;
        positive("lr", config.lr)?;
        not_negative("l2", config.l2)?;
        let shape = Shape::new(log, rounds.clone(), config.width);
        let mut weights = shape.initial(&mut seed.stream("weights"));
        let (held_out, mut train): (Vec<usize>, Vec<usize>) =
            rounds.clone().partition(|t| rounds.len() >= SHORT && t % HELD_OUT == HELD_OUT - 1);
        let mut order = seed.stream("batches");
        let mut adam = Adam::new(weights.len());
        let mut best = (f64::INFINITY, weights.clone());
        let (mut waited, mut work) = (0, Work::default());
        for _ in 0..config.epochs.max(LEAST_STEPS / train.len().div_ceil(BATCH)) {
            train.shuffle(&mut order);
            for batch in train.chunks(BATCH) {
                shape.forward(&weights, log.contexts(), batch, &mut work);
                shape.backward(&weights, log, batch, &mut work);
                adam.step(config, &work.gradient, &mut weights);
            }
            if held_out.is_empty() {
                continue;
            }
            let loss = shape.loss(&weights, log, &held_out, &mut work);
            if loss < best.0 {
                best = (loss, weights.clone());
                waited = 0;
            } else {
                waited += 1;
                if waited == config.patience {
                    break;
                }
            }
        }
        let weights = if held_out.is_empty() { weights } else { best.1 };
        Ok(Imitation { shape, weights })
    }

    /// A clone that has learned nothing, for [`Imitation::archive`] to fill.
    pub fn blank(config: &ImitationConfig, layout: Layout) -> Imitation {
        let shape = Shape { layout, width: config.width, outputs: Shape::outputs(layout), scale: 1.0 };
        Imitation { weights: vec![0.0; shape.ends()[3]], shape }
    }

    /// Goes through what was learned: `clone.scale`, and `clone.w1` (inputs × units), `bias1`, `w2` (units × outputs),
    /// `bias2`.
    pub fn archive(&mut self, archive: &mut Archive) -> Result<(), Error> {
        let (d, m, k) = (self.shape.layout.dim, self.shape.width, self.shape.outputs);
        archive.array("clone.scale", &[1], std::slice::from_mut(&mut self.shape.scale))?;
        let mut from = 0;
        let shapes: [(_, &[usize]); 4] = [("w1", &[d, m]), ("bias1", &[m]), ("w2", &[m, k]), ("bias2", &[k])];
        for (end, (name, shape)) in self.shape.ends().into_iter().zip(shapes) {
            archive.array(&format!("clone.{name}"), shape, &mut self.weights[from..end])?;
            from = end;
        }
        Ok(())
    }

    /// The contexts it understands.
    pub fn layout(&self) -> Layout {
        self.shape.layout
    }

    /// μ̂(a | x) of every pair.
    pub fn probabilities(&self, contexts: &Contexts) -> Result<Vec<f64>, Error> {
        if contexts.layout() != self.shape.layout {
            return Err(Error::Layout { expected: self.shape.layout, got: contexts.layout() });
        }
        let rounds: Vec<usize> = (0..contexts.n_rounds()).collect();
        let block = |rounds: &[usize]| {
            let mut work = Work::default();
            self.shape.forward(&self.weights, contexts, rounds, &mut work);
            work.p.iter().map(|&p| f64::from(p)).collect::<Vec<f64>>()
        };
        Ok(rounds.par_chunks(256).flat_map_iter(block).collect())
    }

    /// The place of the most likely action of every round; of equal ones, the first.
    pub fn choose(&self, contexts: &Contexts) -> Result<Choices, Error> {
        let p = self.probabilities(contexts)?;
        Ok((0..contexts.n_rounds()).map(|t| super::behaviour::best(&p[contexts.pairs(t)]) as u32).collect())
    }
}

/// The network's sizes and the scale of its inputs.
#[derive(Debug, Clone)]
struct Shape {
    layout: Layout,
    width: usize,
    /// Outputs per input row: K, or 1 where every action has its own row.
    outputs: usize,
    /// 1 / root mean square of the inputs: rows of unit norm and standardised rows train alike.
    scale: f32,
}

/// What a pass over some rounds leaves behind.
#[derive(Debug, Default)]
struct Work {
    /// Input rows, scaled.
    x: Vec<f32>,
    /// Hidden values after the ReLU.
    h: Vec<f32>,
    /// Outputs of each row; after the backward pass, their derivatives.
    f: Vec<f32>,
    /// The softmax of every pair.
    p: Vec<f32>,
    /// Derivatives of the hidden values.
    dh: Vec<f32>,
    /// Derivatives of all weights, W_1, b_1, W_2, b_2.
    gradient: Vec<f32>,
}

impl Shape {
    fn new(log: &LoggedData, rounds: Range<usize>, width: usize) -> Shape {
        let layout = log.contexts().layout();
        let x = log.contexts().rows(rounds);
        let square = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / x.len() as f64;
        let scale = if square > 0.0 { square.sqrt().recip() as f32 } else { 1.0 };
        Shape { layout, width, outputs: Shape::outputs(layout), scale }
    }

    fn outputs(layout: Layout) -> usize {
        if layout.encoding == Encoding::Disjoint { layout.n_actions } else { 1 }
    }

    /// Where W_1, b_1, W_2, b_2 end.
    fn ends(&self) -> [usize; 4] {
        let first = self.layout.dim * self.width;
        let second = first + self.width;
        let third = second + self.last() * self.outputs;
        [first, second, third, third + self.outputs]
    }

    /// Inputs of the output layer: the hidden units, or the context itself.
    fn last(&self) -> usize {
        if self.width == 0 { self.layout.dim } else { self.width }
    }

    /// He et al.'s initialisation, biases 0; without a hidden layer all 0, since the problem is convex.
    fn initial(&self, rng: &mut Stream) -> Vec<f32> {
        let [w1, b1, w2, b2] = self.ends();
        let mut weights = vec![0.0; b2];
        if self.width == 0 {
            return weights;
        }
        let mut fill = |weights: &mut [f32], n_in: usize| {
            let std = (2.0 / n_in as f32).sqrt();
            weights
                .iter_mut()
                .for_each(|w| *w = std * <StandardNormal as Distribution<f32>>::sample(&StandardNormal, rng));
        };
        fill(&mut weights[..w1], self.layout.dim);
        fill(&mut weights[b1..w2], self.width);
        weights
    }

    /// Fills x, h, f and p for the given rounds.
    fn forward(&self, weights: &[f32], contexts: &Contexts, rounds: &[usize], work: &mut Work) {
        let [w1, b1, w2, _] = self.ends();
        let (d, m, k) = (self.layout.dim, self.width, self.outputs);
        work.x.clear();
        for &t in rounds {
            work.x.extend(contexts.rows(t..t + 1).iter().map(|x| x * self.scale));
        }
        let n = work.x.len() / d;
        work.h.resize(n * m, 0.0);
        work.f.resize(n * k, 0.0);
        if m > 0 {
            product(Matrix::new(&work.x, n, d), Matrix::new(&weights[..w1], d, m), &mut work.h);
            for h in work.h.chunks_exact_mut(m) {
                h.iter_mut().zip(&weights[w1..b1]).for_each(|(h, b)| *h = (*h + b).max(0.0));
            }
        }
        let (last, h) = (self.last(), if m > 0 { &work.h } else { &work.x });
        product(Matrix::new(h, n, last), Matrix::new(&weights[b1..w2], last, k), &mut work.f);
        for f in work.f.chunks_exact_mut(k) {
            f.iter_mut().zip(&weights[w2..]).for_each(|(f, b)| *f += b);
        }
        work.p.clear();
        let mut row = 0;
        for &t in rounds {
            let from = work.p.len();
            for place in 0..contexts.pairs(t).len() {
                work.p.push(work.f[self.output(contexts, t, row, place)]);
            }
            softmax(&mut work.p[from..]);
            row += self.rows(contexts, t);
        }
    }

    /// Input rows of a round.
    fn rows(&self, contexts: &Contexts, t: usize) -> usize {
        if self.layout.encoding == Encoding::Disjoint { 1 } else { contexts.pairs(t).len() }
    }

    /// The output that belongs to a place of a round whose first input row is `row`.
    fn output(&self, contexts: &Contexts, t: usize, row: usize, place: usize) -> usize {
        match self.layout.encoding {
            Encoding::Disjoint => row * self.outputs + contexts.action(t, place),
            Encoding::PerAction => row + place,
        }
    }

    /// After [`Shape::forward`]: the gradient of the mean negative log-likelihood.
    fn backward(&self, weights: &[f32], log: &LoggedData, rounds: &[usize], work: &mut Work) {
        let [w1, b1, w2, b2] = self.ends();
        let (d, m, k, contexts) = (self.layout.dim, self.width, self.outputs, log.contexts());
        let n = work.x.len() / d;
        work.f.fill(0.0);
        let (mut row, mut pair) = (0, 0);
        for &t in rounds {
            let chosen = contexts.place(t, log.actions()[t] as usize).expect("checked at the door");
            for place in 0..contexts.pairs(t).len() {
                let hit = f32::from(u8::from(place == chosen));
                work.f[self.output(contexts, t, row, place)] = (work.p[pair] - hit) / rounds.len() as f32;
                pair += 1;
            }
            row += self.rows(contexts, t);
        }
        work.dh.resize(n * m, 0.0);
        work.gradient.resize(b2, 0.0);
        let df = Matrix::new(&work.f, n, k);
        sum_rows(&work.f, &mut work.gradient[w2..]);
        if m == 0 {
            product(Matrix::new(&work.x, n, d).transposed(), df, &mut work.gradient[..w2]);
            return;
        }
        product(df, Matrix::new(&weights[b1..w2], m, k).transposed(), &mut work.dh);
        work.dh.iter_mut().zip(&work.h).filter(|(_, h)| **h == 0.0).for_each(|(dh, _)| *dh = 0.0);
        product(Matrix::new(&work.h, n, m).transposed(), df, &mut work.gradient[b1..w2]);
        let dh = Matrix::new(&work.dh, n, m);
        product(Matrix::new(&work.x, n, d).transposed(), dh, &mut work.gradient[..w1]);
        sum_rows(&work.dh, &mut work.gradient[w1..b1]);
    }

    /// Mean negative log-likelihood of the logged actions.
    fn loss(&self, weights: &[f32], log: &LoggedData, rounds: &[usize], work: &mut Work) -> f64 {
        let mut sum = 0.0;
        for block in rounds.chunks(256) {
            self.forward(weights, log.contexts(), block, work);
            let mut pair = 0;
            for &t in block {
                let chosen = log.contexts().place(t, log.actions()[t] as usize).expect("checked at the door");
                sum -= f64::from(work.p[pair + chosen]).max(1e-30).ln();
                pair += log.contexts().pairs(t).len();
            }
        }
        sum / rounds.len() as f64
    }
}

fn softmax(values: &mut [f32]) {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter_mut().for_each(|v| *v = (*v - largest).exp());
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|v| *v /= sum);
}

fn sum_rows(rows: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for row in rows.chunks_exact(out.len()) {
        out.iter_mut().zip(row).for_each(|(o, r)| *o += r);
    }
}

/// Adam with moments 0.9 and 0.999 and ε = 1e-8.
struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: i32,
}

impl Adam {
    fn new(n: usize) -> Adam {
        Adam { mean: vec![0.0; n], square: vec![0.0; n], steps: 0 }
    }

    fn step(&mut self, config: &ImitationConfig, gradient: &[f32], weights: &mut [f32]) {
        self.steps += 1;
        let correction = (1.0 - 0.999f64.powi(self.steps)).sqrt();
        let lr = (config.lr * correction / (1.0 - 0.9f64.powi(self.steps))) as f32;
        let (l2, epsilon) = (config.l2 as f32, (1e-8 * correction) as f32);
        let state = self.mean.iter_mut().zip(&mut self.square);
        for ((w, g), (mean, square)) in weights.iter_mut().zip(gradient).zip(state) {
            let g = g + l2 * *w;
            *mean += 0.1 * (g - *mean);
            *square += 0.001 * (g * g - *square);
            *w -= lr * *mean / (square.sqrt() + epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandit::{Bandit, Classification, Labelled, RewardRule, Synthetic, SyntheticConfig, TestSet, collect};
    use crate::data::Eligible;
    use crate::policy::{Behaviour, BehaviourConfig};
    use std::sync::Arc;

    fn log(bandit: &dyn Bandit, n: usize) -> LoggedData {
        let config = BehaviourConfig::EpsilonGreedy { epsilon: 0.1 };
        let mut behaviour = Behaviour::new(&config, bandit.layout()).unwrap();
        collect(bandit, &mut behaviour, n, Seed::new(4)).unwrap().log
    }

    /// Four classes in the plane, told apart by no straight line: the quadrant's sign pattern.
    fn quadrants() -> Classification {
        let x: Vec<f32> =
            (0..2000).flat_map(|i| [(i * 37 % 101) as f32 - 50.5, (i * 53 % 103) as f32 - 51.5]).collect();
        let labels = x.chunks(2).map(|x| u32::from(x[0] > 0.0) * 2 + u32::from((x[0] > 0.0) == (x[1] > 0.0))).collect();
        let data = Labelled { dim: 2, n_classes: 4, x, labels };
        Classification::new(Arc::new(data), (0..2000).collect(), RewardRule::Classes).unwrap()
    }

    #[test]
    fn the_clone_beats_the_policy_it_imitates_where_that_explores_at_random() {
        let bandit = quadrants();
        let log = log(&bandit, 2000);
        let clone = Imitation::fit(&ImitationConfig::default(), &log, 0..2000, Seed::new(1)).unwrap();
        let test = TestSet::draw(&bandit, 1000, &mut Seed::new(2).stream("test")).unwrap();
        let verdict = test.judge(&clone.choose(test.contexts()).unwrap());
        assert!(verdict.suboptimality < 0.04, "the behaviour policy has 0.075, the clone {}", verdict.suboptimality);
    }

    #[test]
    fn a_vector_per_action_makes_a_conditional_logit_that_finds_the_favourite() {
        let bandit = Synthetic::new(
            SyntheticConfig { n_actions: 4, dim: 3, ..SyntheticConfig::default() },
            &mut Seed::new(1).stream("bandit"),
        )
        .unwrap();
        let log = log(&bandit, 3000);
        let clone = Imitation::fit(&ImitationConfig::default(), &log, 0..3000, Seed::new(1)).unwrap();
        let p = clone.probabilities(log.contexts()).unwrap();
        let sums: Vec<f64> = p.chunks(4).map(|p| p.iter().sum()).collect();
        assert!(sums.iter().all(|s| (s - 1.0).abs() < 1e-5));
        let favourites = clone.choose(log.contexts()).unwrap();
        let played = favourites.iter().zip(log.actions()).filter(|(place, action)| place == action).count();
        assert!(played > 2580, "ε-greedy plays its favourite in 92.5 % of 3,000 rounds, the clone's in {played}");
    }

    #[test]
    fn the_gradient_is_that_of_central_differences() {
        for bandit in [
            Box::new(quadrants()) as Box<dyn Bandit>,
            Box::new(
                Synthetic::new(
                    SyntheticConfig { n_actions: 3, dim: 2, ..Default::default() },
                    &mut Seed::new(1).stream("b"),
                )
                .unwrap(),
            ),
        ] {
            for width in [5, 0] {
                let log = log(bandit.as_ref(), 20);
                let shape = Shape::new(&log, 0..20, width);
                let mut weights = shape.initial(&mut Seed::new(3).stream("weights"));
                let (rounds, mut work): (Vec<usize>, _) = ((0..20).collect(), Work::default());
                shape.forward(&weights, log.contexts(), &rounds, &mut work);
                shape.backward(&weights, &log, &rounds, &mut work);
                let gradient = work.gradient.clone();
                for i in 0..weights.len() {
                    let (own, step) = (weights[i], 2e-2);
                    weights[i] = own + step;
                    let up = shape.loss(&weights, &log, &rounds, &mut work);
                    weights[i] = own - step;
                    let down = shape.loss(&weights, &log, &rounds, &mut work);
                    weights[i] = own;
                    let slope = (up - down) / (2.0 * f64::from(step));
                    // f32 sums and the kinks of the ReLU within a wide step
                    assert!((slope - f64::from(gradient[i])).abs() < 2e-2, "{i}: {slope} against {}", gradient[i]);
                }
            }
        }
    }

    #[test]
    fn only_eligible_actions_have_a_probability() {
        let layout = Layout { dim: 1, n_actions: 3, encoding: Encoding::Disjoint };
        let eligible = Eligible::Some { offsets: vec![0, 2, 3], actions: vec![0, 2, 1] };
        let contexts = Contexts::new(layout, vec![1.0, -1.0], eligible).unwrap();
        let log = LoggedData::new(contexts, vec![2, 1], vec![0.0, 0.0], None).unwrap();
        let clone = Imitation::fit(&ImitationConfig::default(), &log, 0..2, Seed::new(1)).unwrap();
        let p = clone.probabilities(log.contexts()).unwrap();
        assert_eq!((p.len(), p[2]), (3, 1.0));
        assert!(p[1] > 0.9, "{p:?}");
        assert_eq!(clone.choose(log.contexts()).unwrap(), [1, 0]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let log = log(&quadrants(), 10);
        let refuse = |c: ImitationConfig| Imitation::fit(&c, &log, 0..10, Seed::new(1)).unwrap_err().to_string();
        assert_eq!(refuse(ImitationConfig { epochs: 0, ..Default::default() }), "`epochs` must be at least 1, got 0");
        assert!(refuse(ImitationConfig { lr: -1.0, ..Default::default() }).starts_with("`lr` must be"));
    }
}
