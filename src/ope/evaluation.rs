//! The state of an evaluation: fed with blocks of rounds, cut and merged anywhere, asked for a report at any time.

use rayon::prelude::*;

use super::bootstrap::Bootstrap;
use super::config::{Estimator, Interval, OpeConfig};
use super::doubts::doubts;
use super::estimators::{behaviour_form, is_mean, linear_form, terms_of, value};
use super::intervals::{Spread, clopper_pearson};
use super::likelihood::Likelihood;
use super::moments::{Moments, R, TERMS, Terms, W, WR, terms, wanted};
use super::report::{Bounded, Difference, Estimate, Report, verdict};
use super::sample::Sample;
use super::seen::Seen;
use super::sequence::{LATEST, Sequence};
use super::shape::WeightSums;
use super::tape::Tape;
use crate::error::Error;

/// What a saved evaluation begins with; the last byte is the version of the form.
const FORM: [u64; 4] = [b'o' as u64, b'p' as u64, b'e' as u64, 2];

/// Rounds that one thread takes at a time.
const BLOCK: usize = 8192;

/// Rounds whose terms are held at a time: they stay in the processor's cache, and the bootstrap adds as many at once.
const ROWS: usize = 1024;

/// An off-policy evaluation under way.
///
/// A log may be cut into parts in any places; each part needs the number of its first round. Merged in any order they
/// give the same report to the last bit as the log in one piece.
///
/// ```
/// use neuralcb::ope::{Evaluation, OpeConfig, Sample};
///
/// let log: Vec<Sample> = (0..1000).map(|t| Sample::new(f64::from(t % 3), f64::from(t % 2))).collect();
/// let mut whole = Evaluation::new(OpeConfig::default(), 0)?;
/// whole.extend(&log)?;
///
/// let mut early = Evaluation::new(OpeConfig::default(), 0)?;
/// let mut late = Evaluation::new(OpeConfig::default(), 400)?;
/// early.extend(&log[..400])?;
/// late.extend(&log[400..])?;
/// late.merge(&early)?;
/// assert_eq!(late.report(), whole.report());
/// # Ok::<(), neuralcb::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Evaluation {
    config: OpeConfig,
    state: State,
}

/// Everything that is summed over rounds.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// On the heap: its exact sums take 22 kB, too much to pass from thread to thread on the stack.
    pub moments: Box<Moments>,
    pub seen: Seen,
    pub sequence: Sequence,
    pub weights: WeightSums,
    bootstrap: Bootstrap,
}

/// Evaluates a log that is read round by round, from its first.
pub fn evaluate(config: &OpeConfig, samples: impl IntoIterator<Item = Sample>) -> Result<Report, Error> {
    let mut evaluation = Evaluation::new(config.clone(), 0)?;
    let (mut samples, mut block) = (samples.into_iter(), Vec::new());
    loop {
        block.clear();
        block.extend(samples.by_ref().take(8 * BLOCK));
        if block.is_empty() {
            return Ok(evaluation.report());
        }
        evaluation.extend(&block)?;
    }
}

impl Evaluation {
    /// A part of a log that will start with the given round, counted from 0. Checks the settings.
    pub fn new(config: OpeConfig, first_round: u64) -> Result<Self, Error> {
        config.check()?;
        if first_round > LATEST {
            let (range, got) = ("at most 2^53", first_round as f64);
            return Err(Error::Param { name: "first_round", range, got });
        }
        let state = State::new(&config, first_round);
        Ok(Evaluation { config, state })
    }

    /// The settings.
    pub fn config(&self) -> &OpeConfig {
        &self.config
    }

    /// Takes the rounds that follow this part's own, in parallel. On an error nothing is taken.
    pub fn extend(&mut self, samples: &[Sample]) -> Result<(), Error> {
        let (first, n) = (self.state.sequence.next(), samples.len() as u64);
        if let Some((start, end)) = self.state.sequence.held(n) {
            return Err(Error::Overlap { start, end });
        }
        for (round, sample) in (first..).zip(samples) {
            sample.check(round, self.config.reward_range)?;
        }
        let part = |(i, samples): (usize, &[Sample])| {
            let mut state = State::new(&self.config, first + (i * BLOCK) as u64);
            state.add(&self.config, samples);
            state
        };
        let join = |mut a: State, b: State| {
            a.merge(&b);
            a
        };
        if samples.len() <= BLOCK {
            self.state.add(&self.config, samples);
        } else if let Some(added) = samples.par_chunks(BLOCK).enumerate().map(part).reduce_with(join) {
            self.state.merge(&added);
            self.state.sequence.advance(n);
        }
        Ok(())
    }

    /// Takes the rounds of another part, before, after or far from this one's. Refuses parts with other settings and
    /// parts that overlap. Rounds that are still missing are left out of the report, and a warning says so.
    pub fn merge(&mut self, other: &Evaluation) -> Result<(), Error> {
        if self.config != other.config {
            return Err(Error::OtherSettings);
        }
        if let Some((start, end)) = self.state.sequence.overlap(&other.state.sequence) {
            return Err(Error::Overlap { start, end });
        }
        self.state.merge(&other.state);
        Ok(())
    }

