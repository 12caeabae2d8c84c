//! The theory's tools against independent values: H against numpy's recursion and Monte-Carlo expectations, the
//! empirical kernel against its limit, the recorded lemmas against dense matrices, and the systems of Table 1 against
//! their formulas.

mod common;

use common::{random_contexts, random_log};
use neuralcb::model::{
    Covariance, ExactForm, Linear, LinearConfig, Neural, NeuralConfig, Refit, RefitConfig, Tabular, TabularConfig, When,
};
use neuralcb::net::{Net, NetConfig, Optimiser, Schedule, Tangents, Towards};
use neuralcb::theory::{LanczosConfig, Limit, Ntk, NtkConfig, Points, Recorder};
use neuralcb::{Contexts, Eligible, Encoding, Layout, Learner, LoggedData, ModelConfig, Seed};
use serde_json::Value;

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn rows(v: &Value) -> Vec<Vec<f64>> {
    v.as_array().unwrap().iter().map(numbers).collect()
}

/// Every vector is the context of one action of one round.
fn per_action(x: &[Vec<f64>]) -> Contexts {
    let layout = Layout { dim: x[0].len(), n_actions: x.len(), encoding: Encoding::PerAction };
    Contexts::new(layout, x.iter().flatten().map(|&v| v as f32).collect(), Eligible::All).unwrap()
}

fn depth(depth: usize, limit: Limit) -> NtkConfig {
    NtkConfig { depth, limit, ..NtkConfig::default() }
}

/// Unit vectors of `n` rounds with K actions.
fn sphere(layout: Layout, n: usize, seed: u64) -> Contexts {
    let contexts = random_contexts(layout, n, &mut Seed::new(seed).stream("sphere"));
    let x = contexts.rows(0..n).chunks(layout.dim).flat_map(|x| {
        let norm = x.iter().map(|v| v * v).sum::<f32>().sqrt();
        x.iter().map(move |v| v / norm).collect::<Vec<f32>>()
    });
    Contexts::new(layout, x.collect(), Eligible::All).unwrap()
}

fn worst(h: &Ntk, want: &[Vec<f64>]) -> f64 {
    let n = want.len();
    (0..n * n).map(|at| (h.get(at / n, at % n) - want[at / n][at % n]).abs()).fold(0.0, f64::max)
}

/// tests/golden/make_ntk.py: a recursion on whole matrices in the style of neural-tangents, and sampled expectations.
#[test]
fn h_works_like_the_recursion_in_numpy_and_like_its_expectations() {
    let golden: Value = serde_json::from_str(include_str!("golden/ntk.json")).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (layers, lambda) = (case["depth"].as_u64().unwrap() as usize, case["lambda"].as_f64().unwrap());
        let points = Points::all(&per_action(&rows(&case["x"]))).unwrap();
        let h = Ntk::new(&points, &depth(layers, Limit::Definition)).unwrap();
        // arc cosine against atan2: both lose eps/√(1 − ρ²)
        assert!(worst(&h, &rows(&case["h"])) < 1e-13, "{layers}: {}", worst(&h, &rows(&case["h"])));
        let drawn = Ntk::new(&points, &depth(layers, Limit::Algorithm1)).unwrap();
        assert!(worst(&drawn, &rows(&case["h_algorithm_1"])) < 1e-13);
        assert!(worst(&h, &rows(&case["monte_carlo"])) < case["standard_error"].as_f64().unwrap());
        let close = |got: f64, key: &str| (got / case[key].as_f64().unwrap() - 1.0).abs() < 1e-10;
        assert!(close(h.lambda_0().unwrap(), "lambda_0") && h.lambda_0().unwrap() > 0.0);
        assert!(close(h.complexity(&numbers(&case["rewards"])).unwrap(), "s"));
        assert!(close(h.effective_dimension(lambda).unwrap(), "effective_dimension"));
    }
}

