//! Arguments that more than one subcommand takes.

use std::path::Path;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use neuralcb::ope::{Estimator, Interval};
use neuralcb::policy::{BehaviourConfig, LinUcbConfig};
use neuralcb::theory::Rule;
use neuralcb_experiments::{Algorithm, Dataset, Preset, Returned, Split, TrainingMode};
use neuralcb_logs::log::Format;
use neuralcb_logs::policy::{Algorithm as Recipe, Mode as RecipeMode, Preset as RecipePreset};
use neuralcb_logs::read_policy_table;

/// Makes a parser of names, which lists them in the help, completes them and suggests one for a misspelt name.
/// The argument says `ignore_case = true`.
macro_rules! named {
    ($parser:ident, $name:ident) => {
        pub fn $parser() -> impl TypedValueParser<Value = $name> {
            names($name::ALL, $name::name)
        }
    };
}
named!(dataset, Dataset);
named!(algorithm, Algorithm);
named!(mode, TrainingMode);
named!(preset, Preset);
named!(split, Split);
named!(returned, Returned);
named!(recipe, Recipe);
named!(recipe_preset, RecipePreset);
named!(recipe_mode, RecipeMode);
named!(estimator, Estimator);
named!(interval, Interval);
named!(format, Format);

/// The parser of one of these by its name.
pub fn names<T>(all: impl AsRef<[T]>, name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let all = all.as_ref().to_vec();
    PossibleValuesParser::new(all.iter().map(|&value| name(value))).map(move |text| {
        let same = |value: &&T| name(**value).eq_ignore_ascii_case(&text);
        *all.iter().find(same).expect("the parser has let through a name that is there")
    })
}

/// A number that may be infinite or negative; its range is checked where its meaning is known.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "must be a number".to_owned())
}

/// The least and the greatest of something.
pub fn range(text: &str) -> Result<[f64; 2], String> {
    let numbers: Vec<f64> = text.split(',').filter_map(|v| v.trim().parse().ok()).collect();
    numbers.try_into().map_err(|_| "must be two numbers, LOW,HIGH".to_owned())
}

/// A quantity of Theorem 4.1, or a number in its place.
pub fn rule(text: &str) -> Result<Rule, String> {
    Rule::parse(text).ok_or_else(|| "must be `theory` or a number".to_owned())
}

/// A field and its value: true, false, a number or a word.
pub fn field(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
    Ok((name.to_owned(), value))
}

/// The spellings of a behaviour policy.
pub const BEHAVIOURS: &str = "uniform, epsilon-greedy:E, linucb:E (E in [0, 1]) or table:FILE";

/// A behaviour policy.
pub fn behaviour(text: &str) -> Result<BehaviourConfig, String> {
    let (kind, value) = text.split_once(':').unwrap_or((text, ""));
    let epsilon = || match value.parse::<f64>() {
        Ok(e) if (0.0..=1.0).contains(&e) => Ok(e),
        _ => Err(format!("epsilon must be a number in [0, 1], got `{value}`")),
    };
    match kind {
        "uniform" if value.is_empty() => Ok(BehaviourConfig::Uniform),
        "epsilon-greedy" => Ok(BehaviourConfig::EpsilonGreedy { epsilon: epsilon()? }),
        "linucb" => Ok(BehaviourConfig::LinUcbMixture { epsilon: epsilon()?, linucb: LinUcbConfig::default() }),
        "table" => read_policy_table(Path::new(value)).map(BehaviourConfig::Table).map_err(|e| e.to_string()),
        _ => Err(format!("must be {BEHAVIOURS}")),
    }
}

/// A time such as `500ms`, `30s`, `10m`, `2h` or `7d`.
pub fn time(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = match &text[at..] {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err("must be a number and a unit, such as 500ms, 30s, 10m, 2h or 7d".to_owned()),
    };
    let number = text[..at].parse::<f64>().map_err(|_| "must begin with a number".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| "must be shorter".to_owned())
}
