//! From the records of finished runs to the tables of an experiment.

use crate::journal::Record;
use crate::plan::{Plan, Task};
use crate::problem::behaviour_name;
use crate::rows::{Key, ResultRow, TimingRow, ValidationRow};

/// What experiments produced, in canonical order.
#[derive(Debug, Clone, Default)]
pub struct Results {
    /// One row per (problem, algorithm, setting, repetition, n).
    pub rows: Vec<ResultRow>,
    /// What the log alone says about each policy.
    pub validations: Vec<ValidationRow>,
    /// The keys of the rows of policies that learn, with seconds.
    pub timings: Vec<TimingRow>,
}

impl Results {
    /// The tables of the records, which belong to the plan's tasks in their order; a task without a record has no rows.
    pub fn new<'a>(plan: &Plan, records: impl IntoIterator<Item = Option<&'a Record>>) -> Self {
        let mut results = Results::default();
        for (task, record) in plan.tasks.iter().zip(records) {
            if let Some(record) = record {
                results.add(plan, task, record);
            }
        }
        results.rows.sort_by(|a, b| a.key.compare(&b.key));
        results.validations.sort_by(|a, b| a.key.compare(&b.key));
        results.timings.sort_by(|a, b| a.key.compare(&b.key));
        results
    }

    fn add(&mut self, plan: &Plan, task: &Task, record: &Record) {
        let problem = &plan.problems[task.problem];
        for output in &record.outputs {
            let key = |n: usize| Key {
                dataset: problem.dataset.name().to_owned(),
                algorithm: output.algorithm.name().to_owned(),
                mode: task.pass.mode.map(|mode| mode.name().to_owned()),
                learning_rate: task.pass.learning_rate,
                sigma: task.pass.sigma,
                beta: output.beta,
                split: problem.split().map(|split| split.name().to_owned()),
                behaviour: behaviour_name(&problem.behaviour),
                rep: task.rep,
                seed: plan.settings.seed,
                n,
            };
            for (i, &n) in record.n.iter().enumerate() {
                let (suboptimality, accuracy) = (output.suboptimality[i], Some(output.accuracy[i]));
                self.rows.push(ResultRow { key: key(n), suboptimality, accuracy });
                let (train_seconds, score_seconds) = (record.train_seconds[i], record.score_seconds[i]);
                if train_seconds > 0.0 {
                    self.timings.push(TimingRow { key: key(n), train_seconds, score_seconds });
                }
            }
            if let Some((estimate, lower_bound)) = output.validation {
                self.validations.push(ValidationRow { key: key(problem.held_out_from()), estimate, lower_bound });
            }
        }
    }
}