#[test]
fn the_disjoint_encoding_gives_the_matrix_of_the_vectors_with_their_zeros() {
    let layout = Layout { dim: 3, n_actions: 4, encoding: Encoding::Disjoint };
    let contexts = random_contexts(layout, 5, &mut Seed::new(2).stream("x"));
    let explicit: Vec<Vec<f64>> = (0..20)
        .map(|pair| {
            let mut x = vec![0.0; 12];
            let pair = contexts.pair(pair / 4, pair % 4);
            x[3 * pair.action..3 * pair.action + 3].iter_mut().zip(pair.x).for_each(|(to, &v)| *to = f64::from(v));
            x
        })
        .collect();
    for layers in [2, 3] {
        let config = depth(layers, Limit::Definition);
        let short = Ntk::new(&Points::all(&contexts).unwrap(), &config).unwrap();
        let long = Ntk::new(&Points::all(&per_action(&explicit)).unwrap(), &config).unwrap();
        assert!(short.max_difference(&long).unwrap() < 1e-14);
        assert!(short.lambda_0().unwrap() > 0.0, "no two contexts are parallel");
    }
}

/// The mean over draws of W⁽⁰⁾ of ‖empirical NTK − limit‖_max. With `output` = 1/√2 the output weights are N(0, 1/m).
fn kernel_error(layers: usize, width: usize, draws: u64, limit: Limit, output: f64) -> f64 {
    let layout = Layout { dim: 5, n_actions: 4, encoding: Encoding::PerAction };
    let points = Points::all(&sphere(layout, 3, 7)).unwrap();
    let h = Ntk::new(&points, &depth(layers, limit)).unwrap();
    let config = NetConfig { depth: layers, width, layer_norm: false, duplicate_input: true, ..NetConfig::default() };
    let net = Net::new(config, layout).unwrap();
    let errors = (0..draws).map(|draw| {
        let mut tensors = net.unpack(&net.init::<f64>(&mut Seed::new(draw).stream("init")));
        tensors.output.iter_mut().for_each(|w| *w *= output);
        let weights = net.pack::<f64>(&tensors).unwrap();
        Ntk::empirical(&net, &weights, &points).unwrap().max_difference(&h).unwrap()
    });
    errors.sum::<f64>() / draws as f64
}

/// The slope of log y against log x.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0.ln()).sum::<f64>() / n, points.iter().map(|p| p.1.ln()).sum::<f64>() / n);
    let xy: f64 = points.iter().map(|p| (p.0.ln() - mx) * (p.1.ln() - my)).sum();
    xy / points.iter().map(|p| (p.0.ln() - mx).powi(2)).sum::<f64>()
}

/// Lemma C.1. Algorithm 1's output weights N(0, 2/m) lead to H̃⁽ᴸ⁾, and N(0, 1/m) to the H of Definition 4.1.
#[test]
fn the_empirical_kernel_tends_to_its_limit_like_one_over_root_m() {
    let widths = [64, 128, 256, 512, 1024, 2048, 4096];
    for (limit, output) in [(Limit::Algorithm1, 1.0), (Limit::Definition, 0.5f64.sqrt())] {
        let errors: Vec<(f64, f64)> =
            widths.iter().map(|&m| (m as f64, kernel_error(2, m, 12, limit, output))).collect();
        let exponent = slope(&errors);
        assert!((-0.6..=-0.4).contains(&exponent), "{limit:?}: {exponent} {errors:?}");
        let ratio = kernel_error(3, 64, 8, limit, output) / kernel_error(3, 1024, 8, limit, output);
        assert!((2.5..6.4).contains(&ratio), "L = 3, {limit:?}: {ratio}, √(1024/64) = 4");
    }
    let stuck = kernel_error(2, 4096, 4, Limit::Definition, 1.0);
    assert!(stuck > 0.4, "N(0, 2/m) does not lead to H: {stuck}");
}

