//! `megagrid convert`: from any format to the cache that training loads by memory map.

use std::path::PathBuf;
use std::time::Instant;

use megagrid_datasets::output::check_target;
use megagrid_partition::Side;

use crate::data::AnySource;
use crate::failure::usage;
use crate::output;
use crate::progress::{self, Progress};

/// Converts an input of any format to the binary cache .mgrid, which every command loads by memory map.
///
/// The cache holds the edges twice, by both ends, under ids in order of degree, with their names.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  megagrid convert web-graph.txt.gz web-graph.mgrid
  megagrid convert --as graph weighted.mtx weighted.mgrid
  megagrid convert news20.gz news20.mgrid --positive 1,2,3")]
pub struct Args {
    #[command(flatten)]
    pub source: AnySource,
    /// The cache to write; its name ends in .mgrid. Nothing may be there yet.
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let output = &args.output;
    if !is_cache_name(output) {
        return Err(usage(format!("{} is no name of a cache; expected one that ends in .mgrid", output.display())));
    }
    check_target(output)?;
    let found = args.source.find()?;
    let read_bytes = args.source.bytes()?;

    let mut clock = Instant::now();
    let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed().as_secs_f64();
    let progress = Progress::spinner(false, "reading");
    let data = args.source.read(found)?;
    let ends = data.ends();
    let size = found.kind.size(ends.num_left, ends.num_right, ends.num_edges());
    let read_seconds = lap();
    progress.say("ordering and grouping");
    let grouped = data.ordered().grouped(&[Side::Left, Side::Right]);
    let group_seconds = lap();
    progress.say("writing");
    grouped.write_cache(output)?;
    let write_seconds = lap();
    drop(progress);

    let written_bytes = megagrid_datasets::input_bytes(output).unwrap_or(0);
    let [read, written] = [read_bytes, written_bytes].map(progress::bytes);
    output::print(&format!(
        "{}: {size}; {written} from {read}; seconds: read {read_seconds:.2}, group {group_seconds:.2}, \
         write {write_seconds:.2}\n",
        output.display()
    ))
}

/// Tells whether a name is that of a cache.
pub fn is_cache_name(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mgrid"))
}
