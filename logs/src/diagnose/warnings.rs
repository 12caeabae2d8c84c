//! What to beware of, and what to do about it.

use serde::{Deserialize, Serialize};

use super::Diagnosis;
use super::features::COUNTED;

/// Fewer rounds than this teach nothing.
const FEW_ROUNDS: u64 = 100;
/// Fewer successes than this make every estimate noisy: a relative error of 1/√100.
const FEW_SUCCESSES: u64 = 100;
/// An effective sample size below this is no basis for an estimate.
const TINY_ESS: f64 = 50.0;
/// Below this share of the rounds, it is small.
const SMALL_ESS: f64 = 0.1;
/// Rounds below which an action is hardly known.
const FEW_CHOICES: f64 = 10.0;
/// How many standard errors the mean weight may lie from 1.
const FAR: f64 = 6.0;
/// A drift of a feature smaller than this many standard deviations is no matter.
const SLIGHT: f64 = 0.1;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Training or trusting an estimate would be unwise.
    Unwise,
    /// To be looked into.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Unwise => "unwise",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Something to beware of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// A short name that stays the same.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, with its numbers.
    pub message: String,
    /// What to do about it.
    pub cure: String,
}

/// What the reports do not hold.
pub(super) struct Seen {
    /// Features that rise from round to round.
    pub indices: Vec<String>,
    /// Whether some feature has so many values that whole rounds hardly repeat by chance.
    pub fine: bool,
    /// Whether there were more actions than are told apart.
    pub overflow: bool,
}

struct List(Vec<Warning>);

impl List {
    fn add(&mut self, severity: Severity, code: &str, message: String, cure: &str) {
        self.0.push(Warning { code: code.to_owned(), severity, message, cure: cure.to_owned() });
    }
}

/// All warnings of a diagnosis, the worst first.
pub(super) fn warnings(of: &Diagnosis, seen: &Seen) -> Vec<Warning> {
    let mut list = List(Vec::new());
    if of.rows == 0 {
        let cure = "check that the file holds rounds with an action and a reward";
        list.add(Severity::Unwise, "no-rounds", "the log has no rounds".to_owned(), cure);
        return list.0;
    }
    about_rounds(of, seen, &mut list);
    about_rewards(of, &mut list);
    about_propensities(of, &mut list);
    about_features(of, seen, &mut list);
    about_drift(of, &mut list);
    list.0.sort_by_key(|warning| warning.severity);
    list.0
}

fn about_rounds(of: &Diagnosis, seen: &Seen, list: &mut List) {
    let n = of.rows;
    if n < FEW_ROUNDS {
        let message = format!("only {n} rounds, and {FEW_ROUNDS} is the least");
        list.add(Severity::Unwise, "few-rounds", message, "collect more rounds before training");
    }
    let chosen: Vec<_> = of.actions.iter().filter(|action| action.count > 0.0).collect();
    if let [only] = chosen[..] {
        let message = format!("every round chose `{}`: the log compares nothing with it", only.name);
        list.add(Severity::Unwise, "one-action", message, "log other actions too, if only in a few rounds at random");
    }
    let untried: Vec<&str> = of.actions.iter().filter(|a| a.count == 0.0).map(|a| a.name.as_str()).collect();
    if !untried.is_empty() {
        let message = format!("{} offered and never chosen: {}", actions(untried.len()), some(&untried));
        list.add(
            Severity::Warning,
            "untried-actions",
            message,
            "nothing can be learned of them: leave them out or try them",
        );
    }
    let rare: Vec<&str> = chosen.iter().filter(|a| a.count < FEW_CHOICES).map(|a| a.name.as_str()).collect();
    if !rare.is_empty() {
        let message = format!("{} chosen in fewer than {FEW_CHOICES} rounds: {}", actions(rare.len()), some(&rare));
        let cure = "their values are guesses: keep pessimism on (beta above 0), or merge rare actions";
        list.add(Severity::Warning, "rare-actions", message, cure);
    }
    if seen.overflow {
        let message = format!("more than {} different actions; the rest was counted as one", super::actions::KEPT);
        list.add(Severity::Unwise, "many-actions", message, "check that the column of the action is the right one");
    }
    let repeated = of.duplicates.count;
    let share = repeated as f64 / n as f64;
    let least = if of.duplicates.complete { "" } else { "at least " };
    if seen.fine && share > 0.001 {
        let message =
            format!("{least}{repeated} rounds repeat an earlier one exactly, though features are finely graded");
        let cure = "remove rows that were logged or joined twice: they make every interval too narrow";
        list.add(Severity::Warning, "duplicates", message, cure);
    } else if repeated > 0 {
        let message = format!("{least}{repeated} rounds repeat an earlier one exactly");
        let cure = "natural where features have few values; otherwise remove rows that were logged twice";
        list.add(Severity::Note, "duplicates", message, cure);
    }
}

