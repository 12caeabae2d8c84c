//! Runs the passes of an experiment: each reads its log once and, at chosen n, scores the test contexts once and
//! judges every β and the greedy twin from that one pass.
//!
//! Repetitions and passes run in parallel on the current thread pool; every number depends only on the settings and
//! the seed, so the rows are the same with any number of threads.

use std::sync::Arc;
use std::time::Instant;

use neuralcb::bandit::{Synthetic, TestSet, Verdict, collect};
use neuralcb::policy::{Behaviour, BehaviourConfig, pessimistic};
use neuralcb::{Error, Estimates, LoggedData, ModelConfig, RewardModel, Seed};
use rayon::prelude::*;

use crate::names::{Algorithm, Dataset, TrainingMode};
use crate::rows::{Key, ResultRow, TimingRow};
use crate::settings::{Pass, Settings};

/// Hears of work that is done, in units of [`total_work`].
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// The work of all passes, in the units that [`Progress`] hears of; good for a time-left estimate, not exact.
pub fn total_work(settings: &Settings) -> u64 {
    let per_rep: u64 = settings.passes().iter().map(|p| pass_work(settings, p)).sum();
    per_rep * (settings.datasets.len() * settings.reps) as u64
}

fn pass_work(settings: &Settings, pass: &Pass) -> u64 {
    let scoring: u64 = settings.checkpoints().into_iter().map(|n| score_work(settings, pass, n)).sum();
    train_work(pass, settings.rounds) + scoring
}

/// Work of reading some rounds; a round of S-mode is one unit.
fn train_work(pass: &Pass, rounds: usize) -> u64 {
    rounds as u64 * if pass.mode == Some(TrainingMode::B) { 300 } else { 1 }
}

/// Work of scoring the test contexts after n rounds.
fn score_work(settings: &Settings, pass: &Pass, n: usize) -> u64 {
    let contexts = settings.test_contexts as u64;
    match &pass.model {
        // a kernel model's cost grows with the square of its samples, and it is not scored again when they are full
        ModelConfig::Kernel(k) if n <= k.max_samples => contexts + (n * n) as u64 * contexts / 1500,
        ModelConfig::Kernel(_) => 0,
        _ => contexts,
    }
}

/// What one experiment produced.
#[derive(Debug, Default)]
pub struct Results {
    /// One row per (dataset, algorithm, setting, repetition, n), in canonical order.
    pub rows: Vec<ResultRow>,
    /// The same keys with seconds.
    pub timings: Vec<TimingRow>,
}

/// Runs everything.
pub fn run(settings: &Settings, progress: Progress<'_>) -> Result<Results, Error> {
    settings.check()?;
    let passes = settings.passes();
    let reps: Vec<(Dataset, usize)> =
        settings.datasets.iter().flat_map(|&d| (0..settings.reps).map(move |rep| (d, rep))).collect();
    let parts = reps
        .into_par_iter()
        .map(|(dataset, rep)| run_rep(settings, &passes, dataset, rep, progress))
        .collect::<Result<Vec<Results>, Error>>()?;
    let mut results = Results::default();
    for part in parts {
        results.rows.extend(part.rows);
        results.timings.extend(part.timings);
    }
    results.rows.sort_by(|a, b| a.key.compare(&b.key));
    results.timings.sort_by(|a, b| a.key.compare(&b.key));
    Ok(results)
}

/// The log and the test set of one repetition.
pub struct Problem {
    /// The log to learn from.
    pub log: LoggedData,
    /// The contexts to be judged on, with the truth.
    pub test: TestSet,
    seed: Seed,
    behaviour: Behaviour,
}

impl Problem {
    /// Draws bandit, log and test contexts, from streams of their own.
    pub fn draw(settings: &Settings, dataset: Dataset, rep: usize) -> Result<Self, Error> {
        let seed = Seed::new(settings.seed).child(dataset.name()).nth(rep as u64);
        let bandit = Synthetic::new(settings.bandit(dataset), &mut seed.stream("bandit"))?;
        let layout = neuralcb::bandit::Bandit::layout(&bandit);
        let mut behaviour = Behaviour::new(&settings.behaviour, layout)?;
        let log = collect(&bandit, &mut behaviour, settings.rounds, seed.child("log"))?;
        let test = TestSet::draw(&bandit, settings.test_contexts, &mut seed.stream("test"))?;
        Ok(Problem { log, test, seed, behaviour })
    }
}

