//! Rows of a table, checked and put into rounds.
//!
//! In a flat table a row is a round. In a long table the rows of a round follow each other, one for each action that
//! it offered; reward and propensity stand in the row of the action that was chosen. What is wrong with a row is wrong
//! with its round.

use super::block::{Block, Categories, Offered, Place, Values};
use super::error::Problem;
use super::options::Missing;
use super::plan::Plan;
use super::table::{Cells, Part, Table, Words};

/// A block of the good rounds, and what is wrong with the others.
pub(crate) type Rounds = (Block, Vec<(Place, Problem)>);

fn problem(plan: &Plan, column: usize, want: &'static str, got: String) -> Problem {
    cured(plan, column, want, got, "")
}

fn cured(plan: &Plan, column: usize, want: &'static str, got: String, cure: &'static str) -> Problem {
    Problem::Value { column: Some(plan.columns[column].name.clone()), want, got, cure }
}

fn written(value: f64) -> String {
    if value.is_nan() { String::new() } else { value.to_string() }
}

/// Checks the features and further numbers of all rows.
fn check_features(table: &Table, plan: &Plan, bad: &mut Vec<(usize, Problem)>) {
    for (i, column) in plan.columns.iter().enumerate() {
        let may_lack = match column.part {
            Part::Shared | Part::PerAction => plan.missing == Missing::Mean,
            Part::Extra => false,
            _ => continue,
        };
        let cells = table.columns[i].numbers();
        let good = |v: f64| v.abs() <= f64::from(f32::MAX) || (v.is_nan() && may_lack);
        if cells.iter().all(|&v| good(v)) {
            continue;
        }
        for (row, &v) in cells.iter().enumerate().filter(|(_, v)| !good(**v)) {
            bad.push(match (v.is_nan(), column.part) {
                (true, Part::Extra) => (row, problem(plan, i, "a number", String::new())),
                (true, _) => {
                    let cure = "fill it in, or take the mean of the column by `missing = \"mean\"` (--fill-missing)";
                    (row, cured(plan, i, "a number", String::new(), cure))
                }
                _ => (row, problem(plan, i, "a finite number, at most 3.4e38 in size", written(v))),
            });
        }
    }
}

/// Checks what came of the choice, in the rows where it stands.
fn check_outcome(table: &Table, plan: &Plan, rows: impl Iterator<Item = usize>, bad: &mut Vec<(usize, Problem)>) {
    let column = |part| plan.place(part).map(|i| (i, table.columns[i].numbers()));
    let (rewards, propensities) = (column(Part::Reward), column(Part::Propensity));
    for row in rows {
        if let Some((i, values)) = rewards
            && !values[row].is_finite()
        {
            bad.push((row, problem(plan, i, "a finite number", written(values[row]))));
        }
        if let Some((i, values)) = propensities
            && !(values[row] > 0.0 && values[row] <= 1.0)
        {
            let (want, cure) =
                ("a probability above 0 and at most 1", "correct it, or leave the column out of `propensity`");
            bad.push((row, cured(plan, i, want, written(values[row]), cure)));
        }
    }
}

/// One problem for each bad row, in the order of rows; what could not be read comes first.
fn sorted(mut bad: Vec<(usize, Problem)>) -> Vec<(usize, Problem)> {
    bad.sort_by_key(|(row, _)| *row);
    bad.dedup_by_key(|(row, _)| *row);
    bad
}

fn words(table: &Table, place: Option<usize>) -> Option<&Words> {
    match &table.columns[place?] {
        Cells::Words(words) => Some(words),
        _ => None,
    }
}

