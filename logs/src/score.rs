//! A policy's decisions on raw records, written as they are made.
//!
//! One row per record, in the order of the input: `line` (of the input's text, or row of its table; with several files
//! also `file`), `action` (its name) and, explained, `mean:A`, `width:A`, `bound:A` of every action A, in units of the
//! reward; empty where A is not eligible. The bound is mean − β·width, and the action is the one with the largest. A
//! policy without a choice of its own (uniform) leaves `action` empty.

mod rows;
mod sinks;

use std::path::Path;

use crate::atomic;
use crate::log::{Log, ReadLog, Unseen};
use crate::policy::{Method, Policy, PolicyError, pieces};

use sinks::Sink;

pub use rows::{Explained, Rows};

/// What to write.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScoreOptions {
    /// Also mean, width and bound of every action.
    pub explain: bool,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scored {
    /// Records.
    pub rounds: u64,
    /// How often each action was chosen, in the order of the preparation's actions.
    pub chosen: Vec<u64>,
    /// What training had not seen.
    pub unseen: Unseen,
}

/// Scores a log's records into a file: `.parquet`, `.jsonl`, `.ndjson`, `.json`, otherwise CSV.
pub fn score(
    policy: &Policy,
    log: &Log,
    out: &Path,
    options: ScoreOptions,
    progress: &mut dyn FnMut(),
) -> Result<Scored, PolicyError> {
    atomic::stream(out, |to| {
        let mut sink = Sink::new(out, to, policy, log.names(), options)?;
        let mut scored = Scored { chosen: vec![0; policy.preparation().actions().len()], ..Scored::default() };
        for block in log.blocks() {
            progress();
            let block = block?;
            let preparation = policy.preparation();
            let all = preparation.contexts(&block)?;
            scored.unseen += preparation.unseen(&block);
            scored.rounds += block.n_rounds() as u64;
            for rounds in pieces(&all) {
                let (first, contexts) = (rounds.start, &all.slice(rounds));
                let (block, decisions) = (&block, &policy.decide(contexts)?);
                let rows = Rows { preparation, block, first, contexts, decisions, beta: policy.beta() };
                (0..rows.len()).filter_map(|t| rows.action(t)).for_each(|action| scored.chosen[action] += 1);
                sink.write(&rows)?;
            }
        }
        sink.finish()?;
        Ok(scored)
    })
}

/// Rounds that are looked at for [`monotony`].
const FIRST: usize = 1000;

/// What to beware of in what a model decides on its log: the same action in every round, though rounds offer others.
pub fn monotony(policy: &Policy, log: &dyn ReadLog) -> Result<Option<String>, PolicyError> {
    let first = match &policy.description().method {
        Method::Model { .. } => log.read().next().transpose()?,
        _ => None,
    };
    let Some(block) = &first else { return Ok(None) };
    let preparation = policy.preparation();
    let all = preparation.contexts(block)?;
    let n = pieces(&all).next().map_or(0, |rounds| rounds.len().min(FIRST));
    let contexts = &all.slice(0..n);
    let decisions = &policy.decide(contexts)?;
    let rows = Rows { preparation, block, first: 0, contexts, decisions, beta: policy.beta() };
    let mut names = (0..n).filter(|&t| contexts.pairs(t).len() > 1).filter_map(|t| rows.name(t));
    let Some(name) = names.next() else { return Ok(None) };
    Ok((n > 1 && names.all(|other| other == name)).then(|| {
        format!(
            "the policy plays `{name}` in each of the first {n} rounds of the log: it is the best in all of them, or \
             nothing was learned (try a smaller --lr of a network, or a smaller --beta)"
        )
    }))
}
