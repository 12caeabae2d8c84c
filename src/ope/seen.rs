//! The ranges and counts that a log shows: what bounds and warnings rest on.

use super::config::{Estimator, OpeConfig};
use super::moments::{TERMS, Terms, V, WE, WR, shrunk};
use super::sample::Sample;
use super::tape::Tape;
use crate::error::Error;

/// Least and greatest of some numbers; of none, `low > high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    const EMPTY: Range = Range { low: f64::INFINITY, high: f64::NEG_INFINITY };

    fn add(&mut self, x: f64) {
        *self = Range { low: self.low.min(x), high: self.high.max(x) };
    }

    fn merge(&mut self, other: Range) {
        *self = Range { low: self.low.min(other.low), high: self.high.max(other.high) };
    }
}

/// Ranges and counts of a log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub rounds: u64,
    /// Rounds with w r ≠ 0.
    pub rewarded: u64,
    /// Rounds without v; without q or v.
    pub without_v: u64,
    pub without_model: u64,
    /// Rounds that stand for dropped ones as well.
    pub dropped: u64,
    /// Largest weight, times the rounds that its round stands for; and without.
    pub max_weight: f64,
    plain_weight: f64,
    pub reward: Range,
    q: Range,
    v: Range,
    max_count: f64,
    /// Largest |term|, and largest |v + w e|.
    largest: Terms,
    largest_dr: f64,
}

impl Default for Seen {
    fn default() -> Self {
        Seen {
            rounds: 0,
            rewarded: 0,
            without_v: 0,
            without_model: 0,
            dropped: 0,
            max_weight: 0.0,
            plain_weight: 0.0,
            reward: Range::EMPTY,
            q: Range::EMPTY,
            v: Range::EMPTY,
            max_count: 0.0,
            largest: [0.0; TERMS],
            largest_dr: 0.0,
        }
    }
}

impl Seen {
    pub fn add(&mut self, sample: &Sample, terms: &Terms, count: f64) {
        self.rounds += 1;
        self.rewarded += u64::from(terms[WR] != 0.0);
        self.without_v += u64::from(sample.v.is_none());
        self.without_model += u64::from(sample.v.is_none() || sample.q.is_none());
        self.dropped += u64::from(count != 1.0);
        self.max_weight = self.max_weight.max(sample.weight * count);
        self.plain_weight = self.plain_weight.max(sample.weight);
        self.max_count = self.max_count.max(count);
        self.reward.add(sample.reward);
        sample.q.into_iter().for_each(|q| self.q.add(q));
        sample.v.into_iter().for_each(|v| self.v.add(v));
        self.largest.iter_mut().zip(terms).for_each(|(largest, term)| *largest = largest.max(term.abs()));
        self.largest_dr = self.largest_dr.max((terms[V] + terms[WE]).abs());
    }

    pub fn merge(&mut self, other: &Seen) {
        self.rounds += other.rounds;
        self.rewarded += other.rewarded;
        self.without_v += other.without_v;
        self.without_model += other.without_model;
        self.dropped += other.dropped;
        self.max_weight = self.max_weight.max(other.max_weight);
        self.plain_weight = self.plain_weight.max(other.plain_weight);
        self.max_count = self.max_count.max(other.max_count);
        self.reward.merge(other.reward);
        self.q.merge(other.q);
        self.v.merge(other.v);
        self.largest.iter_mut().zip(other.largest).for_each(|(a, b)| *a = a.max(b));
        self.largest_dr = self.largest_dr.max(other.largest_dr);
    }

