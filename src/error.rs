//! One error for the whole library: each names the culprit, its place, the allowed range and the value found.

use std::fmt;

use crate::data::Layout;

/// Everything the library refuses.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting outside its range.
    #[error("`{name}` must be {range}, got {got}")]
    Param {
        /// Name of the setting.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// What was given.
        got: f64,
    },
    /// Two parts that must agree in size do not.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// The part with the wrong size.
        what: &'static str,
        /// The size it must have.
        expected: usize,
        /// The size it has.
        got: usize,
    },
    /// A value of a log that no model may see.
    #[error("round {round}, {column}: must be {range}, got {got}")]
    Value {
        /// Round, counted from 0.
        round: usize,
        /// Column of the log.
        column: Column,
        /// What is allowed.
        range: &'static str,
        /// What was found.
        got: f64,
    },
    /// An action number that does not exist.
    #[error("round {round}, action: must be below the number of actions, {n_actions}, got {action}")]
    ActionRange {
        /// Round, counted from 0.
        round: usize,
        /// The action chosen.
        action: usize,
        /// Number K of actions.
        n_actions: usize,
    },
    /// The chosen action was not offered in its round.
    #[error("round {round}, action: {action} is not among the {offered} eligible actions of the round")]
    NotEligible {
        /// Round, counted from 0.
        round: usize,
        /// The action chosen.
        action: usize,
        /// Number of actions the round offers.
        offered: usize,
    },
    /// Contexts of another problem than the one the model was made for.
    #[error("contexts do not fit the model: it expects {expected:?}, got {got:?}")]
    Layout {
        /// What the model was made for.
        expected: Layout,
        /// What the contexts are.
        got: Layout,
    },
    /// Off-policy evaluation of a log that does not tell how likely its choices were.
    #[error(
        "the log has no propensities: off-policy evaluation needs the behaviour policy's probability of each choice"
    )]
    NoPropensities,
    /// A fit was ended by its [`Watch`](crate::Watch).
    #[error("the fit was ended before it was done")]
    Stopped,
    /// An estimate that no decision can rest on.
    #[error(
        "round {round}, action {action}: mean {mean} and width {width} give no finite bound at beta {beta}: the \
         model's numbers have left their range; use a smaller learning rate, a lambda nearer to 1, or features nearer \
         to 1"
    )]
    Estimate {
        /// Round, counted from 0.
        round: usize,
        /// The action.
        action: usize,
        /// Its mean.
        mean: f64,
        /// Its width.
        width: f64,
        /// β.
        beta: f64,
    },
    /// An array of a stored model that does not fit.
    #[error("array `{name}`: must be {want}, got {got}")]
    Array {
        /// The array's name.
        name: String,
        /// What is allowed.
        want: String,
        /// What was found.
        got: String,
    },
    /// A name that is none of the known ones.
    #[error("unknown {what} `{got}`: use one of {known}")]
    Name {
        /// What is named.
        what: &'static str,
        /// The names that are known.
        known: &'static str,
        /// What was given.
        got: String,
    },
    /// Two parts of an evaluation that were made with different settings.
    #[error("parts of an evaluation must have the same settings: make both from one configuration")]
    OtherSettings,
    /// Two parts of an evaluation that hold the same rounds.
    #[error(
        "parts of an evaluation overlap: rounds {start} to {end} are in both; give each part its first round's number"
    )]
    Overlap {
        /// The first round in both.
        start: u64,
        /// The round after the last in both.
        end: u64,
    },
    /// Bytes that are no saved evaluation.
    #[error("saved evaluation, byte {at}: must be {want}; save it anew")]
    Saved {
        /// How many bytes were read.
        at: usize,
        /// What is allowed there.
        want: &'static str,
    },
    /// A context without a direction, where the theory needs one.
    #[error(
        "round {round}, action {action}: the context is the zero vector: remove the round or add a constant feature"
    )]
    ZeroContext {
        /// Round, counted from 0.
        round: usize,
        /// The action.
        action: usize,
    },
    /// Two contexts that make the neural tangent kernel matrix singular.
    #[error(
        "round {round}, action {action} and round {other_round}, action {other_action} have parallel contexts: H is \
         singular (lambda_0 = 0); keep one of them (`Points::distinct`)"
    )]
    Parallel {
        /// Round of the earlier context, counted from 0.
        round: usize,
        /// Its action.
        action: usize,
        /// Round of the later one.
        other_round: usize,
        /// Its action.
        other_action: usize,
    },
    /// A neural tangent kernel matrix that is singular to working precision.
    #[error(
        "H is singular to working precision at context {index}: its contexts depend on each other; use fewer rounds or \
         more depth"
    )]
    SingularKernel {
        /// Number of the context at which the factorisation failed.
        index: usize,
    },
    /// More contexts than the exact computation can hold.
    #[error(
        "{got} contexts are too many for an exact computation, at most {limit}: use fewer rounds, raise the limit or \
         take the approximation (`Ntk::approximate`)"
    )]
    TooManyContexts {
        /// Number nK of contexts.
        got: usize,
        /// The largest number allowed.
        limit: usize,
    },
    /// A matrix that should be positive definite is not.
    #[error("matrix is not positive definite at pivot {pivot}: increase `lambda`")]
    NotPositiveDefinite {
        /// Index of the failing pivot.
        pivot: usize,
    },
}

