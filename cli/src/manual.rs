//! `neuralcb manual`: every command with its options, as man pages or as one page of Markdown, from the parser itself.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use neuralcb_logs::OutDir;

use crate::{Cli, out, talk};

#[derive(clap::Args)]
pub struct Args {
    /// The folder for the man pages: neuralcb.1, neuralcb-tune.1, …
    #[arg(required_unless_present = "markdown")]
    folder: Option<PathBuf>,
    /// Print one page of Markdown instead
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let Some(folder) = &args.folder else { return out::print(&markdown(&cli)) };
    let dir = OutDir::prepare(folder)?;
    let mut pages = vec![(String::from("neuralcb"), &cli)];
    let mut at = 0;
    while at < pages.len() {
        let (name, command) = pages[at].clone();
        pages.extend(command.get_subcommands().map(|sub| (format!("{name}-{}", sub.get_name()), sub)));
        let mut page = Vec::new();
        // a man page's title holds no spaces, and points to the pages beside it
        Man::new(command.clone()).title(name.to_uppercase()).render(&mut page)?;
        dir.write(&format!("{name}.1"), &page)?;
        at += 1;
    }
    talk::say!("{at} man pages in {}", folder.display());
    Ok(())
}

/// All commands on one page.
fn markdown(cli: &Command) -> String {
    let mut text = String::from("# Command line\n\nMade by `neuralcb manual --markdown` from the program itself.\n");
    let mut ahead: Vec<&Command> = vec![cli];
    while let Some(command) = ahead.pop() {
        section(command, &mut text);
        let subs: Vec<&Command> = command.get_subcommands().collect();
        ahead.extend(subs.into_iter().rev());
    }
    text
}

fn section(command: &Command, text: &mut String) {
    let path = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = writeln!(text, "\n## `{path}`\n\n{about}.\n\n```text\n{usage}\n```");
    let everywhere = |arg: &Arg| ["help", "version", "quiet", "verbose"].contains(&arg.get_id().as_str());
    let shown = |arg: &&Arg| !arg.is_hide_set() && !everywhere(arg);
    let args: Vec<&Arg> = command.get_arguments().filter(|a| path == "neuralcb" || shown(a)).collect();
    if !args.is_empty() {
        text.push_str("\n| argument | meaning |\n|---|---|\n");
        args.iter().for_each(|arg| text.push_str(&row(arg)));
    }
}

/// An argument as a row of a table.
fn row(arg: &Arg) -> String {
    let help = arg.get_help().map(StyledStr::to_string).unwrap_or_default();
    let mut meaning = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let takes = arg.get_action().takes_values();
    let names: Vec<String> =
        arg.get_possible_values().iter().filter(|_| takes).map(|v| format!("`{}`", v.get_name())).collect();
    if !names.is_empty() {
        let _ = write!(meaning, ". One of {}", names.join(", "));
    }
    let default: Vec<String> =
        arg.get_default_values().iter().filter(|_| takes).map(|v| v.to_string_lossy().into_owned()).collect();
    if !default.is_empty() {
        let _ = write!(meaning, ". Default: `{}`", default.join(","));
    }
    format!("| `{}` | {} |\n", arg.to_string().replace('|', "\\|"), meaning.replace('|', "\\|"))
}
