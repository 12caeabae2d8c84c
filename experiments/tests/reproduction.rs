//! The experiments as a whole: nothing is tested on what it was trained on, nothing depends on threads or on a kill,
//! and the files are those of the contract.

#[path = "../../logs/tests/common/mod.rs"]
mod common;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use neuralcb::Encoding;
use neuralcb_experiments::report::RunInfo;
use neuralcb_experiments::{
    Algorithm, Dataset, Figure, Journal, Library, Plan, Preset, Problem, Results, Returned, Settings, Split,
    TrainingMode, rows, run, write_results, write_settings,
};
use neuralcb_logs::OutDir;

const PRESETS: [Preset; 2] = [Preset::Paper, Preset::ReleasedCode];

/// Every model and both modes, small enough for a test.
fn tiny(preset: Preset) -> Settings {
    Settings {
        reps: 2,
        synthetic_rounds: 60,
        real_rounds: 60,
        test_contexts: 40,
        learning_rates: vec![1e-3],
        betas: vec![0.05, 1.0],
        sigmas: vec![1.0],
        ..Settings::of(&[Figure::Fig1], preset)
    }
}

fn results(settings: &Settings) -> Results {
    results_with(settings, &Library::default(), None)
}

fn results_with(settings: &Settings, library: &Library, journal: Option<&Journal>) -> Results {
    let plan = Plan::new(settings.clone()).unwrap();
    let records = run(&plan, library, journal, &|_| ()).unwrap();
    Results::new(&plan, records.iter().map(Some))
}

/// The real data sets, or a line that says why there is no test.
fn shared_data() -> Option<Library> {
    common::data_folder().map(Library::new)
}

#[test]
fn no_test_context_is_a_training_context() {
    for preset in PRESETS {
        let base = Settings::of(&[Figure::Fig1], preset);
        let settings = Settings { synthetic_rounds: 500, test_contexts: 500, ..base };
        let mut seen = HashSet::new();
        for config in settings.problems() {
            for rep in 0..2 {
                let problem = Problem::draw(&config, &Library::default(), rep, 1).unwrap();
                let layout = problem.log.contexts().layout();
                let n = if layout.encoding == Encoding::Disjoint { 500 } else { 500 * layout.n_actions };
                for contexts in [problem.log.contexts(), problem.test.contexts()] {
                    assert_eq!(contexts.rows(0..500).len(), n * layout.dim);
                    for row in contexts.rows(0..500).chunks_exact(layout.dim) {
                        let bits: Vec<u32> = row.iter().map(|v| v.to_bits()).collect();
                        // nor is any row drawn twice, in any repetition or data set
                        assert!(seen.insert(bits), "{preset} {}, repetition {rep}: a row twice", config.dataset);
                    }
                }
            }
        }
    }
}

#[test]
fn real_rows_are_shared_between_log_and_test_only_where_the_released_split_is_asked_for() {
    let Some(library) = shared_data() else { return };
    let shared_rows = |dataset: Dataset, split: Split| {
        let base = Settings::of(&[Figure::Fig2], Preset::Paper);
        let settings = Settings { datasets: vec![dataset], split, real_rounds: 9_000, test_contexts: 5_000, ..base };
        let problem = Problem::draw(&settings.problems()[0], &library, 0, 1).unwrap();
        let rows = |contexts: &neuralcb::Contexts| -> HashSet<Vec<u32>> {
            let all = contexts.rows(0..contexts.n_rounds());
            all.chunks_exact(contexts.layout().dim).map(|row| row.iter().map(|v| v.to_bits()).collect()).collect()
        };
        let (log, test) = (rows(problem.log.contexts()), rows(problem.test.contexts()));
        (test.intersection(&log).count(), test.len())
    };
    // Mushroom's rows are all different, so that equal rows are the same row
    let (shared, test) = shared_rows(Dataset::Mushroom, Split::Disjoint);
    assert_eq!((shared, test), (0, 2708));
    assert_eq!(shared_rows(Dataset::Mushroom, Split::ReleasedCode), (5000, 5000));
    assert_eq!(shared_rows(Dataset::Mnist, Split::Disjoint), (0, 5000));
    assert_eq!(shared_rows(Dataset::Mnist, Split::ReleasedCode), (0, 5000), "separate there too");
}

