//! `megagrid completions`: what a shell needs to complete commands and options.

use clap::Command;
use clap_complete::{Shell, generate};

use crate::output;

/// Prints a script by which a shell completes commands, options and their values.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  megagrid completions bash > ~/.local/share/bash-completion/completions/megagrid\n  \
                        megagrid completions fish > ~/.config/fish/completions/megagrid.fish"
)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &Args, mut command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut command, "megagrid", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
