//! Gradients against central differences over every parameter, in f64 and away from the kinks of the ReLU.

use neuralcb::net::{Activation, Init, Net, NetConfig, OutputScale, Params, Tangents, Tensors};
use neuralcb::{Encoding, Layout, Seed, Stream};
use rand::RngExt;

/// One network to be differentiated.
#[derive(Debug, Clone, Copy)]
struct Case {
    depth: usize,
    width: usize,
    layer_norm: bool,
    biases: bool,
    scale: OutputScale,
    encoding: Encoding,
    duplicate: bool,
    activation: Activation,
}

const PER_ACTION: Encoding = Encoding::PerAction;
const DISJOINT: Encoding = Encoding::Disjoint;
const ONE: OutputScale = OutputScale::One;
const ROOT: OutputScale = OutputScale::SqrtWidth;

/// Every value of every setting, and the pairs that share code: 6 and 10 units are padded, 8 are not.
const CASES: [Case; 14] = [
    case(2, 6, true, false, ROOT, PER_ACTION, false),
    case(2, 10, false, false, ROOT, DISJOINT, false),
    case(2, 8, true, true, ONE, DISJOINT, false),
    case(2, 6, false, true, ONE, PER_ACTION, true),
    case(3, 10, true, true, ONE, DISJOINT, false),
    case(3, 6, false, false, ONE, PER_ACTION, false),
    case(3, 8, true, false, ROOT, PER_ACTION, false),
    case(3, 10, false, true, ROOT, DISJOINT, true),
    case(4, 6, true, true, ROOT, PER_ACTION, false),
    case(4, 10, true, false, ONE, DISJOINT, true),
    case(4, 8, false, true, ROOT, PER_ACTION, false),
    case(4, 6, false, false, ONE, DISJOINT, false),
    Case { activation: Activation::Silu, ..case(3, 6, true, true, ROOT, DISJOINT, false) },
    Case { activation: Activation::Silu, ..case(4, 10, false, false, ONE, PER_ACTION, true) },
];

const fn case(
    depth: usize,
    width: usize,
    layer_norm: bool,
    biases: bool,
    scale: OutputScale,
    encoding: Encoding,
    duplicate: bool,
) -> Case {
    Case { depth, width, layer_norm, biases, scale, encoding, duplicate, activation: Activation::Relu }
}

impl Case {
    fn layout(&self) -> Layout {
        Layout { dim: 5, n_actions: 3, encoding: self.encoding }
    }

    fn net(&self) -> Net {
        let config = NetConfig {
            depth: self.depth,
            width: self.width,
            layer_norm: self.layer_norm,
            biases: self.biases,
            output_scale: self.scale,
            init: Init::Uniform,
            duplicate_input: self.duplicate,
            activation: self.activation,
            ..NetConfig::default()
        };
        Net::new(config, self.layout()).unwrap()
    }
}

/// Every number of the tensors, in one fixed order.
fn entries(t: &mut Tensors) -> Vec<&mut f64> {
    let mut out: Vec<&mut f64> = t.weights.iter_mut().flatten().flatten().collect();
    for vectors in [&mut t.biases, &mut t.gains, &mut t.offsets].into_iter().flatten() {
        out.extend(vectors.iter_mut().flatten());
    }
    out.extend(&mut t.output);
    out.extend(&mut t.output_bias);
    out
}

fn flat(mut t: Tensors) -> Vec<f64> {
    entries(&mut t).into_iter().map(|v| *v).collect()
}

/// Parameters in ±1, gains, offsets and biases too: nothing is at a special value.
fn random_params(net: &Net, rng: &mut Stream) -> Tensors {
    let mut tensors = net.unpack(&net.zeros::<f64>());
    entries(&mut tensors).into_iter().for_each(|v| *v = uniform(rng));
    tensors
}

fn uniform(rng: &mut Stream) -> f64 {
    2.0 * rng.random::<f64>() - 1.0
}

/// Inputs of `rows` random contexts, one after another.
fn random_inputs(net: &Net, dim: usize, rows: usize, rng: &mut Stream) -> Vec<f64> {
    let mut inputs = vec![0.0; rows * net.n_in()];
    for input in inputs.chunks_exact_mut(net.n_in()) {
        let x: Vec<f32> = (0..dim).map(|_| uniform(rng) as f32).collect();
        net.write_input(&x, input);
    }
    inputs
}

