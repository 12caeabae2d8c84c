//! One family of exceptions, with the messages of the Rust crates.

use neuralcb_experiments::ExperimentError;
use neuralcb_logs::FileError;
use neuralcb_logs::log::LogError;
use neuralcb_logs::policy::PolicyError;
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

pyo3::create_exception!(
    neuralcb,
    NeuralcbError,
    PyValueError,
    "What neuralcb refuses: the message names the culprit, its place, what is allowed and the cure."
);

/// A reason for refusal, on its way to Python.
pub struct Refusal(pub String);

macro_rules! refusals {
    ($($error:ty),*) => {$(
        impl From<$error> for Refusal {
            fn from(error: $error) -> Self {
                Refusal(error.to_string())
            }
        }
    )*};
}
refusals!(neuralcb::Error, LogError, PolicyError, FileError, ExperimentError, serde_json::Error);

impl From<Refusal> for PyErr {
    fn from(Refusal(message): Refusal) -> Self {
        NeuralcbError::new_err(message)
    }
}

/// Settings from their JSON.
pub fn settings<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, Refusal> {
    Ok(serde_json::from_str(json)?)
}

/// A result as JSON.
pub fn json<T: serde::Serialize>(value: &T) -> Result<String, Refusal> {
    Ok(serde_json::to_string(value)?)
}
