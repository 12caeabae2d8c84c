//! Applying a preparation to a block: rows of f32 for a model.

use std::ops::{AddAssign, Range};

use neuralcb::{Column, Contexts, Eligible, Encoding, Error, LoggedData};
use rayon::prelude::*;
use serde::Serialize;

use super::{Encoder, Preparation, all_integers, find_action};
use crate::log::block::{Block, Categories, Offered, Place, Values};
use crate::log::error::LogError;

/// Rows that are made together: few enough to stay in a core's cache.
const CHUNK: usize = 256;

/// The place of a word that is not known, and the number of an action that is not.
const UNKNOWN: u32 = u32::MAX;

/// What a block holds that the training log did not. Counts of several blocks are added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// Words of categories; each is all zeros to the model.
    pub categories: u64,
    /// Actions that were offered. Without features of their own they are left out.
    pub offered: u64,
    /// Actions that were chosen.
    pub chosen: u64,
}

impl Unseen {
    /// One line that says what was there and what became of it; none where nothing was.
    pub fn warning(&self) -> Option<String> {
        let part = |count: u64, what| (count > 0).then(|| format!("{count} {what}"));
        let parts: Vec<String> = [
            part(self.categories, "values are words that training has not seen (they count as absent)"),
            part(self.offered, "offered actions are unknown to the policy"),
            part(self.chosen, "logged actions are unknown to the policy (it never plays them)"),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl AddAssign for Unseen {
    fn add_assign(&mut self, other: Unseen) {
        self.categories += other.categories;
        self.offered += other.offered;
        self.chosen += other.chosen;
    }
}

/// Features of a block together with how they become numbers.
struct Encoded<'a> {
    values: &'a Values,
    encoder: &'a Encoder,
    /// First place in a row.
    at: usize,
    /// The place of each of the block's words; empty for numbers.
    places: Vec<u32>,
}

/// The pairs of a block in the order of contexts: rounds in theirs, actions rising.
struct Pairs {
    offsets: Vec<usize>,
    /// The action of each pair.
    actions: Vec<u32>,
    /// The block's own number of each pair.
    from: Vec<usize>,
}

impl Preparation {
    /// The contexts of a block, prepared.
    pub fn contexts(&self, block: &Block) -> Result<Contexts, LogError> {
        let pairs = self.pairs(block)?;
        self.contexts_of(block, pairs.as_ref())
    }

    /// The rounds of a block, prepared, with what came of them.
    pub fn logged(&self, block: &Block) -> Result<LoggedData, LogError> {
        let (Some(chosen), Some(rewards)) = (&block.chosen, &block.rewards) else {
            return Err(LogError::NotRead { what: "actions and rewards" });
        };
        let pairs = self.pairs(block)?;
        let contexts = self.contexts_of(block, pairs.as_ref())?;
        let known = self.known(chosen);
        let mut actions = Vec::with_capacity(chosen.codes.len());
        for (round, &code) in chosen.codes.iter().enumerate() {
            let action = match known.get(code as usize) {
                Some(&UNKNOWN) | None => self.stand_in(block, pairs.as_ref(), round),
                Some(&action) => Some(action),
            };
            actions.push(action.ok_or_else(|| LogError::UnknownAction {
                place: block.places[round],
                name: chosen.get(round).unwrap_or_default().to_string(),
            })?);
        }
        Ok(LoggedData::new(contexts, actions, rewards.clone(), block.propensities.clone())?)
    }

    /// What the block holds that the training log did not.
    pub fn unseen(&self, block: &Block) -> Unseen {
        let mut unseen = Unseen::default();
        let of_actions: &[Values] = match &block.offered {
            Offered::Listed { features, .. } => features,
            Offered::All => &[],
        };
        let features = block.shared.iter().zip(&self.shared).chain(of_actions.iter().zip(&self.per_action));
        for (values, encoder) in features {
            if let (Values::Categories(categories), Encoder::Category { words }) = (values, encoder) {
                unseen.categories += count_unknown(categories, &word_places(categories, words));
            }
        }
        if let Offered::Listed { actions, .. } = &block.offered {
            unseen.offered = count_unknown(actions, &self.known(actions));
        }
        if let Some(chosen) = &block.chosen {
            unseen.chosen = count_unknown(chosen, &self.known(chosen));
        }
        unseen
    }

    /// The name of an action in a round of a block: also of one that training has not seen.
    pub fn action_name<'a>(&'a self, block: &'a Block, round: usize, action: usize) -> &'a str {
        let known = self.actions.get(action).map(String::as_str).unwrap_or_default();
        let Offered::Listed { offsets, actions, .. } = &block.offered else { return known };
        let rows = offsets[round]..offsets[round + 1];
        if rows.clone().any(|i| actions.get(i) == Some(known)) {
            return known;
        }
        let numeric = all_integers(&self.actions);
        let named: Vec<u32> = rows
            .clone()
            .map(|i| actions.get(i).and_then(|name| find_action(&self.actions, numeric, name)))
            .map(|found| found.map_or(UNKNOWN, |action| action as u32))
            .collect();
        let assigned = with_stand_ins(&named);
        let place = assigned.iter().position(|&stand_in| stand_in as usize == action);
        place.and_then(|place| actions.get(rows.start + place)).unwrap_or(known)
    }

    /// The numbers of a block's actions.
    fn known(&self, names: &Categories) -> Vec<u32> {
        let numeric = all_integers(&self.actions);
        let number = |name: &String| find_action(&self.actions, numeric, name).map_or(UNKNOWN, |action| action as u32);
        names.names.iter().map(number).collect()
    }

    /// What each round offers, by number; none where it is everything.
    ///
    /// A model of per-action contexts knows an action by its features alone, so one with a new name is given a number
    /// that its round does not use. Without features there is nothing to be said of it, and it is left out.
    fn pairs(&self, block: &Block) -> Result<Option<Pairs>, LogError> {
        let own_features = self.layout().encoding == Encoding::PerAction;
        let Offered::Listed { offsets, actions: names, .. } = &block.offered else {
            return match own_features {
                true => Err(LogError::NotRead { what: "features of the actions" }),
                false => Ok(None),
            };
        };
        let known = self.known(names);
        let mut pairs = Pairs { offsets: vec![0], actions: Vec::new(), from: Vec::new() };
        let mut offered: Vec<(u32, usize)> = Vec::new();
        for (round, ends) in offsets.windows(2).enumerate() {
            let place = block.places[round];
            offered.clear();
            offered.extend((ends[0]..ends[1]).map(|i| (known[names.codes[i] as usize], i)));
            if own_features {
                give_stand_ins(&mut offered, self.actions.len(), place)?;
            } else {
                offered.retain(|(action, _)| *action != UNKNOWN);
            }
            if offered.is_empty() {
                return Err(LogError::NothingKnown { place });
            }
            if !offered.is_sorted() {
                offered.sort_unstable();
            }
            pairs.actions.extend(offered.iter().map(|(action, _)| action));
            pairs.from.extend(offered.iter().map(|(_, from)| from));
            pairs.offsets.push(pairs.actions.len());
        }
        Ok(Some(pairs))
    }

    /// The number that stands for the chosen action of a round, whose name is new.
    fn stand_in(&self, block: &Block, pairs: Option<&Pairs>, round: usize) -> Option<u32> {
        let name = block.chosen.as_ref()?.get(round)?;
        let Offered::Listed { offsets, actions, .. } = &block.offered else { return None };
        let place = (offsets[round]..offsets[round + 1]).find(|&i| actions.get(i) == Some(name))?;
        let pairs = pairs?;
        let rows = pairs.offsets[round]..pairs.offsets[round + 1];
        rows.into_iter().find(|&row| pairs.from[row] == place).map(|row| pairs.actions[row])
    }

    fn contexts_of(&self, block: &Block, pairs: Option<&Pairs>) -> Result<Contexts, LogError> {
        let layout = self.layout();
        let (shared, per_action) = self.encoded(block)?;
        let d = layout.dim;
        let own = pairs.filter(|_| layout.encoding == Encoding::PerAction);
        let n_rows = own.map_or(block.n_rounds(), |pairs| pairs.actions.len());
        let mut x = vec![0.0f32; n_rows * d];
        x.par_chunks_mut(CHUNK * d).enumerate().for_each(|(chunk, rows)| {
            let first = chunk * CHUNK;
            let range = first..first + rows.len() / d;
            match own {
                None => {
                    shared.iter().for_each(|feature| feature.write(rows, d, range.clone(), self.config.standardise))
                }
                Some(pairs) => {
                    let rounds: Vec<usize> = rounds_of(&pairs.offsets, range.clone());
                    shared.iter().for_each(|f| f.write(rows, d, rounds.iter().copied(), self.config.standardise));
                    let from = &pairs.from[range];
                    per_action.iter().for_each(|f| f.write(rows, d, from.iter().copied(), self.config.standardise));
                }
            }
            if self.config.intercept {
                rows.chunks_exact_mut(d).for_each(|row| row[d - 1] = 1.0);
            }
            if self.config.unit_norm.unwrap_or(true) {
                rows.chunks_exact_mut(d).for_each(to_length_one);
            }
        });
        Contexts::new(layout, x, eligible(pairs, layout.n_actions)).map_err(|error| match error {
            Error::Value { round, column: Column::Feature { index, .. }, got, .. } => {
                LogError::TooFar { place: block.places[round], name: self.places().swap_remove(index), got }
            }
            error => LogError::Values(error),
        })
    }

    fn encoded<'a>(&'a self, block: &'a Block) -> Result<(Vec<Encoded<'a>>, Vec<Encoded<'a>>), LogError> {
        let of_actions: &[Values] = match &block.offered {
            Offered::Listed { features, .. } => features,
            Offered::All => &[],
        };
        if block.shared.len() != self.shared.len() || of_actions.len() != self.per_action.len() {
            return Err(LogError::NotRead { what: "features of the schema" });
        }
        let mut at = 0;
        let mut encode = |values: &'a [Values], encoders: &'a [Encoder]| {
            let pair = |(values, encoder): (&'a Values, &'a Encoder)| {
                let places = match (values, encoder) {
                    (Values::Categories(categories), Encoder::Category { words }) => word_places(categories, words),
                    _ => Vec::new(),
                };
                let encoded = Encoded { values, encoder, at, places };
                at += encoder.width();
                encoded
            };
            values.iter().zip(encoders).map(pair).collect::<Vec<_>>()
        };
        Ok((encode(&block.shared, &self.shared), encode(of_actions, &self.per_action)))
    }
}

impl Encoded<'_> {
    /// Writes this feature into rows of `d` numbers; `from` is the block's own number of each row.
    fn write(&self, rows: &mut [f32], d: usize, from: impl Iterator<Item = usize>, standardise: bool) {
        let rows = rows.chunks_exact_mut(d).zip(from);
        match (self.values, self.encoder) {
            (Values::Numbers(numbers), Encoder::Number { mean, scale }) if standardise => {
                // A constant column has scale 0 and becomes 0, and so does a value that is not there.
                for (row, i) in rows.filter(|_| *scale > 0.0) {
                    let v = numbers[i];
                    row[self.at] = if v.is_nan() { 0.0 } else { ((v - mean) / scale) as f32 };
                }
            }
            (Values::Numbers(numbers), Encoder::Number { mean, .. } | Encoder::Boolean { mean }) => {
                for (row, i) in rows {
                    row[self.at] = if numbers[i].is_nan() { *mean as f32 } else { numbers[i] as f32 };
                }
            }
            (Values::Categories(categories), _) => {
                for (row, i) in rows {
                    if let Some(&place) = self.places.get(categories.codes[i] as usize)
                        && place != UNKNOWN
                    {
                        row[self.at + place as usize] = 1.0;
                    }
                }
            }
            (Values::Numbers(_), Encoder::Category { .. }) => unreachable!("a block holds what its schema says"),
        }
    }
}

