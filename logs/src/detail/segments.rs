//! Who gains and who loses: the difference of two policies by segment of a column.
//!
//! Numbers are cut into five parts with about equally many rounds, words stay as they are: the twelve most frequent,
//! and the rest as one. A segment gains or loses if its interval leaves 0 out even when δ is divided by the number of
//! segments of its column (Bonferroni), so that chance calls none in 1 − δ of the columns.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::bins::Bins;
use super::group::{Group, GroupReport, Round};
use super::quantile;
use crate::card::number;
use crate::log::{Block, Values};

/// Parts of a column of numbers.
const PARTS: usize = 5;
/// Words that are shown by name, and that are counted by name.
const SHOWN: usize = 12;
const KEPT: usize = 1000;

/// A column and its segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segmented {
    /// The column's name.
    pub column: String,
    /// Its segments.
    pub segments: Vec<Segment>,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// A word, or the least and the greatest number.
    pub name: String,
    /// Whether it surely gains (above 0) or loses (below 0), with regard to how many segments there are.
    pub gains: Option<bool>,
    /// What its rounds say.
    #[serde(flatten)]
    pub group: GroupReport,
}

/// The first of the asked columns that is not among the features of a round.
pub fn unknown_column<'a, 'b>(features: impl IntoIterator<Item = &'a str>, asked: &'b [String]) -> Option<&'b str> {
    let features: Vec<&str> = features.into_iter().collect();
    asked.iter().map(String::as_str).find(|name| !features.contains(name))
}

#[derive(Debug, Default)]
struct Column {
    name: String,
    place: usize,
    numbers: Bins,
    places: HashMap<String, usize>,
    words: Vec<(String, Group)>,
    rest: Group,
    missing: Group,
}

/// All columns that were asked for.
#[derive(Debug)]
pub(super) struct Columns(Vec<Column>);

impl Columns {
    pub fn new<'a>(features: impl IntoIterator<Item = &'a str>, asked: &[String]) -> Columns {
        let features: Vec<&str> = features.into_iter().collect();
        let column = |name: &String| {
            let place = features.iter().position(|feature| feature == name)?;
            Some(Column { name: name.clone(), place, ..Column::default() })
        };
        Columns(asked.iter().filter_map(column).collect())
    }

    pub fn add(&mut self, block: &Block, rounds: &[Round]) {
        for column in &mut self.0 {
            match &block.shared[column.place] {
                Values::Numbers(numbers) => {
                    for (x, round) in numbers.iter().zip(rounds) {
                        match x.is_finite() {
                            true => column.numbers.add(*x, round.terms, round.times),
                            false => column.missing.add(round.terms, round.times),
                        }
                    }
                }
                Values::Categories(words) => {
                    let places: Vec<Option<usize>> = words.names.iter().map(|name| column.word(name)).collect();
                    for (&code, round) in words.codes.iter().zip(rounds) {
                        let group = match places.get(code as usize) {
                            Some(Some(place)) => &mut column.words[*place].1,
                            Some(None) => &mut column.rest,
                            None => &mut column.missing,
                        };
                        group.add(round.terms, round.times);
                    }
                }
            }
        }
    }

    pub fn reports(&self, confidence: f64) -> Vec<Segmented> {
        self.0.iter().map(|column| column.report(confidence)).collect()
    }
}

impl Column {
    fn word(&mut self, name: &str) -> Option<usize> {
        if let Some(&place) = self.places.get(name) {
            return Some(place);
        }
        if self.words.len() == KEPT {
            return None;
        }
        self.places.insert(name.to_owned(), self.words.len());
        self.words.push((name.to_owned(), Group::default()));
        Some(self.words.len() - 1)
    }

    fn report(&self, confidence: f64) -> Segmented {
        let part = |low: f64, high: f64| {
            if low == high { number(low) } else { format!("{} to {}", number(low), number(high)) }
        };
        let mut groups: Vec<(String, Group)> =
            self.numbers.parts(PARTS).into_iter().map(|cell| (part(cell.low, cell.high), cell.group)).collect();
        let mut words: Vec<&(String, Group)> = self.words.iter().filter(|(_, group)| group.rounds > 0).collect();
        words.sort_by(|a, b| b.1.rounds.cmp(&a.1.rounds).then(a.0.cmp(&b.0)));
        groups.extend(words.iter().take(SHOWN).map(|word| (*word).clone()));
        let mut rest = self.rest.clone();
        words.iter().skip(SHOWN).for_each(|(_, group)| rest.merge(group));
        groups.push(("(all others)".to_owned(), rest));
        groups.push(("(missing)".to_owned(), self.missing.clone()));
        groups.retain(|(_, group)| group.rounds > 0);
        let tail = 0.5 * (1.0 - confidence);
        let (z, strict) = (quantile(tail), quantile(tail / groups.len().max(1) as f64));
        let segment = |(name, group): (String, Group)| {
            let surely = group.report(strict).difference.map(|difference| difference.interval);
            let gains =
                surely.and_then(|[low, high]| if low > 0.0 { Some(true) } else { (high < 0.0).then_some(false) });
            Segment { name, gains, group: group.report(z) }
        };
        Segmented { column: self.name.clone(), segments: groups.into_iter().map(segment).collect() }
    }
}
