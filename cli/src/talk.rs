//! What the program says beside its data: on standard error, in colours where a person reads it and `NO_COLOR` is not
//! set.
//!
//! `--quiet` leaves warnings and errors. `--verbose` adds what is being done, as lines that a log file keeps.

use std::fmt::Display;
use std::sync::OnceLock;
use std::time::Instant;

use anstream::eprintln;
use clap::builder::styling::{AnsiColor, Style};
use indicatif::ProgressDrawTarget;

/// How much is said.
#[derive(clap::Args, Clone, Copy, Default)]
pub struct Talk {
    /// Say nothing but warnings and errors, and show no progress
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = "Talk")]
    quiet: bool,
    /// Say what is being done, with the seconds since the start
    #[arg(long, short, global = true, help_heading = "Talk")]
    verbose: bool,
}

static TALK: OnceLock<(Talk, Instant)> = OnceLock::new();

/// Called once, at the start.
pub fn set(talk: Talk) {
    TALK.get_or_init(|| (talk, Instant::now()));
}

fn quiet() -> bool {
    TALK.get().is_some_and(|(talk, _)| talk.quiet)
}

/// What was done. Takes what `format!` takes.
macro_rules! say {
    ($($arg:tt)*) => { $crate::talk::say_line(format_args!($($arg)*)) };
}

/// A warning: said even with `--quiet`. Takes what `format!` takes.
macro_rules! warning {
    ($($arg:tt)*) => { $crate::talk::headed("warning", format_args!($($arg)*)) };
}

pub(crate) use {say, warning};

pub fn say_line(text: impl Display) {
    if !quiet() {
        eprintln!("{text}");
    }
}

/// The answer no, which is no error: said even with `--quiet`.
pub fn answer(text: impl Display) {
    eprintln!("{text}");
}

/// What went wrong.
pub fn fail(text: impl Display) {
    headed("error", text);
}

pub fn headed(head: &str, text: impl Display) {
    let colour = if head == "error" { AnsiColor::Red } else { AnsiColor::Yellow };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    eprintln!("{style}{head}:{style:#} {text}");
}

/// What is being done, for `--verbose`.
pub fn step(text: impl Display) {
    if let Some((Talk { verbose: true, .. }, start)) = TALK.get() {
        eprintln!("{:8.2} s  {text}", start.elapsed().as_secs_f64());
    }
}

/// Where progress is shown: on standard error if it is a terminal, unless `--quiet` or `--verbose` is asked for.
pub fn progress() -> ProgressDrawTarget {
    match TALK.get() {
        Some((talk, _)) if talk.quiet || talk.verbose => ProgressDrawTarget::hidden(),
        _ => ProgressDrawTarget::stderr(),
    }
}