    /// The evaluation as bytes, some dozen kilobytes however many rounds it holds: to be merged elsewhere.
    ///
    /// ```
    /// use neuralcb::ope::{Evaluation, OpeConfig, Sample};
    ///
    /// let mut there = Evaluation::new(OpeConfig::default(), 2)?;
    /// there.extend(&[Sample::new(2.0, 1.0), Sample::new(0.5, 0.0)])?;
    /// let bytes = there.to_bytes();
    ///
    /// let mut here = Evaluation::new(OpeConfig::default(), 0)?;
    /// here.extend(&[Sample::new(1.0, 1.0), Sample::new(0.5, 1.0)])?;
    /// here.merge(&Evaluation::from_bytes(&bytes)?)?;
    /// assert_eq!(here.report().n, 4);
    /// # Ok::<(), neuralcb::Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut tape, mut own) = (Tape::writer(), self.clone());
        let kept = form(&mut tape).and_then(|()| own.config.keep(&mut tape)).and_then(|()| own.state.keep(&mut tape));
        debug_assert!(kept.is_ok(), "what rounds can say is in range: {kept:?}");
        tape.written()
    }

    /// The evaluation that the bytes hold, to the bit. Refuses bytes that none can have written.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut tape = Tape::reader(bytes);
        form(&mut tape)?;
        let mut config = OpeConfig::default();
        config.keep(&mut tape)?;
        let mut evaluation = Evaluation::new(config, 0)?;
        evaluation.state.keep(&mut tape)?;
        tape.finish()?;
        Ok(evaluation)
    }

    /// What the rounds so far say.
    pub fn report(&self) -> Report {
        let Evaluation { config, state } = self;
        let (moments, seen) = (&state.moments, &state.seen);
        let bounds = Bounds::new(config, state);
        let estimates: Vec<Estimate> =
            config.estimators.iter().filter(|&&e| state.can(e)).map(|&e| bounds.estimate(e)).collect();
        let warnings = doubts(config, state, &estimates);
        let sum = moments.sum(W);
        Report {
            n: seen.rounds,
            ess: finite(sum * sum / moments.product(W, W)),
            mean_weight: finite(sum / moments.n()),
            max_weight: seen.max_weight,
            weights: state.weights.shape(),
            behaviour: bounds.behaviour(),
            verdict: verdict(&estimates, &warnings, config.confidence),
            estimates,
            warnings,
        }
    }
}

/// Begins a saved evaluation.
fn form(tape: &mut Tape<'_>) -> Result<(), Error> {
    FORM.into_iter().try_for_each(|letter| {
        let mut read = letter;
        tape.number(&mut read, u64::MAX)?;
        tape.check(read == letter, "a saved evaluation of version 2")
    })
}

impl State {
    fn new(config: &OpeConfig, first_round: u64) -> Self {
        let mut wanted = [false; TERMS];
        if config.wants(Interval::Bootstrap) {
            wanted[R] = true;
            config.estimators.iter().flat_map(|&e| terms_of(e)).for_each(|&term| wanted[term] = true);
        }
        State {
            moments: Box::default(),
            seen: Seen::default(),
            sequence: Sequence::starting_at(first_round),
            weights: WeightSums::default(),
            bootstrap: Bootstrap::new(config.seed, config.replicates, wanted),
        }
    }

    fn add(&mut self, config: &OpeConfig, samples: &[Sample]) {
        let first = self.sequence.next();
        let sequence = config.wants(Interval::Sequence);
        let wanted = wanted(config);
        let mut rows: Vec<(Terms, f64)> = Vec::with_capacity(ROWS);
        for (samples, first) in samples.chunks(ROWS).zip((first..).step_by(ROWS)) {
            rows.clear();
            rows.extend(samples.iter().map(|s| (terms(config, &wanted, s), s.count())));
            self.moments.extend(&rows);
            for (sample, (terms, count)) in samples.iter().zip(&rows) {
                self.seen.add(sample, terms, *count);
                self.weights.add(terms[W]);
                if sequence {
                    self.sequence.add(terms[W], terms[WR]);
                } else {
                    self.sequence.skip();
                }
            }
            if config.wants(Interval::Bootstrap) {
                self.bootstrap.add(first, &rows);
            }
        }
        self.sequence.join();
    }

    fn merge(&mut self, other: &State) {
        self.moments.merge(&other.moments);
        self.seen.merge(&other.seen);
        self.sequence.merge(&other.sequence);
        self.weights.merge(&other.weights);
        self.bootstrap.merge(&other.bootstrap);
    }

    fn keep(&mut self, tape: &mut Tape<'_>) -> Result<(), Error> {
        let rounds = self.sequence.keep(tape)?;
        self.seen.keep(tape, rounds)?;
        self.weights.keep(tape, rounds)?;
        self.moments.keep(tape, rounds)?;
        self.bootstrap.keep(tape, rounds)
    }

