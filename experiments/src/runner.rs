//! Runs the passes of the experiments: each reads its log once and, at chosen n, scores the test contexts once and judges
//! every β and the greedy twin from that one pass.
//!
//! Passes run in parallel on the current thread pool, the longest first; every number depends only on the settings and the
//! seed, so the rows are the same with any number of threads, and the same whether a run was killed and continued or not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use neuralcb::bandit::Verdict;
use neuralcb::ope::{importance_weights, snips};
use neuralcb::policy::{Behaviour, BehaviourConfig, Choices, Imitation, pessimistic};
use neuralcb::{Contexts, Error, Estimates, ModelConfig, RewardModel};
use serde::Serialize;

use crate::error::ExperimentError;
use crate::journal::{Journal, Output, Record};
use crate::names::{Algorithm, Returned};
use crate::pass::{Job, Pass, Size};
use crate::problem::{Library, Problem, ProblemConfig, Source};
use crate::settings::Settings;

/// Hears of work that is done, in units of [`Plan::work`].
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Confidence of the lower bound by which `log-only` chooses.
const CONFIDENCE: f64 = 0.95;

/// All the passes that some settings ask for.
pub struct Plan {
    /// The settings.
    pub settings: Settings,
    /// The problems, each once.
    pub problems: Vec<ProblemConfig>,
    /// The passes over each repetition of each problem.
    pub tasks: Vec<Task>,
}

/// One pass over the log of one repetition.
#[derive(Debug, Clone)]
pub struct Task {
    /// Index of the problem.
    pub problem: usize,
    /// The repetition.
    pub rep: usize,
    /// The pass.
    pub pass: Pass,
    /// Everything the numbers depend on.
    pub name: String,
}

impl Plan {
    /// Checks the settings and lists the passes.
    pub fn new(settings: Settings) -> Result<Self, ExperimentError> {
        settings.check()?;
        let problems = settings.problems();
        let mut tasks = Vec::new();
        for (index, problem) in problems.iter().enumerate() {
            for pass in settings.passes(problem) {
                for rep in 0..settings.reps_of(problem, &pass) {
                    let name = task_name(&settings, problem, rep, &pass);
                    tasks.push(Task { problem: index, rep, pass: pass.clone(), name });
                }
            }
        }
        Ok(Plan { settings, problems, tasks })
    }

    /// The work of all passes, in the units that [`Progress`] hears of; good for a time-left estimate, not exact.
    pub fn work(&self) -> u64 {
        self.tasks.iter().map(|task| self.work_of(task)).sum()
    }

    fn work_of(&self, task: &Task) -> u64 {
        let problem = &self.problems[task.problem];
        let (mut from, mut work) = (0, 0);
        for n in task.pass.stops(problem) {
            work += whole(task.pass.train_work(size(problem), from, n));
            work += whole(task.pass.score_work(size(problem), n, problem.test_contexts));
            from = n;
        }
        work
    }

    /// The tasks in the order of work: the long ones first, so that the last threads end together; the others problem by
    /// problem, so that few logs are in memory at a time.
    fn order(&self) -> Vec<&Task> {
        let mut tasks: Vec<(bool, u64, &Task)> = self.tasks.iter().map(|t| (false, self.work_of(t), t)).collect();
        let long = tasks.iter().map(|(_, work, _)| *work).max().unwrap_or(0) / 4;
        tasks.iter_mut().for_each(|(is_long, work, _)| *is_long = *work > long.max(20_000_000));
        tasks.sort_by(|(long_a, work_a, a), (long_b, work_b, b)| {
            let place = |t: &Task| (std::cmp::Reverse(t.problem), t.rep);
            let by_size = if *long_a { work_b.cmp(work_a) } else { std::cmp::Ordering::Equal };
            long_b.cmp(long_a).then(by_size).then(place(a).cmp(&place(b))).then(work_b.cmp(work_a))
        });
        tasks.into_iter().map(|(_, _, task)| task).collect()
    }
}

fn whole(work: f64) -> u64 {
    work.ceil() as u64
}

fn task_name(settings: &Settings, problem: &ProblemConfig, rep: usize, pass: &Pass) -> String {
    #[derive(Serialize)]
    struct Name<'a> {
        version: &'a str,
        instructions: &'a str,
        problem: &'a ProblemConfig,
        rep: usize,
        seed: u64,
        pass: &'a Pass,
    }
    let (version, instructions) = (env!("CARGO_PKG_VERSION"), neuralcb::machine::instructions());
    let name = Name { version, instructions, problem, rep, seed: settings.seed, pass };
    serde_json::to_string(&name).expect("settings are plain data")
}

fn size(problem: &ProblemConfig) -> Size {
    match &problem.source {
        Source::Synthetic(config) => {
            let shared = config.form == neuralcb::bandit::ContextForm::Shared;
            let n_blocks = if shared { config.n_actions } else { 1 };
            Size { dim: config.dim, n_actions: config.n_actions, n_blocks }
        }
        Source::Real { data, preparation, .. } => {
            let counts = data.counts(preparation);
            Size { dim: counts.dim, n_actions: counts.n_classes, n_blocks: counts.n_classes }
        }
    }
}

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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The tasks that are left, and the problems of those at work: drawn once, dropped after their last task.
struct Queue<'a> {
    plan: &'a Plan,
    library: &'a Library,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    tasks: Vec<&'a Task>,
    problems: HashMap<(usize, usize), Slot>,
}

struct Slot {
    tasks_left: usize,
    problem: Arc<OnceLock<Arc<Problem>>>,
    /// A thread is drawing it.
    drawing: bool,
}

