//! From files to edges that a grid can be built from.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use megagrid_datasets::cache::{Cache, EdgeData};
use megagrid_datasets::{
    Dataset, Edges, Format, Layout, Names, Prepared, Readers, Role, Roles, Summary, is_pipe, read_ratings,
};
use megagrid_partition::EdgeSource;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::changes::{Change, Changed, Changing};
use crate::error::reading;
use crate::options::lossy;
use crate::{Error, record::Phases};

/// Where data comes from.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct Source {
    /// A file (plain, gzip or zstd), a directory of part files, a quoted pattern ('day-*.csv'), a .mgrid cache, or "-" for standard input;
    /// several processes read a part each.
    // Nothing where data were in memory, which an update on what is new goes on without.
    #[serde(serialize_with = "lossy", skip_serializing_if = "is_nowhere")]
    pub input: PathBuf,
    /// Format of the input: auto, edges, mtx, ratings, libsvm, bow, lda-c, counts, table, text, jsonl, parquet, mgrid.
    // The full path of `Option` keeps clap from taking it for an argument that may be left out.
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    #[serde(serialize_with = "format_name")]
    pub format: std::option::Option<Format>,
    /// Columns of a table, by number from 1 or by name: user=2,item=1,rating=stars and perhaps time; a graph has from, to and perhaps
    /// weight, a corpus document, word and count, or text and perhaps document, samples label, perhaps weight and text, and as often as
    /// needed without (columns to leave out), category (whose numbers are categories) and feature (that count beside a text) [default: by a
    /// header with such names, else in this order]. With rating=none each line is a rating of 1, as als takes it of a text of two columns; with count=none
    /// a word of a document counts as 1.
    #[arg(long, value_name = "ROLE=COLUMN,...")]
    #[serde(serialize_with = "roles_text", skip_serializing_if = "Option::is_none")]
    pub columns: Option<Roles>,
    /// How many columns it has, where it is a table of samples without a header: those that come later are told by it.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_columns: Option<usize>,
    /// What was added to it and taken from it since, in this order: an update says so.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Changed>,
    /// Whether the model has rows beside those of these data, since it began at an earlier one: an update says so.
    #[arg(skip)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_others: bool,
    /// After how many changes there have to be how many edges: those that a model was trained on.
    #[arg(skip)]
    #[serde(skip)]
    pub expected: Option<(usize, usize)>,
    /// Names of the ends of what was taken from it, once that was read.
    #[arg(skip)]
    #[serde(skip)]
    pub taken_back: Vec<Arc<Names>>,
    /// Whether it is a cache that was kept of a text, with the labels chosen that options say.
    #[arg(skip)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
    /// What it was kept of, where it is such a cache: an update tells by it what counts already.
    #[arg(skip)]
    #[serde(serialize_with = "lossy", skip_serializing_if = "Option::is_none")]
    pub kept_of: Option<PathBuf>,
}

/// Reads the name of a format; `auto`: it is told by name and content.
///
/// # Errors
/// Another name.
pub fn parse_format(name: &str) -> Result<Option<Format>, megagrid_datasets::Error> {
    if name == "auto" { Ok(None) } else { name.parse().map(Some) }
}

