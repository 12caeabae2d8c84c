//! What a policy would have earned on a log: off-policy evaluation, streamed.
//!
//! The weight of a round is π(a | x)/μ(a | x), where π plays one action (or, uniform, all eligible ones alike) and μ(a
//! | x) is the log's propensity. The reward model behind DM and DR is another policy's, if one is given that learned
//! from other rounds. Otherwise it is LinLCB's regression, cross-fitted ([`Folds`]), so no round is judged by a model
//! that has seen it. Two readings of the log (three where its propensities must be estimated), a block at a time.
//!
//! Without propensities they are estimated from the log, which is said loudly: every number then rests on a guess of
//! how the actions were chosen.

use neuralcb::model::LinearConfig;
use neuralcb::ope::{Code, CrossFit, Evaluation, Folds, OpeConfig, Report, Sample, Warning, samples};
use neuralcb::policy::{PropensityConfig, estimate_propensities};
use neuralcb::{Contexts, Encoding, LoggedData, ModelConfig, Seed};
use serde::{Deserialize, Serialize};

use crate::card::About;
use crate::detail::{Detail, DetailSums, Round, unknown_column};
use crate::log::{Block, Log, LogError, Preparation, PreparationConfig, ReadLog, Unseen};
use crate::memory;
use crate::policy::{Origin, Policy, PolicyError, pieces};
use crate::train::read_all;

/// Settings of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateOptions {
    /// Estimators and intervals.
    pub ope: OpeConfig,
    /// Folds of the reward model, ≥ 2; 0 leaves out the estimators that need one.
    pub folds: usize,
    /// How propensities are estimated where the log has none; the log is then held in memory.
    pub propensities: PropensityConfig,
    /// Columns by whose segments to say who gains and who loses.
    pub segments: Vec<String>,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        let propensities = PropensityConfig::default();
        EvaluateOptions { ope: OpeConfig::default(), folds: 3, propensities, segments: Vec::new() }
    }
}

/// What an evaluation found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// Values, intervals, warnings and verdict.
    #[serde(flatten)]
    pub report: Report,
    /// What the policy had not seen in training.
    #[serde(default, rename = "unseen")]
    pub unseen_words: Option<String>,
    /// What lies behind the numbers.
    #[serde(default)]
    pub detail: Detail,
    /// Whether the reward model is the policy's own.
    #[serde(default)]
    pub own_model: bool,
    /// What was read and what was asked.
    #[serde(default)]
    pub about: Option<About>,
}

/// Where q̂ comes from.
enum Rewards<'a> {
    /// There is none.
    Unknown,
    /// A model for each fold.
    Folds(CrossFit),
    /// The means of a policy that learned from other rounds.
    Learned(&'a Policy),
}