    /// Whether the rounds hold what an estimator needs.
    pub fn can(&self, estimator: Estimator) -> bool {
        let missing = if estimator == Estimator::Dm { self.seen.without_v } else { self.seen.without_model };
        !estimator.needs_model() || missing == 0
    }
}

/// What all intervals of a report share.
struct Bounds<'a> {
    config: &'a OpeConfig,
    state: &'a State,
    n: f64,
    means: Terms,
    likelihood: Likelihood,
    replicates: Vec<Terms>,
}

impl<'a> Bounds<'a> {
    fn new(config: &'a OpeConfig, state: &'a State) -> Self {
        let moments = &state.moments;
        let (n, means, likelihood) = (moments.n(), moments.means(), Likelihood::new(moments));
        Bounds { config, state, n, means, likelihood, replicates: state.bootstrap.means() }
    }

    /// The standard error of the mean of a linear form.
    fn error(&self, form: &Terms) -> Option<f64> {
        (self.n > 1.0).then(|| (self.state.moments.spread(form) / (self.n - 1.0) / self.n).sqrt())
    }

    fn replicated(&self, value: impl Fn(&Terms) -> Option<f64>) -> Vec<f64> {
        let mut values: Vec<f64> = self.replicates.iter().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn behaviour(&self) -> Bounded {
        let form = behaviour_form();
        let spread = Spread {
            value: self.means[R],
            n: self.n,
            error: self.error(&form),
            width: Some(self.state.seen.behaviour_width(self.config)),
            replicates: self.replicated(|means| Some(means[R])),
        };
        let (range, rewards) = (self.state.seen.reward_range(self.config), self.state.moments.sum(R));
        let largest = self.state.seen.max_count();
        self.bounded(&spread, |interval, tail| match interval {
            Interval::ClopperPearson => clopper_pearson(self.n, self.n, rewards, largest, tail, range?),
            interval => spread.interval(interval, tail),
        })
    }

    fn estimate(&self, estimator: Estimator) -> Estimate {
        let form = linear_form(estimator, &self.means);
        let likelihood = estimator == Estimator::CressieRead;
        let value = if likelihood { Some(self.likelihood.value()) } else { value(estimator, &self.means) };
        let spread = Spread {
            value: value.unwrap_or(f64::NAN),
            n: self.n,
            error: form.and_then(|form| self.error(&form)),
            width: is_mean(estimator).then(|| self.state.seen.width(self.config, estimator)).flatten(),
            replicates: self.replicated(|means| super::estimators::value(estimator, means)),
        };
        let through_weights = matches!(estimator, Estimator::Ips | Estimator::Snips | Estimator::CressieRead);
        let bounded = self.bounded(&spread, |interval, tail| match interval {
            Interval::StudentT if !is_mean(estimator) => None,
            Interval::ClopperPearson | Interval::CressieRead | Interval::Sequence => {
                through_weights.then(|| self.through_weights(interval, tail)).flatten()
            }
            interval => spread.interval(interval, tail),
        });
        let difference = form.and_then(|form| self.difference(value?, form));
        Estimate { estimator, bounded, difference }
    }

    /// Intervals of the value itself, from weights and rewards.
    fn through_weights(&self, interval: Interval, tail: f64) -> Option<[f64; 2]> {
        let (moments, seen) = (&self.state.moments, &self.state.seen);
        let range = seen.reward_range(self.config)?;
        match interval {
            Interval::ClopperPearson => {
                clopper_pearson(self.n, moments.sum(W), moments.sum(WR), seen.max_weight, tail, range)
            }
            Interval::CressieRead => Some(self.likelihood.interval(tail, range)),
            Interval::Sequence if seen.dropped == 0 => self.state.sequence.interval(moments, tail, range).ok(),
            _ => None,
        }
    }

    /// V̂ − ⟨r⟩, with the interval of their paired difference.
    fn difference(&self, value: f64, mut form: Terms) -> Option<Difference> {
        form[R] -= 1.0;
        let spread = Spread { value: value - self.means[R], error: Some(self.error(&form)?), ..Spread::default() };
        let interval = spread.interval(Interval::Normal, 0.5 * (1.0 - self.config.confidence))?;
        interval.iter().all(|b| b.is_finite()).then_some(Difference { value: spread.value, interval })
    }

    /// All intervals asked for that exist, two-sided and from below.
    fn bounded(&self, spread: &Spread, of: impl Fn(Interval, f64) -> Option<[f64; 2]>) -> Bounded {
        let delta = 1.0 - self.config.confidence;
        let mut bounded = Bounded { value: finite(spread.value), ..Bounded::default() };
        if bounded.value.is_none() {
            return bounded;
        }
        for &interval in &self.config.intervals {
            if let Some(ends) = of(interval, 0.5 * delta).filter(|ends| ends.iter().all(|b| b.is_finite())) {
                bounded.intervals.insert(interval, ends);
            }
            if let Some([low, _]) = of(interval, delta).filter(|ends| ends[0].is_finite()) {
                bounded.lower_bounds.insert(interval, low);
            }
        }
        bounded
    }
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}
