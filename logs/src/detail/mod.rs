//! What lies behind the numbers of an evaluation, for its card: which actions the log covers, how well the reward model
//! predicts, how values move over time, and who gains and who loses by segment of chosen columns.
//!
//! It is summed in the pass that evaluates, in memory that does not grow with the log.

mod actions;
mod bins;
mod group;
mod segments;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

pub use actions::Coverage;
pub use group::{GroupReport, Mean, Round};
pub use segments::{Segment, Segmented, unknown_column};

use crate::log::Block;
use actions::Actions;
use bins::Bins;
use group::Group;
use segments::Columns;

/// Spans of time that are held; when they are full, neighbours are merged.
const SPANS: usize = 32;
/// Rounds of a span to begin with.
const FIRST_SPAN: u64 = 16;
/// Groups of predicted rewards.
const PREDICTED: usize = 10;

/// What lies behind the numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Detail {
    /// That an interval holds what it should: each for itself.
    pub confidence: f64,
    /// The actions, those that the policy wants most first.
    pub actions: Vec<Coverage>,
    /// The share of the policy's choices that this log has no name for.
    pub unknown_actions: f64,
    /// Predicted and real rewards of the logged actions, by prediction.
    pub calibration: Vec<Calibrated>,
    /// The log from its first round to its last.
    pub time: Vec<Span>,
    /// The columns that were asked for.
    pub segments: Vec<Segmented>,
}

/// Rounds with similar predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Rounds.
    pub rounds: u64,
    /// The mean prediction.
    pub predicted: f64,
    /// The mean reward.
    pub reward: Mean,
}

/// Some rounds that follow each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The number of the first, from 0.
    pub first: u64,
    /// What they say.
    #[serde(flatten)]
    pub group: GroupReport,
}

/// Sums on the way.
#[derive(Debug)]
pub struct DetailSums {
    actions: Actions,
    calibration: Bins,
    length: u64,
    spans: Vec<Group>,
    columns: Columns,
}

impl DetailSums {
    /// Sums over rounds whose features have these names, by segment of some of them. A name that is not among them is
    /// left out: ask [`unknown_column`] before.
    pub fn new<'a>(features: impl IntoIterator<Item = &'a str>, segments: &[String]) -> DetailSums {
        DetailSums {
            actions: Actions::default(),
            calibration: Bins::default(),
            length: FIRST_SPAN,
            spans: Vec::new(),
            columns: Columns::new(features, segments),
        }
    }

    /// Adds the rounds of a block.
    pub fn add(&mut self, block: &Block, rounds: &[Round]) {
        for round in rounds {
            self.add_in_time(round);
            if let Some(q) = round.predicted {
                self.calibration.add(q, [q, 1.0, 0.0, round.reward], round.times);
            }
        }
        if let Some(chosen) = &block.chosen {
            self.actions.add(chosen, rounds);
        }
        self.columns.add(block, rounds);
    }

    /// Notes that the policy plays an action in a round with this probability; `None` is an action that the log does
    /// not know.
    pub fn wants(&mut self, action: Option<&str>, probability: f64) {
        self.actions.wants(action, probability);
    }

    fn add_in_time(&mut self, round: &Round) {
        if self.spans.last().is_none_or(|span| span.rounds >= self.length) {
            if self.spans.len() == SPANS {
                let pairs = std::mem::take(&mut self.spans);
                for pair in pairs.chunks(2) {
                    let mut both = pair[0].clone();
                    pair[1..].iter().for_each(|second| both.merge(second));
                    self.spans.push(both);
                }
                self.length *= 2;
            }
            self.spans.push(Group::default());
        }
        if let Some(span) = self.spans.last_mut() {
            span.add(round.terms, round.times);
        }
    }

    /// What the rounds say, with intervals of this confidence.
    pub fn detail(&self, confidence: f64) -> Detail {
        let z = quantile(0.5 * (1.0 - confidence));
        let mut first = 0;
        let span = |span: &Group| {
            first += span.rounds;
            Span { first: first - span.rounds, group: span.report(z) }
        };
        let calibrated = |group: GroupReport| {
            let (predicted, reward) = (group.value?.value, group.reference?);
            Some(Calibrated { rounds: group.rounds, predicted, reward })
        };
        Detail {
            confidence,
            actions: self.actions.reports(),
            unknown_actions: self.actions.unknown_share(),
            calibration: self
                .calibration
                .parts(PREDICTED)
                .iter()
                .filter_map(|p| calibrated(p.group.report(z)))
                .collect(),
            time: self.spans.iter().map(span).collect(),
            segments: self.columns.reports(confidence),
        }
    }
}

