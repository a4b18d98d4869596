//! The input, the first argument of most commands.

use std::path::PathBuf;

use megagrid_datasets::Format;

/// The input.
#[derive(Clone, Debug, clap::Args)]
pub struct Source {
    /// A file (plain, gzip or zstd), a directory of part files, or a .mgrid cache.
    pub input: PathBuf,
    /// Format of the input: auto, edges, mtx, ratings, libsvm, bow, lda-c, text, parquet, mgrid.
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    pub format: FormatChoice,
}

/// A format, or none: told by name and content.
#[derive(Clone, Copy, Debug)]
pub struct FormatChoice(pub Option<Format>);

/// Reads the value of `--format`.
pub fn parse_format(name: &str) -> Result<FormatChoice, megagrid_datasets::Error> {
    if name == "auto" { Ok(FormatChoice(None)) } else { name.parse().map(|format| FormatChoice(Some(format))) }
}

impl Source {
    /// Returns it as training reads it.
    pub fn to_read(&self) -> megagrid_training::input::Source {
        megagrid_training::input::Source { input: self.input.clone(), format: self.format.0 }
    }
}