impl<'a> Queue<'a> {
    fn new(plan: &'a Plan, library: &'a Library, pending: &[&'a Task]) -> Self {
        let mut problems: HashMap<(usize, usize), Slot> = HashMap::new();
        for task in pending {
            let fresh = || Slot { tasks_left: 0, problem: Arc::default(), drawing: false };
            problems.entry((task.problem, task.rep)).or_insert_with(fresh).tasks_left += 1;
        }
        Queue { plan, library, state: Mutex::new(State { tasks: pending.to_vec(), problems }) }
    }

    /// The next task; one whose problem another thread is just drawing waits, if there is any other.
    fn next(&self) -> Option<&'a Task> {
        let State { tasks, problems } = &mut *lock(&self.state);
        if tasks.is_empty() {
            return None;
        }
        let slot = |task: &Task| &problems[&(task.problem, task.rep)];
        let free = tasks.iter().position(|task| !slot(task).drawing || slot(task).problem.get().is_some());
        let task = tasks.remove(free.unwrap_or(0));
        problems.get_mut(&(task.problem, task.rep)).expect("every task has a problem").drawing = true;
        Some(task)
    }

    fn problem(&self, task: &Task) -> Result<Arc<Problem>, ExperimentError> {
        let cell = lock(&self.state).problems[&(task.problem, task.rep)].problem.clone();
        if let Some(problem) = cell.get() {
            return Ok(problem.clone());
        }
        let (config, seed) = (&self.plan.problems[task.problem], self.plan.settings.seed);
        let drawn = Arc::new(Problem::draw(config, self.library, task.rep, seed)?);
        Ok(cell.get_or_init(|| drawn).clone())
    }

    fn finished(&self, task: &Task) {
        let problems = &mut lock(&self.state).problems;
        let slot = problems.get_mut(&(task.problem, task.rep)).expect("every task has a problem");
        slot.tasks_left -= 1;
        if slot.tasks_left == 0 {
            problems.remove(&(task.problem, task.rep));
        }
    }
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
        Job::Clone(imitation) => run.clone(imitation)?,
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
                for round in t..n.min(t + 100) {
                    let round = log.round(round);
                    learner.observe(round.chosen, round.reward);
                }
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

    fn clone(&mut self, config: &neuralcb::policy::ImitationConfig) -> Result<(), Error> {
        let Problem { log, held_out, test, seed, .. } = self.problem;
        for n in self.config.checkpoints() {
            let start = Instant::now();
            let clone = Imitation::fit(config, log, 0..n, seed.child("clone"))?;
            (self.progress)(whole(self.pass.train_work(size(self.config), 0, n)));
            let train_seconds = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let verdict = test.judge(&clone.choose(test.contexts())?);
            self.judged(&[verdict], train_seconds, start.elapsed().as_secs_f64());
            (self.progress)(whole(self.pass.score_work(size(self.config), n, self.config.test_contexts)));
            if n == self.config.held_out_from() && held_out.n_rounds() > 0 {
                self.validate(0, &clone.choose(held_out.contexts())?)?;
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

/// What the policies of a pass decide on some contexts, as they stand or by the vote of all so far.
struct Decisions<'a> {
    pass: &'a Pass,
    /// A learner that has stopped learning gives the same model again: nothing is scored twice.
    model: Option<Arc<dyn RewardModel>>,
    estimates: Estimates,
    /// The latest choices of each output.
    latest: Vec<Choices>,
    /// The votes of each pair, for each output.
    votes: Vec<Vec<u16>>,
}

impl<'a> Decisions<'a> {
    fn new(pass: &'a Pass) -> Self {
        let votes = vec![Vec::new(); pass.outputs.len()];
        Decisions { pass, model: None, estimates: Estimates::default(), latest: Vec::new(), votes }
    }

    /// Lets the policies of a model decide.
    fn take(&mut self, model: &Arc<dyn RewardModel>, contexts: &Contexts) -> Result<(), Error> {
        if !self.model.as_ref().is_some_and(|old| Arc::ptr_eq(old, model)) {
            model.estimate_into(contexts, &mut self.estimates)?;
            let choose = |&(_, beta): &(Algorithm, Option<f64>)| {
                pessimistic(contexts, &self.estimates, beta.unwrap_or(0.0), self.pass.rounding)
            };
            self.latest = self.pass.outputs.iter().map(choose).collect::<Result<_, Error>>()?;
            self.model = Some(model.clone());
        }
        if self.pass.returned == Returned::Vote {
            for (votes, choices) in self.votes.iter_mut().zip(&self.latest) {
                votes.resize(contexts.n_pairs(), 0);
                for (round, &place) in choices.iter().enumerate() {
                    votes[contexts.first_pair(round) + place as usize] += 1;
                }
            }
        }
        Ok(())
    }

    /// The choices of each output; of actions with equal votes, the first.
    fn choices<'b>(&'b self, contexts: &'b Contexts) -> impl Iterator<Item = Cow<'b, [u32]>> {
        self.latest.iter().zip(&self.votes).map(|(latest, votes)| match self.pass.returned {
            Returned::Latest => Cow::Borrowed(latest.as_slice()),
            Returned::Vote => (0..contexts.n_rounds()).map(|t| winner(&votes[contexts.pairs(t)])).collect(),
        })
    }
}

fn winner(votes: &[u16]) -> u32 {
    let most = votes.iter().max();
    votes.iter().position(|v| Some(v) == most).unwrap_or(0) as u32
}
