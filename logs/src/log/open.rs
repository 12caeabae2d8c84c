//! A log that can be read again and again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::block::Place;
use super::columnar::Columnar;
use super::dialect::Dialect;
use super::error::LogError;
use super::infer::{self, SAMPLE, Sample};
use super::json_lines::JsonLines;
use super::json_rows::{JsonRows, RoundSample, json_names};
use super::options::{Format, LogOptions, Missing, Roles, Want};
use super::partition;
use super::pass::{Blocks, Skipped};
use super::plan::Plan;
use super::schema::Schema;
use super::separated::{Separated, see};
use super::sources::Sources;

/// What readings of a log share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub sources: Sources,
    pub schema: Schema,
    pub plan: Plan,
    pub max_bad_rows: u64,
    /// Bytes that the latest reading has read.
    pub read: Arc<AtomicU64>,
    skipped: Mutex<Skipped>,
}

impl Inner {
    pub fn report(&self, skipped: &Skipped) {
        *self.skipped.lock().unwrap_or_else(PoisonError::into_inner) = skipped.clone();
    }
}

/// A log of decisions in one or more files.
///
/// Opening it reads the first 10,000 rows to learn what the columns are. [`Log::blocks`] then reads it from the start,
/// as often as it is called, with a few blocks in memory however long the files are.
#[derive(Debug, Clone)]
pub struct Log {
    inner: Arc<Inner>,
}

impl Log {
    /// Opens the log in `paths`: files, folders, or `-` for standard input. What the columns are is inferred, except
    /// where `options` say it.
    pub fn open(paths: &[PathBuf], options: &LogOptions, want: Want) -> Result<Log, LogError> {
        let mut sources = Sources::find(paths, options.format)?;
        if want.outcome {
            sources.sum_on_the_way();
        }
        let first = &sources.files[0];
        let schema = match sample(&sources, options, None)? {
            Sampled::Rounds(sample) => infer::round_schema(&first.path, sources.format, &sample, options, want)?,
            Sampled::Rows(sample) => {
                let known = |name: &str| sample.names().contains(&name);
                let unnamed = options.roles.action.is_none() && options.format.is_none();
                if sources.format == Format::Csv && unnamed && ["item_id", "position", "click"].into_iter().all(known) {
                    sources.format = Format::OpenBandit;
                }
                match sources.format {
                    Format::OpenBandit => {
                        let options = infer::open_bandit(&sample, options);
                        infer::schema(&first.path, sources.format, &sample, &options, want)?
                    }
                    _ => infer::schema(&first.path, sources.format, &sample, options, want)?,
                }
            }
        };
        let plan = Plan::new(&schema, options, want);
        Ok(Log::new(sources, schema, plan, options))
    }

    /// Opens a log for a policy that knows the features of `schema`: columns are looked up by their names, in whatever
    /// order and format they come.
    pub fn open_as(paths: &[PathBuf], options: &LogOptions, want: Want, schema: &Schema) -> Result<Log, LogError> {
        let mut sources = Sources::find(paths, options.format)?;
        if want.outcome {
            sources.sum_on_the_way();
        }
        let first = &sources.files[0];
        let roles = match sample(&sources, options, Some(schema))? {
            Sampled::Rounds(sample) => {
                let names = json_names(&options.roles, Some(&schema.roles));
                infer::round_roles(&first.path, sources.format, &sample, &names, want)?
            }
            Sampled::Rows(sample) => {
                let named = roles_known(&options.roles, &schema.roles, &sample);
                let long = schema.is_long() || !schema.per_action.is_empty();
                infer::roles(&first.path, &sample, &named, want, Some(long))?
            }
        };
        let missing = if schema.missing == Missing::Mean { Missing::Mean } else { options.missing };
        let schema = Schema { format: sources.format, roles, missing, ..schema.clone() };
        let plan = Plan::new(&schema, options, want);
        Ok(Log::new(sources, schema, plan, options))
    }