#[test]
fn every_figure_runs_on_real_data() {
    let Some(library) = shared_data() else { return };
    let base = Settings::of(Figure::ALL, Preset::Paper);
    let (figures, modes) = (Figure::ALL.to_vec(), vec![TrainingMode::S]);
    let settings = Settings { figures, modes, datasets: base.datasets, reps: 1, ..tiny(Preset::Paper) };
    let results = results_with(&settings, &library, None);
    let problems: BTreeSet<(String, String)> =
        results.rows.iter().map(|r| (r.key.dataset.clone(), r.key.behaviour.clone())).collect();
    assert_eq!(problems.len(), 9);
    let of = |dataset: &str, algorithm: &str| {
        let own = |r: &&rows::ResultRow| r.key.dataset == dataset && r.key.algorithm == algorithm && r.key.n == 60;
        results.rows.iter().find(own).unwrap().suboptimality
    };
    // ε-greedy 0.1 over K actions, judged by its probabilities: ε(1 − 1/K)
    assert!((of("mnist", "behaviour") - 0.09).abs() < 1e-9);
    assert!((of("statlog", "behaviour") - 0.1 * 6.0 / 7.0).abs() < 1e-9);
    assert!(of("statlog", "constant") < 0.4, "four of five rows are of one class");
    assert!(results.validations.iter().all(|v| v.lower_bound <= v.estimate + 1e-12));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for preset in PRESETS {
        let settings = tiny(preset);
        let text = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let results = pool.install(|| results(&settings));
            rows::to_csv(&results.rows) + &rows::validations_to_csv(&results.validations)
        };
        let one = text(1);
        assert!(one == text(2), "{preset}: other tables with two threads");
        assert!(one.lines().count() > 100);
    }
}

#[test]
fn a_run_that_was_cut_off_goes_on_and_ends_with_the_same_bytes() {
    let settings = Settings { datasets: vec![Dataset::Cosine], ..tiny(Preset::Paper) };
    let whole = rows::to_csv(&results(&settings).rows);
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("runs.jsonl");
    let tasks = Plan::new(settings.clone()).unwrap().tasks.len();
    results_with(&settings, &Library::default(), Some(&Journal::open(folder.path()).unwrap()));
    let bytes = fs::read(&journal).unwrap();
    assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), tasks);
    for cut in [0, 1, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1, bytes.len()] {
        fs::write(&journal, &bytes[..cut]).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert!(journal.len() <= tasks);
        assert!(
            rows::to_csv(&results_with(&settings, &Library::default(), Some(&journal)).rows) == whole,
            "cut at {cut}"
        );
    }
    // a larger grid keeps what is there
    let before = fs::read(&journal).unwrap();
    let more = Settings { reps: 3, ..settings };
    results_with(&more, &Library::default(), Some(&Journal::open(folder.path()).unwrap()));
    assert!(fs::read(&journal).unwrap().starts_with(&before));
}

