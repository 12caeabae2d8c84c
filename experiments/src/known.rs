//! What is known of the paper's own results, beside ours.
//!
//! The paper's figures are pictures; its text names no number. Of the released material four pictures survive, all made
//! with the released code (mean of 10 runs, read off to about two pixels). What the text says of an algorithm is in
//! words.

use crate::names::{Algorithm, Dataset};
use crate::report::Comparison;
use crate::results::Results;
use crate::settings::Settings;
use crate::summary::{Point, Setting};

/// A value read off a surviving picture, with the setting it belongs to.
struct Known {
    dataset: Dataset,
    algorithm: Algorithm,
    mode: Option<&'static str>,
    learning_rate: Option<f64>,
    sigma: Option<f64>,
    beta: Option<f64>,
    n: usize,
    paper: &'static str,
    released: &'static str,
}

const fn neural(dataset: Dataset, lr: f64, beta: f64, n: usize, paper: &'static str, released: &'static str) -> Known {
    Known {
        dataset,
        algorithm: Algorithm::Neuralcb,
        mode: Some("B"),
        learning_rate: Some(lr),
        sigma: None,
        beta: Some(beta),
        n,
        paper,
        released,
    }
}

const fn plain(
    dataset: Dataset,
    algorithm: Algorithm,
    beta: Option<f64>,
    sigma: Option<f64>,
    n: usize,
    paper: &'static str,
    released: &'static str,
) -> Known {
    Known { dataset, algorithm, mode: None, learning_rate: None, sigma, beta, n, paper, released }
}

const BEST: &str = "best of all";
const FAILS: &str = "fails";

const KNOWN: &[Known] = &[
    neural(Dataset::Quadratic, 1e-3, 0.05, 2_000, BEST, "0.16 ± 0.02"),
    neural(Dataset::Quadratic, 1e-3, 0.05, 10_000, BEST, "≤ 0.01"),
    plain(Dataset::Quadratic, Algorithm::LinLcb, Some(0.1), None, 10_000, FAILS, "2.16"),
    plain(Dataset::Quadratic, Algorithm::KernLcb, Some(0.1), Some(1.0), 10_000, FAILS, "1.66"),
    plain(Dataset::Quadratic, Algorithm::NeuralLinGreedy, None, None, 10_000, FAILS, "1.91"),
    neural(Dataset::Quadratic2, 1e-3, 1.0, 5_000, BEST, "4.5 ± 0.1"),
    neural(Dataset::Quadratic2, 1e-3, 1.0, 10_000, BEST, "0.74 ± 0.08"),
    plain(Dataset::Quadratic2, Algorithm::LinLcb, Some(0.1), None, 10_000, FAILS, "16.0"),
    plain(Dataset::Quadratic2, Algorithm::KernLcb, Some(0.1), Some(1.0), 10_000, FAILS, "12.1"),
    neural(Dataset::Cosine, 1e-3, 0.05, 5_000, BEST, "0.110 ± 0.003"),
    neural(Dataset::Cosine, 1e-3, 0.05, 10_000, BEST, "0.054 ± 0.002"),
    plain(Dataset::Cosine, Algorithm::LinLcb, Some(0.1), None, 10_000, FAILS, "0.266"),
    plain(Dataset::Cosine, Algorithm::KernLcb, Some(0.1), Some(0.1), 10_000, FAILS, "0.202"),
    neural(Dataset::Mnist, 1e-4, 10.0, 15_000, BEST, "0.26 ± 0.01 (n = 14,900)"),
    plain(Dataset::Mnist, Algorithm::LinLcb, Some(0.1), None, 15_000, FAILS, "0.90 (n = 14,900)"),
    plain(Dataset::Mnist, Algorithm::KernLcb, Some(0.1), Some(10.0), 15_000, "slightly well", "0.22 (n = 14,900)"),
    plain(Dataset::Mnist, Algorithm::NeuralLinGreedy, None, None, 15_000, FAILS, "0.72 (n = 14,900)"),
];

/// The table paper · released code · ours, for what was run with the very settings of a surviving picture.
pub(crate) fn compare(settings: &Settings, results: &Results) -> Vec<Comparison> {
    let independent = crate::problem::behaviour_name(&settings.behaviour);
    let ours = |known: &Known, setting: &Setting| {
        let values: Vec<f64> = results
            .rows
            .iter()
            .filter(|r| r.key.dataset == known.dataset.name() && r.key.algorithm == known.algorithm.name())
            .filter(|r| r.key.behaviour == independent && r.key.n == known.n && Setting::of(&r.key) == *setting)
            .map(|r| r.suboptimality)
            .collect();
        (!values.is_empty()).then(|| Point::over(known.n, &values))
    };
    KNOWN
        .iter()
        .filter_map(|known| {
            let &Known { learning_rate, sigma, beta, .. } = known;
            let setting = Setting { mode: known.mode.map(str::to_owned), learning_rate, sigma, beta };
            let point = ours(known, &setting)?;
            let mut what = format!("{}, {}", known.dataset, crate::names::paper_name(known.algorithm.name()));
            if !setting.to_string().is_empty() {
                what += &format!(" ({setting})");
            }
            what += &format!(", n = {}", known.n);
            let ours = if point.reps > 1 {
                format!("{:.3} ± {:.3}", point.mean, point.high - point.mean)
            } else {
                format!("{:.3}", point.mean)
            };
            let (paper, released) = (known.paper.to_owned(), known.released.to_owned());
            Some(Comparison { what, paper, released, ours })
        })
        .collect()
}