/// Puts the rows of a flat table into rounds.
pub(crate) fn flat(mut table: Table, plan: &Plan) -> Rounds {
    if let (Some(position), Some(i)) = (plan.position, plan.place(Part::Position)) {
        table = table.select(&plan.columns, |row| table.columns[i].numbers()[row] == f64::from(position));
    }
    let mut bad = std::mem::take(&mut table.bad);
    check_features(&table, plan, &mut bad);
    let action = plan.place(Part::Action);
    if plan.want.outcome {
        if let Some((i, words)) = action.zip(words(&table, action)) {
            let absent = (0..table.n_rows()).filter(|&row| words.codes[row] == Categories::ABSENT);
            bad.extend(absent.map(|row| (row, problem(plan, i, "the name or number of an action", String::new()))));
        }
        check_outcome(&table, plan, 0..table.n_rows(), &mut bad);
    }
    if let Some(i) = plan.place(Part::Eligible) {
        check_eligible(&table, plan, i, &mut bad);
    }
    let bad = sorted(bad);
    let report = bad.iter().map(|(row, problem)| (table.places[*row], problem.clone())).collect();
    if !bad.is_empty() {
        table = table.select(&plan.columns, |row| bad.binary_search_by_key(&row, |(at, _)| *at).is_err());
    }
    let mut block = empty(table.places);
    for (cells, column) in table.columns.into_iter().zip(&plan.columns) {
        match (column.part, cells) {
            (Part::Action, Cells::Words(words)) => block.chosen = Some(words.into_categories()),
            (Part::Reward, Cells::Numbers(rewards)) => block.rewards = Some(rewards),
            (Part::Propensity, Cells::Numbers(propensities)) => block.propensities = Some(propensities),
            (Part::Extra, Cells::Numbers(numbers)) => block.extra.push(numbers),
            (Part::Shared, cells) => block.shared.push(cells.into_values()),
            (Part::Eligible, Cells::Lists { offsets, words }) => {
                block.offered = Offered::Listed { offsets, actions: words.into_categories(), features: Vec::new() };
            }
            _ => {}
        }
    }
    (block, report)
}

/// Lists of eligible actions must not be empty, name no action twice, and hold the one that was chosen.
fn check_eligible(table: &Table, plan: &Plan, i: usize, bad: &mut Vec<(usize, Problem)>) {
    let Cells::Lists { offsets, words: listed } = &table.columns[i] else { return };
    let chosen = words(table, plan.place(Part::Action));
    for row in 0..table.n_rows() {
        let offered: Vec<&str> = (offsets[row]..offsets[row + 1]).filter_map(|k| listed.get(k)).collect();
        let mut ordered = offered.clone();
        ordered.sort_unstable();
        if offered.len() < offsets[row + 1] - offsets[row] {
            bad.push((row, problem(plan, i, "a list of names or numbers", "null".to_string())));
        } else if offered.is_empty() {
            bad.push((row, problem(plan, i, "a list of at least one action", String::new())));
        } else if let Some(twice) = ordered.windows(2).find(|pair| pair[0] == pair[1]) {
            bad.push((row, problem(plan, i, "a list that names each action once", twice[0].to_string())));
        } else if let Some(name) = chosen.and_then(|chosen| chosen.get(row))
            && !offered.contains(&name)
        {
            let column = plan.place(Part::Action).unwrap_or(i);
            bad.push((row, problem(plan, column, "one of the eligible actions", name.to_string())));
        }
    }
}

fn empty(places: Vec<Place>) -> Block {
    Block {
        places,
        shared: Vec::new(),
        offered: Offered::All,
        chosen: None,
        rewards: None,
        propensities: None,
        counts: None,
        extra: Vec::new(),
    }
}

/// Where rounds begin in a long table, and one entry more: the number of rows.
pub(crate) fn boundaries(table: &Table, plan: &Plan) -> Vec<usize> {
    let rounds = words(table, plan.place(Part::Round)).map_or(&[][..], |words| &words.codes);
    let begins =
        |row: usize| row == 0 || rounds[row] != rounds[row - 1] || table.places[row].file != table.places[row - 1].file;
    let mut starts: Vec<usize> = (0..table.n_rows()).filter(|&row| begins(row)).collect();
    starts.push(table.n_rows());
    starts
}

/// Puts the rows of a long table into rounds. The table holds whole rounds.
pub(crate) fn long(mut table: Table, plan: &Plan) -> Rounds {
    let mut bad = std::mem::take(&mut table.bad);
    check_features(&table, plan, &mut bad);
    let starts = boundaries(&table, plan);
    check_long(&table, plan, &starts, &mut bad);
    // A round is reported once, by its first bad row.
    let round_of = |row: usize| starts.partition_point(|&start| start <= row) - 1;
    let mut bad = sorted(bad);
    bad.dedup_by_key(|(row, _)| round_of(*row));
    let report = bad.iter().map(|(row, problem)| (table.places[*row], problem.clone())).collect();
    let mut starts = starts.clone();
    if !bad.is_empty() {
        let bad: Vec<usize> = bad.iter().map(|(row, _)| round_of(*row)).collect();
        let kept = table.select(&plan.columns, |row| bad.binary_search(&round_of(row)).is_err());
        let mut shifted = vec![0];
        for (round, pair) in starts.windows(2).enumerate() {
            if bad.binary_search(&round).is_err() {
                shifted.push(shifted[shifted.len() - 1] + pair[1] - pair[0]);
            }
        }
        (table, starts) = (kept, shifted);
    }
    (long_block(table, plan, starts), report)
}