fn about_rewards(of: &Diagnosis, list: &mut List) {
    let Some(rewards) = &of.rewards else { return };
    if rewards.min == rewards.max {
        let message = format!("every reward is {}: no action is better than another", rewards.min);
        list.add(Severity::Unwise, "constant-reward", message, "check the column of the reward");
    }
    match rewards.successes {
        Some(successes) if successes < FEW_SUCCESSES => {
            let message = format!("only {successes} of {} rounds have the higher reward {}", of.rows, rewards.max);
            let cure = "values will be noisy (relative error about 1/√successes): collect more, or merge actions";
            list.add(Severity::Warning, "few-successes", message, cure);
        }
        _ => {}
    }
}

fn about_propensities(of: &Diagnosis, list: &mut List) {
    let (Some(p), Some(ess)) = (&of.propensities, of.ess) else {
        let message = "the log has no propensities".to_owned();
        let cure = "training does without them; evaluation must estimate them, so log the probability of each choice";
        list.add(Severity::Warning, "no-propensities", message, cure);
        return;
    };
    let n = of.rows as f64;
    if let Some(sum) = p.sum.filter(|sum| *sum > 1.0 + 1e-6) {
        let message = format!("each action has one propensity, and these sum to {sum:.6}, more than 1");
        let cure = "check the column of the propensity: it must be the probability of the chosen action";
        list.add(Severity::Unwise, "impossible-propensities", message, cure);
    } else if let Some(sum) = p.sum.filter(|sum| *sum < 1.0 - 1e-3) {
        let message = format!("each action has one propensity, and these sum to {sum:.6}, less than 1");
        let cure =
            "either actions with the rest of the probability were never chosen, or the propensities are too small";
        list.add(Severity::Warning, "propensities-below-one", message, cure);
    }
    let (off, errors) = (p.mean_weight - 1.0, (p.mean_weight - 1.0).abs() / p.mean_weight_error.max(1e-12));
    if off > 0.05 && errors > FAR {
        let message = format!(
            "the mean weight towards the uniform policy is {:.3} ± {:.3}, and true propensities give 1",
            p.mean_weight, p.mean_weight_error
        );
        let cure = "the propensities are too small for what was chosen: check that they are the chosen action's";
        list.add(Severity::Unwise, "impossible-propensities", message, cure);
    } else if off < -0.05 && errors > FAR {
        let message = format!(
            "the mean weight towards the uniform policy is {:.3} ± {:.3}, below 1: some offered actions have no chance, \
             or the propensities are too large",
            p.mean_weight, p.mean_weight_error
        );
        let cure = "policies that play those actions cannot be evaluated; list the eligible actions of each round, or log with some randomness";
        list.add(Severity::Warning, "no-support", message, cure);
    }
    let smallest = p.smallest;
    if ess < TINY_ESS && of.actions.len() > 1 {
        let message = format!(
            "the effective sample size towards the uniform policy is {ess:.2} of {n} (smallest propensity {smallest:e}): \
             estimates far from the logged policy are not to be trusted"
        );
        let cure = "clip the weights, evaluate policies close to the logged one, or log with more randomness";
        list.add(Severity::Unwise, "tiny-ess", message, cure);
    } else if ess < SMALL_ESS * n && of.actions.len() > 1 {
        let message = format!(
            "the effective sample size towards the uniform policy is {ess:.1} of {n} (smallest propensity {smallest:e})"
        );
        let cure = "prefer clipped or doubly robust estimates, and policies close to the logged one";
        list.add(Severity::Warning, "small-ess", message, cure);
    }
}

