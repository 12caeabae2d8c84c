//! Invented results in the shape of real ones: seven problems, ten algorithms, the full grid. They show nothing but the
//! page.

use neuralcb_experiments::report::{
    Comparison, ReportChoice, ReportCurve, ReportData, ReportFigure, ReportProblem, RunInfo,
};

const BETAS: [f64; 6] = [0.01, 0.05, 0.1, 1.0, 5.0, 10.0];
const RATES: [f64; 2] = [1e-4, 1e-3];
const SIGMAS: [f64; 3] = [0.1, 1.0, 10.0];

/// A report with Figure 1 (three problems), Figure 2 (four) and Figure 4 (S against B on two of them).
pub fn report() -> ReportData {
    let titles = [
        ("quadratic", "h₁(u) = 10(uᵀa)²", 2.1),
        ("quadratic2", "h₂(u) = uᵀAᵀAu", 15.0),
        ("cosine", "h₃(u) = cos(3uᵀa)", 0.3),
        ("mushroom", "Mushroom", 1.2),
        ("statlog", "Statlog", 0.8),
        ("adult", "Adult", 0.9),
        ("mnist", "MNIST", 0.9),
    ];
    let problems = titles.iter().enumerate().map(|(i, (dataset, title, top))| problem(i, dataset, title, *top));
    let figure = |id: &str, title: &str, caption: &str, panels: Vec<usize>| ReportFigure {
        id: id.into(),
        title: title.into(),
        caption: caption.into(),
        panels,
        by_mode: id == "fig4",
    };
    ReportData {
        title: "Invented results </script><b>&".into(),
        figures: vec![
            figure("fig1", "Figure 1: synthetic data", "Three reward functions, n up to 10,000.", vec![0, 1, 2]),
            figure("fig2", "Figure 2: real data", "Four classification problems as bandits.", vec![3, 4, 5, 6]),
            figure("fig4", "Figure 4: S against B", "One step per sample, or a hundred steps on batches.", vec![2, 3]),
        ],
        problems: problems.collect(),
        comparison: vec![
            Comparison {
                what: "NeuraLCB on h₁ at n = 10,000".into(),
                paper: "≤ 0.01 (read off the figure)".into(),
                released: "0.0063 ± 0.0001".into(),
                ours: "0.0071 ± 0.0004".into(),
            },
            Comparison {
                what: "Which mode is better on cosine".into(),
                paper: "B, as its text says; the figure shows both modes of the same network".into(),
                released: "B".into(),
                ours: "B".into(),
            },
        ],
        settings: "{\n  \"preset\": \"paper\",\n  \"reps\": 10,\n  \"beta\": [0.01, 0.05, 0.1, 1.0, 5.0, 10.0]\n}"
            .into(),
        run: RunInfo {
            version: "0.1.0".into(),
            machine: "x86_64, 2 cores".into(),
            threads: 2,
            finished: "2025-01-02 03:04 UTC".into(),
            wall_seconds: 12_345.6,
            compute_seconds: 24_000.0,
        },
    }
}

fn problem(index: usize, dataset: &str, title: &str, top: f64) -> ReportProblem {
    let real = index > 2;
    let mut curves = Vec::new();
    let mut add = |algorithm: &str, mode: Option<&str>, rate: Option<f64>, sigma: Option<f64>, beta: Option<f64>| {
        let setting = (mode, rate, sigma, beta);
        curves.push(ReportCurve {
            algorithm: algorithm.into(),
            mode: mode.map(str::to_string),
            learning_rate: rate,
            sigma,
            beta,
            reps: 10,
            points: points(top, skill(algorithm, setting, real), algorithm),
        });
    };
    for mode in ["S", "B"] {
        for rate in RATES {
            BETAS.iter().for_each(|beta| add("neuralcb", Some(mode), Some(rate), None, Some(*beta)));
            add("neural-greedy", Some(mode), Some(rate), None, None);
        }
    }
    for beta in BETAS {
        add("neural-lin-lcb", None, None, None, Some(beta));
        add("lin-lcb", None, None, None, Some(beta));
        SIGMAS.iter().for_each(|sigma| add("kern-lcb", None, None, Some(*sigma), Some(beta)));
    }
    ["neural-lin-greedy", "uniform", "constant", "behaviour", "clone"]
        .iter()
        .for_each(|name| add(name, None, None, None, None));
    let choices = choices(&curves);
    ReportProblem {
        dataset: dataset.into(),
        title: title.into(),
        behaviour: "ε-greedy, ε = 0.1".into(),
        split: real.then(|| "disjoint".into()),
        curves,
        choices,
    }
}