fn run_rep(
    settings: &Settings,
    passes: &[Pass],
    dataset: Dataset,
    rep: usize,
    progress: Progress<'_>,
) -> Result<Results, Error> {
    let mut problem = Problem::draw(settings, dataset, rep)?;
    let key = Key {
        dataset: dataset.name().to_owned(),
        behaviour: behaviour_name(&settings.behaviour),
        rep,
        seed: settings.seed,
        ..Key::default()
    };
    let mut results = Results::default();
    references(settings, &mut problem, &key, &mut results.rows)?;
    let parts = passes
        .par_iter()
        .map(|pass| run_pass(settings, pass, &problem, &key, progress))
        .collect::<Result<Vec<Results>, Error>>()?;
    for part in parts {
        results.rows.extend(part.rows);
        results.timings.extend(part.timings);
    }
    Ok(results)
}

/// The policies that do not learn, at every n.
fn references(settings: &Settings, problem: &mut Problem, key: &Key, rows: &mut Vec<ResultRow>) -> Result<(), Error> {
    let layout = problem.log.contexts().layout();
    for &algorithm in &settings.algorithms {
        let verdict = match algorithm {
            Algorithm::Uniform => problem.test.judge_behaviour(&mut Behaviour::new(&BehaviourConfig::Uniform, layout)?),
            Algorithm::Behaviour => problem.test.judge_behaviour(&mut problem.behaviour),
            _ => continue,
        };
        rows.extend(settings.checkpoints().into_iter().map(|n| row(key, algorithm, n, verdict)));
    }
    Ok(())
}

fn row(key: &Key, algorithm: Algorithm, n: usize, verdict: Verdict) -> ResultRow {
    let key = Key { algorithm: algorithm.name().to_owned(), n, ..key.clone() };
    ResultRow { key, suboptimality: verdict.suboptimality, accuracy: Some(verdict.accuracy) }
}

fn run_pass(
    settings: &Settings,
    pass: &Pass,
    problem: &Problem,
    key: &Key,
    progress: Progress<'_>,
) -> Result<Results, Error> {
    let (log, test) = (&problem.log, &problem.test);
    let key = Key {
        mode: pass.mode.map(|m| m.name().to_owned()),
        learning_rate: pass.learning_rate,
        sigma: pass.sigma,
        ..key.clone()
    };
    let mut learner = pass.model.learner(log.contexts().layout(), problem.seed.child("model"))?;
    let mut results = Results::default();
    let mut known: Option<(Arc<dyn RewardModel>, Vec<Verdict>)> = None;
    let (mut t, mut train_seconds) = (0, 0.0);
    let mut estimates = Estimates::default();
    for n in settings.checkpoints() {
        let start = Instant::now();
        while t < n {
            let end = n.min(t + 100);
            progress(train_work(pass, end - t));
            for t in t..end {
                let round = log.round(t);
                learner.observe(round.chosen, round.reward);
            }
            t = end;
        }
        let model = learner.model()?;
        train_seconds += start.elapsed().as_secs_f64();
        let start = Instant::now();
        // A learner that has stopped learning gives the same model again: nothing is scored twice.
        let verdicts = match known.take() {
            Some((old, verdicts)) if Arc::ptr_eq(&old, &model) => verdicts,
            _ => {
                model.estimate_into(test.contexts(), &mut estimates)?;
                let judge = |&(_, beta): &(Algorithm, Option<f64>)| {
                    let beta = beta.unwrap_or(0.0);
                    Ok(test.judge(&pessimistic(test.contexts(), &estimates, beta, pass.rounding)?))
                };
                pass.outputs.iter().map(judge).collect::<Result<Vec<_>, Error>>()?
            }
        };
        let score_seconds = start.elapsed().as_secs_f64();
        progress(score_work(settings, pass, n));
        for (&(algorithm, beta), &verdict) in pass.outputs.iter().zip(&verdicts) {
            let row = row(&Key { beta, ..key.clone() }, algorithm, n, verdict);
            results.timings.push(TimingRow { key: row.key.clone(), train_seconds, score_seconds });
            results.rows.push(row);
        }
        known = Some((model, verdicts));
    }
    Ok(results)
}

/// The spelling of a behaviour policy on the command line and in files.
pub fn behaviour_name(behaviour: &BehaviourConfig) -> String {
    match behaviour {
        BehaviourConfig::Uniform => "uniform".to_owned(),
        BehaviourConfig::EpsilonGreedy { epsilon } => format!("epsilon-greedy:{epsilon}"),
        BehaviourConfig::LinUcbMixture { epsilon, .. } => format!("linucb:{epsilon}"),
        BehaviourConfig::Table(_) => "table".to_owned(),
    }
}
