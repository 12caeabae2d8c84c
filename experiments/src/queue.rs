//! The tasks that are left and the problems they need, shared by all threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crate::error::ExperimentError;
use crate::plan::{Plan, Task};
use crate::problem::{Library, Problem};

/// The tasks that are left, and the problems of those at work: drawn once, dropped after their last task.
pub(crate) struct Queue<'a> {
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
    cell: Arc<Cell>,
    /// A thread is drawing it.
    drawing: bool,
}

/// A problem that is drawn by the first thread that needs it; others wait their turn.
#[derive(Default)]
struct Cell {
    turn: Mutex<()>,
    problem: OnceLock<Arc<Problem>>,
}

impl<'a> Queue<'a> {
    pub(crate) fn new(plan: &'a Plan, library: &'a Library, pending: &[&'a Task]) -> Self {
        let mut problems: HashMap<(usize, usize), Slot> = HashMap::new();
        for task in pending {
            let fresh = || Slot { tasks_left: 0, cell: Arc::default(), drawing: false };
            problems.entry((task.problem, task.rep)).or_insert_with(fresh).tasks_left += 1;
        }
        Queue { plan, library, state: Mutex::new(State { tasks: pending.to_vec(), problems }) }
    }

    /// The next task; one whose problem another thread is just drawing waits, if there is any other.
    pub(crate) fn next(&self) -> Option<&'a Task> {
        let State { tasks, problems } = &mut *lock(&self.state);
        if tasks.is_empty() {
            return None;
        }
        let slot = |task: &Task| &problems[&(task.problem, task.rep)];
        let free = tasks.iter().position(|task| !slot(task).drawing || slot(task).cell.problem.get().is_some());
        let task = tasks.remove(free.unwrap_or(0));
        problems.get_mut(&(task.problem, task.rep)).expect("every task has a problem").drawing = true;
        Some(task)
    }

    pub(crate) fn problem(&self, task: &Task) -> Result<Arc<Problem>, ExperimentError> {
        let cell = lock(&self.state).problems[&(task.problem, task.rep)].cell.clone();
        let _turn = lock(&cell.turn);
        if let Some(problem) = cell.problem.get() {
            return Ok(problem.clone());
        }
        let (config, seed) = (&self.plan.problems[task.problem], self.plan.settings.seed);
        let drawn = Arc::new(Problem::draw(config, self.library, task.rep, seed)?);
        Ok(cell.problem.get_or_init(|| drawn).clone())
    }

    pub(crate) fn finished(&self, task: &Task) {
        let problems = &mut lock(&self.state).problems;
        let slot = problems.get_mut(&(task.problem, task.rep)).expect("every task has a problem");
        slot.tasks_left -= 1;
        if slot.tasks_left == 0 {
            problems.remove(&(task.problem, task.rep));
        }
    }
}

/// A lock that does not mind a thread that panicked: what it guards is whole between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