/// A column of a log, for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// The chosen action.
    Action,
    /// The observed reward.
    Reward,
    /// The behaviour policy's probability of the chosen action.
    Propensity,
    /// The list of eligible actions.
    Eligible,
    /// The importance weight of the chosen action.
    Weight,
    /// A reward model's value of the chosen action.
    ModelValue,
    /// A reward model's expected value under the target policy.
    TargetValue,
    /// The probability with which the log left out a round.
    Drop,
    /// The target policy's probability of an action.
    Target,
    /// How far two policies are apart.
    Apart,
    /// Feature `index` of the context (of action `action` where each action has its own).
    Feature {
        /// Action whose vector it is; `None` where the round has one vector for all.
        action: Option<usize>,
        /// Position in the vector, counted from 0.
        index: usize,
    },
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Action => f.write_str("action"),
            Column::Reward => f.write_str("reward"),
            Column::Propensity => f.write_str("propensity"),
            Column::Eligible => f.write_str("eligible actions"),
            Column::Weight => f.write_str("importance weight"),
            Column::ModelValue => f.write_str("q, the model's value of the action"),
            Column::TargetValue => f.write_str("v, the model's value of the target policy"),
            Column::Drop => f.write_str("probability of being dropped"),
            Column::Target => f.write_str("target policy's probability"),
            Column::Apart => f.write_str("distance of the two policies"),
            Column::Feature { action: None, index } => write!(f, "feature {index}"),
            Column::Feature { action: Some(action), index } => write!(f, "feature {index} of action {action}"),
        }
    }
}

/// Refuses a setting that is not a finite number above zero.
pub(crate) fn positive(name: &'static str, got: f64) -> Result<(), Error> {
    if got > 0.0 && got.is_finite() { Ok(()) } else { Err(Error::Param { name, range: "a finite number > 0", got }) }
}

/// Refuses a setting that is not a finite number at or above zero.
pub(crate) fn not_negative(name: &'static str, got: f64) -> Result<(), Error> {
    if got >= 0.0 && got.is_finite() { Ok(()) } else { Err(Error::Param { name, range: "a finite number >= 0", got }) }
}

/// Refuses a λ whose inverse leaves no room in single precision, or which drowns every sample.
pub(crate) fn regularisation(got: f64) -> Result<(), Error> {
    let range = "a number from 1e-20 to 1e20";
    if (1e-20..=1e20).contains(&got) { Ok(()) } else { Err(Error::Param { name: "lambda", range, got }) }
}

/// Refuses a count of zero.
pub(crate) fn at_least(name: &'static str, least: usize, range: &'static str, got: usize) -> Result<(), Error> {
    if got >= least { Ok(()) } else { Err(Error::Param { name, range, got: got as f64 }) }
}
