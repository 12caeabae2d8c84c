//! Mean and width of every model against a naive twin: explicit gradients, a dense Λ and its Gauss–Jordan inverse;
//! the disjoint encoding against explicit zeros; eligible subsets against full rounds; f32 against f64.

mod common;

use common::{flat, inverse, random_contexts, random_log, uniform};
use neuralcb::model::{
    Covariance, ExactForm, Kernel, KernelConfig, Linear, LinearConfig, Mode, Neural, NeuralConfig, NeuralLinear,
    NeuralLinearConfig, Precision, UpdateOrder,
};
use neuralcb::net::{Init, Net, NetConfig, Optimiser, Params, Tangents, Towards};
use neuralcb::{
    Contexts, Eligible, Encoding, Estimates, Layout, Learner, LoggedData, ModelConfig, Pair, RewardModel, Seed,
};
use rand::RngExt;

const ADAM: Optimiser = Optimiser::Adam { lr: 0.01, l2: 0.01, towards: Towards::Zero };
const PRIMAL: Covariance = Covariance::Exact(ExactForm::Primal);
const DUAL: Covariance = Covariance::Exact(ExactForm::Dual);
const FORMS: [Covariance; 4] = [Covariance::Diagonal, Covariance::PerAction, PRIMAL, DUAL];
const ENCODINGS: [Encoding; 2] = [Encoding::PerAction, Encoding::Disjoint];

fn observe_all(learner: &mut dyn Learner, log: &LoggedData) {
    for t in 0..log.n_rounds() {
        let round = log.round(t);
        learner.observe(round.chosen, round.reward);
    }
}