/// Evaluates a policy on a log that was opened with actions, rewards and, where it has them, propensities. `model`,
/// which must have learned from other rounds, stands in the place of the cross-fitted one.
pub fn evaluate(
    policy: &Policy,
    model: Option<&Policy>,
    log: &dyn ReadLog,
    options: &EvaluateOptions,
    progress: &mut dyn FnMut(&'static str),
) -> Result<Evaluated, PolicyError> {
    progress("preparing");
    let features = check_segments(log, &options.segments)?;
    // whoever learned nothing from a log cannot have learned too much
    let learned = !policy.arrays().is_empty();
    let same_log = learned && log.digest()? == policy.description().log.sha256;
    let (own, summary) = Preparation::fit(log, &PreparationConfig::default())?;
    let mut estimated = None;
    if summary.propensities.is_none() {
        progress("estimating propensities");
        estimated = Some(estimate(log, &own, &options.propensities, options.ope.seed)?);
    }
    let rewards = match model {
        Some(model) => Rewards::Learned(alike(model, policy)?),
        None if options.folds == 0 || !options.ope.estimators.iter().any(|e| e.needs_model()) => Rewards::Unknown,
        None => Rewards::Folds(fit_folds(log, &own, options.folds, progress)?),
    };
    let ope = OpeConfig { estimated_propensities: estimated.is_some(), ..options.ope.clone() };
    let mut evaluation = Evaluation::new(ope, 0)?;
    let (mut unseen, mut first) = (Unseen::default(), 0u64);
    let mut detail = DetailSums::new(features.iter().map(String::as_str), &options.segments);
    for block in log.read() {
        log.go_on()?;
        progress("evaluating");
        let block = block?;
        unseen += policy.preparation().unseen(&block);
        let rounds = own.logged(&block)?;
        let mu = propensities(&block, estimated.as_deref(), first)?;
        let target = target(policy, &block, &own, rounds.contexts())?;
        let q = rewards.means(&block, &own, rounds.contexts(), first)?;
        let samples = of_block(&block, &rounds, mu, &target, q.as_deref())?;
        detail.add(&block, &samples.iter().map(Round::from).collect::<Vec<_>>());
        want(&mut detail, &block, &own, rounds.contexts(), &target);
        evaluation.extend(&samples)?;
        first += block.n_rounds() as u64;
    }
    let mut report = evaluation.report();
    if same_log {
        let message = "the policy was learned from this very log, so every value is too high by an unknown amount: hold \
                       rounds out (`neuralcb tune` does), or evaluate on a later log";
        report.warnings.insert(0, Warning { code: Code::SameLog, message: message.to_owned() });
    }
    Ok(Evaluated {
        report,
        unseen_words: unseen.warning(),
        detail: detail.detail(options.ope.confidence),
        own_model: model.is_some_and(|model| std::ptr::eq(model, policy)),
        about: Some(About::new(Origin::of(log)?, &[("policy", policy)], options)),
    })
}

/// The features of the rounds, if the columns that were asked for are among them.
pub fn check_segments(log: &dyn ReadLog, segments: &[String]) -> Result<Vec<String>, PolicyError> {
    let features: Vec<String> = log.schema().shared.iter().map(|feature| feature.name.clone()).collect();
    match unknown_column(features.iter().map(String::as_str), segments) {
        None => Ok(features),
        Some(name) => Err(PolicyError::Segment { name: name.to_owned(), known: features.join(", ") }),
    }
}

/// Notes what the policy would do in each round of a block.
pub(crate) fn want(detail: &mut DetailSums, block: &Block, own: &Preparation, contexts: &Contexts, target: &[f64]) {
    for t in 0..contexts.n_rounds() {
        let pairs = contexts.pairs(t);
        let mut unknown = 1.0;
        for (i, &probability) in target[pairs].iter().enumerate().filter(|(_, p)| **p > 0.0) {
            detail.wants(Some(own.action_name(block, t, contexts.action(t, i))), probability);
            unknown -= probability;
        }
        if unknown > 1e-9 {
            detail.wants(None, unknown);
        }
    }
}

/// What [`evaluate`] makes of a block of a log with propensities, wherever in the log it stands: so that blocks may be
/// weighed on many machines, numbered and merged. `model` must have learned from other rounds.
pub fn weigh(policy: &Policy, model: Option<&Policy>, block: &Block) -> Result<Vec<Sample>, PolicyError> {
    let own = policy.preparation();
    let rewards = model.map_or(Ok(Rewards::Unknown), |model| alike(model, policy).map(Rewards::Learned))?;
    let rounds = own.logged(block)?;
    let target = target(policy, block, own, rounds.contexts())?;
    let means = rewards.means(block, own, rounds.contexts(), 0)?;
    of_block(block, &rounds, propensities(block, None, 0)?, &target, means.as_deref())
}

/// Refuses a model that needs other features than the policy.
fn alike<'a>(model: &'a Policy, policy: &Policy) -> Result<&'a Policy, PolicyError> {
    let (its, own) = (model.preparation().schema(), policy.preparation().schema());
    if its.shared == own.shared && its.per_action == own.per_action {
        return Ok(model);
    }
    Err(PolicyError::OtherFeatures)
}