fn is_nowhere(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

fn format_name<S: Serializer>(format: &Option<Format>, to: S) -> Result<S::Ok, S::Error> {
    format.as_ref().map_or("auto".to_owned(), ToString::to_string).serialize(to)
}

fn roles_text<S: Serializer>(roles: &Option<Roles>, to: S) -> Result<S::Ok, S::Error> {
    roles.as_ref().map(ToString::to_string).serialize(to)
}

impl Source {
    /// Names a place.
    pub fn new(input: impl Into<PathBuf>) -> Self {
        Self {
            input: input.into(),
            format: None,
            columns: None,
            num_columns: None,
            changes: Vec::new(),
            has_others: false,
            expected: None,
            taken_back: Vec::new(),
            is_kept: false,
            kept_of: None,
        }
    }

    /// Names a file that is written as the input of a run with this configuration was, unless it says itself how it is.
    #[must_use]
    pub fn as_trained(input: &Path, config: &Value) -> Self {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
        let (format, columns) = (text("format").parse().ok(), text("columns").parse().ok());
        let num_columns = config.get("num_columns").and_then(Value::as_u64).map(|number| number as usize);
        Self { format, columns, num_columns, ..Self::new(input) }.like(input)
    }

    /// Returns how it is laid out, as far as that is stated.
    #[must_use]
    pub fn layout(&self) -> Layout {
        // What is kept has its columns in order; those of what comes later are as they were in the text.
        let roles = self.columns.clone().filter(|_| !self.is_kept).unwrap_or_default();
        Layout { format: self.format, roles: roles.with_num_columns(self.num_columns), undirected: false }
    }

    /// Finds the format if it is not stated, and returns what a reader is to be told: no format where it finds the same. What could
    /// be anything is taken for `wanted`, so that the line in the way is named.
    ///
    /// # Errors
    /// An input that cannot be read.
    pub fn find(&mut self, wanted: Format) -> Result<Layout, Error> {
        let stated = self.layout();
        if stated.format.is_some() {
            return Ok(stated.find(&self.input).map(|_| stated)?);
        }
        let (found, format) = match stated.find(&self.input) {
            // Links with a third column; readers of graphs take them for links too.
            Ok(Format::Ratings) if wanted == Format::Edges => (wanted, None),
            Ok(Format::Text) | Err(megagrid_datasets::Error::UnknownFormat { .. }) => (wanted, Some(wanted)),
            found => (found?, None),
        };
        self.format = Some(found);
        Ok(Layout { format, ..stated })
    }

    /// Takes text of two columns for pairs of users and items, which are ratings of 1, unless it is said what it is.
    pub(crate) fn take_pairs(&mut self) {
        let says = |role| self.columns.as_ref().is_some_and(|roles| roles.has(role));
        let may_be = self.format.is_none() && !says(Role::Rating) && !says(Role::Time);
        if may_be && matches!(Format::detect(&self.input), Ok(Format::Edges)) {
            self.columns = Some(self.columns.take().unwrap_or_default().only_pairs());
        }
    }

    /// Reads the input and makes the changes; `read` reads all of one file, and says in its source which format it has.
    ///
    /// # Errors
    /// What cannot be read; another number of edges than a model was trained on; edges to take out that are not there.
    pub(crate) fn whole<D: Changing>(&mut self, read: impl Fn(&mut Self) -> Result<D, Error>) -> Result<D, Error> {
        self.changes.iter().try_for_each(Changed::check)?;
        let mut all = read(self)?;
        for (at, changed) in self.changes.iter().enumerate() {
            self.check_expected(at, all.num_edges())?;
            let path = changed.change.path();
            let of_change = read(&mut self.like_changed(changed))?;
            all = match changed.change {
                Change::Add(_) => all.with(of_change),
                Change::Remove(_) => {
                    let left = all.without(&of_change).map_err(|problem| Error::invalid(path, problem))?;
                    self.taken_back.extend(of_change.ends().map(Arc::new));
                    left
                }
            };
        }
        Ok(all)
    }

    /// Returns a file that is written as this input is, unless it says itself how it is.
    pub(crate) fn like(&self, path: &Path) -> Self {
        let says = |format: &Format| {
            matches!(format, Format::Cache | Format::Parquet | Format::MatrixMarket | Format::JsonLines)
        };
        // What a pipe has is not looked at twice.
        let format = match (!is_pipe(path)).then(|| Format::detect(path)) {
            Some(Ok(found)) if says(&found) => None,
            _ => self.format.filter(|format| !says(format)),
        };
        Self { format, columns: self.columns.clone(), num_columns: self.num_columns, ..Self::new(path) }
    }

    /// Returns the file of a change, which is written as it is said to be, else as this input is.
    pub(crate) fn like_changed(&self, Changed { change, format, columns, .. }: &Changed) -> Self {
        let like = self.like(change.path());
        let (format, columns) = (format.as_deref().and_then(|name| name.parse().ok()), columns.as_deref());
        match columns.and_then(|columns| columns.parse().ok()) {
            // Columns tell what format a text has, as they do where a model is trained.
            Some(columns) => Self { format, columns: Some(columns), num_columns: None, ..like },
            None => Self { format: format.or(like.format), ..like },
        }
    }

    fn check_expected(&self, changes: usize, found: usize) -> Result<(), Error> {
        match self.expected {
            Some((after, expected)) if changes == after && found != expected => Err(Error::invalid(
                &self.input,
                format!(
                    "{found} edges in it and in what was changed since, and the model was trained on {expected}; name the data that it was \
                     trained on with --data, or train anew on all data with --from"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Tells whether it is a cache, once the format was found.
    #[must_use]
    pub fn is_cache(&self) -> bool {
        self.format == Some(Format::Cache)
    }
}

/// Tells whether an input is a cache.
///
/// # Errors
/// An input that cannot be read.
pub(crate) fn is_cache(path: &Path, format: Option<Format>) -> Result<bool, Error> {
    Ok(match format {
        Some(format) => format == Format::Cache,
        None => Format::detect(path)? == Format::Cache,
    })
}

/// Reads ratings as they are, from text or from a cache.
///
/// # Errors
/// An input that cannot be read.
pub fn plain_ratings(source: &Source) -> Result<Dataset<f32>, Error> {
    let path = &source.input;
    Ok(match is_cache(path, source.format)? {
        true => Cache::open(path)?.to_dataset()?,
        false => read_ratings(path, source.layout())?,
    })
}

/// Reads the same, or pairs of users and items, which are ratings of 1.
///
/// # Errors
/// As [`plain_ratings`].
pub fn plain_feedback(mut source: Source) -> Result<Dataset<f32>, Error> {
    source.take_pairs();
    plain_ratings(&source)
}

/// Reads pairs of users and items, which may have ratings or not.
///
/// # Errors
/// As [`plain_ratings`].
pub fn plain_pairs(mut source: Source) -> Result<Dataset<f32>, Error> {
    let format = match source.format {
        Some(format) => format,
        None => Format::detect(&source.input)?,
    };
    // The others say themselves what they have.
    if !matches!(format, Format::Cache | Format::MatrixMarket) {
        source.columns = Some(source.columns.unwrap_or_default().only_pairs());
    }
    plain_ratings(&source)
}

/// Opens a cache.
pub(crate) fn open<T: EdgeData>(path: &Path, readers: Option<&Arc<dyn Readers>>) -> Result<Prepared<T>, Error> {
    Ok(match readers {
        Some(readers) => Prepared::open_with(path, readers)?,
        None => Prepared::open(path)?,
    })
}

/// Puts vertices in order of degree, where that is asked for.
pub(crate) fn ordered<T>(dataset: Dataset<T>, degree_order: bool) -> Dataset<T> {
    if degree_order { dataset.in_degree_order() } else { dataset }
}

/// What one pass over all edges finds.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    /// Mean of the edge data.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The least and the greatest of them; nothing without edges.
    pub range: Option<[f64; 2]>,
    /// Checksum of ends and data.
    pub checksum: u64,
}

/// Passes over all edges. What it finds does not depend on the number of threads, nor on whether the edges came from a
/// text or from its cache.
///
/// # Errors
/// Edges that cannot be read.
pub fn digest<T: EdgeData>(edges: &Edges<T>, value: fn(&T) -> f64) -> Result<Digest, Error> {
    let Summary { sum, squares, range, checksum } = edges.summarize(value).map_err(reading)?;
    let [mean, square] = [sum, squares].map(|sum| sum / edges.num_edges().max(1) as f64);
    // Of values that are all the same, only rounding is left.
    let variance = Some(square - mean * mean).filter(|variance| *variance > 1e-12 * square);
    Ok(Digest { mean, deviation: variance.unwrap_or(0.0).sqrt(), range, checksum })
}

/// Edges that are no more: what is left in the place of those that were released.
pub(crate) fn no_edges<T: EdgeData>() -> Edges<T> {
    let none = megagrid_partition::EdgeList::default();
    Edges::Grouped(megagrid_partition::GroupedEdges::new(none, &[]))
}

/// Takes the time of phases.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the seconds since it was asked last.
    pub fn lap(&mut self) -> f64 {
        std::mem::replace(&mut self.0, Instant::now()).elapsed().as_secs_f64()
    }
}

/// Phases of reading.
pub(crate) fn phases(load: f64, partition: f64) -> Phases {
    Phases { load, partition, ..Phases::default() }
}
