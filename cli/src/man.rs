//! `megagrid man`: the help of all commands as manual pages.

use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use megagrid_datasets::output::write_directory;

/// Writes the manual pages of all commands to a new directory: megagrid.1, megagrid-mf.1 and so on.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid man pages && man -l pages/megagrid-mf.1")]
pub struct Args {
    /// The directory.
    directory: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, command: Command) -> anyhow::Result<()> {
    write_directory(&args.directory, |into| {
        clap_mangen::generate_to(command, into).with_context(|| args.directory.display().to_string())
    })
}
