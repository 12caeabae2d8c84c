//! The models that hold whole matrices: ridge and kernel regression against dense twins at sizes that fill vectors and
//! blocks and at sizes that do not, single against double precision, and the same bits with any number of threads.

mod common;

use common::{inverse, random_contexts, random_log};
use neuralcb::model::{
    Covariance, ExactForm, Kernel, KernelConfig, Linear, LinearConfig, NeuralConfig, NeuralLinearConfig, Precision,
};
use neuralcb::{Contexts, Eligible, Encoding, Estimates, Layout, Learner, LoggedData, ModelConfig, Seed};

const ENCODINGS: [Encoding; 2] = [Encoding::PerAction, Encoding::Disjoint];

fn fitted(learner: &mut dyn Learner, log: &LoggedData, test: &Contexts) -> Estimates {
    for t in 0..log.n_rounds() {
        let round = log.round(t);
        learner.observe(round.chosen, round.reward);
    }
    learner.model().unwrap().estimate(test).unwrap()
}

/// The largest |got − want| of means and of widths.
fn distance(got: &Estimates, want: &Estimates) -> (f64, f64) {
    let largest = |a: &[f64], b: &[f64]| {
        assert_eq!(a.len(), b.len());
        // a NaN must not be lost, as it would be in max
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |m, d| if d <= m { m } else { d })
    };
    (largest(&got.mean, &want.mean), largest(&got.width, &want.width))
}

