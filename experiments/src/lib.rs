//! The experiments of the NeuraLCB paper (Nguyen-Tang et al., ICLR 2022): settings as data, a runner, and everything
//! that is made of its rows: summaries, charts, tables and a report.
//!
//! ```
//! use neuralcb_experiments::{Preset, Settings, run, summary};
//!
//! let settings = Settings { reps: 1, rounds: 20, test_contexts: 10, ..Settings::fig1(Preset::Paper).quick() };
//! let results = run(&settings, &|_| ())?;
//! let curves = summary::select(&results.rows);
//! assert_eq!(curves.len(), 3 * 8); // three bandits; six algorithms, the uniform and the behaviour policy
//! # Ok::<(), neuralcb::Error>(())
//! ```

pub mod chart;
mod names;
mod output;
pub mod png;
pub mod report;
pub mod rows;
mod runner;
mod settings;
pub mod summary;

pub use names::{Algorithm, Dataset, Preset, TrainingMode};
pub use output::write_results;
pub use runner::{Problem, Progress, Results, behaviour_name, run, total_work};
pub use settings::{Pass, Settings};
