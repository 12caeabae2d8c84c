//! Choosing algorithm, mode, learning rate and β from the log alone, with a certificate for the file that is written.
//!
//! The log is divided in three:
//!
//! 1. **learn**: every candidate learns from the first part;
//! 2. **choose**: the candidate with the largest score on the second goes on. The score is a lower bound of its value,
//!    so that one of which the log says little cannot win by luck; it promises nothing, so nothing is divided by the
//!    number of candidates. The winner, and a clone of the log's policy, learn anew from both parts;
//! 3. **certify**: on the third part, which has had no say in anything, the very policy that is written gets its
//!    [`Certificate`]: its value, and how much better it is than the log's own policy and than the clone.
//!
//! Where the winner is not shown to be better than the log's policy, the clone is written in its place unless asked
//! otherwise ([`IfNotBetter`]). Either of them could be the file, so they share δ: the winner takes three quarters of
//! it.
//!
//! The scales of features and the list of actions are those of the whole log. No reward of the third part is read
//! before its certificate. Where the log's policy learned from its rewards, say `adaptive`, and hold out by time.
//!
//! Short logs have no rounds to spare for choosing: their first two parts are one, every third of which is chosen by
//! once with what was learned from the others. Long logs do not fit into memory: their prepared rounds go once into a
//! file ([`Scratch`]), and everything reads that. Learners that keep what they learn from are given a sample of it.

mod candidates;
mod certify;
mod held_out;
mod judge;
mod learn;
mod options;
mod parts;
mod rounds;
mod scratch;

use neuralcb::ope::{Certificate, Claim};
use neuralcb::policy::estimate_propensities;
use neuralcb::theory::Rule;
use neuralcb::{LoggedData, Seed};
use tempfile::TempDir;

pub use candidates::{Tried, USUAL};
pub use certify::{Certified, Certifies};
pub use held_out::held_out;
pub use options::{HoldOut, IfNotBetter, TuneOptions};
pub use scratch::Scratch;

use crate::error::FileError;
use crate::log::{LogSummary, Preparation, ReadLog};
use crate::policy::{Algorithm, Origin, Policy, PolicyError, Recipe};
use crate::train::{Progress, Step, read_all};
use candidates::{Candidate, candidates, holds_its_rounds};
use certify::certify;
use judge::{Chooser, Judged, judge};
use learn::Source;
use parts::{CERTIFY, Fold, SEEN, divide};
use rounds::{Kept, Rounds, read_log};
use scratch::{State, key};

/// Rounds of which a choice can be made.
const LEAST_ROUNDS: u64 = 100;

/// The winner's part of δ where the clone may be written in its place.
const WINNER: f64 = 0.75;

/// Rounds that a candidate which keeps them learns from at most while it is compared, as in `auto`.
const COMPARED_ON: usize = 100_000;

/// Rounds that a winner which keeps them learns from at most.
const LEARNED_FROM: usize = 1_000_000;

/// The confidence of the scores.
const SCORE: f64 = 0.95;

/// A tuning whose log has been read. Its groups of candidates may be tried in any order and anywhere: the same log and
/// settings give the same bits.
pub struct Tuning<'a> {
    log: &'a dyn ReadLog,
    options: &'a TuneOptions,
    preparation: Preparation,
    summary: LogSummary,
    origin: Origin,
    rounds: Rounds,
    folds: Vec<Fold>,
    estimated: bool,
    listed: Vec<Candidate>,
    /// Where what was tried is kept.
    journal: Option<&'a Scratch>,
    /// The folder of the rounds where no other was given.
    _folder: Option<TempDir>,
}

/// What was found.
pub struct Tuned {
    /// The policy to write, with its certificate; none where nothing is shown to be better and that was to be refused.
    pub policy: Option<Policy>,
    /// The winner's certificate.
    pub winner: Certificate,
    /// All candidates, the best score first.
    pub tried: Vec<Tried>,
    /// Rounds of the log.
    pub rounds: u64,
    /// Rounds to learn from, to choose by and to certify on.
    pub parts: [u64; 3],
    /// How many times candidates learned and were compared: on a short log each round before the certificate is chosen
    /// by once.
    pub folds: usize,
    /// Rounds that learners which keep them learned from at most, where that is less than there were.
    pub sampled: Option<u64>,
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
            "folds": self.folds,
            "sampled": self.sampled,
            "held_out": self.parts[2],
            "behaviour": self.behaviour,
            "estimated_propensities": self.estimated_propensities,
            "words": self.words,
            "candidates": self.tried,
        })
    }
}

