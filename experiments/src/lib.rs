//! The experiments of the NeuraLCB paper (Nguyen-Tang et al., ICLR 2022): settings as data, a runner that can be killed
//! and continued, and everything that is made of its rows: summaries, charts, tables and a report.
//!
//! ```
//! use neuralcb_experiments::{Figure, Library, Plan, Preset, Results, Selection, Settings, run, summary};
//!
//! let settings = Settings::of(&[Figure::Fig1], Preset::Paper).quick();
//! let plan = Plan::new(Settings { reps: 1, synthetic_rounds: 20, test_contexts: 10, ..settings })?;
//! let records = run(&plan, &Library::default(), None, &|_| ())?;
//! let results = Results::new(&plan, records.iter().map(Some));
//! let curves = summary::select(&results.rows.iter().collect::<Vec<_>>(), &[], Selection::Oracle);
//! assert_eq!(curves.len(), 3 * 10); // three bandits; six algorithms and four references
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chart;
mod decisions;
mod error;
mod journal;
mod known;
mod names;
mod output;
mod pass;
mod plan;
pub mod png;
mod problem;
mod queue;
pub mod report;
mod results;
pub mod rows;
mod runner;
mod settings;
pub mod summary;
pub mod theory;

pub use error::ExperimentError;
pub use journal::{Journal, Output, Record};
pub use names::{Algorithm, Dataset, Figure, Preset, Returned, Selection, Split, TrainingMode};
pub use output::{write_results, write_settings};
pub use pass::{Job, Pass};
pub use plan::{Plan, Task};
pub use problem::{Library, Problem, ProblemConfig, Source, behaviour_name};
pub use results::Results;
pub use runner::{Progress, run};
pub use settings::Settings;
