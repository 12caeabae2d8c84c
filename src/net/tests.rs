//! The passes in tiles against the pass of one row, on every kind of network and by every entrance that can serve it.

use rand::RngExt;

use super::plan::{BatchEntrance, ScoreEntrance};
use super::{
    Activation, Batch, Coefficients, Init, Net, NetConfig, Optimiser, OutputScale, Outputs, Params, Schedule, Score,
    Spread, Stepper, Tangents, Work,
};
use crate::data::{Contexts, Eligible, Encoding, Layout, row_groups};
use crate::linalg::vectors::ROWS;
use crate::seed::{Seed, Stream};

fn uniform(rng: &mut Stream, n: usize) -> Vec<f64> {
    (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Every kind of network: depths, outputs, blocks, norm, biases; widths with and without whole vectors.
fn networks() -> Vec<(NetConfig, Layout)> {
    let mut all = Vec::new();
    for (depth, width) in [(1, 1), (2, 6), (2, 8), (3, 10), (4, 5)] {
        for (outputs, encoding) in [
            (Outputs::One, Encoding::PerAction),
            (Outputs::One, Encoding::Disjoint),
            (Outputs::PerAction, Encoding::Disjoint),
        ] {
            for (layer_norm, biases) in [(true, true), (true, false), (false, true)] {
                let output_scale = if biases { OutputScale::One } else { OutputScale::SqrtWidth };
                let activation = if depth == 3 { Activation::Silu } else { Activation::Relu };
                let sizes = NetConfig { depth, width, layer_norm, biases, activation, ..NetConfig::default() };
                let config = NetConfig { outputs, output_scale, init: Init::Uniform, ..sizes };
                let layout = Layout { dim: 5, n_actions: 3, encoding };
                if depth > 1 || outputs == Outputs::PerAction || encoding == Encoding::PerAction {
                    all.push((config, layout));
                }
            }
        }
    }
    all
}

/// A network with no parameter at a round value.
fn drawn(config: NetConfig, layout: Layout, rng: &mut Stream) -> (Net, Params<f64>) {
    let net = Net::new(config, layout).unwrap();
    let mut weights: Params<f64> = net.init(rng);
    for run in net.vectors.clone() {
        for (w, v) in weights.rest[run.clone()].iter_mut().zip(uniform(rng, run.len())) {
            *w = if *w == 0.0 { 0.0 } else { *w + 0.1 * v };
        }
    }
    (net, weights)
}

/// The coefficients that belong to a block.
fn part<'a>(net: &Net, c: &'a Params<f64>, block: usize) -> Coefficients<'a, f64> {
    Coefficients { first: net.block(&c.first, block), rest: &c.rest }
}

/// A step of plain gradient descent with step size 1 moves the weights by Σ slope·∇f, which single passes give too.
#[test]
fn a_step_on_a_batch_is_the_sum_of_single_gradients() {
    let mut forced = [0, 0];
    for (number, (config, layout)) in networks().into_iter().enumerate() {
        let what = format!("{config:?}");
        let mut rng = Seed::new(number as u64).stream("batch");
        let (net, weights) = drawn(config, layout, &mut rng);
        let sgd = Optimiser::Sgd { schedule: Schedule::Constant(1.0) };
        let mut batch = Batch::new(&net);
        // a shorter batch after a longer one: nothing of the longer may remain
        for n in [37, 1, 16, 18] {
            let blocks: Vec<usize> = (0..n).map(|row| row * net.n_blocks / n).collect();
            let inputs: Vec<Vec<f64>> = (0..n).map(|_| uniform(&mut rng, net.n_in)).collect();
            let k = net.n_outputs;
            let slopes = uniform(&mut rng, n * k);
            let (mut f, mut want) = (Vec::new(), weights.clone());
            let mut one = Tangents::new(&net);
            for row in 0..n {
                for output in 0..k {
                    net.tangents_at(&weights, (blocks[row], output), &inputs[row], &mut one);
                    f.push(one.f()[output]);
                    let (gradient, slope) = (one.gradient(&net, blocks[row]), slopes[row * k + output]);
                    for (want, gradient) in [(&mut want.first, &gradient.first), (&mut want.rest, &gradient.rest)] {
                        want.iter_mut().zip(gradient).for_each(|(w, g)| *w -= slope * g);
                    }
                }
            }
            assert!(want.distance_squared(&weights) > 1e-6, "{what}: nothing would move");
            for (entrance, serves) in
                [(BatchEntrance::Tiles, net.n_blocks == 1), (BatchEntrance::Rows, !net.layers.is_empty())]
            {
                if !serves {
                    continue;
                }
                forced[entrance as usize] += 1;
                batch.begin(&net, n, blocks.iter().copied());
                for (row, input) in inputs.iter().enumerate() {
                    batch.input_mut(row).copy_from_slice(input);
                }
                batch.forth_by(entrance, &net, &weights);
                let (got, own) = batch.outputs_and_slopes();
                assert!(got.iter().zip(&f).all(|(a, b)| (a - b).abs() < 1e-12), "{what}, {entrance:?}");
                own.copy_from_slice(&slopes);
                let mut stepper = Stepper::new(sgd, &net, &weights, 0.1).unwrap();
                let mut moved = weights.clone();
                batch.back(&net, &mut moved, &mut stepper, 1, 1.0);
                let far = moved.distance_squared(&want).sqrt();
                assert!(far < 1e-11, "{what}, {entrance:?}, {n} rows: {far}");
            }
        }
    }
    assert!(forced.iter().all(|&n| n > 40), "{forced:?}");
}

