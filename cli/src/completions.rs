//! `neuralcb completions`: a shell's completions of commands, options and names.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::{Cli, out};

#[derive(clap::Args)]
pub struct Args {
    /// The shell. Bash, for one: neuralcb completions bash > ~/.local/share/bash-completion/completions/neuralcb
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "neuralcb", &mut script);
    out::stream(|to| to.write_all(&script))
}
