//! `neuralcb._neuralcb`: what the Python package calls. Each file binds one class or one family of functions to the
//! Rust crates; there is no algorithm here. Settings and reports cross as JSON, arrays as views on numpy's memory.

#![allow(missing_docs)] // documented where users see it, in the Python package

mod arrays;
mod error;
mod evaluation;
mod experiments;
mod files;
mod input;
mod policy;
mod pool;
mod samples;
mod training;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _neuralcb {
    #[pymodule_export]
    use super::error::NeuralcbError;
    #[pymodule_export]
    use super::evaluation::Evaluation;
    #[pymodule_export]
    use super::experiments::{reproduce, simulate};
    #[pymodule_export]
    use super::files::{card, diagnose, evaluate_log, score, train, tune};
    #[pymodule_export]
    use super::policy::{Policy, evaluate_policy, weigh};
    #[pymodule_export]
    use super::training::Training;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