/// How fast a setting learns: the exponent of its curve, and the level of a reference.
fn skill(
    algorithm: &str,
    (mode, rate, sigma, beta): (Option<&str>, Option<f64>, Option<f64>, Option<f64>),
    real: bool,
) -> f64 {
    let base = match algorithm {
        "neuralcb" => 0.6,
        "neural-greedy" => 0.52,
        "kern-lcb" => 0.3,
        "neural-lin-lcb" => 0.14,
        "neural-lin-greedy" => 0.12,
        "lin-lcb" => 0.05,
        "clone" => 0.4,
        "behaviour" => 0.1,
        "constant" => 0.7,
        _ => 1.0,
    };
    let from = |value: Option<f64>, best: f64| value.map_or(0.0, |value: f64| (value / best).log10().abs());
    let worse = if real { "B" } else { "S" };
    let mode: f64 = if mode == Some(worse) { 0.15 } else { 0.0 };
    let lost = 0.1 * from(rate, 1e-3) + 0.12 * from(sigma, 1.0) + 0.06 * from(beta, 0.1);
    if algorithm == "lin-lcb" {
        base - 0.04 * from(beta, 10.0)
    } else {
        base - mode.min(base / 4.0) - lost.min(base / 2.0)
    }
}

fn points(top: f64, skill: f64, algorithm: &str) -> Vec<[f64; 4]> {
    let ns = [10, 16, 25, 40, 63, 100, 158, 251, 398, 631, 1000, 1585, 2512, 3981, 6310, 10_000];
    let point = |(i, n): (usize, i32)| {
        let n = f64::from(n);
        if matches!(algorithm, "uniform" | "constant" | "behaviour") {
            return [n, top * skill, top * skill, top * skill];
        }
        let wave = 1.0 + 0.06 * (i as f64 * 1.7 + 40.0 * skill).sin();
        let mean = top * 0.95 * (n / 10.0).powf(-skill) * wave;
        let half = 0.09 * mean * (1.0 + (i as f64 * 0.9 + 10.0 * skill).cos() / 2.0);
        [n, mean, mean - half, mean + half]
    };
    ns.into_iter().enumerate().map(point).collect()
}

/// The oracles take the best setting, choosing by the log alone finds a worse one.
fn choices(curves: &[ReportCurve]) -> Vec<ReportChoice> {
    let mut choices = Vec::new();
    for algorithm in ["neuralcb", "neural-greedy", "neural-lin-lcb", "lin-lcb", "kern-lcb"] {
        for mode in [None, Some("S"), Some("B")] {
            let mut own: Vec<&ReportCurve> = curves
                .iter()
                .filter(|c| c.algorithm == algorithm && (mode.is_none() || c.mode.as_deref() == mode))
                .collect();
            own.sort_by(|a, b| a.points.last().unwrap()[1].total_cmp(&b.points.last().unwrap()[1]));
            if own.is_empty() {
                continue;
            }
            for (selection, place) in [("oracle", 0), ("oracle-over-time", 0), ("log-only", own.len() / 3)] {
                let parts = [
                    own[place].mode.clone(),
                    own[place].learning_rate.map(|v| format!("lr {v}")),
                    own[place].sigma.map(|v| format!("σ {v}")),
                    own[place].beta.map(|v| format!("β {v}")),
                ];
                let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
                let counts = if selection == "log-only" && mode.is_none() { "; 2 others ×4" } else { "" };
                choices.push(ReportChoice {
                    selection: selection.into(),
                    algorithm: algorithm.into(),
                    mode: mode.map(str::to_string),
                    setting: if counts.is_empty() { text } else { format!("{text} ×6{counts}") },
                    reps: 10,
                    points: own[place].points.clone(),
                });
            }
        }
    }
    choices
}
