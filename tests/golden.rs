//! Against values made by other programs: JAX's automatic differentiation, scikit-learn, numpy (`golden/`), and
//! MABWiser's own test (`../shared/golden`, where it is there).

mod common;

use common::flat;
use neuralcb::model::{
    Covariance, ExactForm, Kernel, KernelConfig, Linear, LinearConfig, Mode, Neural, NeuralConfig, NeuralLinear,
    NeuralLinearConfig, Precision, UpdateOrder,
};
use neuralcb::net::{Init, Net, NetConfig, Optimiser, OutputScale, Params, Schedule, Tangents, Tensors, Towards};
use neuralcb::{Contexts, Eligible, Encoding, Estimates, Layout, Learner, Pair, Seed};
use serde_json::Value;

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str::<Value>(&text).unwrap()["cases"].as_array().unwrap().clone()
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

fn layout(case: &Value) -> Layout {
    Layout {
        dim: case["dim"].as_u64().unwrap() as usize,
        n_actions: case["n_actions"].as_u64().unwrap() as usize,
        encoding: serde_json::from_value(case["encoding"].clone()).unwrap(),
    }
}

/// Context and action; the contexts of the files are exact in f32.
struct Point {
    x: Vec<f32>,
    action: usize,
    reward: f64,
}

impl Point {
    fn pair(&self) -> Pair<'_> {
        Pair { x: &self.x, action: self.action }
    }
}

fn points(v: &Value) -> Vec<Point> {
    let point = |p: &Value| Point {
        x: numbers(&p["x"]).into_iter().map(|v| v as f32).collect(),
        action: p["action"].as_u64().unwrap() as usize,
        reward: p["reward"].as_f64().unwrap_or(f64::NAN),
    };
    v.as_array().unwrap().iter().map(point).collect()
}

/// Each input as a round of its own that offers its action alone.
fn contexts(layout: Layout, inputs: &[Point]) -> Contexts {
    let x = inputs.iter().flat_map(|p| p.x.clone()).collect();
    let offsets = (0..=inputs.len()).collect();
    let actions = inputs.iter().map(|p| p.action as u32).collect();
    Contexts::new(layout, x, Eligible::Some { offsets, actions }).unwrap()
}

fn estimates(learner: &mut dyn Learner, layout: Layout, inputs: &[Point]) -> Estimates {
    learner.model().unwrap().estimate(&contexts(layout, inputs)).unwrap()
}

#[track_caller]
fn close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * w.abs().max(1.0), "{what}[{i}]: got {g}, want {w}");
    }
}

fn tensors(v: &Value) -> Tensors {
    serde_json::from_value(v.clone()).unwrap()
}

fn net_config(case: &Value) -> NetConfig {
    NetConfig {
        depth: case["depth"].as_u64().unwrap() as usize,
        width: case["width"].as_u64().unwrap() as usize,
        layer_norm: case["layer_norm"].as_bool().unwrap(),
        biases: case["biases"].as_bool().unwrap(),
        output_scale: match case["output_scale"].as_str().unwrap() {
            "one" => OutputScale::One,
            _ => OutputScale::SqrtWidth,
        },
        init: Init::Block,
        ..NetConfig::default()
    }
}

const ADAM_ZERO: Optimiser = Optimiser::Adam { lr: 0.01, l2: 0.01, towards: Towards::Zero };

/// All sides compute in f64 on the same contexts; ten rounds and a solve lose a few digits.
const TOLERANCE: f64 = 1e-11;

fn neural(case: &Value, change: impl FnOnce(&mut NeuralConfig)) -> Neural<f64> {
    let mut config = NeuralConfig { net: net_config(case), optimiser: ADAM_ZERO, ..NeuralConfig::default() };
    change(&mut config);
    let net = Net::new(config.net.clone(), layout(case)).unwrap();
    let weights: Params<f64> = net.pack(&tensors(&case["params"])).unwrap();
    Neural::with_weights(config, layout(case), Seed::new(0), weights).unwrap()
}

fn observe_all(learner: &mut dyn Learner, rounds: &[Point]) {
    rounds.iter().for_each(|r| learner.observe(r.pair(), r.reward));
}