/// The vector of a pair with the zeros of the other blocks.
fn explicit(layout: Layout, x: &[f32], action: usize) -> Vec<f64> {
    let mut out = vec![0.0; layout.dim * layout.n_blocks()];
    let from = layout.block(action) * layout.dim;
    out[from..from + layout.dim].iter_mut().zip(x).for_each(|(o, &x)| *o = f64::from(x));
    out
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Mean kᵀ(K + λI)⁻¹y and quadratic form kᵀ(K + λI)⁻¹k of every pair, from k between vectors with explicit zeros.
fn kernel_twin(
    log: &LoggedData,
    test: &Contexts,
    n: usize,
    lambda: f64,
    kernel: impl Fn(&[f64], &[f64]) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let layout = test.layout();
    let rounds: Vec<_> = (0..n.min(log.n_rounds())).map(|t| log.round(t)).collect();
    let samples: Vec<_> = rounds.iter().map(|r| explicit(layout, r.chosen.x, r.chosen.action)).collect();
    let y: Vec<f64> = rounds.iter().map(|r| r.reward).collect();
    let row = |u: &[f64]| samples.iter().map(|x| kernel(u, x)).collect::<Vec<f64>>();
    let mut matrix: Vec<_> = samples.iter().map(|x| row(x)).collect();
    (0..matrix.len()).for_each(|i| matrix[i][i] += lambda);
    let inverse = inverse(&matrix);
    let (mut mean, mut form) = (Vec::new(), Vec::new());
    for round in 0..test.n_rounds() {
        for place in 0..test.pairs(round).len() {
            let pair = test.pair(round, place);
            let k = row(&explicit(layout, pair.x, pair.action));
            let weights: Vec<f64> = inverse.iter().map(|row| dot(row, &k)).collect();
            mean.push(dot(&weights, &y));
            form.push(dot(&weights, &k));
        }
    }
    (mean, form)
}

/// Ridge regression is kernel regression with k(u, v) = uᵀv, and width² = (‖u‖² − kᵀ(K + λI)⁻¹k)/λ.
#[test]
fn ridge_regression_of_any_size_is_that_of_the_dense_twin() {
    for encoding in ENCODINGS {
        for dim in [1, 5, 6, 8, 20, 47] {
            let layout = Layout { dim, n_actions: 3, encoding };
            let mut rng = Seed::new(dim as u64).stream("ridge");
            let (log, test) = (random_log(layout, 70, &mut rng), random_contexts(layout, 61, &mut rng));
            let got = fitted(
                &mut Linear::new(LinearConfig { lambda: 0.5, precision: Precision::Double }, layout).unwrap(),
                &log,
                &test,
            );
            let (mean, form) = kernel_twin(&log, &test, 70, 0.5, dot);
            let norms = (0..test.n_rounds()).flat_map(|t| (0..test.pairs(t).len()).map(move |i| (t, i)));
            let norms = norms.map(|(t, i)| test.pair(t, i).x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>());
            let width = norms.zip(&form).map(|(norm, form)| ((norm - form) / 0.5).sqrt()).collect();
            let (mean, width) = distance(&got, &Estimates { mean, width });
            // cond(K + λI) < 2e3, and the twin subtracts two numbers below 20: 1e-12, times 1/(2·width) < 10 in the
            // root
            assert!(mean < 1e-11 && width < 1e-11, "{encoding:?} d = {dim}: {mean} {width}");
        }
    }
}

/// 300 samples are more than one panel and more than one group of rows; 61 rounds are no whole tile.
#[test]
fn kernel_regression_of_any_size_is_that_of_the_dense_twin() {
    for encoding in ENCODINGS {
        for (n, dim, sigma) in [(1, 3, 1.0), (40, 1, 0.5), (45, 7, 1.0), (300, 3, 0.3), (300, 20, 3.0), (300, 20, 0.1)]
        {
            let layout = Layout { dim, n_actions: 4, encoding };
            let mut rng = Seed::new(n as u64).stream("kernel");
            let (log, test) = (random_log(layout, 300, &mut rng), random_contexts(layout, 61, &mut rng));
            let rbf = |u: &[f64], v: &[f64]| {
                let distance: f64 = u.iter().zip(v).map(|(u, v)| (u - v).powi(2)).sum();
                (-distance / (2.0 * sigma * sigma)).exp()
            };
            let (mean, form) = kernel_twin(&log, &test, n, 0.1, rbf);
            let want = Estimates { mean, width: form.iter().map(|form| (1.0 - form).sqrt()).collect() };
            for (precision, tolerance) in [(Precision::Double, (1e-11, 1e-11)), (Precision::Single, (1e-11, SINGLE))] {
                let config = KernelConfig { sigma, lambda: 0.1, max_samples: n, precision };
                let got = fitted(&mut Kernel::new(config, layout).unwrap(), &log, &test);
                let (mean, width) = distance(&got, &want);
                let what = format!("{encoding:?} n = {n}, d = {dim}, σ = {sigma}, {precision:?}");
                // cond(K + λI) ≤ 300/λ = 3e3: 1e-12 in mean and width², times 1/(2·width) < 10 in its root
                assert!(mean <= tolerance.0 && width <= tolerance.1, "{what}: {mean} {width}");
            }
        }
    }
}

/// u·√(n/λ) = 3.3e-6 in width² for n = 300 and λ = 0.1, times 1/(2·width) < 10 in its root.
const SINGLE: f64 = 3.3e-5;

/// The bound of [`Precision`]: single precision moves width² by less than 2u·√(n/λ), and no mean at all.
#[test]
fn single_precision_stays_within_its_bound() {
    for encoding in ENCODINGS {
        let layout = Layout { dim: 8, n_actions: 3, encoding };
        let mut rng = Seed::new(4).stream("single");
        let (log, test) = (random_log(layout, 400, &mut rng), random_contexts(layout, 100, &mut rng));
        for lambda in [1e-6, 1e-3, 0.1, 10.0] {
            for sigma in [0.1, 0.5, 1.0, 3.0, 10.0, 100.0] {
                let estimate = |precision| {
                    let config = KernelConfig { sigma, lambda, max_samples: 400, precision };
                    fitted(&mut Kernel::new(config, layout).unwrap(), &log, &test)
                };
                let (single, double) = (estimate(Precision::Single), estimate(Precision::Double));
                assert_eq!(single.mean, double.mean);
                let bound = 2.0 * 2f64.powi(-24) * (400.0 / lambda).sqrt();
                for (s, d) in single.width.iter().zip(&double.width) {
                    let error = (s * s - d * d).abs();
                    assert!(error <= bound, "{encoding:?} λ {lambda} σ {sigma}: {error}, bound {bound}");
                }
                let auto = estimate(Precision::Auto);
                assert_eq!(auto, if lambda < 0.02 { double } else { single }, "400 ≤ 20,000·λ from λ = 0.02 on");
            }
        }
    }
}

/// The bound of [`Precision`] for ridge regression: single precision moves a width, in proportion to itself, by less
/// than (d + 4)·u·‖L‖_F·‖L⁻¹‖_F, and no mean at all; `Auto` is single where that is below 1e-4.
#[test]
fn single_precision_of_ridge_regression_stays_within_its_bound() {
    let (mut singles, mut doubles) = (0, 0);
    for encoding in ENCODINGS {
        for (dim, shrink) in [(1, 1.0), (3, 1.0), (8, 1.0), (20, 1.0), (20, 0.01), (47, 1.0)] {
            let layout = Layout { dim, n_actions: 3, encoding };
            let mut rng = Seed::new(dim as u64).stream("single");
            // of numbers that hardly vary the log says little
            let shrunk = |contexts: &Contexts| {
                let x = contexts.rows(0..contexts.n_rounds()).iter().enumerate();
                let x = x.map(|(i, &x)| if i % dim == 0 { x } else { x * shrink }).collect();
                Contexts::new(layout, x, Eligible::All).unwrap()
            };
            let (log, test) = (random_log(layout, 400, &mut rng), random_contexts(layout, 100, &mut rng));
            let (x, test) = (shrunk(log.contexts()), shrunk(&test));
            let actions: Vec<u32> = (0..400).map(|t| log.round(t).chosen.action as u32).collect();
            let log = LoggedData::new(x, actions, (0..400).map(|t| log.round(t).reward).collect(), None).unwrap();
            for lambda in [1e-4, 0.1, 10.0] {
                let estimate = |precision| {
                    fitted(&mut Linear::new(LinearConfig { lambda, precision }, layout).unwrap(), &log, &test)
                };
                let (single, double) = (estimate(Precision::Single), estimate(Precision::Double));
                assert_eq!(single.mean, double.mean);
                let bound = (dim + 4) as f64 * 2f64.powi(-24) * condition(&log, lambda);
                for (s, d) in single.width.iter().zip(&double.width) {
                    let error = (s / d - 1.0).abs();
                    assert!(error <= bound, "{encoding:?} d {dim}, λ {lambda}: {error}, bound {bound}");
                }
                let safe = bound <= 1e-4;
                assert_eq!(estimate(Precision::Auto), if safe { single } else { double }, "{encoding:?} d {dim}");
                if safe { singles += 1 } else { doubles += 1 }
            }
        }
    }
    assert!(singles > 5 && doubles > 5, "both are tried: {singles} and {doubles} times");
}

/// The largest √(tr Λ · tr Λ⁻¹) of the blocks.
fn condition(log: &LoggedData, lambda: f64) -> f64 {
    let layout = log.contexts().layout();
    let d = layout.dim;
    let mut largest = 0.0f64;
    for block in 0..layout.n_blocks() {
        let mut matrix = vec![vec![0.0; d]; d];
        (0..d).for_each(|i| matrix[i][i] = lambda);
        for t in 0..log.n_rounds() {
            let chosen = log.round(t).chosen;
            if layout.block(chosen.action) == block {
                let x: Vec<f64> = chosen.x.iter().map(|&x| f64::from(x)).collect();
                (0..d).for_each(|i| (0..d).for_each(|j| matrix[i][j] += x[i] * x[j]));
            }
        }
        let inverse = inverse(&matrix);
        let trace = |matrix: &[Vec<f64>]| (0..d).map(|i| matrix[i][i]).sum::<f64>();
        largest = largest.max((trace(&matrix) * trace(&inverse)).sqrt());
    }
    largest
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let exact = |form| NeuralConfig { covariance: Covariance::Exact(form), ..NeuralConfig::default() };
    let configs = [
        ModelConfig::Linear(LinearConfig::default()),
        ModelConfig::Linear(LinearConfig { precision: Precision::Double, ..LinearConfig::default() }),
        ModelConfig::Kernel(KernelConfig::default()),
        ModelConfig::Kernel(KernelConfig { precision: Precision::Double, ..KernelConfig::default() }),
        ModelConfig::Neural(exact(ExactForm::Primal)),
        ModelConfig::Neural(exact(ExactForm::Dual)),
        ModelConfig::NeuralLinear(NeuralLinearConfig {
            covariance: Covariance::Exact(ExactForm::Primal),
            ..NeuralLinearConfig::default()
        }),
    ];
    for encoding in ENCODINGS {
        let layout = Layout { dim: 5, n_actions: 3, encoding };
        let mut rng = Seed::new(6).stream("threads");
        let (log, test) = (random_log(layout, 50, &mut rng), random_contexts(layout, 2000, &mut rng));
        for config in &configs {
            let estimate = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut learner = config.learner(layout, Seed::new(1)).unwrap();
                pool.install(|| fitted(learner.as_mut(), &log, &test))
            };
            assert_eq!(estimate(1), estimate(3), "{encoding:?} {config:?}");
        }
    }
}
