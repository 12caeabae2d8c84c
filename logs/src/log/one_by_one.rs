//! Rounds that come one by one, not from a file, made into blocks for a policy.
//!
//! What is made of a round is what reading its line from a file would make of it, to the bit: the same columns, the
//! same checks.

use super::block::{Block, Place};
use super::error::Problem;
use super::json_round::JsonRound;
use super::json_rows::RoundRows;
use super::options::{Format, LogOptions, Missing, Roles, Want};
use super::plan::Plan;
use super::rounds;
use super::schema::Schema;
use super::table::Table;

/// Makes blocks of rounds for a policy that knows the features of a schema.
pub struct OneByOne {
    plan: Plan,
    rows: RoundRows,
}

impl OneByOne {
    /// Rounds for the features of `schema`; a number that is not there is refused, or becomes the mean where the schema
    /// or `missing` says so.
    pub fn new(schema: &Schema, missing: Missing) -> OneByOne {
        let missing = if schema.missing == Missing::Mean { Missing::Mean } else { missing };
        let schema = Schema { format: Format::JsonRounds, roles: Roles::default(), missing, ..schema.clone() };
        let plan = Plan::new(&schema, &LogOptions::default(), Want::CONTEXTS);
        OneByOne { rows: RoundRows::new(&plan), plan }
    }

    /// The block of some rounds, and how many values belong to features that the schema does not know. The error tells
    /// the round, from 0, and what is wrong with it.
    pub fn block(&self, rounds: &[JsonRound]) -> Result<(Block, u64), (usize, Box<Problem>)> {
        let mut table = Table::new(&self.plan.columns);
        for (i, round) in rounds.iter().enumerate() {
            self.rows.push(Place { file: 0, line: i as u64 + 1 }, round, &mut table);
        }
        let unknown = table.unknown;
        let (block, mut bad) = rounds::long(table, &self.plan);
        match bad.is_empty() {
            true => Ok((block, unknown)),
            false => {
                let (place, problem) = bad.swap_remove(0);
                Err((place.line as usize - 1, Box::new(problem)))
            }
        }
    }
}