/// Evaluates a policy that lives elsewhere: the log's extra columns are π(a | x) of the logged action and, with a
/// model, q̂(x, a) and v̂(x).
pub fn evaluate_columns(
    log: &Log,
    columns: &[String],
    options: &EvaluateOptions,
    progress: &mut dyn FnMut(&'static str),
) -> Result<Evaluated, PolicyError> {
    let features = check_segments(log, &options.segments)?;
    let mut detail = DetailSums::new(features.iter().map(String::as_str), &options.segments);
    let mut estimated = None;
    if log.blocks().next().transpose()?.is_some_and(|block| block.propensities.is_none()) {
        progress("estimating propensities");
        let (own, _) = Preparation::fit(log, &PreparationConfig::default())?;
        estimated = Some(estimate(log, &own, &options.propensities, options.ope.seed)?);
    }
    let ope = OpeConfig { estimated_propensities: estimated.is_some(), ..options.ope.clone() };
    let (mut evaluation, mut first) = (Evaluation::new(ope, 0)?, 0u64);
    for block in log.blocks() {
        progress("evaluating");
        let block = block?;
        let rewards = block.rewards.as_deref().unwrap_or_default();
        check_columns(log, &block, columns)?;
        let mu = propensities(&block, estimated.as_deref(), first)?;
        first += block.n_rounds() as u64;
        let sample = |t: usize| {
            let weighted = Sample::new(block.extra[0][t] / mu[t], rewards[t]);
            let sample = match block.extra.get(1..3) {
                Some([q, v]) => weighted.with_model(q[t], v[t]),
                _ => weighted,
            };
            Sample { drop: dropped(&block, t), ..sample }
        };
        let samples: Vec<Sample> = (0..block.n_rounds()).map(sample).collect();
        evaluation.extend(&samples)?;
        detail.add(&block, &samples.iter().map(Round::from).collect::<Vec<_>>());
    }
    Ok(Evaluated {
        report: evaluation.report(),
        unseen_words: None,
        detail: detail.detail(options.ope.confidence),
        own_model: false,
        about: Some(About::new(Origin::of(log)?, &[], options)),
    })
}

/// Refuses probabilities outside [0, 1] and values that are not finite.
fn check_columns(log: &Log, block: &Block, columns: &[String]) -> Result<(), PolicyError> {
    for (i, (values, column)) in block.extra.iter().zip(columns).enumerate() {
        let (want, ok): (_, fn(f64) -> bool) = match i {
            0 => ("a probability in [0, 1]", |v| (0.0..=1.0).contains(&v)),
            _ => ("a finite number", f64::is_finite),
        };
        if let Some(t) = values.iter().position(|&v| !ok(v)) {
            let place = block.places[t];
            let path = log.path(place).unwrap_or(std::path::Path::new("-")).to_path_buf();
            return Err(PolicyError::Value { path, line: place.line, column: column.clone(), want, got: values[t] });
        }
    }
    Ok(())
}

/// The propensities of a log that has none.
pub(crate) fn estimate(
    log: &dyn ReadLog,
    own: &Preparation,
    config: &PropensityConfig,
    seed: u64,
) -> Result<Vec<f64>, PolicyError> {
    let rounds = LoggedData::concat(read_all(log, own)?)?;
    Ok(estimate_propensities(config, &rounds, Seed::new(seed))?)
}

/// The propensities of a block: its own, or those that were estimated.
pub(crate) fn propensities<'a>(
    block: &'a Block,
    estimated: Option<&'a [f64]>,
    first: u64,
) -> Result<&'a [f64], PolicyError> {
    match (estimated, &block.propensities) {
        (Some(all), _) => Ok(&all[first as usize..][..block.n_rounds()]),
        (None, Some(own)) => Ok(own),
        (None, None) => Err(neuralcb::Error::NoPropensities.into()),
    }
}

/// The probability with which a round like this one was left out.
fn dropped(block: &Block, t: usize) -> f64 {
    block.counts.as_ref().map_or(0.0, |counts| 1.0 - 1.0 / counts[t])
}