/// Differences of f over every parameter, or nothing where one of them meets a kink.
fn differences(net: &Net, tensors: &Tensors, block: usize, input: &[f64]) -> Option<Vec<f64>> {
    const STEP: f64 = 1e-6;
    // A kink within a step of h bends the quotient by a share of the jump of the slope, and by another share at h/2.
    // On smooth ground the two differ by rounding, eps·|f|/h ≈ 1e-9, and by h²·f‴ ≈ 1e-9.
    const KINK: f64 = 1e-7;
    let mut tensors = tensors.clone();
    let mut tangents = Tangents::new(net);
    let mut f_at = |tensors: &Tensors| {
        let params: Params<f64> = net.pack(tensors).unwrap();
        net.tangents(&params, block, input, &mut tangents);
        tangents.f()[0]
    };
    let n = entries(&mut tensors).len();
    let mut out = Vec::with_capacity(n);
    for i in 0..n {
        let start = *entries(&mut tensors)[i];
        let mut quotient = |h: f64| {
            let mut at = |v: f64| {
                *entries(&mut tensors)[i] = v;
                f_at(&tensors)
            };
            let (up, down) = (start + h, start - h);
            (at(up) - at(down)) / (up - down)
        };
        let (whole, half) = (quotient(STEP), quotient(STEP / 2.0));
        *entries(&mut tensors)[i] = start;
        if (whole - half).abs() > KINK * whole.abs().max(1.0) {
            return None;
        }
        out.push(whole);
    }
    Some(out)
}

#[test]
fn every_entry_of_the_gradient_is_the_slope_of_f() {
    for (number, case) in CASES.iter().enumerate() {
        let (net, mut rng) = (case.net(), Seed::new(number as u64).stream("derivatives"));
        let tensors = random_params(&net, &mut rng);
        let params: Params<f64> = net.pack(&tensors).unwrap();
        let (mut tangents, mut seen) = (Tangents::new(&net), vec![0.0; net.n_params()]);
        let (mut checked, mut redrawn) = (0, 0);
        while checked < 6 {
            let block = checked % case.layout().n_blocks();
            let input = random_inputs(&net, case.layout().dim, 1, &mut rng);
            let Some(want) = differences(&net, &tensors, block, &input) else {
                redrawn += 1;
                assert!(redrawn < 6, "{case:?}: a kink near every input");
                continue;
            };
            net.tangents(&params, block, &input, &mut tangents);
            let got = flat(net.unpack(&tangents.gradient(&net, block)));
            assert_eq!(got.len(), net.n_params());
            for (i, (g, w)) in got.iter().zip(&want).enumerate() {
                // rounding eps·|f|/h ≈ 1e-9 and truncation h²·f‴/6 ≈ 1e-10, with room for a steep normalisation
                assert!((g - w).abs() <= 1e-7 * w.abs().max(1.0), "{case:?}, parameter {i}: got {g}, slope {w}");
                seen[i] += g.abs();
            }
            checked += 1;
        }
        // dead units have no slope anywhere; most must be alive, or the comparison says little
        let alive = seen.iter().filter(|v| **v > 0.0).count();
        assert!(alive * 2 > seen.len(), "{case:?}: only {alive} of {} parameters matter", seen.len());
    }
}

#[test]
fn expanded_and_shaped_gradient_hold_the_same_numbers() {
    for (number, case) in CASES.iter().enumerate() {
        let (net, mut rng) = (case.net(), Seed::new(number as u64).stream("expand"));
        let params: Params<f64> = net.pack(&random_params(&net, &mut rng)).unwrap();
        let (mut tangents, mut alive) = (Tangents::new(&net), 0);
        for block in 0..case.layout().n_blocks() {
            for input in random_inputs(&net, case.layout().dim, 3, &mut rng).chunks_exact(net.n_in()) {
                net.tangents(&params, block, input, &mut tangents);
                let mut expanded = vec![f64::NAN; net.n_params()];
                tangents.expand(&net, block, &mut expanded);
                let mut shaped = flat(net.unpack(&tangents.gradient(&net, block)));
                let squares = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
                let (want, norm) = (squares(&shaped), tangents.norm_squared(&net));
                // both are products u·v in f64: the same numbers in another order
                expanded.sort_by(f64::total_cmp);
                shaped.sort_by(f64::total_cmp);
                assert_eq!(expanded, shaped, "{case:?}");
                alive += usize::from(want > 0.0);
                // p ≤ 500 rounded terms, all positive: p·eps
                for got in [squares(&expanded), norm] {
                    assert!((got - want).abs() <= 1e-13 * want, "{case:?}: {got} and {want}");
                }
            }
        }
        // a network whose units are all dead has no gradient at all
        assert!(alive > case.layout().n_blocks(), "{case:?}: hardly any gradient to compare");
    }
}