/// The number that a standard normal variable exceeds with this probability.
fn quantile(tail: f64) -> f64 {
    -Normal::standard().inverse_cdf(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Categories, Offered, Place, Values};

    fn block(n: usize) -> Block {
        let words = |of: &dyn Fn(usize) -> u32, names: &[&str]| Categories {
            codes: (0..n).map(of).collect(),
            names: names.iter().map(|name| name.to_string()).collect(),
        };
        Block {
            places: vec![Place { file: 0, line: 1 }; n],
            shared: vec![
                Values::Categories(words(
                    &|t| if t % 4 == 3 { Categories::ABSENT } else { t as u32 % 2 },
                    &["new", "old"],
                )),
                Values::Numbers((0..n).map(|t| if t == 0 { f64::NAN } else { (t % 100) as f64 }).collect()),
            ],
            offered: Offered::All,
            chosen: Some(words(&|t| t as u32 % 3, &["a", "b", "c"])),
            rewards: Some((0..n).map(|t| f64::from(u8::from(t % 2 == 0))).collect()),
            propensities: None,
            counts: None,
            extra: Vec::new(),
        }
    }

    fn rounds(n: usize) -> Vec<Round> {
        // plays `b` always: weight 3 where it was played
        let sample = |t: usize| {
            let weight = if t % 3 == 1 { 3.0 } else { 0.0 };
            Sample::new(weight, f64::from(u8::from(t.is_multiple_of(2)))).with_model((t % 20) as f64 / 20.0, 0.5)
        };
        (0..n).map(|t| Round::from(&sample(t))).collect()
    }

    use neuralcb::ope::Sample;

    #[test]
    fn every_part_counts_every_round() {
        let n = 3000;
        let mut sums = DetailSums::new(["who", "age"], &["age".to_owned(), "who".to_owned()]);
        sums.add(&block(n), &rounds(n));
        (0..n).for_each(|_| sums.wants(Some("b"), 1.0));
        let detail = sums.detail(0.95);
        assert_eq!(detail.time.iter().map(|span| span.group.rounds).sum::<u64>(), n as u64);
        assert!(detail.time.len() <= SPANS && detail.time.len() > SPANS / 2);
        assert_eq!(detail.time[1].first, detail.time[0].group.rounds);
        assert_eq!(detail.calibration.iter().map(|bin| bin.rounds).sum::<u64>(), n as u64);
        assert_eq!(detail.calibration.len(), PREDICTED);
        for segmented in &detail.segments {
            let counted: u64 = segmented.segments.iter().map(|segment| segment.group.rounds).sum();
            assert_eq!(counted, n as u64, "{}", segmented.column);
        }
        let [age, who] = &detail.segments[..] else { panic!("two columns") };
        assert_eq!((age.column.as_str(), age.segments.len()), ("age", 6));
        let names: Vec<&str> = who.segments.iter().map(|segment| segment.name.as_str()).collect();
        assert_eq!(names, ["new", "old", "(missing)"]);
        let b = &detail.actions[0];
        assert_eq!((b.name.as_str(), b.rounds, b.agreeing, b.wanted), ("b", 1000, 1000, Some(1.0)));
        assert_eq!((b.ess, detail.unknown_actions), (1000.0, 0.0));
    }

    #[test]
    fn a_column_that_the_log_lacks_is_named() {
        let asked = ["age".to_owned(), "agee".to_owned()];
        assert_eq!(unknown_column(["who", "age"], &asked), Some("agee"));
        assert_eq!(unknown_column(["who", "age"], &asked[..1]), None);
    }
}
