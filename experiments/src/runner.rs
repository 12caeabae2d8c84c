//! Runs the passes of the experiments: each reads its log once and, at chosen n, scores the test contexts once and
//! judges every β and the greedy twin from that one pass.
//!
//! Passes run in parallel on the current thread pool, the longest first; every number depends only on the settings and
//! the seed, so the rows are the same with any number of threads, and the same whether a run was killed and continued
//! or not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use neuralcb::bandit::Verdict;
use neuralcb::ope::{importance_weights, snips};
use neuralcb::policy::{Behaviour, BehaviourConfig, Rounding, pessimistic};
use neuralcb::select::{AutoConfig, choose};
use neuralcb::{Contexts, Error, ModelConfig};

use crate::decisions::Decisions;
use crate::error::ExperimentError;
use crate::journal::{Journal, Output, Record};
use crate::names::{Algorithm, Returned};
use crate::pass::{Job, Pass};
use crate::plan::{Plan, Task, size, whole};
use crate::problem::{Library, Problem, ProblemConfig};
use crate::queue::{Queue, lock};

/// Hears of work that is done, in units of [`Plan::work`].
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Confidence of the lower bound by which `log-only` chooses.
const CONFIDENCE: f64 = 0.95;

/// Runs everything that the journal does not have yet, and returns the records in the order of the plan's tasks.
pub fn run(
    plan: &Plan,
    library: &Library,
    journal: Option<&Journal>,
    progress: Progress<'_>,
) -> Result<Vec<Record>, ExperimentError> {
    library.load(&plan.problems)?;
    let known = |task: &Task| journal.and_then(|journal| journal.find(&task.name));
    let pending: Vec<&Task> = plan.order().into_iter().filter(|task| known(task).is_none()).collect();
    plan.tasks.iter().filter(|task| known(task).is_some()).for_each(|task| progress(plan.work_of(task)));

    let queue = Queue::new(plan, library, &pending);
    let (done, failure) = (Mutex::new(HashMap::new()), Mutex::new(None));
    let stop = AtomicBool::new(false);
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| {
                while let Some(task) = queue.next().filter(|_| !stop.load(Ordering::Relaxed)) {
                    let finished = queue.problem(task).and_then(|problem| {
                        let record = run_task(&plan.problems[task.problem], task, &problem, progress)?;
                        queue.finished(task);
                        journal.map_or(Ok(()), |journal| journal.append(&record))?;
                        Ok(record)
                    });
                    match finished {
                        Ok(record) => _ = lock(&done).insert(&task.name, record),
                        Err(error) => {
                            stop.store(true, Ordering::Relaxed);
                            lock(&failure).get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(error);
    }
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let take = |task: &Task| known(task).cloned().or_else(|| done.remove(&task.name)).expect("every task was run");
    Ok(plan.tasks.iter().map(take).collect())
}

fn run_task(
    config: &ProblemConfig,
    task: &Task,
    problem: &Problem,
    progress: Progress<'_>,
) -> Result<Record, ExperimentError> {
    let n = config.checkpoints();
    let outputs = task.pass.outputs.iter().map(|&(algorithm, beta)| Output {
        algorithm,
        beta,
        suboptimality: Vec::with_capacity(n.len()),
        accuracy: Vec::with_capacity(n.len()),
        validation: None,
    });
    let mut record = Record {
        task: task.name.clone(),
        outputs: outputs.collect(),
        train_seconds: Vec::with_capacity(n.len()),
        score_seconds: Vec::with_capacity(n.len()),
        n,
    };
    let mut run = Run { config, pass: &task.pass, problem, progress, record: &mut record };
    match &task.pass.job {
        Job::Model(model) => run.model(model)?,
        Job::Auto(auto) => run.auto(auto)?,
        Job::References => run.references()?,
    }
    Ok(record)
}

struct Run<'a> {
    config: &'a ProblemConfig,
    pass: &'a Pass,
    problem: &'a Problem,
    progress: Progress<'a>,
    record: &'a mut Record,
}

impl Run<'_> {
    fn model(&mut self, config: &ModelConfig) -> Result<(), Error> {
        let Problem { log, held_out, test, seed, .. } = self.problem;
        let mut learner = config.learner(log.contexts().layout(), seed.child("model"))?;
        let (mut on_test, mut on_log) = (Decisions::new(self.pass), Decisions::new(self.pass));
        let (mut t, mut train_seconds) = (0, 0.0);
        let checkpoints = self.config.checkpoints();
        for n in self.pass.stops(self.config) {
            let start = Instant::now();
            let (from, work) = (t, self.pass.train_work(size(self.config), t, n));
            let mut told = 0;
            while t < n {
                learner.read(log, t..n.min(t + 100));
                t = n.min(t + 100);
                let now = whole(work * (t - from) as f64 / (n - from) as f64);
                (self.progress)(now - told);
                told = now;
            }
            let model = learner.model()?;
            train_seconds += start.elapsed().as_secs_f64();
            let start = Instant::now();
            on_test.take(&model, test.contexts())?;
            let validate = n == self.config.held_out_from() && held_out.n_rounds() > 0;
            if validate || (self.pass.returned == Returned::Vote && n < self.config.held_out_from()) {
                on_log.take(&model, held_out.contexts())?;
            }
            (self.progress)(whole(self.pass.score_work(size(self.config), n, self.config.test_contexts)));
            if checkpoints.contains(&n) {
                let verdicts: Vec<Verdict> = on_test.choices(test.contexts()).map(|c| test.judge(&c)).collect();
                self.judged(&verdicts, train_seconds, start.elapsed().as_secs_f64());
            }
            if validate {
                for (place, choices) in on_log.choices(held_out.contexts()).enumerate() {
                    self.validate(place, &choices)?;
                }
            }
        }
        Ok(())
    }

    fn auto(&mut self, config: &AutoConfig) -> Result<(), Error> {
        let Problem { log, held_out, test, seed, .. } = self.problem;
        for n in self.config.checkpoints().into_iter().filter(|&n| n > 1) {
            let start = Instant::now();
            let (seed, log) = (seed.child("auto"), log.slice(0..n));
            let winner = choose(config, &log, seed, &Arc::default())?.winner;
            let model = winner.fit(&log, seed, &Arc::default())?;
            (self.progress)(whole(self.pass.train_work(size(self.config), 0, n)));
            let train_seconds = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let choose = |contexts: &Contexts| {
                pessimistic(contexts, &model.estimate(contexts)?, winner.betas[0], Rounding::None)
            };
            let verdict = test.judge(&choose(test.contexts())?);
            self.judged(&[verdict], train_seconds, start.elapsed().as_secs_f64());
            (self.progress)(whole(self.pass.score_work(size(self.config), n, self.config.test_contexts)));
            if n == self.config.held_out_from() && held_out.n_rounds() > 0 {
                self.validate(0, &choose(held_out.contexts())?)?;
            }
        }
        Ok(())
    }

    /// The policies that do not learn: the same value at every n.
    fn references(&mut self) -> Result<(), Error> {
        let Problem { log, test, behaviour, .. } = self.problem;
        let judge = |&(algorithm, _): &(Algorithm, Option<f64>)| {
            Ok(match algorithm {
                Algorithm::Uniform => {
                    let layout = log.contexts().layout();
                    test.judge_behaviour(&mut Behaviour::new(&BehaviourConfig::Uniform, layout)?)
                }
                Algorithm::Constant => test.judge_best_constant(),
                _ => *behaviour,
            })
        };
        let verdicts = self.pass.outputs.iter().map(judge).collect::<Result<Vec<Verdict>, Error>>()?;
        let mut from = 0;
        for n in self.config.checkpoints() {
            (self.progress)(whole(self.pass.train_work(size(self.config), from, n)));
            (self.progress)(whole(self.pass.score_work(size(self.config), n, self.config.test_contexts)));
            self.judged(&verdicts, 0.0, 0.0);
            from = n;
        }
        Ok(())
    }

    fn judged(&mut self, verdicts: &[Verdict], train_seconds: f64, score_seconds: f64) {
        for (output, verdict) in self.record.outputs.iter_mut().zip(verdicts) {
            output.suboptimality.push(verdict.suboptimality);
            output.accuracy.push(verdict.accuracy);
        }
        self.record.train_seconds.push(train_seconds);
        self.record.score_seconds.push(score_seconds);
    }

    /// What the held-out part of the log says about a policy.
    fn validate(&mut self, place: usize, choices: &[u32]) -> Result<(), Error> {
        let log = &self.problem.held_out;
        let worst = log.rewards().iter().copied().fold(f64::INFINITY, f64::min);
        let estimate = snips(&importance_weights(log, choices)?, log.rewards());
        let lower = estimate.worst_case(CONFIDENCE, worst);
        let value = if estimate.value.is_finite() { estimate.value } else { worst };
        self.record.outputs[place].validation = Some((value, lower));
        Ok(())
    }
}