/// Gives each unknown action of a round the smallest number that the round does not use.
fn give_stand_ins(offered: &mut [(u32, usize)], n_actions: usize, place: Place) -> Result<(), LogError> {
    if offered.len() > n_actions {
        return Err(LogError::TooManyOffered { place, got: offered.len(), max: n_actions });
    }
    if offered.iter().any(|(action, _)| *action == UNKNOWN) {
        let named: Vec<u32> = offered.iter().map(|(action, _)| *action).collect();
        offered.iter_mut().zip(with_stand_ins(&named)).for_each(|((action, _), number)| *action = number);
    }
    Ok(())
}

fn with_stand_ins(named: &[u32]) -> Vec<u32> {
    let mut free = (0..).filter(|number| !named.contains(number));
    named.iter().map(|&action| if action == UNKNOWN { free.next().unwrap_or(UNKNOWN) } else { action }).collect()
}

/// The round of each pair in a range.
fn rounds_of(offsets: &[usize], pairs: Range<usize>) -> Vec<usize> {
    let mut round = offsets.partition_point(|&offset| offset <= pairs.start) - 1;
    pairs
        .map(|pair| {
            while offsets[round + 1] <= pair {
                round += 1;
            }
            round
        })
        .collect()
}

fn eligible(pairs: Option<&Pairs>, n_actions: usize) -> Eligible {
    match pairs {
        Some(Pairs { offsets, actions, .. }) if actions.len() < (offsets.len() - 1) * n_actions => {
            Eligible::Some { offsets: offsets.clone(), actions: actions.clone() }
        }
        _ => Eligible::All,
    }
}

fn word_places(categories: &Categories, words: &[String]) -> Vec<u32> {
    let place = |name: &String| words.binary_search(name).map_or(UNKNOWN, |place| place as u32);
    categories.names.iter().map(place).collect()
}

fn count_unknown(categories: &Categories, known: &[u32]) -> u64 {
    categories.codes.iter().filter(|&&code| known.get(code as usize) == Some(&UNKNOWN)).count() as u64
}

/// x / ‖x‖; a row of zeros stays.
fn to_length_one(row: &mut [f32]) {
    let norm = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    if norm > 0.0 {
        row.iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
    }
}
