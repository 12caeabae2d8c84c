//! Arguments about logs, shared by the commands that read one.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use neuralcb_logs::log::{Format, Kind, Log, LogOptions, Missing};

use crate::{args, talk};

/// How a log is to be read. What is not given is inferred, or comes from `--schema`.
#[derive(clap::Args, Clone, Default)]
pub struct LogArgs {
    /// A TOML file that says what the columns are (`neuralcb diagnose --write-schema` makes one)
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// The format, where the file's ending does not tell
    #[arg(long, value_parser = args::format(), ignore_case = true)]
    pub format: Option<Format>,
    /// The column of the action
    #[arg(long, value_name = "NAME")]
    pub action: Option<String>,
    /// The column of the reward
    #[arg(long, value_name = "NAME")]
    pub reward: Option<String>,
    /// The column of the behaviour policy's probability of the action
    #[arg(long, value_name = "NAME")]
    pub propensity: Option<String>,
    /// The column that lists the eligible actions
    #[arg(long, value_name = "NAME")]
    pub eligible: Option<String>,
    /// Long tables: the column of the round
    #[arg(long, value_name = "NAME")]
    pub round: Option<String>,
    /// Long tables: the column that marks the row of the chosen action
    #[arg(long, value_name = "NAME")]
    pub chosen: Option<String>,
    /// CSV: what separates fields; by default what the header has most of: comma, semicolon, tab or bar
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<char>,
    /// CSV: what separates a number's fraction, `.` or `,`; by default seen from the first rows where fields are not
    /// separated by commas
    #[arg(long, value_name = "CHAR", value_parser = decimal)]
    pub decimal: Option<char>,
    /// The columns that are features, and no others
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub features: Option<Vec<String>>,
    /// Columns that are no features
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Features that are categories though they look like numbers
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// A number that is not there becomes its column's mean, instead of making its row bad
    #[arg(long)]
    pub fill_missing: bool,
    /// Open Bandit Dataset: read this position only; by default all, with the position as a feature
    #[arg(long)]
    pub position: Option<u32>,
    /// Bad rows to skip, and report, before the run stops
    #[arg(long, value_name = "N")]
    pub max_bad_rows: Option<u64>,
}

fn decimal(text: &str) -> Result<char, String> {
    match text {
        "." => Ok('.'),
        "," => Ok(','),
        _ => Err("must be `.` or `,`".to_owned()),
    }
}

impl LogArgs {
    /// The options that these arguments ask for.
    pub fn options(&self) -> anyhow::Result<LogOptions> {
        let mut options = match &self.schema {
            Some(path) => LogOptions::from_toml(path)?,
            None => LogOptions::default(),
        };
        let roles = &mut options.roles;
        for (to, from) in [
            (&mut roles.action, &self.action),
            (&mut roles.reward, &self.reward),
            (&mut roles.propensity, &self.propensity),
            (&mut roles.eligible, &self.eligible),
            (&mut roles.round, &self.round),
            (&mut roles.chosen, &self.chosen),
        ] {
            if from.is_some() {
                to.clone_from(from);
            }
        }
        options.delimiter = self.delimiter.or(options.delimiter);
        options.decimal = self.decimal.or(options.decimal);
        options.format = self.format.or(options.format);
        options.features = self.features.clone().or(options.features);
        options.ignore.extend(self.ignore.iter().cloned());
        options.kinds.extend(self.categories.iter().map(|name| (name.clone(), Kind::Category)));
        if self.fill_missing {
            options.missing = Missing::Mean;
        }
        options.position = self.position.or(options.position);
        options.max_bad_rows = self.max_bad_rows.unwrap_or(options.max_bad_rows);
        Ok(options)
    }
}

/// A bar over the bytes of a log; silent where standard error is no terminal, and for the first two seconds.
pub struct LogBar {
    log: Log,
    bar: ProgressBar,
    started: Instant,
    doing: &'static str,
}

impl LogBar {
    /// A bar that has not started.
    pub fn new(log: &Log) -> LogBar {
        let bar = ProgressBar::hidden();
        let style = "{msg} {wide_bar} {bytes}/{total_bytes}, {eta} left";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
        bar.set_length(log.bytes());
        LogBar { log: log.clone(), bar, started: Instant::now(), doing: "" }
    }

    /// Says what is being done and how far it is.
    pub fn show(&mut self, message: &'static str) {
        self.draw(message);
        self.bar.set_message(message);
        self.bar.set_position(self.log.bytes_read());
    }

    /// As [`LogBar::show`], by rounds: what is slower than reading.
    pub fn show_rounds(&mut self, message: &'static str, done: u64, of: u64) {
        let style = "{msg} {wide_bar} {pos}/{len} rounds, {eta} left";
        if self.bar.length() != Some(of) {
            self.bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
            self.bar.set_length(of);
        }
        self.draw(message);
        self.bar.set_message(message);
        self.bar.set_position(done);
    }

    fn draw(&mut self, doing: &'static str) {
        if self.doing != doing {
            self.doing = doing;
            talk::step(doing);
        }
        if self.bar.is_hidden() && self.started.elapsed() > Duration::from_secs(2) {
            self.bar.set_draw_target(talk::progress());
        }
    }

    /// Takes the bar away and tells of bad rows that were skipped.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        let skipped = self.log.skipped();
        if skipped.bad_rows > 0 {
            talk::say!("{} bad rows were skipped; the first:", skipped.bad_rows);
            skipped.first.iter().for_each(|problem| talk::say!("  {problem}"));
        }
    }
}