fn about_features(of: &Diagnosis, seen: &Seen, list: &mut List) {
    let names = |which: &dyn Fn(&super::FeatureReport) -> bool| -> Vec<&str> {
        of.features.iter().filter(|f| which(f)).map(|f| f.name.as_str()).collect()
    };
    let constant: Vec<&str> = of.constant_features.iter().map(String::as_str).collect();
    if !constant.is_empty() {
        let message = format!("{} with one value only: {}", features(constant.len()), some(&constant));
        list.add(Severity::Note, "constant-features", message, "they teach nothing: leave them out, or check them");
    }
    let missing = names(&|f| f.missing > 0);
    if !missing.is_empty() {
        let message = format!("{} with missing values: {}", features(missing.len()), some(&missing));
        let cure = "numbers: fill them, or let `missing = \"mean\"` do so; words: they become all zeros";
        list.add(Severity::Note, "missing-values", message, cure);
    }
    let many = names(&|f| f.category && f.different >= COUNTED);
    if !many.is_empty() {
        let message = format!("{} with {COUNTED} different words or more: {}", features(many.len()), some(&many));
        let cure = "an identifier teaches nothing about new rounds: leave it out, or group its values";
        list.add(Severity::Warning, "many-categories", message, cure);
    }
    let leaks = names(&|f| f.correlation.is_some_and(|c| c.abs() > 0.99));
    if !leaks.is_empty() && of.rewards.as_ref().is_some_and(|r| r.min < r.max) {
        let message = format!("{} that all but equal the reward: {}", features(leaks.len()), some(&leaks));
        list.add(Severity::Unwise, "leak", message, "leave out what is known only after the decision");
    }
    let indices: Vec<&str> = seen.indices.iter().map(String::as_str).collect();
    if !indices.is_empty() {
        let message = format!("{} that rise from round to round: {}", features(indices.len()), some(&indices));
        list.add(
            Severity::Warning,
            "index-feature",
            message,
            "leave out row numbers and times: new rounds lie beyond them",
        );
    }
}

fn about_drift(of: &Diagnosis, list: &mut List) {
    let drift = &of.halves.drift;
    if let Some(d) = drift.iter().find(|d| d.of == "reward") {
        let (first, second) = (d.first.unwrap_or_default(), d.second.unwrap_or_default());
        let message = format!(
            "the mean reward went from {first:.4} in the first half of the log to {second:.4} in the second (p = {:.1e})",
            d.p_value
        );
        let cure = "train on recent rounds, and hold out the last ones, not random ones";
        list.add(Severity::Warning, "reward-drift", message, cure);
    }
    if let Some(d) = drift.iter().find(|d| d.of == "action shares") {
        let message =
            format!("the shares of the actions changed between the halves by {:.3} (p = {:.1e})", d.effect, d.p_value);
        let cure = "natural for a policy that learns; then use intervals for adaptively collected logs";
        list.add(Severity::Note, "policy-drift", message, cure);
    }
    let moved = drift.iter().filter(|d| d.of != "reward" && d.of != "action shares" && d.effect >= SLIGHT);
    let moved: Vec<&str> = moved.map(|d| d.of.as_str()).collect();
    if !moved.is_empty() {
        let message = format!("{} drifted between the halves: {}", features(moved.len()), some(&moved));
        let cure = "check that they mean the same throughout; train on recent rounds";
        list.add(Severity::Warning, "feature-drift", message, cure);
    }
}

fn actions(n: usize) -> String {
    if n == 1 { "1 action".to_owned() } else { format!("{n} actions") }
}

fn features(n: usize) -> String {
    if n == 1 { "1 feature".to_owned() } else { format!("{n} features") }
}

/// The first few names.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let rest = names.len().saturating_sub(SHOWN);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}