#[test]
fn threads_change_no_bit() {
    let layout = Layout { dim: 6, n_actions: 10, encoding: Encoding::PerAction };
    let contexts = sphere(layout, 60, 3);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let h = Ntk::new(&Points::all(&contexts).unwrap(), &depth(3, Limit::Definition)).unwrap();
            let log_det =
                h.approximate(1.0, &LanczosConfig { probes: 6, steps: 10, ..LanczosConfig::default() }).unwrap();
            (h.get(599, 3), h.lambda_0().unwrap(), h.log_det(1.0).unwrap(), log_det.value)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn the_approximate_effective_dimension_is_within_one_percent_at_four_thousand_contexts() {
    let layout = Layout { dim: 20, n_actions: 20, encoding: Encoding::PerAction };
    let h = Ntk::new(&Points::all(&sphere(layout, 200, 5)).unwrap(), &depth(3, Limit::Definition)).unwrap();
    for lambda in [1.0, 6.0] {
        let exact = h.log_det(lambda).unwrap();
        let near = h.approximate(lambda, &LanczosConfig::default()).unwrap();
        assert!((near.value / exact - 1.0).abs() < 0.01, "{near:?} {exact}");
        assert!((near.value - exact).abs() < 2.0 * near.half_width(), "{near:?} {exact}");
        assert!(near.half_width() < 0.01 * exact, "{near:?}");
    }
}

#[test]
fn contexts_that_have_no_h_are_refused_in_one_line_with_the_remedy() {
    let unit = |x: [f64; 2]| x.to_vec();
    let same = per_action(&[unit([0.6, 0.8]), unit([1.0, 0.0]), unit([1.2, 1.6])]);
    let points = Points::all(&same).unwrap();
    let h = Ntk::new(&points, &NtkConfig::default()).unwrap();
    let parallel = "round 0, action 0 and round 0, action 2 have parallel contexts: H is singular (lambda_0 = 0); keep \
                    one of them (`Points::distinct`)";
    assert_eq!(h.lambda_0().unwrap_err().to_string(), parallel);
    assert_eq!(h.complexity(&[0.0; 3]).unwrap_err().to_string(), parallel);
    assert!(h.effective_dimension(1.0).is_ok(), "d̃ needs no inverse");
    let distinct = points.distinct();
    assert_eq!(distinct.len(), 2);
    assert!(Ntk::new(&distinct, &NtkConfig::default()).unwrap().lambda_0().is_ok());
    assert_eq!(
        Points::all(&per_action(&[unit([0.6, 0.8]), unit([0.0, 0.0])])).unwrap_err().to_string(),
        "round 0, action 1: the context is the zero vector: remove the round or add a constant feature"
    );
    let too_many = "contexts are too many for an exact computation, at most 1: use fewer rounds, raise the limit or \
                    take the approximation (`Ntk::approximate`)";
    let small = Ntk::new(&distinct, &NtkConfig { max_exact: 1, ..NtkConfig::default() }).unwrap();
    assert_eq!(small.log_det(1.0).unwrap_err().to_string(), format!("2 {too_many}"));
    assert!(small.approximate(1.0, &LanczosConfig::default()).is_ok());
    assert!(Ntk::new(&points, &NtkConfig { max_contexts: 2, ..NtkConfig::default() }).is_err());
}

/// log det of a positive definite matrix by elimination.
fn log_det(mut a: Vec<Vec<f64>>) -> f64 {
    let mut sum = 0.0;
    for k in 0..a.len() {
        let pivot = a[k].clone();
        sum += pivot[k].ln();
        for row in a.iter_mut().skip(k + 1) {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(v, p)| *v -= factor * p);
        }
    }
    sum
}

