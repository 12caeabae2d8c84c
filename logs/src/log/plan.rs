//! Which columns of a file are read, and how.

use super::json_rounds::Names;
use super::json_rows::json_names;
use super::options::{Format, LogOptions, Missing, Need, Want};
use super::schema::{Feature, Kind, Schema};
use super::table::{Column, How, Part};

/// The columns to read: roles first, then features, then what else was asked for.
#[derive(Debug)]
pub(crate) struct Plan {
    pub columns: Vec<Column>,
    pub want: Want,
    pub missing: Missing,
    pub long: bool,
    /// Columns that are left out on purpose.
    pub ignored: Vec<String>,
    /// Keys of rounds in JSON.
    pub names: Names,
    /// The only position to read, of the Open Bandit Dataset.
    pub position: Option<u32>,
    /// What the user has said of the log.
    pub options: LogOptions,
}

impl Plan {
    /// Reads the features of `schema` and those of its roles that are wanted.
    pub fn new(schema: &Schema, options: &LogOptions, want: Want) -> Plan {
        let roles = &schema.roles;
        let nested = schema.is_nested();
        let mut columns = Vec::new();
        let mut add = |name: &Option<String>, part, how, wanted: bool| {
            if let Some(name) = name.as_ref().filter(|_| wanted) {
                columns.push(Column { name: name.clone(), part, how });
            }
        };
        let long = roles.round.is_some() || nested;
        if nested {
            // A line is a round: its rows are told apart and marked by the reader, whatever the keys are called.
            for (name, part, how) in [
                ("line", Part::Round, How::Text),
                ("actions", Part::Action, How::Text),
                ("chosen", Part::Chosen, How::Truth),
            ] {
                add(&Some(name.to_string()), part, how, want.outcome || part != Part::Chosen);
            }
        } else {
            add(&roles.round, Part::Round, How::Text, true);
            add(&roles.action, Part::Action, How::Text, want.outcome || long);
            add(&roles.chosen, Part::Chosen, How::Truth, want.outcome);
        }
        add(&roles.reward, Part::Reward, How::Outcome, want.outcome);
        add(&roles.propensity, Part::Propensity, How::Number, want.outcome && want.propensity != Need::None);
        add(&roles.eligible, Part::Eligible, How::List, !long);
        add(&Some("pdrop".to_string()), Part::Count, How::Number, schema.format == Format::Dsjson);
        if options.position.is_some() {
            add(&Some("position".to_string()), Part::Position, How::Number, true);
        }
        for (features, part) in [(&schema.shared, Part::Shared), (&schema.per_action, Part::PerAction)] {
            columns.extend(features.iter().map(|Feature { name, kind }| Column {
                name: name.clone(),
                part,
                how: match kind {
                    Kind::Number => How::Number,
                    Kind::Boolean => How::Truth,
                    Kind::Category => How::Text,
                },
            }));
        }
        columns.extend(options.extra.iter().map(|name| Column {
            name: name.clone(),
            part: Part::Extra,
            how: How::Number,
        }));
        let names = json_names(&options.roles, Some(roles));
        let ignored = schema.ignored.iter().map(|column| column.name.clone()).collect();
        Plan {
            columns,
            ignored,
            want,
            names,
            missing: schema.missing,
            long,
            position: options.position,
            options: options.clone(),
        }
    }

    /// The place of the column with a role, if it is read.
    pub fn place(&self, part: Part) -> Option<usize> {
        self.columns.iter().position(|column| column.part == part)
    }
}
