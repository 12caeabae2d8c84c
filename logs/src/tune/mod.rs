//! Choosing algorithm, mode, learning rate and β from the log alone, with a certificate for the file that is written.
//!
//! The log is divided in three:
//!
//! 1. **learn**: every candidate learns from the first part;
//! 2. **choose**: the candidate with the largest score on the second goes on. The score is a lower bound of its value, so
//!    that one of which the log says little cannot win by luck; it promises nothing, so nothing is divided by the number of
//!    candidates. The winner, and a clone of the log's policy, learn anew from both parts;
//! 3. **certify**: on the third part, which has had no say in anything, the very policy that is written gets its
//!    [`Certificate`]: its value, and how much better it is than the log's own policy and than the clone.
//!
//! Where the winner is not shown to be better than the log's policy, the clone is written in its place unless asked otherwise
//! ([`IfNotBetter`]). Either of them could be the file, so they share δ: the winner takes three quarters of it.
//!
//! The scales of features and the list of actions are those of the whole log. No reward of the third part is read before its
//! certificate. Where the log's policy learned from its rewards, say `adaptive`, and hold out by time.

mod candidates;
mod certify;
mod learn;
mod parts;

use neuralcb::ope::{BoundConfig, BoundMethod, Certificate, Claim};
use neuralcb::policy::{PropensityConfig, estimate_propensities};
use neuralcb::{LoggedData, Seed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use candidates::Tried;
pub use certify::{Certified, Certifies};

use crate::log::{Preparation, ReadLog};
use crate::policy::{Algorithm, Mode, Origin, Policy, PolicyError, Recipe};
use crate::train::read_all;
use candidates::{Candidate, candidates};
use certify::certify;
use learn::{Judge, Source};
use parts::Parts;

/// Which rounds are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldOut {
    /// The last ones: what a policy learned from the past earns later.
    Time,
    /// Drawn at random.
    Random,
}

/// What is written where the winner is not shown to be better than the policy that made the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IfNotBetter {
    /// The winner all the same.
    Keep,
    /// A clone of the policy that made the log.
    Clone,
    /// Nothing.
    Refuse,
}

/// Settings of the tuning.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `base` | practical | what the candidates start from, and the seed | |
/// | `hold_out` | time | which rounds are held out | |
/// | `choose` | 0.15 | the share of rounds to choose by | in (0, ⅓) |
/// | `certify` | 0.25 | the share of rounds to certify on | in (0, ⅓) |
/// | `refit` | false | learn from all rounds at the end; the certificate is then of the procedure | |
/// | `if_not_better` | clone | what is written where nothing is shown to be better than the log's policy | |
/// | `confidence` | 0.95 | of the certificate | in (0, 1) |
/// | `reward_range` | from the log | \[least, greatest\] reward possible | least < greatest |
/// | `least_propensity` | not known | no eligible action is less likely in any round | in (0, 1] |
/// | `adaptive` | false | whether the log's policy changed with what it saw | |
/// | `betas` | 0, 0.1, 0.3, 1, 3 | β of every reward model | ≥ 0 |
/// | `lrs` | 1e-3, 3e-4 | learning rates of the neural model | > 0 |
/// | `modes` | S | its training modes | |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TuneOptions {
    /// What the candidates start from.
    pub base: Recipe,
    /// Which rounds are held out.
    pub hold_out: HoldOut,
    /// The share of rounds to choose by.
    pub choose: f64,
    /// The share of rounds to certify on.
    pub certify: f64,
    /// Whether the policy learns from all rounds at the end.
    pub refit: bool,
    /// What is written where nothing is shown to be better.
    pub if_not_better: IfNotBetter,
    /// The confidence of the certificate.
    pub confidence: f64,
    /// Least and greatest reward possible.
    pub reward_range: Option<[f64; 2]>,
    /// No eligible action is less likely in any round of the log.
    pub least_propensity: Option<f64>,
    /// Whether the log's policy changed with what it saw.
    pub adaptive: bool,
    /// β of every reward model.
    pub betas: Vec<f64>,
    /// Learning rates.
    pub lrs: Vec<f64>,
    /// Training modes.
    pub modes: Option<Vec<Mode>>,
    /// How propensities are estimated where the log has none.
    pub propensities: PropensityConfig,
}

impl Default for TuneOptions {
    fn default() -> Self {
        TuneOptions {
            base: Recipe::default(),
            hold_out: HoldOut::Time,
            choose: 0.15,
            certify: 0.25,
            refit: false,
            if_not_better: IfNotBetter::Clone,
            confidence: 0.95,
            reward_range: None,
            least_propensity: None,
            adaptive: false,
            betas: vec![0.0, 0.1, 0.3, 1.0, 3.0],
            lrs: vec![1e-3, 3e-4],
            modes: None,
            propensities: PropensityConfig::default(),
        }
    }
}