    /// Keeps what so many rounds showed.
    pub fn keep(&mut self, tape: &mut Tape<'_>, rounds: u64) -> Result<(), Error> {
        self.rounds = rounds;
        for count in [&mut self.rewarded, &mut self.without_v, &mut self.without_model, &mut self.dropped] {
            tape.number(count, rounds)?;
        }
        let sizes = [&mut self.max_weight, &mut self.plain_weight, &mut self.max_count, &mut self.largest_dr];
        for size in sizes.into_iter().chain(&mut self.largest) {
            tape.double(size)?;
            tape.check(*size >= 0.0 && *size < f64::INFINITY, "a size")?;
        }
        for range in [&mut self.reward, &mut self.q, &mut self.v] {
            tape.double(&mut range.low)?;
            tape.double(&mut range.high)?;
            let known = range.low <= range.high && range.low.is_finite() && range.high.is_finite();
            tape.check(known || *range == Range::EMPTY, "the ends of a range")?;
        }
        Ok(())
    }

    /// The range of rewards: as given, else as seen; `None` if that is a single number.
    pub fn reward_range(&self, config: &OpeConfig) -> Option<[f64; 2]> {
        let seen = (self.reward.low < self.reward.high).then_some([self.reward.low, self.reward.high]);
        config.reward_range.or(seen)
    }

    /// The most rounds that one stands for.
    pub fn max_count(&self) -> f64 {
        self.max_count
    }

    /// How far apart the terms of two rounds of the behaviour policy can be.
    pub fn behaviour_width(&self, config: &OpeConfig) -> f64 {
        let [low, high] = self.reward_range(config).unwrap_or([self.reward.low, self.reward.high]);
        self.counted_width(low, high)
    }

    /// How far apart the terms of two rounds can be in a mean-type estimator; `None` where a round exceeds `x_max`.
    ///
    /// With `x_max` given, terms lie in [0, x_max] if they cannot be negative, else in [−x_max, x_max]. Without it they
    /// lie where the largest weight and the ranges of rewards and of the model's values allow.
    pub fn width(&self, config: &OpeConfig, estimator: Estimator) -> Option<f64> {
        let [low, high] = self.reward_range(config).unwrap_or([self.reward.low, self.reward.high]);
        let alone = matches!(estimator, Estimator::Ips | Estimator::IpsClip | Estimator::SgIps);
        let [bottom, top] = if alone {
            let w = self.largest_weight(config, estimator);
            [(w * low).min(0.0), (w * high).max(0.0)]
        } else if estimator == Estimator::Dm {
            [self.v.low, self.v.high]
        } else {
            let w = self.largest_weight(config, estimator);
            [self.v.low + (w * (low - self.q.high)).min(0.0), self.v.high + (w * (high - self.q.low)).max(0.0)]
        };
        let Some(x_max) = config.x_max else {
            return Some(self.counted_width(bottom, top));
        };
        let one_sided = bottom >= 0.0 || top <= 0.0;
        (self.largest(estimator) <= x_max).then_some(if one_sided { x_max } else { 2.0 * x_max })
    }

    /// The width of terms in [low, high], times the rounds that one may stand for; a dropped round's term is 0.
    fn counted_width(&self, low: f64, high: f64) -> f64 {
        if self.dropped == 0 { high - low } else { (high.max(0.0) - low.min(0.0)) * self.max_count }
    }

    /// The largest weight that an estimator gives any round.
    fn largest_weight(&self, config: &OpeConfig, estimator: Estimator) -> f64 {
        let w = self.plain_weight;
        match estimator {
            Estimator::IpsClip | Estimator::DrClip => w.min(config.clip),
            Estimator::SwitchDr => w.min(config.switch),
            Estimator::Dros => w.min(0.5 * config.dros.sqrt()), // λ w / (w² + λ) is largest at √λ
            Estimator::SgIps | Estimator::SgDr => shrunk(config, w)[3],
            _ => w,
        }
    }

    /// The largest |term| of a mean-type estimator.
    fn largest(&self, estimator: Estimator) -> f64 {
        match estimator {
            Estimator::Dr => self.largest_dr,
            mean => super::estimators::terms_of(mean).iter().map(|&i| self.largest[i]).fold(0.0, f64::max),
        }
    }
}