/// Chooses among the candidates and certifies what is to be written. Rounds that are too many for memory go into a
/// temporary folder.
pub fn tune(log: &dyn ReadLog, options: &TuneOptions, progress: Progress<'_>) -> Result<Tuned, PolicyError> {
    Tuning::new(log, options, None, progress)?.run(progress)
}

/// As [`tune`], with a folder for what does not fit into memory. A run that was killed goes on from what it has left
/// there.
pub fn tune_in(
    log: &dyn ReadLog,
    options: &TuneOptions,
    scratch: &Scratch,
    progress: Progress<'_>,
) -> Result<Tuned, PolicyError> {
    Tuning::new(log, options, Some(scratch), progress)?.run(progress)
}

impl<'a> Tuning<'a> {
    /// Reads the log.
    pub fn new(
        log: &'a dyn ReadLog,
        options: &'a TuneOptions,
        scratch: Option<&'a Scratch>,
        progress: Progress<'_>,
    ) -> Result<Tuning<'a>, PolicyError> {
        options.check()?;
        let listed = candidates(options)?;
        progress(Step::Preparing);
        if let Some((scratch, state)) = scratch.and_then(|scratch| Some((scratch, scratch.load()?))) {
            let origin = Origin::of(log)?;
            if state.key == key(options, &origin.sha256) {
                let State { preparation, summary, index, .. } = state;
                let rounds = Rounds::in_file(&scratch.rounds(), index, preparation.layout());
                return Ok(Tuning::of(log, options, preparation, summary, origin, rounds, listed, Some(scratch)));
            }
        }
        let (preparation, summary) = Preparation::fit(log, &options.base.prepares())?;
        if summary.rounds < LEAST_ROUNDS {
            return Err(PolicyError::TooShort { rounds: summary.rounds, what: "tuning", least: LEAST_ROUNDS });
        }
        let origin = Origin::of(log)?;
        if summary.propensities.is_none() {
            let rounds = LoggedData::concat(read_all(log, &preparation)?)?;
            let p = estimate_propensities(&options.propensities, &rounds, Seed::new(options.base.seed))?;
            let (contexts, actions) = (rounds.contexts().clone(), rounds.actions().to_vec());
            let rounds = LoggedData::new(contexts, actions, rounds.rewards().to_vec(), Some(p))?;
            let rounds = Rounds::in_memory(vec![rounds]);
            return Ok(Tuning::of(log, options, preparation, summary, origin, rounds, listed, None));
        }
        let mut own = None;
        let (folder, always) = match scratch {
            Some(scratch) => (scratch.rounds(), scratch.always),
            None => {
                let path = std::env::temp_dir();
                let made = tempfile::tempdir().map_err(|source| FileError::CreateFolder { path, source })?;
                (own.insert(made).path().join("rounds"), false)
            }
        };
        let all = summary.rounds;
        let kept = read_log(log, &preparation, &folder, always, &mut |done| {
            progress(Step::Doing("reading", done, all));
        })?;
        let (rounds, journal) = match kept {
            Kept::Memory(blocks) => (Rounds::in_memory(blocks), None),
            Kept::File(index) => {
                if let Some(scratch) = scratch {
                    let key = key(options, &origin.sha256);
                    let state = State { key, preparation, summary, index };
                    scratch.save(&state)?;
                    let State { preparation, summary, index, .. } = state;
                    let rounds = Rounds::in_file(&folder, index, preparation.layout());
                    return Ok(Tuning::of(log, options, preparation, summary, origin, rounds, listed, Some(scratch)));
                }
                (Rounds::in_file(&folder, index, preparation.layout()), None)
            }
        };
        let mut tuning = Tuning::of(log, options, preparation, summary, origin, rounds, listed, journal);
        tuning._folder = own;
        Ok(tuning)
    }

    #[allow(clippy::too_many_arguments)]
    fn of(
        log: &'a dyn ReadLog,
        options: &'a TuneOptions,
        preparation: Preparation,
        summary: LogSummary,
        origin: Origin,
        mut rounds: Rounds,
        listed: Vec<Candidate>,
        journal: Option<&'a Scratch>,
    ) -> Tuning<'a> {
        let estimated = summary.propensities.is_none();
        let (parts, folds) = divide(summary.rounds as usize, options);
        rounds.divide(parts);
        Tuning { log, options, preparation, summary, origin, rounds, folds, estimated, listed, journal, _folder: None }
    }

    fn source(&self) -> Source<'_> {
        let (log, preparation, origin) = (self.log, &self.preparation, &self.origin);
        Source { log, preparation, origin, skipped: self.summary.skipped, rounds: &self.rounds }
    }

    fn run(&self, progress: Progress<'_>) -> Result<Tuned, PolicyError> {
        let mut tried: Vec<Tried> = self.journal.map_or(Vec::new(), |j| j.all_tried().into_iter().flatten().collect());
        for group in self.groups() {
            if group.iter().any(|c| tried.iter().any(|t| t.candidate == *c)) {
                continue;
            }
            let some = self.try_group(&group, progress)?;
            self.journal.map_or(Ok(()), |journal| journal.add(&some))?;
            tried.extend(some);
        }
        self.finish(tried, progress)
    }

    /// The candidates in groups: those that read every round once share one pass over the log, the others stand alone.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let (mut streamed, mut alone) = (Vec::new(), Vec::<Vec<usize>>::new());
        for (i, candidate) in self.listed.iter().enumerate() {
            let method = candidate.recipe.method(&self.summary, self.preparation.actions(), None);
            let keeps = matches!(&method, Ok(crate::policy::Method::Model { config, .. }) if holds_its_rounds(config));
            if keeps { alone.push(vec![i]) } else { streamed.push(i) }
        }
        (!streamed.is_empty()).then_some(streamed).into_iter().chain(alone).collect()
    }

    /// Tries a group of candidates: each learns, and is judged at every β on rounds that it has not seen.
    pub fn try_group(&self, group: &[usize], progress: Progress<'_>) -> Result<Vec<Tried>, PolicyError> {
        let source = self.source();
        let recipes: Vec<Recipe> = group.iter().map(|&i| alone(&self.listed[i])).collect();
        let mut judged = Judged::default();
        for fold in &self.folds {
            let (mut taught, _) = source.learn(&recipes, fold.learn, COMPARED_ON, progress)?;
            let mut fixed = Vec::new();
            let mut models = Vec::new();
            for (&i, taught) in group.iter().zip(&mut taught) {
                let model = taught.model(self.log, progress)?;
                if model.is_none() {
                    fixed.push(source.fixed(&taught.method, self.options.base.seed)?);
                }
                let betas = match &taught.method {
                    crate::policy::Method::Model { beta, .. } if self.listed[i].betas.is_empty() => vec![*beta],
                    _ => self.listed[i].betas.clone(),
                };
                models.push((model, betas));
            }
            let mut fixed = fixed.iter();
            let choosers: Vec<Chooser<'_>> = models
                .iter()
                .map(|(model, betas)| match model {
                    Some(model) => Chooser::Model(model.clone(), betas),
                    None => Chooser::Policy(fixed.next().expect("one for each without a model")),
                })
                .collect();
            judge(&self.rounds, fold.choose, &choosers, progress, &mut |block, played| judged.add(block, played))?;
            self.log.go_on()?;
        }
        let asked = group.iter().flat_map(|&i| {
            let betas: Vec<Option<f64>> = self.listed[i].betas.iter().copied().map(Some).collect();
            let betas = if betas.is_empty() { vec![None] } else { betas };
            betas.into_iter().map(move |beta| (i, beta))
        });
        let tried = asked.enumerate().filter_map(|(n, (candidate, beta))| {
            let (score, recipe) = (judged.score(n, SCORE)?, &self.listed[candidate].recipe);
            Some(Tried {
                candidate,
                algorithm: recipe.algorithm,
                mode: recipe.mode,
                lr: recipe.lr,
                sigma: recipe.sigma,
                beta,
                value: score.value,
                lower: score.lower,
                coverage: score.coverage,
                agreeing: score.agreeing,
            })
        });
        Ok(tried.collect())
    }

    /// The policy that a candidate learns from all that may be known before the certificate.
    pub fn policy(&self, tried: &Tried, progress: Progress<'_>) -> Result<Policy, PolicyError> {
        self.source().policy(&self.recipe(tried), SEEN, LEARNED_FROM, progress)
    }

    fn recipe(&self, tried: &Tried) -> Recipe {
        let recipe = self.listed[tried.candidate].recipe.clone();
        Recipe { beta: tried.beta.map(Rule::Fixed), ..recipe }
    }

    /// Learns the best of what was tried from both parts, and certifies what is to be written.
    pub fn finish(&self, mut tried: Vec<Tried>, progress: Progress<'_>) -> Result<Tuned, PolicyError> {
        let (options, source, rounds) = (self.options, self.source(), &self.rounds);
        // of equal scores the earlier, which is the simpler, whatever the order in which they were tried
        tried.sort_by(|a, b| {
            let beta = |t: &Tried| t.beta.unwrap_or(0.0);
            b.lower.total_cmp(&a.lower).then(a.candidate.cmp(&b.candidate)).then(beta(a).total_cmp(&beta(b)))
        });
        let Some(best) = tried.first() else {
            return Err(neuralcb::Error::Param { name: "candidates", range: "at least 1", got: 0.0 }.into());
        };
        let winner = self.recipe(best);
        let policy = self.policy(best, progress)?;
        let clone_recipe =
            Recipe { algorithm: Algorithm::Clone, preparation: winner.preparation.clone(), ..Recipe::default() };
        let clone_recipe = Recipe { seed: winner.seed, members: options.base.members, ..clone_recipe };
        let clone = source.policy(&clone_recipe, SEEN, LEARNED_FROM, progress)?;
        let config = options.bound([self.summary.min_reward, self.summary.max_reward], self.estimated);
        let is_clone = winner.algorithm == Algorithm::Clone;
        let fall_back = options.if_not_better == IfNotBetter::Clone && !is_clone;
        let share = if fall_back { WINNER } else { 1.0 };
        let certify = |policy: &Policy, share: f64, progress: Progress<'_>| {
            certify(rounds, policy, &clone, &config, share, options.reward_range.is_some(), progress)
        };
        let mut certificate = certify(&policy, share, progress)?;
        if is_clone {
            certificate.over_clone = NOTHING;
        }
        let shown = certificate.beats_the_log();
        let (written, recipe, its) = match options.if_not_better {
            IfNotBetter::Clone if !shown && fall_back => {
                let its = certify(&clone, 1.0 - WINNER, progress)?;
                (Some(clone.clone()), clone_recipe, Certificate { over_clone: NOTHING, ..its })
            }
            IfNotBetter::Refuse if !shown => (None, winner.clone(), certificate.clone()),
            _ => (Some(policy), winner.clone(), certificate.clone()),
        };
        let words = words(&winner, &recipe, &certificate, &its, written.is_some());
        let written = written.map(|policy| {
            let (policy, certifies) = match options.refit {
                true => (source.policy(&recipe, SEEN | CERTIFY, LEARNED_FROM, progress)?, Certifies::Procedure),
                false => (policy, Certifies::ThisFile),
            };
            Ok::<_, PolicyError>(policy.certified(Certified {
                certificate: its.clone(),
                certifies,
                log: self.origin.clone(),
                settings: options.clone(),
                candidates: tried.len(),
            }))
        });
        let (mut n, mut earned) = (0u64, 0.0);
        for block in rounds.of(CERTIFY) {
            let block = block?;
            n += block.n_rounds() as u64;
            earned += block.rewards().iter().sum::<f64>();
        }
        let count = |parts: u8| rounds.count(parts) as u64;
        let most = LEARNED_FROM.min(learn::MOST_BYTES / rounds.bytes_per_round()) as u64;
        Ok(Tuned {
            policy: written.transpose()?,
            winner: certificate,
            tried,
            rounds: self.summary.rounds,
            parts: [count(self.folds[0].learn), self.folds.iter().map(|f| count(f.choose)).sum(), n],
            folds: self.folds.len(),
            sampled: (count(SEEN) > most).then_some(most),
            behaviour: earned / n as f64,
            estimated_propensities: self.estimated,
            words,
        })
    }
}

/// A candidate as it is compared: one network of a learner on a trunk is enough to tell learners apart.
fn alone(candidate: &Candidate) -> Recipe {
    let recipe = candidate.recipe.clone();
    let one = recipe.algorithm.trunk().filter(|_| recipe.algorithm != Algorithm::Viper).map(|_| 1);
    Recipe { members: one.or(recipe.members), ..recipe }
}

/// A policy less itself.
const NOTHING: Claim = Claim { lower: 0.0, estimate: Some(0.0) };

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
