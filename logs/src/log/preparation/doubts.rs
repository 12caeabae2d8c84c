//! What to beware of in a policy that was learned from a log.

use super::fit::LogSummary;
use crate::log::schema::Schema;

/// Fewer rounds than this teach nothing.
const FEW_ROUNDS: u64 = 100;

/// Rounds below which an action is hardly known.
const FEW_CHOICES: u64 = 10;

impl LogSummary {
    /// What whoever trains on the log should know, in sentences.
    pub fn doubts(&self, schema: &Schema) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.rounds < FEW_ROUNDS {
            doubts.push(format!("the log has {} rounds, and fewer than {FEW_ROUNDS} teach nothing", self.rounds));
        }
        let chosen = self.actions.iter().filter(|action| action.count > 0);
        let (all, rare) = (chosen.clone().count(), chosen.filter(|action| action.count < FEW_CHOICES).count());
        if all == 1 {
            doubts.push("every round chose the same action: the log compares nothing with it".to_owned());
        } else if rare * 2 > all {
            doubts.push(format!(
                "{rare} of {all} actions were chosen fewer than {FEW_CHOICES} times: what is learned of them rests on \
                 little; merge rare actions, or collect more rounds"
            ));
        }
        for column in schema.ignored.iter().filter(|column| column.why != "as asked") {
            let name = &column.name;
            let cure = match name.is_empty() {
                true => String::new(),
                false => format!(" (--ignore {name} to be silent, --categories {name} to use it)"),
            };
            doubts.push(format!("column `{name}` is left out: {}{cure}", column.why));
        }
        for of in &self.grouped {
            doubts.push(format!(
                "column `{}` has {} different values; the {} seen most often have places of their own, the others share \
                 none (--max-categories N)",
                of.column, of.words, of.kept
            ));
        }
        doubts
    }
}