#[test]
fn the_vote_of_all_policies_is_another_policy_than_the_latest() {
    let base = Settings { datasets: vec![Dataset::Cosine], ..learned_fast(Preset::Paper) };
    let latest = results(&base).rows;
    let vote = results(&Settings { returned: Returned::Vote, ..base }).rows;
    assert_eq!(latest.len(), vote.len());
    let differ = latest.iter().zip(&vote).filter(|(a, b)| a.suboptimality != b.suboptimality).count();
    assert!(differ > latest.len() / 4, "{differ} of {}", latest.len());
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
    let plan = Plan::new(settings.clone()).unwrap();
    let info = RunInfo {
        version: "0".into(),
        machine: "none".into(),
        threads: 1,
        finished: "2000-01-01 00:00".into(),
        wall_seconds: 1.0,
        compute_seconds: 1.0,
    };
    let dir = OutDir::prepare(&out).unwrap();
    write_settings(&dir, &settings).unwrap();
    let figures = write_results(&dir, &plan, &results, info).unwrap();
    let mut want: BTreeSet<String> =
        ["results.csv", "validation.csv", "timings.csv", "summary.csv", "settings.json", "report.html"]
            .map(String::from)
            .into();
    for panel in ["fig1", "fig1-quadratic", "fig1-cosine"] {
        for choice in ["", "-log-only"] {
            want.extend(["svg", "png"].map(|ending| format!("figures/{panel}{choice}.{ending}")));
        }
    }
    assert_eq!(files(&out), want);
    assert_eq!(files(folder.path()).len(), want.len(), "something was left beside the folder");

    let text = fs::read_to_string(out.join("results.csv")).unwrap();
    let header = "dataset,algorithm,mode,learning_rate,sigma,beta,split,behaviour,rep,seed,n,suboptimality,accuracy";
    assert_eq!(text.lines().next().unwrap(), header);
    // n = 10, 20, 30, 48, 50, 60; NeuraLCB with two β and NeuralGreedy, the baselines with the paper's six β, the clone
    // and three references
    let (datasets, reps, n) = (2, 2, 6);
    let policies = (2 + 1) + (6 + 1) + 6 + 6 + 1 + 3;
    assert_eq!(text.lines().count(), 1 + datasets * reps * n * policies);
    assert_eq!(rows::from_csv(&text).unwrap(), results.rows, "the file reads back to the same bits");

    let timings = fs::read_to_string(out.join("timings.csv")).unwrap();
    assert!(timings.lines().next().unwrap().ends_with(",n,train_seconds,score_seconds"));
    assert_eq!(timings.lines().count(), 1 + datasets * reps * n * (policies - 3), "policies that learn have times");

    let validations = fs::read_to_string(out.join("validation.csv")).unwrap();
    assert!(validations.lines().next().unwrap().ends_with(",n,estimate,lower_bound"));
    assert_eq!(validations.lines().count(), 1 + datasets * reps * (policies - 3));

    let [(Figure::Fig1, curves)] = figures.as_slice() else { panic!("one figure was asked for") };
    assert_eq!(curves.len(), 2 * 10 * 3, "three ways of choosing");
    assert_eq!(fs::read_to_string(out.join("summary.csv")).unwrap().lines().count(), 1 + curves.len() * n);
    let kept = fs::read_to_string(out.join("settings.json")).unwrap();
    assert_eq!(serde_json::from_str::<Settings>(&kept).unwrap(), settings);
    for name in ["fig1", "fig1-quadratic", "fig1-cosine-log-only"] {
        assert!(fs::read_to_string(out.join(format!("figures/{name}.svg"))).unwrap().contains("<svg"), "{name}");
        assert!(fs::read(out.join(format!("figures/{name}.png"))).unwrap().starts_with(b"\x89PNG"), "{name}");
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
    for returned in [Returned::Latest, Returned::Vote] {
        let base = learned_fast(Preset::Paper);
        let settings = Settings { sigmas: vec![0.1, 1.0], synthetic_rounds: 130, returned, ..base };
        let plan = Plan::new(settings).unwrap();
        let done = AtomicU64::new(0);
        run(&plan, &Library::default(), None, &|work| _ = done.fetch_add(work, Ordering::Relaxed)).unwrap();
        assert_eq!(done.into_inner(), plan.work());
    }
}

#[test]
fn settings_of_the_network_are_refused_by_name() {
    let with = |name: &str, value: serde_json::Value| {
        let mut settings = tiny(Preset::Paper);
        settings.net.insert(name.into(), value);
        Plan::new(settings).map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(with("layer_norm", false.into()).is_ok());
    let unknown = with("colour", "red".into()).unwrap_err();
    assert!(unknown.starts_with("setting of the network: unknown field `colour`"), "{unknown}");
    let wrong = with("width", "wide".into()).unwrap_err();
    assert!(wrong.starts_with("setting of the network: invalid type"), "{wrong}");
    let range = with("depth", 1.into()).unwrap_err();
    assert!(range.contains("`depth` must be at least 2"), "{range}");
}
