//! The kernels, compiled in this library once for f32 and once for f64.
//!
//! A generic function is compiled anew in every program that uses it, and these, for three instruction sets each, take
//! minutes. What the models of a number type T do with them goes therefore through T's functions of [`Kernels`], which
//! are no longer generic.

use std::ops::Range;

use crate::data::{Contexts, Pair};
use crate::model::{Neural, NeuralLinear, Refit, Scorer};
use crate::net::{Net, Params, Tangents};

/// What is compiled for a number type. Each function is a method of the model or network it is given.
pub trait Kernels: Sized {
    fn train(neural: &mut Neural<Self>, chosen: Pair<'_>, reward: f64);
    fn train_linear(model: &mut NeuralLinear<Self>, chosen: Pair<'_>, reward: f64);
    fn fit(refit: &mut Refit<Self>);
    fn learn(refit: &mut Refit<Self>, round: usize);
    fn score(scorer: &Scorer<Self>, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]);
    fn both_passes(net: &Net, params: &Params<Self>, block: usize, input: &[Self], out: &mut Tangents<Self>);
}

macro_rules! kernels {
    ($($t:ty)+) => {$(
        impl Kernels for $t {
            fn train(neural: &mut Neural<Self>, chosen: Pair<'_>, reward: f64) {
                neural.train(chosen, reward);
            }
            fn train_linear(model: &mut NeuralLinear<Self>, chosen: Pair<'_>, reward: f64) {
                model.train(chosen, reward);
            }
            fn fit(refit: &mut Refit<Self>) {
                refit.fit();
            }
            fn learn(refit: &mut Refit<Self>, round: usize) {
                refit.learn(round);
            }
            fn score(scorer: &Scorer<Self>, contexts: &Contexts, rounds: Range<usize>, mean: &mut [f64], width: &mut [f64]) {
                scorer.score(contexts, rounds, mean, width);
            }
            fn both_passes(net: &Net, params: &Params<Self>, block: usize, input: &[Self], out: &mut Tangents<Self>) {
                net.both_passes(params, block, input, out);
            }
        }
    )+};
}
kernels!(f32 f64);