#[track_caller]
fn close(what: &str, got: &Estimates, want: &Estimates, tolerance: f64) {
    for (part, got, want) in [("mean", &got.mean, &want.mean), ("width", &got.width, &want.width)] {
        assert_eq!(got.len(), want.len(), "{what}");
        for (i, (g, w)) in got.iter().zip(want).enumerate() {
            // not `>`: a NaN must fail
            assert!((g - w).abs() <= tolerance * w.abs().max(1.0), "{what}, {part} of pair {i}: got {g}, want {w}");
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The textbook version: every feature vector is kept, every matrix is dense.
struct Twin {
    net: Net,
    layout: Layout,
    covariance: Covariance,
    lambda: f64,
    /// c of φ = c·∇f.
    scale: f64,
    /// Action, φ and reward of each round.
    seen: Vec<(usize, Vec<f64>, f64)>,
}

impl Twin {
    fn new(net: Net, layout: Layout, covariance: Covariance, lambda: f64, scale: f64) -> Self {
        Twin { net, layout, covariance, lambda, scale, seen: Vec::new() }
    }

    /// f and φ of one pair.
    fn feature(&self, weights: &Params<f64>, pair: Pair<'_>) -> (f64, Vec<f64>) {
        let block = self.layout.block(pair.action);
        let mut input = vec![0.0; self.net.n_in()];
        self.net.write_input(pair.x, &mut input);
        let mut tangents = Tangents::new(&self.net);
        self.net.tangents(weights, block, &input, &mut tangents);
        let gradient = flat(&self.net.unpack(&tangents.gradient(&self.net, block)));
        (tangents.f()[0], gradient.into_iter().map(|v| self.scale * v).collect())
    }

    fn observe(&mut self, weights: &Params<f64>, chosen: Pair<'_>, reward: f64) {
        let (_, phi) = self.feature(weights, chosen);
        self.seen.push((chosen.action, phi, reward));
    }

    /// Λ⁻¹ and θ = Λ⁻¹Σφr as `action` sees them.
    fn fit(&self, action: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let p = self.net.n_params();
        let own = |a: usize| self.covariance != Covariance::PerAction || a == action;
        let mut lambda = vec![vec![0.0; p]; p];
        let mut target = vec![0.0; p];
        (0..p).for_each(|i| lambda[i][i] = self.lambda);
        for (_, phi, reward) in self.seen.iter().filter(|(a, ..)| own(*a)) {
            for i in 0..p {
                target[i] += phi[i] * reward;
                if matches!(self.covariance, Covariance::Exact(_)) {
                    (0..p).for_each(|j| lambda[i][j] += phi[i] * phi[j]);
                } else {
                    lambda[i][i] += phi[i] * phi[i];
                }
            }
        }
        let inverse = if matches!(self.covariance, Covariance::Exact(_)) {
            inverse(&lambda)
        } else {
            (0..p).for_each(|i| lambda[i][i] = 1.0 / lambda[i][i]);
            lambda
        };
        let theta = inverse.iter().map(|row| dot(row, &target)).collect();
        (inverse, theta)
    }

    fn estimate(&self, weights: &Params<f64>, contexts: &Contexts, ridge: bool) -> Estimates {
        let fits: Vec<_> = (0..self.layout.n_actions).map(|a| self.fit(a)).collect();
        let mut out = Estimates::default();
        for round in 0..contexts.n_rounds() {
            for place in 0..contexts.pairs(round).len() {
                let pair = contexts.pair(round, place);
                let (f, phi) = self.feature(weights, pair);
                let (inverse, theta) = &fits[pair.action];
                let spread: f64 = inverse.iter().zip(&phi).map(|(row, v)| v * dot(row, &phi)).sum();
                out.mean.push(if ridge { dot(theta, &phi) } else { f });
                out.width.push(spread.sqrt());
            }
        }
        out
    }
}

fn net_config(depth: usize, width: usize) -> NetConfig {
    NetConfig { depth, width, biases: depth == 3, ..NetConfig::default() }
}

/// (encoding, network): both depths in both encodings, padded widths, and the doubled input once.
fn networks() -> Vec<(Encoding, NetConfig)> {
    let mut out: Vec<_> = ENCODINGS.into_iter().flat_map(|e| [(e, net_config(2, 6)), (e, net_config(3, 4))]).collect();
    let plain = NetConfig { layer_norm: false, init: Init::Uniform, ..net_config(2, 6) };
    out.push((Encoding::Disjoint, NetConfig { duplicate_input: true, ..plain }));
    out
}

/// Thirty rounds lose a few digits in each Λ; the dual form subtracts two numbers of the size of ‖φ‖²/λ ≈ 1e2, and
/// the root of what is left loses half the digits only where it is nearly zero, which λ = 0.5 keeps it from being.
const TWIN: f64 = 1e-10;

#[test]
fn neural_mean_and_width_are_those_of_explicit_gradients() {
    for (number, (encoding, net)) in networks().into_iter().enumerate() {
        let layout = Layout { dim: 3, n_actions: 3, encoding };
        let mut rng = Seed::new(number as u64).stream("neural");
        let (log, test) = (random_log(layout, 30, &mut rng), random_contexts(layout, 19, &mut rng));
        for covariance in FORMS {
            for order in [UpdateOrder::BeforeStep, UpdateOrder::AfterStep] {
                let what = format!("{encoding:?} {net:?} {covariance:?} {order:?}");
                let config = NeuralConfig {
                    net: net.clone(),
                    optimiser: ADAM,
                    lambda: 0.5,
                    covariance,
                    order,
                    ..NeuralConfig::default()
                };
                let mut model = Neural::<f64>::new(config, layout, Seed::new(3)).unwrap();
                let scale = 1.0 / (net.width as f64).sqrt();
                let mut twin = Twin::new(model.net().clone(), layout, covariance, 0.5, scale);
                for t in 0..log.n_rounds() {
                    let (round, before) = (log.round(t), model.weights().clone());
                    model.observe(round.chosen, round.reward);
                    assert!(before.distance_squared(model.weights()) > 0.0, "{what}: the step does nothing");
                    let at = if order == UpdateOrder::BeforeStep { &before } else { model.weights() };
                    twin.observe(at, round.chosen, round.reward);
                    if [0, 9, 29].contains(&t) {
                        let got = model.model().unwrap().estimate(&test).unwrap();
                        close(&format!("{what}, round {t}"), &got, &twin.estimate(model.weights(), &test, false), TWIN);
                    }
                }
            }
        }
    }
}

/// Λ_0 = λI, so π̂_1's width is ‖∇f‖/√(mλ).
#[test]
fn before_the_first_round_the_width_is_the_norm_of_the_gradient() {
    for (encoding, net) in networks() {
        let layout = Layout { dim: 3, n_actions: 3, encoding };
        let test = random_contexts(layout, 19, &mut Seed::new(4).stream("before"));
        for covariance in FORMS {
            let config = NeuralConfig { net: net.clone(), lambda: 0.5, covariance, ..NeuralConfig::default() };
            let mut model = Neural::<f64>::new(config, layout, Seed::new(3)).unwrap();
            let scale = 1.0 / (net.width as f64).sqrt();
            let twin = Twin::new(model.net().clone(), layout, covariance, 0.5, scale);
            let got = model.model().unwrap().estimate(&test).unwrap();
            close(&format!("{net:?} {covariance:?}"), &got, &twin.estimate(model.weights(), &test, false), TWIN);
            assert!(got.width.iter().any(|w| *w > 0.0));
        }
    }
}

#[test]
fn neural_linear_mean_and_width_are_those_of_explicit_gradients() {
    for (number, (encoding, net)) in networks().into_iter().enumerate() {
        let layout = Layout { dim: 3, n_actions: 3, encoding };
        let mut rng = Seed::new(number as u64).stream("neural linear");
        let (log, test) = (random_log(layout, 30, &mut rng), random_contexts(layout, 19, &mut rng));
        for (covariance, scale_features) in FORMS.into_iter().flat_map(|c| [(c, false), (c, true)]) {
            let what = format!("{encoding:?} {net:?} {covariance:?} scaled {scale_features}");
            let shape = Net::new(net.clone(), layout).unwrap();
            let weights: Params<f64> = shape.init(&mut rng);
            let config = NeuralLinearConfig { net: net.clone(), lambda: 0.5, covariance, scale_features };
            let mut model = NeuralLinear::with_weights(config, layout, weights.clone()).unwrap();
            let scale = if scale_features { 1.0 / (net.width as f64).sqrt() } else { 1.0 };
            let mut twin = Twin::new(shape, layout, covariance, 0.5, scale);
            for t in 0..log.n_rounds() {
                let round = log.round(t);
                model.observe(round.chosen, round.reward);
                twin.observe(&weights, round.chosen, round.reward);
                if [0, 9, 29].contains(&t) {
                    let got = model.model().unwrap().estimate(&test).unwrap();
                    close(&format!("{what}, round {t}"), &got, &twin.estimate(&weights, &test, true), TWIN);
                }
            }
        }
    }
}

/// 300 rounds, so that both forms need more than one block of new rows, asked for models on the way and not.
#[test]
fn exact_width_is_that_of_a_dense_inverse_after_many_updates() {
    for encoding in ENCODINGS {
        let layout = Layout { dim: 3, n_actions: 2, encoding };
        let mut rng = Seed::new(5).stream("many");
        let (log, test) = (random_log(layout, 300, &mut rng), random_contexts(layout, 20, &mut rng));
        for (covariance, on_the_way) in [(PRIMAL, false), (PRIMAL, true), (DUAL, false), (DUAL, true)] {
            let config = NeuralConfig { net: net_config(2, 4), optimiser: ADAM, covariance, ..NeuralConfig::default() };
            let mut model = Neural::<f64>::new(config, layout, Seed::new(3)).unwrap();
            let mut twin = Twin::new(model.net().clone(), layout, covariance, 0.1, 0.5);
            for t in 0..log.n_rounds() {
                let round = log.round(t);
                twin.observe(model.weights(), round.chosen, round.reward);
                model.observe(round.chosen, round.reward);
                if on_the_way && t % 37 == 0 {
                    model.model().unwrap();
                }
            }
            let got = model.model().unwrap().estimate(&test).unwrap();
            let want = twin.estimate(model.weights(), &test, false);
            // cond(Λ)·n·eps ≈ 1e4·300·1e-16 in width², times 1/width ≈ 10 in its root
            close(&format!("{encoding:?} {covariance:?} {on_the_way}"), &got, &want, 1e-9);
        }
    }
}

#[test]
fn the_inverse_of_this_file_is_one() {
    let mut rng = Seed::new(9).stream("inverse");
    let a: Vec<Vec<f64>> = (0..12).map(|_| (0..12).map(|_| uniform(&mut rng)).collect()).collect();
    let b = inverse(&a);
    for i in 0..12 {
        for j in 0..12 {
            let product: f64 = (0..12).map(|k| a[i][k] * b[k][j]).sum();
            // n·eps·cond, with cond ≈ 1e2 for a random matrix of this size
            assert!((product - f64::from(u8::from(i == j))).abs() < 1e-11);
        }
    }
}

const SHARED: Layout = Layout { dim: 3, n_actions: 4, encoding: Encoding::Disjoint };
const EXPLICIT: Layout = Layout { dim: 12, n_actions: 4, encoding: Encoding::PerAction };

/// The same rounds with x^(a) = (0, …, x, …, 0) written out for every action.
fn with_zeros(contexts: &Contexts) -> Contexts {
    let mut x = Vec::new();
    for round in 0..contexts.n_rounds() {
        for place in 0..contexts.pairs(round).len() {
            let pair = contexts.pair(round, place);
            let mut row = [0.0; 12];
            row[pair.action * 3..(pair.action + 1) * 3].copy_from_slice(pair.x);
            x.extend(row);
        }
    }
    Contexts::new(EXPLICIT, x, contexts.eligible().clone()).unwrap()
}

/// 40 rounds in both forms, then the estimates of both on the same test rounds.
fn both_forms(disjoint: &mut dyn Learner, explicit: &mut dyn Learner) -> (Estimates, Estimates) {
    let mut rng = Seed::new(11).stream("zeros");
    let (log, test) = (random_log(SHARED, 40, &mut rng), random_contexts(SHARED, 25, &mut rng));
    let zeros = with_zeros(log.contexts());
    let wide = LoggedData::new(zeros, log.actions().to_vec(), log.rewards().to_vec(), None).unwrap();
    observe_all(disjoint, &log);
    observe_all(explicit, &wide);
    let estimate = |m: std::sync::Arc<dyn RewardModel>, c: &Contexts| m.estimate(c).unwrap();
    (estimate(disjoint.model().unwrap(), &test), estimate(explicit.model().unwrap(), &with_zeros(&test)))
}

#[test]
fn a_disjoint_network_is_one_on_explicit_zeros() {
    let batch = Mode::Batch { steps: 4, batch: 9 };
    for (mode, depth) in [(Mode::Single, 2), (Mode::Single, 3), (batch, 2), (batch, 3)] {
        for covariance in FORMS {
            let config = NeuralConfig {
                net: net_config(depth, 6),
                optimiser: ADAM,
                mode,
                covariance,
                ..NeuralConfig::default()
            };
            let seed = Seed::new(2);
            let mut disjoint = Neural::<f64>::new(config.clone(), SHARED, seed).unwrap();
            let tensors = disjoint.net().unpack(disjoint.weights());
            let weights = Net::new(config.net.clone(), EXPLICIT).unwrap().pack(&tensors).unwrap();
            let mut explicit = Neural::<f64>::with_weights(config, EXPLICIT, seed, weights).unwrap();
            let (got, want) = both_forms(&mut disjoint, &mut explicit);
            let what = format!("{mode:?} {covariance:?} depth {depth}");
            // the same sums in another order, through up to 160 steps of Adam: some 1e3 roundings
            close(&what, &got, &want, 1e-11);
            let weights = |m: &Neural<f64>| flat(&m.net().unpack(m.weights()));
            for (g, w) in weights(&disjoint).iter().zip(&weights(&explicit)) {
                assert!((g - w).abs() < 1e-11, "{what}: weight {g} and {w}");
            }
        }
    }
}

#[test]
fn disjoint_ridge_regression_is_one_on_explicit_zeros() {
    for lambda in [1e-3, 0.1, 1.0] {
        let config = LinearConfig { lambda, precision: Precision::Double };
        let mut disjoint = Linear::new(config.clone(), SHARED).unwrap();
        let mut explicit = Linear::new(config, EXPLICIT).unwrap();
        let (got, want) = both_forms(&mut disjoint, &mut explicit);
        // ten rounds per block of three: cond(Λ) < 1e2
        close(&format!("λ {lambda}"), &got, &want, 1e-12);
    }
}

#[test]
fn a_disjoint_kernel_is_one_on_explicit_zeros() {
    for sigma in [0.5, 2.0] {
        for lambda in [1e-3, 0.1, 1.0] {
            let config = KernelConfig { sigma, lambda, max_samples: 35, precision: Precision::Double };
            let mut disjoint = Kernel::new(config.clone(), SHARED).unwrap();
            let mut explicit = Kernel::new(config, EXPLICIT).unwrap();
            let (got, want) = both_forms(&mut disjoint, &mut explicit);
            // cond(K + λI) ≤ 40/λ = 4e4: 1e-11 in width², times 1/(2·width) ≤ 50 in its root
            close(&format!("σ {sigma}, λ {lambda}"), &got, &want, 1e-9);
        }
    }
}

#[test]
fn a_round_that_offers_few_actions_has_the_estimates_of_the_full_round() {
    for encoding in ENCODINGS {
        let layout = Layout { dim: 3, n_actions: 4, encoding };
        let mut rng = Seed::new(17).stream("eligible");
        let (log, full) = (random_log(layout, 40, &mut rng), random_contexts(layout, 50, &mut rng));
        let (mut offsets, mut actions, mut kept, mut x) = (vec![0], Vec::new(), Vec::new(), Vec::new());
        for round in 0..full.n_rounds() {
            let sure = rng.random_range(0..layout.n_actions);
            let offered: Vec<usize> = (0..layout.n_actions).filter(|&a| a == sure || rng.random::<bool>()).collect();
            for &a in &offered {
                actions.push(a as u32);
                kept.push(full.first_pair(round) + a);
                if encoding == Encoding::PerAction {
                    x.extend(full.pair(round, a).x);
                }
            }
            offsets.push(actions.len());
        }
        assert!(kept.len() < full.n_pairs());
        if encoding == Encoding::Disjoint {
            x = full.rows(0..full.n_rounds()).to_vec();
        }
        let few = Contexts::new(layout, x, Eligible::Some { offsets, actions }).unwrap();
        let mut learners: Vec<Box<dyn Learner>> = vec![
            Box::new(
                Linear::new(LinearConfig { precision: Precision::Double, ..LinearConfig::default() }, layout).unwrap(),
            ),
            Box::new(
                Kernel::new(KernelConfig { precision: Precision::Double, ..KernelConfig::default() }, layout).unwrap(),
            ),
        ];
        for covariance in FORMS {
            let net = net_config(2, 6);
            let config = NeuralConfig { net: net.clone(), optimiser: ADAM, covariance, ..NeuralConfig::default() };
            learners.push(Box::new(Neural::<f64>::new(config, layout, Seed::new(1)).unwrap()));
            let config = NeuralLinearConfig { net, covariance, ..NeuralLinearConfig::default() };
            learners.push(Box::new(NeuralLinear::<f64>::new(config, layout, Seed::new(1)).unwrap()));
        }
        for (number, learner) in learners.iter_mut().enumerate() {
            observe_all(learner.as_mut(), &log);
            let model = learner.model().unwrap();
            let (got, all) = (model.estimate(&few).unwrap(), model.estimate(&full).unwrap());
            let pick = |v: &[f64]| kept.iter().map(|&i| v[i]).collect();
            let want = Estimates { mean: pick(&all.mean), width: pick(&all.width) };
            // rows meet other rows in a product, which may only change the order of its sums
            close(&format!("{encoding:?}, learner {number}"), &got, &want, 1e-11);
        }
    }
}

#[test]
fn the_model_in_f32_stays_close_to_the_one_in_f64() {
    for encoding in ENCODINGS {
        let layout = Layout { dim: 6, n_actions: 4, encoding };
        let mut rng = Seed::new(23).stream("f32");
        let (log, test) = (random_log(layout, 50, &mut rng), random_contexts(layout, 40, &mut rng));
        for (covariance, mode) in [
            (Covariance::Diagonal, Mode::Single),
            (Covariance::PerAction, Mode::Single),
            (PRIMAL, Mode::Single),
            (DUAL, Mode::Single),
            (Covariance::Diagonal, Mode::Batch { steps: 2, batch: 10 }),
        ] {
            let config = NeuralConfig { covariance, mode, ..NeuralConfig::default() };
            let mut narrow = ModelConfig::Neural(config.clone()).learner(layout, Seed::new(1)).unwrap();
            let mut wide = Neural::<f64>::new(config, layout, Seed::new(1)).unwrap();
            observe_all(narrow.as_mut(), &log);
            observe_all(&mut wide, &log);
            let got = narrow.model().unwrap().estimate(&test).unwrap();
            let want = wide.model().unwrap().estimate(&test).unwrap();
            // Adam divides by √ν, which turns a rounding of 6e-8 in a small gradient into a share of a step of 1e-3:
            // 100 steps stay far below 1e-3 of outputs of order one
            close(&format!("{encoding:?} {covariance:?} {mode:?}"), &got, &want, 1e-3);
            assert_ne!(got.mean, want.mean, "f32 and f64 cannot agree to the bit");
        }
    }
}

/// On a shared trunk one pass serves all actions where all are eligible; a list of eligible actions goes one by one.
#[test]
fn a_shared_trunk_scores_all_actions_at_once_as_it_scores_them_one_by_one() {
    let layout = Layout { dim: 3, n_actions: 4, encoding: Encoding::Disjoint };
    let x: Vec<f32> = (0..50 * 3).map(|i| ((i * 37 % 101) as f32 - 50.0) / 40.0).collect();
    for depth in [2, 3] {
        let net = NetConfig { depth, width: 6, outputs: neuralcb::net::Outputs::PerAction, ..NetConfig::default() };
        let config = NeuralConfig { net, ..NeuralConfig::default() };
        let mut learner = Neural::<f32>::new(config, layout, Seed::new(3)).unwrap();
        for (t, x) in x.chunks(3).enumerate() {
            learner.observe(Pair { x, action: t % 3 }, (t % 5) as f64);
        }
        let model = learner.model().unwrap();
        let all = Contexts::new(layout, x.clone(), Eligible::All).unwrap();
        // the last round without its last action, so that the list is one
        let offsets: Vec<usize> = (0..50).map(|t| 4 * t).chain([199]).collect();
        let listed = Eligible::Some { offsets, actions: (0..199).map(|pair| pair % 4).collect() };
        let listed = Contexts::new(layout, x.clone(), listed).unwrap();
        let (together, one_by_one) = (model.estimate(&all).unwrap(), model.estimate(&listed).unwrap());
        assert_eq!(together.mean[..199], one_by_one.mean);
        assert_eq!(together.width[..199], one_by_one.width);
    }
}