/// Lemma B.5, first part, and the identity behind it: log det by updates is log det from scratch.
#[test]
fn the_elliptical_potential_holds_at_every_round_and_log_det_by_updates_is_that_from_scratch() {
    for (encoding, layers, lambda) in
        [(Encoding::PerAction, 2, 20.0), (Encoding::Disjoint, 2, 20.0), (Encoding::PerAction, 3, 60.0)]
    {
        let layout = Layout { dim: 3, n_actions: 3, encoding };
        let contexts = sphere(layout, 60, 9);
        let drawn = random_log(layout, 60, &mut Seed::new(5).stream("log"));
        let log = LoggedData::new(contexts, drawn.actions().to_vec(), drawn.rewards().to_vec(), None).unwrap();
        let net =
            NetConfig { depth: layers, width: 6, layer_norm: false, duplicate_input: true, ..NetConfig::default() };
        // η·mλ must stay below 2, or the penalty itself makes the weights swing
        let config = NeuralConfig {
            net,
            lambda,
            optimiser: Optimiser::Sgd { schedule: Schedule::InverseRoot(0.3 / (6.0 * lambda)) },
            covariance: Covariance::Exact(ExactForm::Auto),
            ..NeuralConfig::default()
        };
        let mut model = Neural::<f64>::new(config, layout, Seed::new(1)).unwrap();
        let net = model.net().clone();
        let mut recorder = Recorder::new(&model, lambda).unwrap();
        let p = net.n_params();
        let mut matrix: Vec<Vec<f64>> =
            (0..p).map(|i| (0..p).map(|j| if i == j { lambda } else { 0.0 }).collect()).collect();
        let (mut tangents, mut input, mut phi) = (Tangents::new(&net), vec![0.0; net.n_in()], vec![0.0; p]);
        let initial = model.weights().clone();
        for t in 0..log.n_rounds() {
            let round = log.round(t);
            let block = layout.block(round.chosen.action);
            net.write_input(round.chosen.x, &mut input);
            net.tangents(model.weights(), block, &input, &mut tangents);
            tangents.expand(&net, block, &mut phi);
            for i in 0..p {
                for j in 0..p {
                    matrix[i][j] += phi[i] * phi[j] / 6.0;
                }
            }
            let sides = recorder.observe(&mut model, block, round.chosen, round.reward).unwrap();
            assert!(lambda >= (sides.c_3.powi(2) * layers as f64).max(1.0), "the lemma's condition: {}", sides.c_3);
            assert!(sides.potential_holds(), "{sides:?}");
            assert_eq!(sides.t, t + 1);
            if t % 20 == 19 {
                let scratch = log_det(matrix.clone()) - p as f64 * lambda.ln();
                // p pivots, each to rounding
                assert!((sides.log_det - scratch).abs() < 1e-12 * p as f64, "{} {scratch}", sides.log_det);
            }
            assert!((sides.whole_distance - model.weights().distance_squared(&initial).sqrt()).abs() < 1e-15);
            assert!(sides.distance <= sides.whole_distance * (1.0 + 1e-12));
        }
        let mut v = vec![1.0; p];
        for _ in 0..500 {
            let next: Vec<f64> = matrix.iter().map(|row| row.iter().zip(&v).map(|(a, b)| a * b).sum()).collect();
            let norm = next.iter().map(|v| v * v).sum::<f64>().sqrt();
            v = next.into_iter().map(|v| v / norm).collect();
        }
        let top: f64 =
            matrix.iter().zip(&v).map(|(row, v0)| row.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>() * v0).sum();
        assert!((recorder.lambda_norm() / top - 1.0).abs() < 1e-6);
    }
}

#[test]
fn a_table_knows_means_counts_and_what_it_has_never_seen() {
    for encoding in [Encoding::PerAction, Encoding::Disjoint] {
        let layout = Layout { dim: 1, n_actions: 2, encoding };
        let x = if encoding == Encoding::Disjoint {
            vec![0.25; 4]
        } else {
            vec![0.25, 0.7, 0.25, 0.7, 0.25, 0.7, 0.25, 0.7]
        };
        let contexts = Contexts::new(layout, x, Eligible::All).unwrap();
        let log = LoggedData::new(contexts.clone(), vec![0, 0, 1, 0], vec![1.0, 0.5, 0.2, 0.0], None).unwrap();
        let fit = |config: TabularConfig| {
            let mut table = Tabular::new(config, layout).unwrap();
            for t in 0..4 {
                table.observe(log.round(t).chosen, log.round(t).reward);
            }
            table.model().unwrap()
        };
        let estimates = fit(TabularConfig::default()).estimate(&contexts.slice(0..1)).unwrap();
        assert_eq!(estimates.mean, [0.5, 0.2]);
        assert!((estimates.width[0] - 1.0 / 3f64.sqrt()).abs() < 1e-15 && estimates.width[1] == 1.0);
        let rows = if encoding == Encoding::Disjoint { vec![0.3] } else { vec![0.3, 0.3] };
        let elsewhere = Contexts::new(layout, rows, Eligible::All).unwrap();
        let unseen = fit(TabularConfig { unseen_width: 2.0, ..TabularConfig::default() }).estimate(&elsewhere).unwrap();
        assert_eq!((&unseen.mean[..], &unseen.width[..]), (&[0.0, 0.0][..], &[2.0, 2.0][..]));
        let gridded = fit(TabularConfig { cell: 0.5, ..TabularConfig::default() }).estimate(&elsewhere).unwrap();
        assert_eq!(gridded.mean[0], 0.5, "0.25 and 0.3 lie in one cell of side 0.5");
    }
    let layout = Layout { dim: 1, n_actions: 2, encoding: Encoding::PerAction };
    assert!(Tabular::new(TabularConfig { cell: -1.0, ..TabularConfig::default() }, layout).is_err());
}