#[test]
fn forward_and_gradient_work_like_jax() {
    for case in cases("net.json") {
        let layout = layout(&case);
        let net = Net::new(net_config(&case), layout).unwrap();
        let params: Params<f64> = net.pack(&tensors(&case["params"])).unwrap();
        assert_eq!(net.unpack(&params), tensors(&case["params"]));
        let mut tangents = Tangents::new(&net);
        for (i, want) in case["inputs"].as_array().unwrap().iter().enumerate() {
            let block = layout.block(want["action"].as_u64().unwrap() as usize);
            // the network itself takes f64: no rounding here
            net.tangents(&params, block, &numbers(&want["x"]), &mut tangents);
            close(name(&case), &[tangents.f()[0]], &[case["f"][i].as_f64().unwrap()], 1e-13);
            let gradient = net.unpack(&tangents.gradient(&net, block));
            close(name(&case), &flat(&gradient), &flat(&tensors(&case["gradients"][i])), 1e-12);
        }
    }
}

#[test]
fn ten_rounds_of_s_mode_work_like_jax() {
    for case in cases("net.json") {
        let (inputs, rounds) = (points(&case["inputs"]), points(&case["rounds"]));
        for run in case["s_mode"].as_array().unwrap() {
            let towards = serde_json::from_value(run["towards"].clone()).unwrap();
            let mut model = neural(&case, |c| c.optimiser = Optimiser::Adam { lr: 0.01, l2: 0.01, towards });
            for (t, round) in rounds.iter().enumerate() {
                // L_t: what the policy of round t+1 knows before it sees the round
                let now = estimates(&mut model, layout(&case), &inputs);
                close(name(&case), &now.mean, &numbers(&run["means"][t]), TOLERANCE);
                close(name(&case), &now.width, &numbers(&run["widths"][t]), TOLERANCE);
                model.observe(round.pair(), round.reward);
            }
            let last = estimates(&mut model, layout(&case), &inputs);
            close(name(&case), &last.mean, &numbers(&run["final_means"]), TOLERANCE);
            close(name(&case), &last.width, &numbers(&run["final_widths"]), TOLERANCE);
            let weights = model.net().unpack(model.weights());
            close(name(&case), &flat(&weights), &flat(&tensors(&run["final_params"])), TOLERANCE);
            let lambda = model.net().unpack(&model.lambda_diagonal().unwrap());
            close(name(&case), &flat(&lambda), &flat(&tensors(&run["final_lambda"])), TOLERANCE);
        }
    }
}

#[test]
fn the_other_forms_and_orders_work_like_jax() {
    for case in cases("net.json") {
        let (inputs, rounds) = (points(&case["inputs"]), points(&case["rounds"]));
        let exact = |form| move |c: &mut NeuralConfig| c.covariance = Covariance::Exact(form);
        let runs: [(&str, Neural<f64>); 4] = [
            (
                "released_order",
                neural(&case, |c| {
                    c.covariance = Covariance::PerAction;
                    c.order = UpdateOrder::AfterStep;
                }),
            ),
            ("exact", neural(&case, exact(ExactForm::Primal))),
            ("exact", neural(&case, exact(ExactForm::Dual))),
            ("sgd", neural(&case, |c| c.optimiser = Optimiser::Sgd { schedule: Schedule::InverseRoot(0.01) })),
        ];
        for (run, mut model) in runs {
            observe_all(&mut model, &rounds);
            let last = estimates(&mut model, layout(&case), &inputs);
            let what = format!("{} {run}", name(&case));
            close(&what, &last.mean, &numbers(&case[run]["final_means"]), TOLERANCE);
            close(&what, &last.width, &numbers(&case[run]["final_widths"]), TOLERANCE);
            if run == "sgd" {
                let weights = model.net().unpack(model.weights());
                close(&what, &flat(&weights), &flat(&tensors(&case[run]["final_params"])), TOLERANCE);
            }
        }
    }
}

/// With one sample in memory a batch can only be copies of it, so B-mode with J steps equals J steps of S-mode on it.
#[test]
fn a_batch_step_is_the_mean_of_its_samples() {
    for case in cases("net.json") {
        let rounds = points(&case["rounds"]);
        let mut batch = neural(&case, |c| c.mode = Mode::Batch { steps: 3, batch: 7 });
        let mut single = neural(&case, |_| {});
        batch.observe(rounds[0].pair(), rounds[0].reward);
        (0..3).for_each(|_| single.observe(rounds[0].pair(), rounds[0].reward));
        let flat_weights = |m: &Neural<f64>| flat(&m.net().unpack(m.weights()));
        close(name(&case), &flat_weights(&batch), &flat_weights(&single), TOLERANCE);
    }
}

