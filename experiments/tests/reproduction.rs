//! The experiment as a whole: nothing is tested on what it was trained on, nothing depends on threads, and the files
//! are those of the contract.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use neuralcb::Encoding;
use neuralcb_experiments::{
    Algorithm, Dataset, Preset, Problem, Results, Settings, TrainingMode, rows, run, total_work, write_results,
};
use neuralcb_logs::OutDir;

const PRESETS: [Preset; 2] = [Preset::Paper, Preset::ReleasedCode];

/// Every model and both modes, small enough for a test.
fn tiny(preset: Preset) -> Settings {
    Settings {
        reps: 2,
        rounds: 60,
        test_contexts: 40,
        learning_rates: vec![1e-3],
        betas: vec![0.05, 1.0],
        sigmas: vec![1.0],
        ..Settings::fig1(preset)
    }
}

fn results(settings: &Settings) -> Results {
    run(settings, &|_| ()).unwrap()
}

#[test]
fn no_test_context_is_a_training_context() {
    for preset in PRESETS {
        let settings = Settings { rounds: 500, test_contexts: 500, ..Settings::fig1(preset) };
        let mut seen = HashSet::new();
        for dataset in Dataset::ALL {
            for rep in 0..2 {
                let problem = Problem::draw(&settings, *dataset, rep).unwrap();
                let layout = problem.log.contexts().layout();
                let n = if layout.encoding == Encoding::Disjoint { 500 } else { 500 * layout.n_actions };
                for contexts in [problem.log.contexts(), problem.test.contexts()] {
                    assert_eq!(contexts.rows(0..500).len(), n * layout.dim);
                    for row in contexts.rows(0..500).chunks_exact(layout.dim) {
                        let bits: Vec<u32> = row.iter().map(|v| v.to_bits()).collect();
                        // nor is any row drawn twice, in any repetition or data set
                        assert!(seen.insert(bits), "{preset} {dataset}, repetition {rep}: a row twice");
                    }
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for preset in PRESETS {
        let settings = tiny(preset);
        let text = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            rows::to_csv(&pool.install(|| results(&settings)).rows)
        };
        let one = text(1);
        assert!(one == text(2), "{preset}: another results.csv with two threads");
        assert!(one.lines().count() > 100);
    }
}

#[test]
fn another_seed_gives_other_rows() {
    for preset in PRESETS {
        let of = |seed| results(&Settings { seed, datasets: vec![Dataset::Cosine], ..learned_fast(preset) }).rows;
        let (one, two) = (of(1), of(2));
        assert_eq!(one.len(), two.len());
        for (a, b) in one.iter().zip(&two) {
            assert_ne!(a.suboptimality, b.suboptimality, "{:?}", a.key);
            assert_eq!((a.key.seed, b.key.seed), (1, 2));
        }
        // and every repetition has a bandit of its own
        let of_rep = |rep| -> Vec<f64> { one.iter().filter(|r| r.key.rep == rep).map(|r| r.suboptimality).collect() };
        assert!(of_rep(0).iter().zip(of_rep(1)).all(|(a, b)| *a != b));
    }
}

/// The policies that need no network.
fn learned_fast(preset: Preset) -> Settings {
    let algorithms = vec![Algorithm::LinLcb, Algorithm::KernLcb, Algorithm::Uniform, Algorithm::Behaviour];
    Settings { algorithms, ..tiny(preset) }
}

fn files(folder: &Path) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            out.extend(files(&entry.path()).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            out.insert(name);
        }
    }
    out
}

#[test]
fn the_files_are_those_of_the_contract() {
    let datasets = vec![Dataset::Quadratic, Dataset::Cosine];
    let settings = Settings { datasets, modes: vec![TrainingMode::S], ..tiny(Preset::Paper) };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("fig1");
    let results = results(&settings);
    let curves = write_results(&OutDir::prepare(&out).unwrap(), &settings, &results).unwrap();
    let want = [
        "results.csv",
        "timings.csv",
        "summary.csv",
        "settings.json",
        "report.html",
        "figures/fig1.svg",
        "figures/fig1-quadratic.svg",
        "figures/fig1-cosine.svg",
    ];
    assert_eq!(files(&out), want.map(String::from).into());
    assert_eq!(files(folder.path()).len(), want.len(), "something was left beside the folder");

    let text = fs::read_to_string(out.join("results.csv")).unwrap();
    let header = "dataset,algorithm,mode,learning_rate,sigma,beta,split,behaviour,rep,seed,n,suboptimality,accuracy";
    assert_eq!(text.lines().next().unwrap(), header);
    // n = 10, 20, 30, 50, 60; NeuraLCB with two β and NeuralGreedy, the baselines with the paper's six β
    let (datasets, reps, n) = (2, 2, 5);
    let policies = (2 + 1) + (6 + 1) + 6 + 6 + 2;
    assert_eq!(text.lines().count(), 1 + datasets * reps * n * policies);
    assert_eq!(rows::from_csv(&text).unwrap(), results.rows, "the file reads back to the same bits");

    let timings = fs::read_to_string(out.join("timings.csv")).unwrap();
    assert!(timings.lines().next().unwrap().ends_with(",n,train_seconds,score_seconds"));
    assert_eq!(timings.lines().count(), 1 + datasets * reps * n * (policies - 2), "policies that learn have times");

    assert_eq!(curves.len(), 2 * 8);
    assert_eq!(fs::read_to_string(out.join("summary.csv")).unwrap().lines().count(), 1 + curves.len() * n);
    let kept = fs::read_to_string(out.join("settings.json")).unwrap();
    assert_eq!(serde_json::from_str::<Settings>(&kept).unwrap(), settings);
    for svg in ["figures/fig1.svg", "figures/fig1-quadratic.svg", "figures/fig1-cosine.svg"] {
        assert!(fs::read_to_string(out.join(svg)).unwrap().contains("<svg"), "{svg}");
    }
}

#[test]
fn the_greedy_twin_is_beta_zero() {
    for preset in PRESETS {
        let of = |algorithm, betas: Vec<f64>| -> Vec<(String, usize, usize, f64, Option<f64>)> {
            let datasets = vec![Dataset::Cosine];
            let algorithms = vec![algorithm];
            let settings =
                Settings { datasets, algorithms, betas: betas.clone(), baseline_betas: betas, ..tiny(preset) };
            let rows = results(&settings).rows;
            assert!(rows.iter().all(|r| r.key.algorithm == algorithm.name()));
            let short = |r: &rows::ResultRow| {
                let setting = format!("{} {:?} {:?}", r.key.dataset, r.key.mode, r.key.learning_rate);
                (setting, r.key.rep, r.key.n, r.suboptimality, r.accuracy)
            };
            rows.iter().map(short).collect()
        };
        for (greedy, lcb) in
            [(Algorithm::NeuralGreedy, Algorithm::Neuralcb), (Algorithm::NeuralLinGreedy, Algorithm::NeuralLinLcb)]
        {
            let twin = of(greedy, vec![1.0]);
            assert!(!twin.is_empty());
            assert_eq!(twin, of(lcb, vec![0.0]), "{preset} {lcb}");
            assert_ne!(twin, of(lcb, vec![10.0]), "{preset} {lcb}: β makes no difference");
        }
    }
}

#[test]
fn the_progress_adds_up_to_the_work_announced() {
    let settings = Settings { sigmas: vec![0.1, 1.0], rounds: 130, ..learned_fast(Preset::Paper) };
    let done = AtomicU64::new(0);
    run(&settings, &|work| _ = done.fetch_add(work, Ordering::Relaxed)).unwrap();
    assert_eq!(done.into_inner(), total_work(&settings));
}
