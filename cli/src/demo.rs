//! `neuralcb demo`: the way from a log to a policy, with the very commands that one gives for one's own log.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use neuralcb_logs::atomic;

use crate::{Cli, out};

#[derive(clap::Args)]
pub struct Args {
    /// The folder for the log, the policy and its decisions
    #[arg(long, value_name = "DIR", default_value = "neuralcb-demo")]
    out: PathBuf,
}

/// Rounds in the log, and those of them that a policy is learned from.
const ROUNDS: usize = 7000;
const PAST: usize = 5000;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = &args.out;
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    let file = |name: &str| folder.join(name);
    let [log, past, later] = ["log.csv", "past.csv", "later.csv"].map(file);
    let [policy, decisions] = ["policy.safetensors", "decisions.csv"].map(file);

    heading(&format!(
        "1. A log: {ROUNDS} decisions among 30 actions, four of five taken at random. What an action earns depends on the \
         features x0 to x19."
    ))?;
    command(&[
        "simulate",
        "quadratic",
        "--preset",
        "released-code",
        "--seed",
        "7",
        "--behaviour",
        "epsilon-greedy:0.8",
    ])
    .with("--n", ROUNDS.to_string())
    .with("--out", &log)
    .run()?;
    divide(&log, &past, &later)?;
    out::print(&format!(
        "The first {PAST} decisions are now in {}, the others in {}.\n",
        past.display(),
        later.display()
    ))?;

    heading("2. Is it fit to learn from?")?;
    command(&["diagnose"]).file(&past).run()?;

    heading("3. Learn: many policies are tried, one is chosen and certified, each on decisions of its own.")?;
    command(&["tune"]).file(&past).with("--out", &policy).run()?;

    heading("4. Check it on the later decisions, which nothing has seen so far.")?;
    command(&["evaluate"]).file(&policy).file(&later).with("--estimators", "snips,dr").run()?;

    heading("5. Let it decide.")?;
    command(&["score"]).file(&policy).file(&later).with("--out", &decisions).run()?;

    heading("Now with a log of your own: a CSV, Parquet or JSON lines file with columns for action, reward,")?;
    out::print(
        "propensity (the probability with which the action was chosen) and features:\n\n\
         \x20 neuralcb diagnose YOUR-LOG.csv\n\
         \x20 neuralcb tune YOUR-LOG.csv --out policy.safetensors\n\
         \x20 neuralcb serve policy.safetensors --data decisions     # the policy over HTTP\n",
    )
}

fn heading(text: &str) -> anyhow::Result<()> {
    out::print(&format!("\n{text}\n"))
}

/// The first rounds of a log into one file, the rest into another.
fn divide(log: &Path, past: &Path, later: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(log)?;
    let mut lines = text.lines();
    let header = lines.next().context("the log is empty")?;
    let lines: Vec<&str> = lines.collect();
    for (path, lines) in [(past, &lines[..PAST]), (later, &lines[PAST..])] {
        let text: String = std::iter::once(&header).chain(lines).flat_map(|line| [*line, "\n"]).collect();
        atomic::write(path, text.as_bytes())?;
    }
    Ok(())
}

/// A command under way: what would be typed.
struct Typed(Vec<String>);

fn command(words: &[&str]) -> Typed {
    Typed(words.iter().map(|&word| word.to_owned()).collect())
}

impl Typed {
    fn with(mut self, flag: &str, value: impl AsRef<std::ffi::OsStr>) -> Typed {
        self.0.push(flag.to_owned());
        self.0.push(value.as_ref().to_string_lossy().into_owned());
        self
    }

    fn file(mut self, path: &Path) -> Typed {
        self.0.push(path.display().to_string());
        self
    }

    /// Shows the command and runs it, in this process.
    fn run(self) -> anyhow::Result<()> {
        out::print(&format!("\n$ neuralcb {}\n", self.0.join(" ")))?;
        let cli = Cli::try_parse_from(std::iter::once("neuralcb".to_owned()).chain(self.0))?;
        crate::run(cli.command)
    }
}