impl TuneOptions {
    fn check(&self) -> Result<(), PolicyError> {
        let refuse = |name, range, got| Err(PolicyError::from(neuralcb::Error::Param { name, range, got }));
        for (name, share) in [("choose", self.choose), ("certify", self.certify)] {
            if !(share > 0.0 && share < 1.0 / 3.0) {
                return refuse(name, "in (0, 1/3)", share);
            }
        }
        if self.adaptive && self.hold_out == HoldOut::Random {
            let cure = "hold out by time: later rounds of an adaptive log tell of the earlier ones' rewards";
            return Err(PolicyError::Recipe { name: "hold_out = random", algorithm: "an adaptive log".into(), cure });
        }
        self.bound([0.0, 1.0], false).check()?;
        self.betas.iter().try_for_each(|&beta| crate::policy::check_beta(beta))?;
        Ok(())
    }

    /// The bounds that are asked for, on a log with rewards in that range.
    fn bound(&self, seen: [f64; 2], estimated_propensities: bool) -> BoundConfig {
        BoundConfig {
            method: BoundMethod::Betting,
            confidence: self.confidence,
            // a single number is no range
            reward_range: self.reward_range.or((seen[0] < seen[1]).then_some(seen)),
            least_propensity: self.least_propensity,
            adaptive: self.adaptive,
            estimated_propensities,
            ..BoundConfig::default()
        }
    }
}

/// Rounds of which a choice can be made.
const LEAST_ROUNDS: u64 = 100;

/// The winner's part of δ where the clone may be written in its place.
const WINNER: f64 = 0.75;

/// What was found.
pub struct Tuned {
    /// The policy to write, with its certificate; none where nothing is shown to be better and that was to be refused.
    pub policy: Option<Policy>,
    /// The winner's certificate.
    pub winner: Certificate,
    /// All candidates, the best score first.
    pub tried: Vec<Tried>,
    /// Rounds to learn from, to choose by and to certify on.
    pub parts: [u64; 3],
    /// Mean reward of the log's own policy on the rounds to certify on.
    pub behaviour: f64,
    /// Whether propensities had to be estimated.
    pub estimated_propensities: bool,
    /// The answer in words.
    pub words: String,
}

impl Tuned {
    /// Whether the winner is shown to be better than the policy that made the log.
    pub fn beats_the_log(&self) -> bool {
        self.winner.beats_the_log()
    }

    /// What is certain of the policy to write; of the winner, where there is none.
    pub fn certificate(&self) -> &Certificate {
        let certified = self.policy.as_ref().and_then(|policy| policy.description().certified.as_ref());
        certified.map_or(&self.winner, |certified| &certified.certificate)
    }

    /// The answer as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let written = self.policy.as_ref().map(|policy| policy.description());
        serde_json::json!({
            "written": written.map(|description| description.method.name()),
            "certificate": self.certificate(),
            "certifies": written.and_then(|description| description.certified.as_ref()).map(|c| c.certifies),
            "winner": self.winner,
            "beats_the_log": self.beats_the_log(),
            "parts": {"learn": self.parts[0], "choose": self.parts[1], "certify": self.parts[2]},
            "held_out": self.parts[1] + self.parts[2],
            "behaviour": self.behaviour,
            "estimated_propensities": self.estimated_propensities,
            "words": self.words,
            "candidates": self.tried,
        })
    }
}

