//! Rounds in JSON, each with its own actions, as the rows of a long table: one for each action of a line.
//!
//! The parsers of [`json_rounds`] and [`dsjson`] tell what a line means; here it is put into columns. Actions without a
//! name are called by their place in the line, from 0.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::ahead::{Ahead, Parse};
use super::block::Place;
use super::dsjson;
use super::error::{LogError, Problem};
use super::infer::Sample;
use super::json_lines::{Seen, problem_of, push_value, see};
use super::json_round::{JsonRound, RowProblem, Value};
use super::json_rounds::{self, Names};
use super::options::{Format, Roles};
use super::pieces::{Ends, Piece, Pieces};
use super::plan::Plan;
use super::schema::Schema;
use super::sources::Source;
use super::table::{Cells, Column, Part, Table};

/// The keys that a user has named, or that a policy's log had; accepted names need not be said.
pub(crate) fn json_names(named: &Roles, trained: Option<&Roles>) -> Names {
    let trained = trained.map(Schema::unusual).unwrap_or_default();
    let pick = |named: &Option<String>, trained: Option<String>| named.clone().or(trained);
    Names {
        chosen: pick(&named.action, trained.action),
        reward: pick(&named.reward, trained.reward),
        propensity: pick(&named.propensity, trained.propensity),
    }
}

/// What makes of the rounds of a text a table.
pub(crate) struct JsonRows {
    file: u32,
    format: Format,
    names: Names,
    rows: RoundRows,
}

/// Puts rounds into columns.
pub(crate) struct RoundRows {
    columns: Vec<Column>,
    shared: HashMap<String, Option<usize>>,
    per_action: HashMap<String, Option<usize>>,
}

fn parse(format: Format, names: &Names, line: &[u8]) -> Result<Option<JsonRound>, RowProblem> {
    match format {
        Format::Dsjson => dsjson::parse(line),
        _ => json_rounds::parse_with(line, names).map(Some),
    }
}

/// What the first lines hold.
#[derive(Default)]
pub(crate) struct RoundSample {
    pub shared: Sample,
    pub per_action: Sample,
    /// Whether any round tells its propensity.
    pub propensity: bool,
}

impl RoundSample {
    /// Adds the first lines of a further file.
    pub fn merge(&mut self, other: RoundSample) {
        self.shared.merge(other.shared);
        self.per_action.merge(other.per_action);
        self.propensity |= other.propensity;
    }
}

impl JsonRows {
    pub fn open(
        source: &Source,
        file: u32,
        format: Format,
        plan: &Plan,
        read: Arc<AtomicU64>,
    ) -> Result<Ahead<JsonRows>, LogError> {
        let (names, pieces) = (plan.names.clone(), Pieces::open(source, Ends::Lines, plan.columns.len(), read)?);
        Ok(Ahead::new(pieces, JsonRows { file, format, names, rows: RoundRows::new(plan) }))
    }

    /// The features of rounds and of actions in the first lines.
    pub fn sample(source: &Source, format: Format, names: &Names, rows: usize) -> Result<RoundSample, LogError> {
        let mut pieces = Pieces::open(source, Ends::Lines, 0, Arc::default())?;
        let (mut shared, mut per_action, mut propensity) = (Seen::default(), Seen::default(), false);
        let mut first = None;
        while shared.sample.rows < rows
            && let Some(piece) = pieces.next()?
        {
            for (line, text) in piece.lines() {
                let round = match parse(format, names, text) {
                    Ok(Some(round)) => round,
                    Ok(None) => continue,
                    Err(problem) => {
                        first = first.or(Some((line, problem)));
                        continue;
                    }
                };
                shared.sample.rows += 1;
                per_action.sample.rows += round.actions.len();
                propensity |= round.propensity.is_some();
                round.shared.iter().for_each(|(name, value)| see(shared.column(name), value));
                for (name, value) in round.actions.iter().flat_map(|action| &action.features) {
                    see(per_action.column(name), value);
                }
                shared.check(source)?;
                per_action.check(source)?;
                if shared.sample.rows == rows {
                    break;
                }
            }
        }
        match first {
            Some((line, problem)) if shared.sample.rows == 0 => Err(problem_of(source, line, problem)),
            _ => Ok(RoundSample { shared: shared.sample, per_action: per_action.sample, propensity }),
        }
    }
}

