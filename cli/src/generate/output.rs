//! Where a made data set goes: text or cache, and what was planted beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use megagrid_datasets::output::{check_target, write_directory};
use megagrid_datasets::synthetic::{SyntheticClicks, SyntheticCorpus, SyntheticRatings, write_edges};
use megagrid_datasets::{Dataset, Dictionary, Error, Samples};
use megagrid_partition::{EdgeList, Ends, Side};
use serde::Serialize;
use serde_json::json;

use crate::convert::is_cache_name;
use crate::data::{Data, Kind};
use crate::failure::usage;
use crate::output::{self, OTHER_FORMATS, ending};
use crate::progress::{self, Progress};

const BOTH: [Side; 2] = [Side::Left, Side::Right];
/// The ending of the directory that holds what was planted.
const TRUTH: &str = "truth";
/// What is in it until the data set is whole.
const UNFINISHED: &str = "unfinished";
/// More endings that say what the text would not be.
const MISLEADING: [&str; 4] = ["parquet", "jsonl", "ndjson", TRUTH];

/// A data set that was made.
pub trait Made {
    /// What it is about.
    const KIND: Kind;
    /// Whether something was planted.
    const PLANTED: bool = true;

    /// Returns what is written beside the text.
    fn beside(_text: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the ends of the edges.
    fn ends(&self) -> Ends<'_>;

    /// Writes the data set as text.
    fn write_text(&self, path: &Path) -> Result<(), Error>;

    /// Writes planted arrays into a directory; returns planted numbers.
    fn write_truth(&self, directory: &Path) -> Result<serde_json::Value, Error>;

    /// Returns the data set in degree order, without the vertices that the text does not name.
    fn into_data(self) -> Data;
}

/// Makes a data set, and writes it with its truth: all of it, or nothing.
pub fn make<M: Made>(
    output: &Path,
    settings: &impl Serialize,
    generate: impl FnOnce() -> Result<M, Error>,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let places = Places::check::<M>(output)?;
    let progress = Progress::spinner(false, "making");
    let made = generate()?;
    let ends = made.ends();
    let size = M::KIND.size(ends.num_left, ends.num_right, ends.num_edges());
    progress.say("writing");
    places.write(made, settings)?;
    drop(progress);
    let bytes = progress::bytes(megagrid_datasets::input_bytes(output).unwrap_or(0));
    let truth = places.truth.map_or(String::new(), |truth| format!("; truth in {}", truth.display()));
    let seconds = begin.elapsed().as_secs_f64();
    output::print(&format!("{}: {size}; {bytes} in {seconds:.2} s{truth}\n", output.display()))
}

/// What is going to be written.
struct Places<'a> {
    output: &'a Path,
    truth: Option<PathBuf>,
    beside: Option<PathBuf>,
}

impl<'a> Places<'a> {
    /// Refuses what exists, what cannot be written, and a name that would mislead.
    fn check<M: Made>(output: &'a Path) -> anyhow::Result<Self> {
        if output == Path::new("-") {
            return Err(usage("a data set goes to a file, not to stdout; name one"));
        }
        let ending = ending(output);
        if OTHER_FORMATS.iter().chain(&MISLEADING).any(|other| *other == ending) {
            let output = output.display();
            return Err(usage(format!("{output} would be plain text; expected a name that does not end in .{ending}")));
        }
        let truth = M::PLANTED.then(|| output.with_extension(TRUTH));
        let beside = if is_cache_name(output) { None } else { M::beside(output) };
        let places = Self { output, truth, beside };
        places.remove_unfinished()?;
        for place in [Some(output), places.truth.as_deref(), places.beside.as_deref()].into_iter().flatten() {
            check_target(place)?;
        }
        Ok(places)
    }

    /// Removes what an interrupted command left: a truth without its data set.
    fn remove_unfinished(&self) -> anyhow::Result<()> {
        let Some(truth) = self.truth.as_ref().filter(|truth| truth.join(UNFINISHED).exists()) else { return Ok(()) };
        if !self.output.exists() {
            if let Some(beside) = self.beside.as_ref().filter(|beside| beside.exists()) {
                fs::remove_file(beside).with_context(|| beside.display().to_string())?;
            }
            fs::remove_dir_all(truth).with_context(|| truth.display().to_string())?;
        }
        Ok(())
    }

    /// Writes everything, the data set last: where it is, the rest is too.
    fn write<M: Made>(&self, made: M, settings: &impl Serialize) -> anyhow::Result<()> {
        if let Some(truth) = &self.truth {
            write_directory(truth, |directory| write_truth(&made, settings, directory))?;
        }
        let written = if is_cache_name(self.output) {
            made.into_data().grouped(&BOTH).write_cache(self.output)
        } else {
            made.write_text(self.output)
        };
        if written.is_err() {
            // Nothing of these was there before. What cannot be removed is not what failed.
            self.truth.iter().for_each(|truth| drop(fs::remove_dir_all(truth)));
            self.beside.iter().for_each(|beside| drop(fs::remove_file(beside)));
        }
        written?;
        if let Some(truth) = &self.truth {
            let mark = truth.join(UNFINISHED);
            fs::remove_file(&mark).with_context(|| mark.display().to_string())?;
        }
        Ok(())
    }
}