/// Mean and width of single rows: f or Σ θ·∇f, and √(Σ c·(∇f)²) over the whole gradient.
#[test]
fn mean_and_width_are_those_of_single_gradients() {
    let mut forced = [0, 0];
    for (number, (config, layout)) in networks().into_iter().enumerate() {
        let what = format!("{config:?}");
        let mut rng = Seed::new(number as u64).stream("score");
        let (net, weights) = drawn(config, layout, &mut rng);
        let mut coefficients = |low: f64| {
            let mut c: Params<f64> = net.zeros();
            c.first.iter_mut().chain(&mut c.rest).for_each(|c| *c = rng.random_range(low..1.0));
            c
        };
        let (inverse, theta) = (coefficients(0.1), coefficients(-1.0));
        // more rounds than enter together, and no whole tile at the end
        let n_rounds = 70;
        let n = n_rounds * if layout.encoding == Encoding::Disjoint { 1 } else { layout.n_actions };
        let x = (0..n * layout.dim).map(|i| if i % 3 == 1 { 0.0 } else { rng.random_range(-1.0..1.0) }).collect();
        let contexts = Contexts::new(layout, x, Eligible::All).unwrap();
        let mut work = Work::new(&net);
        for group in row_groups(&contexts, 0..n_rounds, true) {
            let place = net.place(group.action);
            for ridge in [false, true] {
                let spread = Spread {
                    inverse: part(&net, &inverse, place.0),
                    theta: ridge.then(|| part(&net, &theta, place.0)),
                };
                for (entrance, serves) in
                    [(ScoreEntrance::Tiles, true), (ScoreEntrance::SparseRows, !net.layers.is_empty())]
                {
                    if !serves {
                        continue;
                    }
                    forced[entrance as usize] += 1;
                    let (mut mean, mut width) = (vec![0.0; contexts.n_pairs()], vec![0.0; contexts.n_pairs()]);
                    let (rows, work, mean_of, width_of) = (group.rows(), &mut work, &mut mean[..], &mut width[..]);
                    let (net, weights) = (&net, &weights);
                    let again = false;
                    Score { net, weights, place, spread, rows, again, work, mean: mean_of, width: width_of }
                        .by(entrance);
                    let mut one = Tangents::new(net);
                    for (x, to) in group.rows().iter() {
                        net.tangents_of(weights, place, x, &mut one);
                        let gradient = one.gradient(net, place.0);
                        let sum = |c: &Params<f64>, power: i32| -> f64 {
                            let both = c.first.iter().zip(&gradient.first).chain(c.rest.iter().zip(&gradient.rest));
                            both.map(|(c, g)| c * g.powi(power)).sum()
                        };
                        let want = [if ridge { sum(&theta, 1) } else { one.f()[place.1] }, sum(&inverse, 2).sqrt()];
                        let far = (mean[to] - want[0]).abs().max((width[to] - want[1]).abs());
                        assert!(far < 1e-11 * (1.0 + want[1]), "{what}, {entrance:?}, ridge {ridge}: {far}");
                    }
                }
            }
        }
    }
    assert!(forced.iter().all(|&n| n > 40), "{forced:?}");
}

/// On a shared trunk the pass of a row serves all outputs: the same bits as a pass for each.
#[test]
fn one_pass_for_all_outputs_is_a_pass_for_each() {
    let mut forced = [0, 0];
    for (number, (config, layout)) in networks().into_iter().enumerate() {
        let what = format!("{config:?}");
        let mut rng = Seed::new(number as u64).stream("again");
        let (net, weights) = drawn(config, layout, &mut rng);
        if !net.outputs_share_a_pass() {
            continue;
        }
        let mut coefficients: Params<f64> = net.zeros();
        coefficients.first.iter_mut().chain(&mut coefficients.rest).for_each(|c| *c = rng.random_range(0.1..1.0));
        let x = (0..ROWS * layout.dim).map(|_| rng.random_range(-1.0..1.0)).collect();
        let contexts = Contexts::new(layout, x, Eligible::All).unwrap();
        for (entrance, serves) in [(ScoreEntrance::Tiles, true), (ScoreEntrance::SparseRows, !net.layers.is_empty())] {
            for ridge in [false, true] {
                if !serves {
                    continue;
                }
                forced[entrance as usize] += 1;
                let score = |shared: bool| {
                    let (mut mean, mut width) = (vec![0.0; contexts.n_pairs()], vec![0.0; contexts.n_pairs()]);
                    let mut work = Work::new(&net);
                    for (number, group) in row_groups(&contexts, 0..ROWS, true).iter().enumerate() {
                        let place = net.place(group.action);
                        let spread = Spread {
                            inverse: part(&net, &coefficients, place.0),
                            theta: ridge.then(|| part(&net, &weights, place.0)),
                        };
                        let (net, weights, rows, again) = (&net, &weights, group.rows(), shared && number > 0);
                        let (work, mean, width) = (&mut work, &mut mean[..], &mut width[..]);
                        Score { net, weights, place, spread, rows, again, work, mean, width }.by(entrance);
                    }
                    (mean, width)
                };
                assert_eq!(score(true), score(false), "{what}, {entrance:?}, ridge {ridge}");
            }
        }
    }
    assert!(forced.iter().all(|&n| n > 20), "{forced:?}");
}
