//! What the Python side hands over as rounds: a dictionary of columns, made by `neuralcb._input`.

use neuralcb_logs::log::{Feature, Format, Kind, Missing, Roles, Schema};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{ArrayLog, Column, Listing, Outcome};
use crate::error::Refusal;

/// Columns, held for as long as views on them live.
pub struct Input<'py> {
    n_rounds: usize,
    shared: Vec<Held<'py>>,
    own: Vec<Held<'py>>,
    listing: Option<(PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>)>,
    actions: Vec<String>,
    outcome: Option<(PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>)>,
    propensities: Option<PyReadonlyArray1<'py, f64>>,
    missing: Missing,
}

struct Held<'py> {
    name: String,
    kind: Kind,
    values: HeldValues<'py>,
}

enum HeldValues<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    Words(PyReadonlyArray1<'py, u32>, Vec<String>),
}

impl<'py> Input<'py> {
    pub fn new(rounds: &Bound<'py, PyDict>) -> PyResult<Self> {
        let entry = |name: &str| Ok::<_, PyErr>(rounds.get_item(name)?.filter(|value| !value.is_none()));
        let array_f64 = |name| entry(name)?.map(|v| v.extract::<PyReadonlyArray1<'py, f64>>()).transpose();
        let array_u32 = |name| entry(name)?.map(|v| v.extract::<PyReadonlyArray1<'py, u32>>()).transpose();
        let array_u64 = |name| entry(name)?.map(|v| v.extract::<PyReadonlyArray1<'py, u64>>()).transpose();
        let columns = |name| match entry(name)? {
            Some(list) => list.cast_into::<PyList>()?.iter().map(|column| Held::new(&column)).collect(),
            None => Ok::<_, PyErr>(Vec::new()),
        };
        let required = |name: &str| entry(name)?.ok_or_else(|| Refusal(format!("rounds without `{name}`")).into());
        Ok(Input {
            n_rounds: required("n_rounds").and_then(|v: Bound<'py, PyAny>| v.extract())?,
            shared: columns("shared")?,
            own: columns("own")?,
            listing: array_u64("offsets")?.zip(array_u32("offered")?),
            actions: required("names").and_then(|v: Bound<'py, PyAny>| v.extract())?,
            outcome: array_u32("chosen")?.zip(array_f64("rewards")?),
            propensities: array_f64("propensities")?,
            missing: match entry("missing")?.map(|v| v.extract::<String>()).transpose()?.as_deref() {
                None | Some("refuse") => Missing::Refuse,
                Some("mean") => Missing::Mean,
                Some(other) => {
                    return Err(Refusal(format!("`missing` must be `refuse` or `mean`, got `{other}`")).into());
                }
            },
        })
    }

    /// The rounds as a log, checked.
    pub fn log(&self) -> Result<ArrayLog<'_>, Refusal> {
        let log = ArrayLog {
            schema: self.schema(),
            n_rounds: self.n_rounds,
            shared: Held::columns(&self.shared),
            listing: self.listing.as_ref().map(|(offsets, actions)| Listing {
                offsets: offsets.as_array(),
                actions: actions.as_array(),
                features: Held::columns(&self.own),
            }),
            actions: self.actions.clone(),
            outcome: self.outcome.as_ref().map(|(chosen, rewards)| Outcome {
                chosen: chosen.as_array(),
                rewards: rewards.as_array(),
                propensities: self.propensities.as_ref().map(|p| p.as_array()),
            }),
        };
        log.check()?;
        Ok(log)
    }

    /// The columns as a file of these rounds would have them, so that the command line reads such files.
    fn schema(&self) -> Schema {
        let features = |held: &[Held<'py>]| {
            held.iter().map(|column| Feature { name: column.name.clone(), kind: column.kind }).collect::<Vec<_>>()
        };
        let (named, long) = (|name: &str| Some(name.to_owned()), !self.own.is_empty());
        Schema {
            format: Format::Csv,
            shared: features(&self.shared),
            per_action: features(&self.own),
            roles: Roles {
                action: named("action"),
                reward: named("reward"),
                propensity: self.propensities.as_ref().and_then(|_| named("propensity")),
                eligible: self.listing.as_ref().filter(|_| !long).and_then(|_| named("eligible")),
                round: named("round").filter(|_| long),
                chosen: named("chosen").filter(|_| long),
            },
            missing: self.missing,
            ignored: Vec::new(),
        }
    }
}

impl<'py> Held<'py> {
    fn new(column: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (name, kind, values, names): (String, String, Bound<'py, PyAny>, Vec<String>) = column.extract()?;
        let (kind, values) = match kind.as_str() {
            "category" => (Kind::Category, HeldValues::Words(values.extract()?, names)),
            kind => {
                let kind = if kind == "boolean" { Kind::Boolean } else { Kind::Number };
                match values.extract::<PyReadonlyArray1<'py, f32>>() {
                    Ok(values) => (kind, HeldValues::F32(values)),
                    Err(_) => (kind, HeldValues::F64(values.extract()?)),
                }
            }
        };
        Ok(Held { name, kind, values })
    }

    fn columns<'a>(held: &'a [Held<'py>]) -> Vec<Column<'a>> {
        held.iter().map(Held::column).collect()
    }

    fn column(&self) -> Column<'_> {
        match &self.values {
            HeldValues::F32(values) => Column::F32(values.as_array()),
            HeldValues::F64(values) => Column::F64(values.as_array()),
            HeldValues::Words(codes, names) => Column::Words { codes: codes.as_array(), names: names.clone() },
        }
    }
}