/// A model for each fold, from the rounds of all others.
fn fit_folds(
    log: &dyn ReadLog,
    own: &Preparation,
    folds: usize,
    progress: &mut dyn FnMut(&'static str),
) -> Result<CrossFit, PolicyError> {
    if folds < 2 {
        let (range, got) = ("0 or at least 2", folds as f64);
        return Err(neuralcb::Error::Param { name: "folds", range, got }.into());
    }
    let (config, layout) = (ModelConfig::Linear(LinearConfig::default()), own.layout());
    let need = config.n_numbers(layout).saturating_mul(8).saturating_mul(folds as u128);
    memory::check(need, "the reward model", "choose estimators without one, such as snips, or --folds 0")?;
    let learner = |_| config.learner(layout, Seed::new(0));
    let mut folds = Folds::new(folds, learner)?;
    for block in log.read() {
        log.go_on()?;
        progress("fitting the reward model");
        folds.observe(&own.logged(&block?)?);
    }
    Ok(folds.finish()?)
}

/// π(a | x) of every pair of the log's own contexts.
pub(crate) fn target(
    policy: &Policy,
    block: &Block,
    own: &Preparation,
    contexts: &Contexts,
) -> Result<Vec<f64>, PolicyError> {
    let theirs = policy.preparation().contexts(block)?;
    let mut choices = Some(Vec::with_capacity(theirs.n_rounds()));
    for rounds in pieces(&theirs) {
        match (policy.decide(&theirs.slice(rounds))?.choices, &mut choices) {
            (Some(some), Some(all)) => all.extend(some),
            _ => choices = None,
        }
    }
    let mut target = vec![0.0; contexts.n_pairs()];
    let Some(choices) = choices else {
        for t in 0..contexts.n_rounds() {
            let pairs = contexts.pairs(t);
            let p = 1.0 / pairs.len() as f64;
            target[pairs].fill(p);
        }
        return Ok(target);
    };
    // the numbers of actions agree where both preparations know the same names and every round offers all of them
    let same = policy.preparation().actions() == own.actions() && own.layout().encoding == Encoding::Disjoint;
    for t in 0..contexts.n_rounds() {
        let action = theirs.action(t, choices[t] as usize);
        let action = if same { Some(action) } else { own.action(policy.preparation().action_name(block, t, action)) };
        // an action that this log does not know is never the logged one
        if let Some(place) = action.and_then(|action| contexts.place(t, action)) {
            target[contexts.first_pair(t) + place] = 1.0;
        }
    }
    Ok(target)
}

/// The samples of a block, from π(a | x) and q̂ of every pair.
fn of_block(
    block: &Block,
    rounds: &LoggedData,
    mu: &[f64],
    target: &[f64],
    q: Option<&[f64]>,
) -> Result<Vec<Sample>, PolicyError> {
    let mut samples = samples(rounds, mu, target, q)?;
    samples.iter_mut().enumerate().for_each(|(t, sample)| sample.drop = dropped(block, t));
    Ok(samples)
}

impl Rewards<'_> {
    /// q̂ of every pair; `first` is the number of the first round.
    fn means(
        &self,
        block: &Block,
        own: &Preparation,
        contexts: &Contexts,
        first: u64,
    ) -> Result<Option<Vec<f64>>, PolicyError> {
        match self {
            Rewards::Unknown => Ok(None),
            Rewards::Folds(models) => Ok(Some(models.means(contexts, first)?)),
            Rewards::Learned(model) => learned_means(model, block, own, contexts).map(Some),
        }
    }
}

/// q̂ of every pair by a policy's reward model, which may number actions in another way.
fn learned_means(
    model: &Policy,
    block: &Block,
    own: &Preparation,
    contexts: &Contexts,
) -> Result<Vec<f64>, PolicyError> {
    let its = model.preparation();
    let theirs = its.contexts(block)?;
    let Some(estimates) = model.decide(&theirs)?.estimates else {
        return Err(PolicyError::NoRewardModel { method: model.description().method.name().to_owned() });
    };
    if its.actions() == own.actions() {
        return Ok(estimates.mean);
    }
    let mut means = vec![0.0; contexts.n_pairs()];
    for t in 0..contexts.n_rounds() {
        let names: Vec<&str> =
            (0..theirs.pairs(t).len()).map(|i| its.action_name(block, t, theirs.action(t, i))).collect();
        for (i, pair) in contexts.pairs(t).enumerate() {
            let name = own.action_name(block, t, contexts.action(t, i));
            let place = names
                .iter()
                .position(|known| *known == name)
                .ok_or_else(|| LogError::UnknownAction { place: block.places[t], name: name.to_owned() })?;
            means[pair] = estimates.mean[theirs.first_pair(t) + place];
        }
    }
    Ok(means)
}
