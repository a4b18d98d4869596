//! Samples, and weights of them, as files have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid_datasets::cache::Cache;
use megagrid_datasets::{Format, Label, Layout, Readers, Roles, Samples, add_up, read_samples_with, read_text};

use crate::Error;
use crate::changes::Changing;
use crate::input::Source;
use crate::room;
use crate::words::WordOptions;

/// Reads samples from a text or a cache, to compare them with what a model says: `positive` and `words` as for training.
///
/// # Errors
/// Samples that cannot be read, or have no labels.
pub fn read(source: &mut Source, positive: &[Label], words: WordOptions) -> Result<Samples, Error> {
    read_with(source, positive, words, None)
}

/// Reads samples, and says in the source what format they have. Values of a feature that a sample has several times are one, their sum.
pub(super) fn read_with(
    source: &mut Source,
    positive: &[Label],
    words: WordOptions,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Samples, Error> {
    let mut samples = read_as_written(source, positive, words, readers)?;
    add_up(&mut samples.data.edges);
    Ok(samples)
}

/// Finds the format of samples, and says it in their source.
///
/// # Errors
/// Samples that cannot be read.
pub(super) fn find(source: &mut Source) -> Result<(), Error> {
    if source.format.is_none() && source.columns.as_ref().is_none_or(Roles::name_no_kind) {
        source.format = Format::of_samples(&source.input)?;
    }
    source.find(Format::Libsvm)?;
    if let (None, Some(roles)) = (source.num_columns, source.columns.clone()) {
        let layout = Layout { roles, format: source.format.filter(|_| !source.is_kept), ..Layout::default() };
        // Of a cache, what it was kept of.
        let of = source.kept_of.as_ref().filter(|_| source.is_kept).unwrap_or(&source.input);
        let format = layout.find(of).ok();
        source.num_columns = Layout { format, ..layout }.num_columns(of)?;
    }
    Ok(())
}

fn read_as_written(
    source: &mut Source,
    positive: &[Label],
    words: WordOptions,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Samples, Error> {
    find(source)?;
    room::check(source, 1)?;
    let path = &source.input;
    if !source.is_cache() {
        let format = source.format.filter(|format| *format != Format::Text).unwrap_or(Format::Libsvm);
        let layout = Layout { format: Some(format), ..source.layout() };
        return Ok(read_samples_with(path, layout, positive, words.tokenizer(), readers)?);
    }
    if !positive.is_empty() && !source.is_kept {
        return Err(Error::option("--positive goes with labelled samples in a text, and this is a .mgrid cache"));
    }
    let cache = Cache::open(path)?;
    match cache.labels()? {
        Some(labels) => Ok(Samples::new(cache.to_dataset()?, labels)),
        None => Err(Error::invalid(path, "the cache holds no labels; convert labelled samples to it")),
    }
}

impl Changing for Samples {
    fn num_edges(&self) -> usize {
        self.data.edges.num_edges()
    }

    fn with(self, more: Self) -> Self {
        self.append(more)
    }

    fn without(self, _: &Self) -> Result<Self, String> {
        Err("samples have no names by which they could be removed; train on those that are left with --from".to_owned())
    }
}

/// Reads one number a line.
pub(super) fn read_weights(path: &Path, samples: usize) -> Result<Vec<f32>, Error> {
    let text = read_text(path)?;
    let mut weights = Vec::with_capacity(samples);
    for (line, word) in (1..).zip(text.lines()) {
        match word.trim().parse::<f32>() {
            Ok(weight) if weight.is_finite() && weight >= 0.0 => weights.push(weight),
            _ => {
                let place = PathBuf::from(format!("{}:{line}", path.display()));
                return Err(Error::invalid(&place, format!("weight {word:?}; expected a number, 0 or above")));
            }
        }
    }
    if weights.len() != samples {
        let problem = format!("{} weights of {samples} samples; expected one a line", weights.len());
        return Err(Error::invalid(path, problem));
    }
    Ok(weights)
}
