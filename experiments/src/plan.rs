//! The passes that some settings ask for, and the order of work.

use serde::Serialize;

use crate::error::ExperimentError;
use crate::pass::{Pass, Size};
use crate::problem::{ProblemConfig, Source};
use crate::settings::Settings;

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

    /// The work of all passes, in the units that [`Progress`](crate::Progress) hears of; good for a time-left estimate,
    /// not exact.
    pub fn work(&self) -> u64 {
        self.tasks.iter().map(|task| self.work_of(task)).sum()
    }

    pub(crate) fn work_of(&self, task: &Task) -> u64 {
        let problem = &self.problems[task.problem];
        let (mut from, mut work) = (0, 0);
        for n in task.pass.stops(problem) {
            work += whole(task.pass.train_work(size(problem), from, n));
            work += whole(task.pass.score_work(size(problem), n, problem.test_contexts));
            from = n;
        }
        work
    }

    /// The tasks in the order of work: the long ones first, so that the last threads end together; the others problem
    /// by problem, so that few logs are in memory at a time.
    pub(crate) fn order(&self) -> Vec<&Task> {
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

/// Work in whole units.
pub(crate) fn whole(work: f64) -> u64 {
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

/// The sizes of a problem, known before it is drawn.
pub(crate) fn size(problem: &ProblemConfig) -> Size {
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