fn refit(config: RefitConfig, log: &LoggedData) -> Refit<f64> {
    let mut model = Refit::<f64>::new(config, log.contexts().layout(), Seed::new(3)).unwrap();
    for t in 0..log.n_rounds() {
        model.observe(log.round(t).chosen, log.round(t).reward);
    }
    model
}

/// A pass over the whole log in one batch does not depend on the order of the rounds.
#[test]
fn retraining_at_every_round_ends_where_one_fit_of_the_whole_log_ends() {
    for encoding in [Encoding::PerAction, Encoding::Disjoint] {
        let layout = Layout { dim: 3, n_actions: 3, encoding };
        let log = random_log(layout, 20, &mut Seed::new(8).stream("log"));
        let config = RefitConfig { passes: 7, batch: 100, ..RefitConfig::default() };
        let mut once = refit(config.clone(), &log);
        let at_the_start = once.weights().clone();
        once.model().unwrap();
        let every = refit(RefitConfig { when: When::EveryRound, ..config }, &log);
        assert!(once.weights().distance_squared(&at_the_start) > 1e-4, "the fit must move the weights");
        // sums of 20 rows in another order, seven steps of Adam
        assert!(once.weights().distance_squared(every.weights()).sqrt() < 1e-9);
    }
}

#[test]
fn a_narrow_network_fits_what_a_line_cannot() {
    let layout = Layout { dim: 2, n_actions: 2, encoding: Encoding::PerAction };
    let contexts = sphere(layout, 300, 4);
    let drawn = random_log(layout, 300, &mut Seed::new(6).stream("log"));
    let reward = |x: &[f32]| f64::from(x[0] * x[0]);
    let rewards = |log: &LoggedData| (0..300).map(|t| reward(log.round(t).chosen.x)).collect::<Vec<f64>>();
    let log = LoggedData::new(contexts.clone(), drawn.actions().to_vec(), vec![0.0; 300], None).unwrap();
    let log = LoggedData::new(contexts.clone(), drawn.actions().to_vec(), rewards(&log), None).unwrap();
    let truth: Vec<f64> = (0..600).map(|i| reward(contexts.pair(i / 2, i % 2).x)).collect();
    let error = |learner: &mut dyn Learner| {
        let estimates = learner.model().unwrap().estimate(&contexts).unwrap();
        assert!(estimates.width.iter().all(|w| *w > 0.0 && w.is_finite()));
        (estimates.mean.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 600.0).sqrt()
    };
    let optimiser = Optimiser::Adam { lr: 1e-2, l2: 0.0, towards: Towards::Zero };
    let narrow = error(&mut refit(RefitConfig { optimiser, passes: 60, ..RefitConfig::default() }, &log));
    let mut line = Linear::new(LinearConfig::default(), layout).unwrap();
    (0..300).for_each(|t| line.observe(log.round(t).chosen, log.round(t).reward));
    let line = error(&mut line);
    assert!(narrow < 0.1 && line > 0.4, "{narrow} {line}");
    let both = [ModelConfig::Tabular(TabularConfig::default()), ModelConfig::Refit(RefitConfig::default())];
    for config in both {
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<ModelConfig>(&text).unwrap(), config);
        assert!(config.learner(layout, Seed::new(1)).is_ok());
    }
}

/// `cargo test --release --test theory -- --ignored`, on a quiet machine.
#[test]
#[ignore = "a measurement: 1.6 GB, to be run alone and in release"]
fn h_over_twenty_thousand_contexts_takes_less_than_twenty_seconds() {
    let layout = Layout { dim: 20, n_actions: 20, encoding: Encoding::PerAction };
    let points = Points::all(&sphere(layout, 1000, 5)).unwrap();
    let start = std::time::Instant::now();
    let h = Ntk::new(&points, &depth(3, Limit::Definition)).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(h.n_contexts(), 20_000);
    assert!(seconds < 20.0, "{seconds}");
    println!("{seconds:.2} s");
}