    fn new(sources: Sources, schema: Schema, plan: Plan, options: &LogOptions) -> Log {
        let (read, skipped) = (Arc::default(), Mutex::default());
        Log { inner: Arc::new(Inner { sources, schema, plan, max_bad_rows: options.max_bad_rows, read, skipped }) }
    }

    /// What the columns are.
    pub fn schema(&self) -> &Schema {
        &self.inner.schema
    }

    /// The rounds from the start, at most [`BLOCK`](super::BLOCK) at a time.
    pub fn blocks(&self) -> Blocks {
        Blocks::start(Arc::clone(&self.inner))
    }

    /// Length of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.inner.sources.size()
    }

    /// How many of these bytes the latest reading has read: the length of a progress bar.
    pub fn bytes_read(&self) -> u64 {
        self.inner.read.load(Ordering::Relaxed).min(self.bytes())
    }

    /// What the latest reading has left out; complete when it has come to its end.
    pub fn skipped(&self) -> Skipped {
        self.inner.skipped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// SHA-256 of the files' bytes, one file after another, in hexadecimal. Where outcomes are wanted, readings make it
    /// on their way, and what they have read is not read again.
    pub fn sha256(&self) -> Result<String, LogError> {
        self.inner.sources.sha256()
    }

    /// Where its files are, but for what came through a pipe.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.inner.sources.files.iter().filter(|source| source.is_file()).map(|source| source.path.as_path())
    }

    /// The names of the files, in the order of reading.
    pub fn names(&self) -> Vec<String> {
        self.inner.sources.files.iter().map(|source| source.path.display().to_string()).collect()
    }

    /// The file in which a round stands.
    pub fn path(&self, place: Place) -> Option<&Path> {
        self.inner.sources.files.get(place.file as usize).map(|source| source.path.as_path())
    }
}

/// What the first rows of a log hold.
enum Sampled {
    Rows(Sample),
    Rounds(RoundSample),
}

/// Reads the first rows, of as many files as it takes.
fn sample(sources: &Sources, options: &LogOptions, policy: Option<&Schema>) -> Result<Sampled, LogError> {
    let format = sources.format;
    let nested = matches!(format, Format::JsonRounds | Format::Dsjson);
    let (mut table, mut rounds) = (Sample::default(), RoundSample::default());
    for file in sources.files.iter().filter(|file| file.size > 0) {
        let parted =
            |found| partition::sampled(found, &file.partition, |column, text| see(column, text, Dialect::PLAIN));
        let left = SAMPLE - table.rows.max(rounds.shared.rows);
        match format {
            Format::Csv | Format::Tsv | Format::OpenBandit => {
                table.merge(parted(Separated::sample(file, format, options, left)?))
            }
            Format::JsonLines => table.merge(parted(JsonLines::sample(file, left)?)),
            Format::Parquet => table.merge(parted(Columnar::sample(file, left)?)),
            Format::JsonRounds | Format::Dsjson => {
                let names = json_names(&options.roles, policy.map(|schema| &schema.roles));
                rounds.merge(JsonRows::sample(file, format, &names, left)?);
            }
        }
        if table.rows.max(rounds.shared.rows) >= SAMPLE {
            break;
        }
    }
    match if nested { rounds.shared.rows } else { table.rows } {
        0 => Err(LogError::Empty { path: sources.files[0].path.clone() }),
        _ if nested => Ok(Sampled::Rounds(rounds)),
        _ => Ok(Sampled::Rows(table)),
    }
}

/// The roles that a user names, and those of the training log that this one has too.
fn roles_known(named: &Roles, trained: &Roles, sample: &Sample) -> Roles {
    let names = sample.names();
    let known = |named: &Option<String>, trained: &Option<String>| {
        named.clone().or_else(|| trained.clone().filter(|name| names.contains(&name.as_str())))
    };
    Roles {
        action: known(&named.action, &trained.action),
        reward: known(&named.reward, &trained.reward),
        propensity: known(&named.propensity, &trained.propensity),
        eligible: known(&named.eligible, &trained.eligible),
        round: known(&named.round, &trained.round),
        chosen: known(&named.chosen, &trained.chosen),
    }
}
