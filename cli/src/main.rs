//! `neuralcb`: learn from logged decisions, honestly.
//!
//! One file per subcommand. Data goes to standard output, talk to standard error. Exit codes: 0 done, 1 the answer is
//! no, 2 failed.

mod args;
mod bench;
mod data;
mod report;
mod reproduce;
mod simulate;
mod theory;

use std::process::ExitCode;

use clap::Parser;

/// Learn policies from logged decisions with NeuraLCB and its baselines, and say honestly how good they are.
#[derive(Parser)]
#[command(name = "neuralcb", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
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
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error),
    };
    let done = match cli.command {
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Theory(args) => theory::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
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
    eprintln!("{line}");
    ExitCode::from(2)
}