fn check_long(table: &Table, plan: &Plan, starts: &[usize], bad: &mut Vec<(usize, Problem)>) {
    let named = plan.place(Part::Action).zip(words(table, plan.place(Part::Action)));
    let rounds = plan.place(Part::Round).zip(words(table, plan.place(Part::Round)));
    let (mut last_seen, mut outcomes): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let choice = plan.place(Part::Chosen).filter(|_| plan.want.outcome);
    for (round, pair) in starts.windows(2).enumerate() {
        let rows = pair[0]..pair[1];
        if let Some((i, words)) = rounds
            && words.codes[rows.start] == Categories::ABSENT
        {
            bad.push((rows.start, problem(plan, i, "the name or number of a round", String::new())));
        }
        if let Some((i, words)) = named {
            for row in rows.clone() {
                let code = words.codes[row];
                if code == Categories::ABSENT {
                    bad.push((row, problem(plan, i, "the name or number of an action", String::new())));
                    continue;
                }
                last_seen.resize(last_seen.len().max(code as usize + 1), usize::MAX);
                if std::mem::replace(&mut last_seen[code as usize], round) == round {
                    let name = words.get(row).unwrap_or_default().to_string();
                    bad.push((row, problem(plan, i, "an action that its round has not yet named", name)));
                }
            }
        }
        if let Some(i) = choice {
            let chosen: Vec<usize> = rows.clone().filter(|&row| table.columns[i].numbers()[row] == 1.0).collect();
            match chosen[..] {
                [row] => outcomes.push(row),
                _ => {
                    let got = format!("{} of {} rows", chosen.len(), rows.len());
                    bad.push((rows.start, problem(plan, i, "1 in exactly one row of the round", got)));
                }
            }
        }
    }
    check_outcome(table, plan, outcomes.into_iter(), bad);
}

fn long_block(table: Table, plan: &Plan, starts: Vec<usize>) -> Block {
    let firsts = &starts[..starts.len() - 1];
    let mut block = empty(firsts.iter().map(|&row| table.places[row]).collect());
    let chosen: Option<Vec<usize>> = plan.place(Part::Chosen).filter(|_| plan.want.outcome).map(|i| {
        let marks = table.columns[i].numbers();
        (0..table.n_rows()).filter(|&row| marks[row] == 1.0).collect()
    });
    let at = |rows: &[usize], numbers: &[f64]| -> Vec<f64> { rows.iter().map(|&row| numbers[row]).collect() };
    let outcome = chosen.as_deref().unwrap_or(firsts);
    let mut actions = Categories::default();
    let mut features = Vec::new();
    for (cells, column) in table.columns.into_iter().zip(&plan.columns) {
        match (column.part, cells) {
            (Part::Action, Cells::Words(words)) => {
                actions = words.into_categories();
                block.chosen = chosen.as_ref().map(|rows| Categories {
                    codes: rows.iter().map(|&row| actions.codes[row]).collect(),
                    names: actions.names.clone(),
                });
            }
            (Part::Reward, Cells::Numbers(rewards)) => block.rewards = Some(at(outcome, &rewards)),
            (Part::Count, Cells::Numbers(counts)) => {
                let counts = at(firsts, &counts);
                block.counts = counts.iter().any(|&count| count != 1.0).then_some(counts);
            }
            (Part::Propensity, Cells::Numbers(p)) => block.propensities = Some(at(outcome, &p)),
            (Part::Extra, Cells::Numbers(numbers)) => block.extra.push(at(outcome, &numbers)),
            (Part::Shared, Cells::Numbers(numbers)) => block.shared.push(Values::Numbers(at(firsts, &numbers))),
            (Part::Shared, Cells::Words(words)) => {
                let all = words.into_categories();
                let codes = firsts.iter().map(|&row| all.codes[row]).collect();
                block.shared.push(Values::Categories(Categories { codes, names: all.names }));
            }
            (Part::PerAction, cells) => features.push(cells.into_values()),
            _ => {}
        }
    }
    block.offered = Offered::Listed { offsets: starts, actions, features };
    block
}