#[test]
fn lin_lcb_works_like_sklearn() {
    for case in cases("linear.json") {
        let config = LinearConfig { lambda: case["lambda"].as_f64().unwrap(), precision: Precision::Double };
        let mut model = Linear::new(config, layout(&case)).unwrap();
        observe_all(&mut model, &points(&case["rounds"]));
        let got = estimates(&mut model, layout(&case), &points(&case["inputs"]));
        close(name(&case), &got.mean, &numbers(&case["means"]), TOLERANCE);
        close(name(&case), &got.width, &numbers(&case["widths"]), TOLERANCE);
    }
}

#[test]
fn kern_lcb_works_like_sklearn() {
    for case in cases("kernel.json") {
        let (lambda, sigma) = (case["lambda"].as_f64().unwrap(), case["sigma"].as_f64().unwrap());
        let config = KernelConfig { sigma, lambda, max_samples: 1000, precision: Precision::Double };
        let mut model = Kernel::new(config, layout(&case)).unwrap();
        observe_all(&mut model, &points(&case["rounds"]));
        let got = estimates(&mut model, layout(&case), &points(&case["inputs"]));
        let tolerance = case["tolerance"].as_f64().unwrap();
        close(name(&case), &got.mean, &numbers(&case["means"]), tolerance);
        close(name(&case), &got.width, &numbers(&case["widths"]), tolerance);
    }
}

#[test]
fn neural_lin_lcb_works_like_jax() {
    for case in cases("neural_linear.json") {
        for (key, covariance) in [
            ("diagonal", Covariance::Diagonal),
            ("per-action", Covariance::PerAction),
            ("exact", Covariance::Exact(ExactForm::Primal)),
            ("exact", Covariance::Exact(ExactForm::Dual)),
        ] {
            let config = NeuralLinearConfig { net: net_config(&case), covariance, ..NeuralLinearConfig::default() };
            let net = Net::new(config.net.clone(), layout(&case)).unwrap();
            let weights: Params<f64> = net.pack(&tensors(&case["params"])).unwrap();
            let mut model = NeuralLinear::with_weights(config, layout(&case), weights).unwrap();
            observe_all(&mut model, &points(&case["rounds"]));
            let got = estimates(&mut model, layout(&case), &points(&case["inputs"]));
            let what = format!("{} {covariance:?}", name(&case));
            close(&what, &got.mean, &numbers(&case[key]["means"]), TOLERANCE);
            close(&what, &got.width, &numbers(&case[key]["widths"]), TOLERANCE);
        }
    }
}

#[test]
fn lin_lcb_agrees_with_mabwiser() {
    let path = format!("{}/../shared/golden/linear.json", env!("CARGO_MANIFEST_DIR"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: MABWiser's values are not beside this clone (../shared/golden/linear.json)");
        return;
    };
    let golden: Value = serde_json::from_str(&text).unwrap();
    let layout = Layout { dim: 5, n_actions: 3, encoding: Encoding::Disjoint };
    let mut model = Linear::new(LinearConfig { lambda: 1.0, precision: Precision::Double }, layout).unwrap();
    let rows = |v: &Value| -> Vec<Vec<f32>> {
        v.as_array().unwrap().iter().map(|r| numbers(r).into_iter().map(|v| v as f32).collect()).collect()
    };
    let (actions, rewards) = (numbers(&golden["actions"]), numbers(&golden["rewards"]));
    for ((x, a), r) in rows(&golden["contexts"]).iter().zip(actions).zip(rewards) {
        model.observe(Pair { x, action: a as usize - 1 }, r);
    }
    let test = Contexts::new(layout, rows(&golden["test_contexts"]).concat(), Eligible::All).unwrap();
    let got = model.model().unwrap().estimate(&test).unwrap();
    for (sign, key) in [(1.0, "linucb_alpha1"), (-1.0, "linlcb_beta1")] {
        let bounds: Vec<f64> = got.mean.iter().zip(&got.width).map(|(m, w)| m + sign * w).collect();
        let want: Vec<f64> = golden[key].as_array().unwrap().iter().flat_map(numbers).collect();
        close(key, &bounds, &want, 1e-12);
    }
}