fn write_truth<M: Made>(made: &M, settings: &impl Serialize, directory: &Path) -> anyhow::Result<()> {
    let planted = made.write_truth(directory)?;
    let truth = megagrid_training::join([json!({ "kind": M::KIND }), serde_json::to_value(settings)?, planted]);
    let mark = directory.join(UNFINISHED);
    fs::write(&mark, "").with_context(|| mark.display().to_string())?;
    let path = directory.join("truth.json");
    fs::write(&path, serde_json::to_string_pretty(&truth)? + "\n").with_context(|| path.display().to_string())
}

impl Made for EdgeList<()> {
    const KIND: Kind = Kind::Graph;
    const PLANTED: bool = false;

    fn ends(&self) -> Ends<'_> {
        EdgeList::ends(self)
    }

    fn write_text(&self, path: &Path) -> Result<(), Error> {
        write_edges(path, self)
    }

    fn write_truth(&self, _: &Path) -> Result<serde_json::Value, Error> {
        Ok(json!({}))
    }

    fn into_data(self) -> Data {
        let left_names = Dictionary::from_integers((0..self.num_left as u64).collect());
        Data::Graph(trimmed(Dataset { edges: self, left_names, right_names: None }.in_degree_order(), &BOTH))
    }
}

impl Made for SyntheticRatings {
    const KIND: Kind = Kind::Ratings;

    fn ends(&self) -> Ends<'_> {
        self.data.edges.ends()
    }

    fn write_text(&self, path: &Path) -> Result<(), Error> {
        self.write(path)
    }

    fn write_truth(&self, directory: &Path) -> Result<serde_json::Value, Error> {
        self.truth.write(directory)?;
        Ok(json!({ "noise_floor": self.truth.noise_floor }))
    }

    fn into_data(self) -> Data {
        Data::Ratings(trimmed(self.data.in_degree_order(), &BOTH))
    }
}

impl Made for SyntheticCorpus {
    const KIND: Kind = Kind::Corpus;

    fn beside(text: &Path) -> Option<PathBuf> {
        Some(Self::vocabulary_path(text))
    }

    fn ends(&self) -> Ends<'_> {
        self.corpus.data.edges.ends()
    }

    fn write_text(&self, path: &Path) -> Result<(), Error> {
        self.write(path)
    }

    fn write_truth(&self, directory: &Path) -> Result<serde_json::Value, Error> {
        self.truth.write(directory)?;
        Ok(json!({ "tokens": self.corpus.num_tokens }))
    }

    fn into_data(self) -> Data {
        // The vocabulary names all words.
        Data::Corpus(self.corpus.data.in_degree_order())
    }
}

impl Made for SyntheticClicks {
    const KIND: Kind = Kind::Samples;

    fn ends(&self) -> Ends<'_> {
        self.samples.data.edges.ends()
    }

    fn write_text(&self, path: &Path) -> Result<(), Error> {
        self.write(path)
    }

    fn write_truth(&self, directory: &Path) -> Result<serde_json::Value, Error> {
        self.truth.write(directory)?;
        Ok(json!({ "intercept": self.truth.intercept, "log_loss": self.truth.log_loss }))
    }

    fn into_data(self) -> Data {
        let Samples { data, labels, .. } = self.samples.in_degree_order();
        Data::Samples(Samples::new(trimmed(data, &[Side::Right]), labels))
    }
}

/// Leaves out the vertices without edges, which [`Dataset::in_degree_order`] has put last on each of `sides`.
fn trimmed<T>(mut data: Dataset<T>, sides: &[Side]) -> Dataset<T> {
    let used = |ids: &[u32]| ids.iter().max().map_or(0, |&largest| largest as usize + 1);
    let edges = &mut data.edges;
    let [left, right] = [used(&edges.left), used(&edges.right)];
    // Both sides of a square graph are the same vertices.
    let [left, right] = if edges.square { [left.max(right); 2] } else { [left, right] };
    let first = |names: &Dictionary, count: usize| names.reorder(&(0..count as u32).collect::<Vec<_>>());
    if sides.contains(&Side::Left) {
        edges.num_left = left;
        data.left_names = first(&data.left_names, left);
    }
    if sides.contains(&Side::Right) {
        edges.num_right = right;
        data.right_names = data.right_names.map(|names| first(&names, right));
    }
    data
}