/// Chooses among the candidates and certifies what is to be written.
pub fn tune(log: &dyn ReadLog, options: &TuneOptions, progress: &mut dyn FnMut(&str)) -> Result<Tuned, PolicyError> {
    options.check()?;
    progress("preparing");
    let (preparation, summary) = Preparation::fit(log, &options.base.prepares())?;
    if summary.rounds < LEAST_ROUNDS {
        return Err(PolicyError::TooShort { rounds: summary.rounds, what: "tuning", least: LEAST_ROUNDS });
    }
    let origin = Origin::of(log)?;
    let (rounds, estimated) = with_propensities(log, &preparation, options, progress)?;
    let parts = Parts::new(&rounds, options, Seed::new(options.base.seed));
    let source = Source { log, preparation: &preparation, origin: &origin, skipped: summary.skipped };
    let config = options.bound([summary.min_reward, summary.max_reward], estimated);
    let listed = candidates(options);
    progress(&format!("{} candidates", listed.iter().map(|c| c.betas.len().max(1)).sum::<usize>()));
    let (winner, tried) = choose(&source, &listed, &parts, &config)?;
    progress("learning the winner from both parts");
    let policy = source.policy(&winner, &parts.seen)?;
    let clone_recipe = listed.iter().map(|c| &c.recipe).find(|recipe| recipe.algorithm == Algorithm::Clone);
    let clone_recipe = clone_recipe.expect("among the candidates").clone();
    let clone = source.policy(&clone_recipe, &parts.seen)?;
    progress("certifying");
    let fall_back = options.if_not_better == IfNotBetter::Clone && winner.algorithm != Algorithm::Clone;
    let share = if fall_back { WINNER } else { 1.0 };
    let mut certificate = with_range_said(certify(&policy, &clone, &parts.certify, &config, share)?, options);
    if winner.algorithm == Algorithm::Clone {
        certificate.over_clone = NOTHING;
    }
    let shown = certificate.beats_the_log();
    let (written, recipe, its) = match options.if_not_better {
        IfNotBetter::Clone if !shown && fall_back => {
            let its = certify(&clone, &clone, &parts.certify, &config, 1.0 - WINNER)?;
            (Some(clone), clone_recipe, Certificate { over_clone: NOTHING, ..with_range_said(its, options) })
        }
        IfNotBetter::Refuse if !shown => (None, winner.clone(), certificate.clone()),
        _ => (Some(policy), winner.clone(), certificate.clone()),
    };
    let words = words(&winner, &recipe, &certificate, &its, written.is_some());
    let written = written.map(|policy| {
        let (policy, certifies) = match options.refit {
            true => (source.policy(&recipe, &rounds)?, Certifies::Procedure),
            false => (policy, Certifies::ThisFile),
        };
        Ok::<_, PolicyError>(policy.certified(Certified {
            certificate: its.clone(),
            certifies,
            log: origin.clone(),
            settings: options.clone(),
            candidates: tried.len(),
        }))
    });
    Ok(Tuned {
        policy: written.transpose()?,
        winner: certificate,
        tried,
        parts: [&parts.learn, &parts.choose, &parts.certify].map(|part| part.n_rounds() as u64),
        behaviour: parts.certify.rewards().iter().sum::<f64>() / parts.certify.n_rounds() as f64,
        estimated_propensities: estimated,
        words,
    })
}

/// A policy less itself.
const NOTHING: Claim = Claim { lower: 0.0, estimate: Some(0.0) };

/// Says so where the rewards' range was taken from the log.
fn with_range_said(mut certificate: Certificate, options: &TuneOptions) -> Certificate {
    certificate.assumptions.reward_range_from_log = options.reward_range.is_none();
    certificate
}

/// All rounds, with propensities that are their own or were estimated.
fn with_propensities(
    log: &dyn ReadLog,
    preparation: &Preparation,
    options: &TuneOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<(LoggedData, bool), PolicyError> {
    let rounds = LoggedData::concat(read_all(log, preparation)?)?;
    if rounds.propensities().is_some() {
        return Ok((rounds, false));
    }
    progress("estimating propensities");
    let p = estimate_propensities(&options.propensities, &rounds, Seed::new(options.base.seed))?;
    let (contexts, actions) = (rounds.contexts().clone(), rounds.actions().to_vec());
    Ok((LoggedData::new(contexts, actions, rounds.rewards().to_vec(), Some(p))?, true))
}

/// The recipe with the best score on the second part, and all scores.
fn choose(
    source: &Source<'_>,
    listed: &[Candidate],
    parts: &Parts,
    config: &BoundConfig,
) -> Result<(Recipe, Vec<Tried>), PolicyError> {
    let judge = Judge { rounds: &parts.choose, bound: config.clone() };
    let tried = listed.par_iter().map(|candidate| source.try_candidate(candidate, &parts.learn, &judge));
    let mut tried: Vec<(Recipe, Tried)> = tried.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    // of equal scores the earlier, which is the simpler
    tried.sort_by(|(_, a), (_, b)| b.lower.total_cmp(&a.lower));
    Ok((tried[0].0.clone(), tried.into_iter().map(|(_, tried)| tried).collect()))
}

fn words(winner: &Recipe, recipe: &Recipe, of_winner: &Certificate, its: &Certificate, written: bool) -> String {
    let (name, its_name) = (winner.algorithm.name(), recipe.algorithm.name());
    if of_winner.beats_the_log() {
        return its.words(its_name);
    }
    let what = match () {
        () if !written => format!("no file was written ({name} was the best that was found)"),
        () if winner.algorithm != recipe.algorithm => {
            format!("{its_name} was written in the place of {name}: it imitates that policy")
        }
        () => format!("{name} was written all the same"),
    };
    format!(
        "nothing is shown to beat the policy that made the log: {what}; more rounds, or more variety in them, would \
         tell. {}",
        sentence(&its.words(its_name))
    )
}

/// With a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
