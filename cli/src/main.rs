//! `neuralcb`: learn from logged decisions, honestly.
//!
//! One file per subcommand. Data goes to standard output, talk to standard error. Exit codes: 0 done, 1 the answer is
//! no, 2 failed.

mod args;
mod bench;
mod card;
mod client;
mod completions;
mod data;
mod demo;
mod diagnose;
mod evaluate;
mod gate;
mod join;
mod log_args;
mod manual;
mod out;
mod report;
mod reproduce;
mod score;
mod serve;
mod show;
mod simulate;
mod talk;
mod theory;
mod train;
mod tune;

use std::process::ExitCode;

use clap::Parser;

use talk::Talk;

/// Learn policies from logged decisions with NeuraLCB and its baselines, and say honestly how good they are.
#[derive(Parser)]
#[command(name = "neuralcb", version, about)]
struct Cli {
    #[command(flatten)]
    talk: Talk,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what a log holds, and whether it is fit to learn from; exit 1 where training would be unwise
    Diagnose(Box<diagnose::Args>),
    /// Learn a policy from a log of decisions
    Train(Box<train::Args>),
    /// Choose algorithm and pessimism from the log alone, and certify the policy that is written
    Tune(Box<tune::Args>),
    /// Tell what a policy would have earned on a log, with honest intervals
    Evaluate(Box<evaluate::Args>),
    /// Tell whether a policy may replace another one: exit 0 yes, 1 not shown
    Gate(Box<gate::Args>),
    /// Say what a policy file is, and what is certain of it
    Show(show::Args),
    /// Let a policy decide on raw records
    Score(Box<score::Args>),
    /// Let policies decide live over HTTP, and log every decision and reward
    Serve(Box<serve::Args>),
    /// Join the decisions of a served policy with their rewards, into a log to learn from
    Join(join::Args),
    /// Run an experiment of the paper: tables, figures and a report from one command
    Reproduce(Box<reproduce::Args>),
    /// Make tables, figures and report from the finished runs of a folder
    Report(report::Args),
    /// Write a simulated log of decisions, with the true propensities, as CSV
    Simulate(simulate::Args),
    /// List the paper's real data sets, and bring them into the cache
    Data(data::Args),
    /// What the paper's theory says about a bandit: NTK, effective dimension, coverage, bounds, lemmas
    Theory(Box<theory::Args>),
    /// Time this build on this machine, against what the machine allows
    Bench(bench::Args),
    /// Go through the whole way with a simulated log, in some seconds: simulate, diagnose, tune, evaluate
    Demo(demo::Args),
    /// Print what a shell needs to complete commands, options and names
    Completions(completions::Args),
    /// Write the manual: a man page for each command, or one page of Markdown
    Manual(manual::Args),
}

/// All went well, and the answer is no: exit 1.
#[derive(Debug)]
struct No(String);

impl std::fmt::Display for No {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for No {}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error),
    };
    talk::set(cli.talk);
    if let Err(error) = neuralcb::machine::check_instructions() {
        talk::fail(error);
        return ExitCode::from(2);
    }
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read what was written has seen enough.
        Err(error) if error.chain().filter_map(|e| e.downcast_ref()).any(out::is_closed) => ExitCode::SUCCESS,
        Err(error) if error.is::<No>() => {
            talk::answer(error);
            ExitCode::from(1)
        }
        Err(error) => {
            talk::fail(error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Diagnose(args) => diagnose::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Serve(args) => serve::run(*args),
        Command::Join(args) => join::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Theory(args) => theory::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Manual(args) => manual::run(&args),
    }
}

/// Help and version as they are; anything else in one line.
fn refuse_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let text = error.to_string();
    let line: Vec<&str> = text.split("\n\nUsage").next().unwrap_or_default().split_whitespace().collect();
    let line = line.join(" ").replace(" For more information, try '--help'.", "");
    talk::fail(line.strip_prefix("error: ").unwrap_or(&line));
    ExitCode::from(2)
}
