//! What can go wrong with an input or an output file, in the words that the user reads.

use std::io;
use std::path::{Path, PathBuf};

/// A failure to read or write a data set. Every message names the file; a malformed record also names its line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to open, read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of a text file does not follow its format.
    #[error("{}:{line}: {field}: found \"{found}\", expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// What the offending part of the line stands for.
        field: &'static str,
        /// The offending text, shortened.
        found: String,
        /// What would have been accepted, and a hint where there is one.
        expected: String,
    },
    /// A file holds no record.
    #[error("{}: no {records} in it; is it the right file?", path.display())]
    Empty {
        /// The file or directory.
        path: PathBuf,
        /// What was looked for: `edges`, `ratings`, ...
        records: &'static str,
    },
    /// Samples none of which has a feature, and of which nobody said how they are written.
    #[error(
        "{}: no features in it; if it is a table, --columns label=COLUMN names its column of labels, or --format table says so where it is \
         called label",
        .0.display()
    )]
    Unclear(PathBuf),
    /// A compressed file ends in the middle of its data.
    #[error("{}: the {compression} data end early; the file is truncated, copy or download it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zstd`.
        compression: &'static str,
    },
    /// A file's parts contradict each other, or the file contradicts what was asked of it.
    #[error("{}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What was found, what was expected, what to do.
        problem: String,
    },
    /// The format of a file could not be told from its name and first lines.
    #[error("{}: cannot tell its format from its name and first lines; name it with --format", .0.display())]
    UnknownFormat(PathBuf),
    /// A file is of a format that cannot hold what was asked for.
    #[error("{}: the format is {found}, which does not hold {wanted}; expected {expected}; --format says which, if it is another", path.display())]
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// The name of the format detected or stated.
        found: &'static str,
        /// What was to be read: `a graph`, `ratings`, ...
        wanted: &'static str,
        /// The formats that hold it, comma-separated.
        expected: &'static str,
    },
    /// No format of this name.
    #[error("format \"{found}\" is unknown; expected one of {}", known.join(", "))]
    UnknownFormatName {
        /// The name.
        found: String,
        /// The names that there are.
        known: &'static [&'static str],
    },
    /// One side has more vertices than ids of 32 bits can number.
    #[error("{}: more than 4294967295 distinct ids on one side; split the input", .0.display())]
    TooManyVertices(PathBuf),
    /// A file does not begin as a cache does.
    #[error("{}: not a .mgrid cache; make one with: megagrid convert INPUT OUT.mgrid", .0.display())]
    NotACache(PathBuf),
    /// A cache was written by another version of the program.
    #[error("{}: format version {found}, expected {expected}; convert the original input again", path.display())]
    CacheVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version this program reads.
        expected: u32,
    },
    /// A cache is longer or shorter than its header says.
    #[error("{}: {found} bytes long, expected {expected}; the file is truncated or was changed, copy or convert it again", path.display())]
    CacheLength {
        /// The file.
        path: PathBuf,
        /// Bytes found.
        found: u64,
        /// Bytes announced, or the least that a cache has.
        expected: u64,
    },
    /// A part of a cache is not what was written.
    #[error("{}: {problem} in the {part}; the file is damaged, copy or convert it again", path.display())]
    CacheDamaged {
        /// The file.
        path: PathBuf,
        /// Which part: `header`, `left offsets`, ...
        part: &'static str,
        /// What is wrong: a wrong checksum, ...
        problem: &'static str,
    },
    /// A cache holds edges with other data than asked for.
    #[error("{}: holds edges with {found}, expected edges with {expected}; {remedy}", path.display())]
    CacheEdgeType {
        /// The file.
        path: PathBuf,
        /// The name of the edge data found.
        found: &'static str,
        /// The name of the edge data asked for.
        expected: &'static str,
        /// How to make a cache of these.
        remedy: &'static str,
    },
    /// Something is in the place of an output already.
    #[error("{}: exists already; remove it or name another output", .0.display())]
    OutputExists(PathBuf),
    /// A setting of a generator that nothing can be made with.
    #[error("{name} {found} is out of range; expected {expected}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        found: f64,
        /// What would have been accepted.
        expected: &'static str,
    },
    /// A holdout fraction that is no fraction.
    #[error("holdout {0} is out of range; expected a fraction above 0 and below 1, 0.1 say")]
    HoldoutRange(f64),
    /// A holdout fraction that leaves no edge on one side of the split.
    #[error("holdout {holdout} of {num_edges} edges leaves none for {part}; expected another fraction or more edges")]
    HoldoutEmpty {
        /// The fraction.
        holdout: f64,
        /// The edges to split.
        num_edges: usize,
        /// `training` or `testing`.
        part: &'static str,
    },
    /// A share that is neither a number nor a part.
    #[error("holdout {0} is out of range; expected a number, 1 say, or a part above 0 and below 1, 0.2 say")]
    HoldoutShare(String),
    /// A share of the ratings of each user that would be none of any.
    #[error(
        "no user has ratings of enough items to keep {share} of them for testing and others for training, of {num_edges} ratings; expected \
         another share of each user's, 1 say"
    )]
    HoldoutPerUser {
        /// The share.
        share: String,
        /// The ratings to split.
        num_edges: usize,
    },
    /// A share of users that is none, or all.
    #[error(
        "{share} of {num_users} users leaves none for testing or none for training, of those who have ratings of enough items to be \
         tested; expected another share"
    )]
    HoldoutUsers {
        /// The share.
        share: String,
        /// The users who can be tested.
        num_users: usize,
    },
    /// More ratings than can be split by user.
    #[error(
        "{0} ratings are too many to keep some of each user for testing; expected at most 4294967295: keep a part of all with --holdout, \
         or name a file with --test"
    )]
    HoldoutSize(usize),
    /// Another number of times than of ratings.
    #[error("{times} times of {num_edges} ratings; each rating needs one, from the same input")]
    Times {
        /// The times.
        times: usize,
        /// The ratings.
        num_edges: usize,
    },
    /// More vertices than ids of 32 bits.
    #[error("{0} vertices, expected at most 4294967295; number those that have edges from 0 on")]
    VerticesOutOfRange(usize),
    /// An edge to a vertex that is not there.
    #[error("edge {edge}: the {side} end is {id}, expected a number below {vertices}, the {side} vertices")]
    EndOutOfRange {
        /// The number of the edge, from 0.
        edge: usize,
        /// The side of the end.
        side: megagrid_partition::Side,
        /// Its id.
        id: u32,
        /// The vertices of the side.
        vertices: usize,
    },
    /// Edges that cannot be read again.
    #[error("reading edges: {0}")]
    Edges(io::Error),
    /// A graph that `petgraph`'s indices of 32 bits cannot number.
    #[error("{num_vertices} vertices and {num_edges} edges are more than petgraph's 32-bit indices can number")]
    TooLargeForPetgraph {
        /// Vertices of both sides.
        num_vertices: usize,
        /// Edges.
        num_edges: usize,
    },
}

impl Error {
    /// Attaches a path to an I/O failure: `File::open(path).map_err(Error::io(path))`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_path_buf(), source }
    }

    /// Says that another process has another file of this name.
    pub(crate) fn another_input(path: &Path, process: usize) -> Self {
        let what = if path.is_dir() { "other files in this directory" } else { "another file of this name" };
        Self::invalid(path, format!("process {process} has {what}"))
    }

    /// Says that a pipe is not for several processes.
    #[must_use]
    pub fn of_one_process(path: &Path) -> Self {
        Self::invalid(
            path,
            "what comes through a pipe can be read once, by one process, and several are to read it; save it in a file",
        )
    }

    pub(crate) fn invalid(path: &Path, problem: impl Into<String>) -> Self {
        Self::Invalid { path: path.to_path_buf(), problem: problem.into() }
    }
}
