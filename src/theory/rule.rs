//! `theory` or a number: β_t and η_t as a setting.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bound::Theorem;
use crate::net::{Optimiser, Schedule};

/// A quantity that Theorem 4.1 gives, or a number in its place; in files the word `theory` or the number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Spelling", into = "Spelling")]
pub enum Rule {
    /// As in Theorem 4.1.
    Theory,
    /// The same number in every round.
    Fixed(f64),
}

impl Rule {
    /// `theory` or a number.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "theory" { Some(Rule::Theory) } else { text.parse().ok().map(Rule::Fixed) }
    }

    /// β of the policy that has read t rounds.
    pub fn beta(self, theorem: &Theorem, t: usize) -> f64 {
        match self {
            Rule::Theory => theorem.beta(t),
            Rule::Fixed(beta) => beta,
        }
    }

    /// Algorithm 1's SGD with these steps.
    pub fn optimiser(self, theorem: &Theorem) -> Optimiser {
        match self {
            Rule::Theory => theorem.optimiser(),
            Rule::Fixed(eta) => Optimiser::Sgd { schedule: Schedule::Constant(eta) },
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Theory => f.write_str("theory"),
            Rule::Fixed(value) => value.fmt(f),
        }
    }
}

/// How a rule stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "must be `theory` or a number")]
enum Spelling {
    Number(f64),
    Word(String),
}

impl From<Rule> for Spelling {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::Theory => Spelling::Word("theory".into()),
            Rule::Fixed(value) => Spelling::Number(value),
        }
    }
}

impl TryFrom<Spelling> for Rule {
    type Error = String;

    fn try_from(spelling: Spelling) -> Result<Self, String> {
        match spelling {
            Spelling::Number(value) => Ok(Rule::Fixed(value)),
            Spelling::Word(word) if word == "theory" => Ok(Rule::Theory),
            Spelling::Word(word) => Err(format!("must be `theory` or a number, got `{word}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_word_or_a_number_in_files_and_on_the_command_line() {
        for (text, rule) in [("\"theory\"", Rule::Theory), ("0.5", Rule::Fixed(0.5)), ("2", Rule::Fixed(2.0))] {
            assert_eq!(serde_json::from_str::<Rule>(text).unwrap(), rule);
            assert_eq!(Rule::parse(text.trim_matches('"')), Some(rule));
            assert_eq!(serde_json::from_str::<Rule>(&serde_json::to_string(&rule).unwrap()).unwrap(), rule);
        }
        let refusal = serde_json::from_str::<Rule>("\"practice\"").unwrap_err().to_string();
        assert!(refusal.contains("must be `theory` or a number, got `practice`"), "{refusal}");
        assert_eq!(Rule::parse("practice"), None);
    }
}