impl RoundRows {
    pub fn new(plan: &Plan) -> RoundRows {
        // What is left out on purpose is known, and has no column.
        let index = |part: Part| {
            let columns = plan.columns.iter().enumerate().filter(|(_, column)| column.part == part);
            let ignored = plan.ignored.iter().map(|name| (name.clone(), None));
            ignored.chain(columns.map(|(i, column)| (column.name.clone(), Some(i)))).collect()
        };
        RoundRows { columns: plan.columns.clone(), shared: index(Part::Shared), per_action: index(Part::PerAction) }
    }

    /// Adds the features of one row; those that the schema does not know are counted.
    fn push_features(
        index: &HashMap<String, Option<usize>>,
        columns: &[Column],
        features: &[(String, Value)],
        filled: &mut [bool],
        table: &mut Table,
    ) -> Option<Problem> {
        let mut problem = None;
        for (name, value) in features {
            match index.get(name) {
                Some(&Some(i)) => {
                    filled[i] = true;
                    problem = problem.or(push_value(&mut table.columns[i], &columns[i], value).err());
                }
                Some(None) => {}
                None if name.starts_with('_') => {}
                None => table.unknown += 1,
            }
        }
        problem
    }

    /// Adds the rows of a round.
    pub fn push(&self, place: Place, round: &JsonRound, table: &mut Table) {
        for (a, action) in round.actions.iter().enumerate() {
            let row = table.n_rows();
            table.places.push(place);
            let mut filled = vec![false; self.columns.len()];
            let chosen = round.chosen == Some(a);
            let number = |value: Option<f64>| value.filter(|_| chosen).unwrap_or(f64::NAN);
            for (i, column) in self.columns.iter().enumerate() {
                filled[i] = true;
                match (column.part, &mut table.columns[i]) {
                    (Part::Round, Cells::Words(words)) => words.push(&place.line.to_string()),
                    (Part::Action, Cells::Words(words)) => match &action.name {
                        Some(name) => words.push(name),
                        None => words.push(&a.to_string()),
                    },
                    (Part::Chosen, Cells::Numbers(to)) => to.push(f64::from(u8::from(chosen))),
                    (Part::Reward, Cells::Numbers(to)) => to.push(number(round.reward)),
                    (Part::Propensity, Cells::Numbers(to)) => to.push(number(round.propensity)),
                    (Part::Count, Cells::Numbers(to)) => to.push(round.count),
                    _ => filled[i] = false,
                }
            }
            let unknown = table.unknown;
            let shared = Self::push_features(&self.shared, &self.columns, &round.shared, &mut filled, table);
            // The round's own values come once, however many actions it has.
            table.unknown = if a == 0 { table.unknown } else { unknown };
            let own = Self::push_features(&self.per_action, &self.columns, &action.features, &mut filled, table);
            table.bad.extend(shared.or(own).map(|problem| (row, problem)));
            for (cells, _) in table.columns.iter_mut().zip(filled).filter(|(_, filled)| !*filled) {
                cells.push_absent();
            }
        }
    }
}

impl Parse for JsonRows {
    fn parse(&self, piece: &Piece) -> Table {
        let mut table = Table::new(&self.rows.columns);
        for (line, text) in piece.lines() {
            let place = Place { file: self.file, line };
            match parse(self.format, &self.names, text) {
                Ok(Some(round)) => self.rows.push(place, &round, &mut table),
                Ok(None) => table.not_decisions += 1,
                Err(problem) => {
                    // A round of one row, so that it is counted once.
                    table.bad.push((table.n_rows(), problem.into()));
                    table.places.push(place);
                    for (cells, column) in table.columns.iter_mut().zip(&self.rows.columns) {
                        match cells {
                            Cells::Words(words) if column.part == Part::Round => words.push(&line.to_string()),
                            _ => cells.push_absent(),
                        }
                    }
                }
            }
        }
        table
    }
}
