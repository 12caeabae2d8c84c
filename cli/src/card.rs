//! `--report` and `--segment`: the card of what a command found.

use std::path::{Path, PathBuf};

use neuralcb_logs::card::{Kind, html};
use neuralcb_logs::{atomic, check_distinct, check_writable};
use serde_json::Value;

/// Arguments of every command that makes a card.
#[derive(clap::Args, Clone, Default)]
pub struct CardArgs {
    /// Also write a card: one page that shows what was found, to be read in any browser
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Tell of the segments of this column of the log as well, in the card and in --json; may be given several times
    #[arg(long, value_name = "COLUMN")]
    pub segment: Vec<String>,
}

impl CardArgs {
    /// Refuses a file that cannot be written, before the work.
    pub fn check<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> anyhow::Result<()> {
        if let Some(path) = &self.report {
            check_writable(path)?;
            check_distinct(path, inputs)?;
        }
        Ok(())
    }

    /// Whether a card is asked for.
    pub fn wanted(&self) -> bool {
        self.report.is_some()
    }

    /// Writes the card of a command's JSON, if it is asked for.
    pub fn write(&self, kind: Kind, json: &Value) -> anyhow::Result<()> {
        let Some(path) = &self.report else { return Ok(()) };
        atomic::write(path, html(kind, json)?.as_bytes())?;
        eprintln!("card: {}", path.display());
        Ok(())
    }
}
