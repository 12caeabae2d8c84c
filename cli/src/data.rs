//! `neuralcb data`: the real data sets of the paper, in a cache on this machine.

use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use neuralcb_logs::datasets::{Arrival, Preparation, RealData, Source, cache_dir, fetch};
use serde_json::json;

use crate::{args, out, talk};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the data sets, their sizes and licences, and whether they are here
    List {
        /// As JSON, with the files, their hashes and homes
        #[arg(long)]
        json: bool,
    },
    /// Bring a data set into the cache, checked against its published hash
    Fetch {
        /// The data set, or all of them
        #[arg(value_parser = choice(), ignore_case = true)]
        name: Choice,
        /// Take local copies from this folder (laid out as mushroom/…, shuttle/…, adult/…, mnist/…), or from a mirror
        /// whose address begins with http:// or https://, instead of each file's public home
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
    },
}

/// The data sets that a name stands for.
#[derive(Debug, Clone, Copy)]
enum Choice {
    All,
    One(RealData),
}

fn choice() -> impl TypedValueParser<Value = Choice> {
    let all = RealData::ALL.iter().copied().map(Choice::One).chain([Choice::All]);
    args::names(all.collect::<Vec<_>>(), |choice| match choice {
        Choice::All => "all",
        Choice::One(data) => data.name(),
    })
}

fn source(from: Option<&Path>) -> Source {
    let Some(from) = from else { return Source::Home };
    match from.to_str().filter(|text| ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme))) {
        Some(mirror) => Source::Base(mirror.to_owned()),
        None => Source::Folder(from.to_path_buf()),
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let cache = cache_dir();
    match &args.command {
        Command::List { json } => list(&cache, *json),
        Command::Fetch { name, from } => {
            let from = source(from.as_deref());
            match name {
                Choice::All => RealData::ALL.iter().try_for_each(|&data| bring(data, &cache, &from)),
                Choice::One(data) => bring(*data, &cache, &from),
            }
        }
    }
}

fn list(cache: &Path, json: bool) -> anyhow::Result<()> {
    let text = if json { serde_json::to_string_pretty(&as_json(cache))? + "\n" } else { table(cache) };
    out::print(&text)
}

fn table(cache: &Path) -> String {
    let mut text =
        format!("{:<9} {:>7} {:>11} {:>8}  {:<13} {}\n", "name", "rows", "dimensions", "actions", "licence", "here");
    for &data in RealData::ALL {
        let (counts, here) = (data.counts(&Preparation::paper(data)), data.presence(cache).name());
        let (name, rows) = (data.name(), thousands(counts.n_rows));
        let (dim, actions, licence) = (counts.dim, counts.n_classes, data.licence());
        text += &format!("{name:<9} {rows:>7} {dim:>11} {actions:>8}  {licence:<13} {here}\n");
    }
    text + &format!("cache: {}\n", cache.display())
}

fn as_json(cache: &Path) -> serde_json::Value {
    let sets = RealData::ALL.iter().map(|&data| {
        let counts = data.counts(&Preparation::paper(data));
        let files = data.files().iter().map(|file| {
            json!({
                "path": file.path,
                "bytes": file.bytes,
                "sha256": file.sha256,
                "home": file.home,
                "here": file.presence(cache).name(),
            })
        });
        json!({
            "name": data.name(),
            "rows": counts.n_rows,
            "dimensions": counts.dim,
            "actions": counts.n_classes,
            "licence": data.licence(),
            "here": data.presence(cache).name(),
            "files": files.collect::<Vec<_>>(),
        })
    });
    json!({ "cache": cache.display().to_string(), "datasets": sets.collect::<Vec<_>>() })
}

/// Fetches one data set, with a bar, and says in one line what became of it.
fn bring(data: RealData, cache: &Path, from: &Source) -> anyhow::Result<()> {
    let bar = progress_bar(data);
    let arrivals = fetch(data, cache, from, &|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let new = arrivals?.iter().filter(|arrival| **arrival == Arrival::Installed).count();
    match new {
        0 => talk::say!("{data} is already here: {}", cache.display()),
        1 => talk::say!("{data}: 1 file fetched into {}", cache.display()),
        _ => talk::say!("{data}: {new} files fetched into {}", cache.display()),
    }
    Ok(())
}

/// A bar of bytes; it stays away where standard error is no terminal.
fn progress_bar(data: RealData) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:9} {bar:40} {bytes} of {total_bytes}, about {eta} left");
    let bar = ProgressBar::with_draw_target(None, talk::progress());
    bar.with_style(style.expect("the template is well-formed")).with_prefix(data.name())
}

/// 70000 as 70,000.
fn thousands(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", thousands(n / 1000), n % 1000) }
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn thousands_are_separated() {
        for (n, text) in [(0, "0"), (999, "999"), (8_124, "8,124"), (70_000, "70,000"), (1_000_001, "1,000,001")] {
            assert_eq!(thousands(n), text);
        }
    }
}
