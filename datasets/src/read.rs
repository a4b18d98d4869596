//! The readers' front: what a command needs, from a path or from bytes, in any format that holds it.

use std::path::Path;
use std::sync::Arc;

use crate::labels::labelled_beside;
use crate::records::{Link, OF_RATINGS, Pair, Rating, RatingTime, Record, WeightedLink, WordCount};
use crate::repeated::add_up_counts;
use crate::sample_table::{self, Labelled};
use crate::text::{Input, is_pipe};
use crate::warned::is_first;
use crate::{
    Corpus, Dataset, Dictionary, Error, Format, Label, Layout, Loaded, Readers, Role, Roles, Samples, TestRatings,
    Tokenizer,
};
use crate::{
    bag_of_words, delimited, edge_list, json_lines, libsvm, matrix_market, parquet, ratings, texts, vocabulary,
};

/// Bytes of edges that are kept in memory while a text is read to build a grid from, before they go to a file.
const ROOM: usize = 16 << 20;

/// Reads a directed graph: a file or a directory of part files, its format told by name and content where none is
/// stated ([`Layout`] says what can be). Of Matrix Market and of edge lists with further columns only the two ends are taken; a warning in the log says
/// so where there are weights. Where the layout is undirected, each line is an edge both ways; a symmetric matrix holds both already.
///
/// # Errors
/// Where the input cannot be read, holds no edge, or a line does not follow the format.
pub fn read_graph(path: impl AsRef<Path>, layout: impl Into<Layout>) -> Result<Dataset<()>, Error> {
    graph_at::<Link>(path.as_ref(), &layout.into(), usize::MAX, None)?.into_dataset()
}

/// Reads a graph to build a grid from; see [`read_graph`]. Edges that take more than some megabytes are set aside in a
/// temporary file, in the directory that the system names for these (`TMPDIR`).
///
/// # Errors
/// As [`read_graph`], and where the file cannot be written.
pub fn load_graph(path: impl AsRef<Path>, layout: impl Into<Layout>) -> Result<Loaded<()>, Error> {
    load_graph_with(path, layout, None)
}

/// Reads a graph to build a grid from, together with other processes; see [`load_graph`]. Each reads a part: lines of text,
/// frames of zstd, row groups of Parquet, files of a directory. Any other compressed file is read by one.
///
/// # Errors
/// As [`load_graph`]; a lost process, or one that has another input.
pub fn load_graph_with(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Loaded<()>, Error> {
    graph_at::<Link>(path.as_ref(), &layout.into(), ROOM, readers)
}

/// Reads a graph whose edges have weights: numbers in the third column, or in that of the role [`Role::Weight`], or the values of a
/// matrix, those of a pattern 1; finite, and none below 0. See [`read_graph`].
///
/// # Errors
/// As [`read_graph`]; an edge without a weight, or with a negative one.
pub fn read_weighted_graph(path: impl AsRef<Path>, layout: impl Into<Layout>) -> Result<Dataset<f32>, Error> {
    graph_at::<WeightedLink>(path.as_ref(), &layout.into(), usize::MAX, None)?.into_dataset()
}

/// Reads a graph whose edges have weights to build a grid from, together with other processes if there are some; see
/// [`read_weighted_graph`] and [`load_graph_with`].
///
/// # Errors
/// As there.
pub fn load_weighted_graph_with(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Loaded<f32>, Error> {
    graph_at::<WeightedLink>(path.as_ref(), &layout.into(), ROOM, readers)
}

fn graph_at<R: Record>(
    path: &Path,
    layout: &Layout,
    room: usize,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Loaded<R::Data>, Error> {
    let (input, found) = open(path, layout, readers, R::ROLES)?;
    // Without a statement, three columns are an edge list with weights or times.
    let format = if found == Format::Ratings && layout.format.is_none() { Format::Edges } else { found };
    if !R::has_number() && layout.roles.is_empty() && readers.is_none_or(|readers| readers.process() == 0) {
        warn(&input, format);
    }
    graph::<R>(&input, format, room)
}

/// Warns of what a graph cannot hold, and of what may be meant otherwise, once for each input.
fn warn(input: &Input<'_>, format: Format) {
    if !is_first(input.path(), "graph") {
        return;
    }
    let path = input.path().display();
    let weights = match format {
        Format::Edges => edge_list::weights(input),
        Format::MatrixMarket => matrix_market::weights(input),
        Format::Parquet => parquet::weights(input),
        _ => None,
    };
    if let Some(weights) = weights {
        tracing::warn!(
            "{path}: has {weights}, which are not read: edges of a graph have no weights here; `pagerank --weights` reads them"
        );
    }
}

/// Reads ratings: a file or a directory of part files, its format told by name and content where none is stated. Where the role of the
/// rating is `none`, each record is a rating of 1, whatever it has beside its user and item.
///
/// # Errors
/// Where the input cannot be read, holds no rating, or a line does not follow the format.
pub fn read_ratings(path: impl AsRef<Path>, layout: impl Into<Layout>) -> Result<Dataset<f32>, Error> {
    ratings_at(path.as_ref(), &layout.into(), usize::MAX, None)?.into_dataset()
}

/// Reads ratings to build a grid from; see [`load_graph`].
///
/// # Errors
/// As [`read_ratings`], and where the temporary file cannot be written.
pub fn load_ratings(path: impl AsRef<Path>, layout: impl Into<Layout>) -> Result<Loaded<f32>, Error> {
    load_ratings_with(path, layout, None)
}

/// Reads ratings to build a grid from, together with other processes; see [`load_graph_with`].
///
/// # Errors
/// As [`load_ratings`]; a lost process, or one that has another input.
pub fn load_ratings_with(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Loaded<f32>, Error> {
    ratings_at(path.as_ref(), &layout.into(), ROOM, readers)
}

fn ratings_at(
    path: &Path,
    layout: &Layout,
    room: usize,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Loaded<f32>, Error> {
    let (input, format) = open(path, layout, readers, OF_RATINGS)?;
    let is_pair = layout.roles.lacks(Role::Rating);
    if is_pair { rated::<Pair<Rating>>(&input, format, room) } else { rated::<Rating>(&input, format, room) }
}

/// Reads when ratings were made, in the order of the ratings, together with other processes if there are some: numbers of any unit
/// or dates, in the column of the role [`Role::Time`] or one that is called time, timestamp, date or datetime.
///
/// # Errors
/// As [`load_ratings_with`]; no such column, in a matrix say; a pipe, which the ratings were read from already.
pub fn load_times_with(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Loaded<f64>, Error> {
    let path = path.as_ref();
    if is_pipe(path) {
        return Err(Error::invalid(path, "times are read after the ratings, which a pipe has once; save it in a file"));
    }
    let (input, format) = open(path, &layout.into(), readers, OF_RATINGS)?;
    match format {
        Format::MatrixMarket => Err(wrong(&input, format, "ratings with times", "ratings, jsonl, parquet")),
        _ => rated::<RatingTime>(&input, format, ROOM),
    }
}

/// Reads ratings to test a model on: their users and items get the ids that `left_names` and `right_names` give them;
/// a rating by an unknown user or of an unknown item is kept apart.
///
/// # Errors
/// As [`read_ratings`].
pub fn read_ratings_with(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    left_names: &Dictionary,
    right_names: &Dictionary,
) -> Result<TestRatings, Error> {
    Ok(ratings::with_names(read_ratings(path, layout)?, left_names, right_names))
}

/// Reads labelled samples: LIBSVM text, or a table whose columns are features by their names, or hold texts whose words are
/// ([`Role::Text`]). The labels in `positive` become 1 and all others -1; where it is empty, each label is a class: a number or a word.
///
/// For the features of a model, see [`Dataset::with_right_names`].
///
/// # Errors
/// Where the input cannot be read, holds no feature, or a line does not follow the format or has another label.
pub fn read_samples(path: impl AsRef<Path>, layout: impl Into<Layout>, positive: &[Label]) -> Result<Samples, Error> {
    let path = path.as_ref();
    with_features(read_samples_with(path, layout, positive, Tokenizer::default(), None)?, path)
}

/// Reads labelled samples, none of which needs to have a feature; `tokenizer` finds the words of texts in a column of a table. Of several
/// processes each reads a part, as of a graph ([`load_graph_with`]), and then all have all samples.
///
/// # Errors
/// As [`read_samples`], but for samples without features; a lost process, or one that has another input.
pub fn read_samples_with(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    positive: &[Label],
    tokenizer: Tokenizer,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Samples, Error> {
    let (input, format) = open(path.as_ref(), &layout.into(), readers, OF_SAMPLES)?;
    samples(&input, format, positive, tokenizer)
}

/// Reads samples to predict the labels of: LIBSVM text whose lines may begin with a label, which may be any word and is
/// not looked at, or with their first feature. Samples are numbered from 1 in the order of their lines; comments are none, nor are blank
/// lines, but for those before others where the first sample has no label, which are samples without features. A table may be without a column
/// of labels; see [`read_samples_with`]. Where no format is stated, a header of a table and an object of JSON are told from LIBSVM.
///
/// `features` are those of a model: what is among them is no column of labels, whatever it is called. To have them as they are numbered there,
/// see [`Dataset::with_right_names`].
///
/// # Errors
/// Where the input cannot be read, holds no sample, or a line does not follow the format; lines none of which has a feature, where no format
/// is stated, or the first looks like the header of a table.
pub fn read_unlabelled(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    tokenizer: Tokenizer,
    features: &Dictionary,
) -> Result<Dataset<f32>, Error> {
    let (path, mut layout) = (path.as_ref(), layout.into());
    let is_unsaid = layout.format.is_none() && layout.roles.name_no_kind();
    let may_be_other = is_unsaid || layout.format == Some(Format::Libsvm);
    let told = if may_be_other { Format::of_samples(path)? } else { None };
    if is_unsaid {
        layout.format = Some(told.unwrap_or(Format::Libsvm));
    }
    if layout.format != Some(Format::Libsvm) {
        layout.roles = labelled_beside(layout.roles, features);
    }
    let (input, format) = open(path, &layout, None, OF_SAMPLES)?;
    let data = match format {
        Format::Table | Format::JsonLines | Format::Parquet => {
            sample_table::read(&input, format, Labelled::No, tokenizer)?.data
        }
        _ => libsvm::read_unlabelled(&input)?,
    };
    // A line without blanks is the label of a sample without features, and so is each line of a table.
    if format == Format::Libsvm && (is_unsaid || told.is_some()) && data.edges.num_edges() == 0 {
        return Err(Error::Unclear(path.to_path_buf()));
    }
    Ok(data)
}

/// Reads a corpus: UCI bag of words, LDA-C, a table of documents, words and perhaps counts, one with a column of texts, a document each
/// ([`Layout::of_corpus`] says which), or one document a line. For the first two, the vocabulary, a word a line, is the file
/// `vocab.*` beside the input; of several, `vocab.X.*` is the one of an input `docword.X.*`, X as long as possible.
///
/// For the vocabulary of a model, see [`Dataset::with_right_names`].
///
/// # Errors
/// Where the input cannot be read, holds no word, a line does not follow the format, or the vocabulary is of another
/// size.
pub fn read_corpus(path: impl AsRef<Path>, layout: impl Into<Layout>) -> Result<Corpus, Error> {
    read_corpus_with(path, layout, Tokenizer::default(), None)
}

/// Reads a corpus; see [`read_corpus`]. The words of texts are those that `tokenizer` finds. Of several processes each reads
/// a part, as of a graph ([`load_graph_with`]), and then all have all documents.
///
/// # Errors
/// As [`read_corpus`]; a lost process, or one that has another input.
pub fn read_corpus_with(
    path: impl AsRef<Path>,
    layout: impl Into<Layout>,
    tokenizer: Tokenizer,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Corpus, Error> {
    let path = path.as_ref();
    let (input, format) = open(path, &layout.into().of_corpus(path)?, readers, texts::OF_CORPORA)?;
    let vocabulary = match format {
        Format::BagOfWords | Format::LdaC => vocabulary::find(path)?,
        _ => None,
    };
    let vocabulary = vocabulary.map(|path| vocabulary::read(&path)).transpose()?;
    corpus(&input, format, vocabulary, tokenizer)
}

/// Reads a graph from the bytes of a file; see [`read_graph`].
///
/// # Errors
/// As [`read_graph`].
pub fn parse_graph(bytes: &[u8], format: Format) -> Result<Dataset<()>, Error> {
    graph::<Link>(&Input::from_bytes(bytes), format, usize::MAX)?.into_dataset()
}

/// Reads ratings from the bytes of a file; see [`read_ratings`].
///
/// # Errors
/// As [`read_ratings`].
pub fn parse_ratings(bytes: &[u8], format: Format) -> Result<Dataset<f32>, Error> {
    rated::<Rating>(&Input::from_bytes(bytes), format, usize::MAX)?.into_dataset()
}

/// Reads samples from the bytes of a file; see [`read_samples`].
///
/// # Errors
/// As [`read_samples`].
pub fn parse_samples(bytes: &[u8], format: Format, positive: &[Label]) -> Result<Samples, Error> {
    let input = Input::from_bytes(bytes);
    with_features(samples(&input, format, positive, Tokenizer::default())?, input.path())
}

/// Refuses samples none of which has a feature.
fn with_features(samples: Samples, path: &Path) -> Result<Samples, Error> {
    match samples.data.edges.num_edges() {
        0 => Err(Error::Empty { path: path.to_path_buf(), records: "features" }),
        _ => Ok(samples),
    }
}

/// Reads a corpus from the bytes of a file and its vocabulary; see [`read_corpus`].
///
/// # Errors
/// As [`read_corpus`].
pub fn parse_corpus(bytes: &[u8], format: Format, vocabulary: Option<Dictionary>) -> Result<Corpus, Error> {
    corpus(&Input::from_bytes(bytes), format, vocabulary, Tokenizer::default())
}

/// Reads one document a line from the bytes of a file; see [`read_corpus_with`].
///
/// # Errors
/// As [`read_corpus`].
pub fn parse_text(bytes: &[u8], tokenizer: Tokenizer) -> Result<Corpus, Error> {
    corpus(&Input::from_bytes(bytes), Format::Text, None, tokenizer)
}

/// Opens an input, and finds its format. Columns may have the roles of what is to be read of it.
fn open(
    path: &Path,
    layout: &Layout,
    readers: Option<&Arc<dyn Readers>>,
    wanted: &[Role],
) -> Result<(Input<'static>, Format), Error> {
    layout.roles.check(wanted).map_err(|problem| Error::invalid(path, problem))?;
    if layout.undirected && !wanted.contains(&Role::From) {
        return Err(Error::invalid(path, "is to be read as undirected, which only edges of a graph can be"));
    }
    let format = layout.find(path)?;
    let input = Input::take(path, readers)?.with_roles(&layout.roles).undirected(layout.undirected);
    Ok((input, format))
}

fn graph<R: Record>(input: &Input<'_>, format: Format, room: usize) -> Result<Loaded<R::Data>, Error> {
    match format {
        Format::Edges => delimited::read::<R>(input, room),
        Format::MatrixMarket => matrix_market::read::<R>(input, room),
        Format::JsonLines => json_lines::read::<R>(input, room),
        Format::Parquet => parquet::read::<R>(input, room),
        found => Err(wrong(input, found, "a graph", "edges, mtx, jsonl, parquet")),
    }
}

fn rated<R: Record>(input: &Input<'_>, format: Format, room: usize) -> Result<Loaded<R::Data>, Error> {
    match format {
        Format::Ratings => delimited::read::<R>(input, room),
        Format::MatrixMarket => matrix_market::read::<R>(input, room),
        Format::JsonLines => json_lines::read::<R>(input, room),
        Format::Parquet => parquet::read::<R>(input, room),
        found => Err(wrong(input, found, "ratings", "ratings, mtx, jsonl, parquet")),
    }
}

fn samples(input: &Input<'_>, format: Format, positive: &[Label], tokenizer: Tokenizer) -> Result<Samples, Error> {
    match format {
        Format::Libsvm => libsvm::read(input, positive),
        Format::Table | Format::JsonLines | Format::Parquet => {
            sample_table::read(input, format, Labelled::As(positive), tokenizer)
        }
        found => Err(wrong(input, found, "labelled samples", FORMATS_OF_SAMPLES)),
    }
}

/// The formats of samples, and how to name that which a file of numbers does not tell.
const FORMATS_OF_SAMPLES: &str =
    "libsvm, table, jsonl, parquet; of a table, --format table or --columns label=COLUMN says so";

/// The roles of columns of samples.
const OF_SAMPLES: &[Role] = &[Role::Label, Role::Weight, Role::Text, Role::Without, Role::Category, Role::Feature];

fn corpus(
    input: &Input<'_>,
    format: Format,
    vocabulary: Option<Dictionary>,
    tokenizer: Tokenizer,
) -> Result<Corpus, Error> {
    let roles = input.roles();
    if format == Format::Table || roles.has(Role::Text) {
        return texts::read(input, format, tokenizer);
    }
    if roles.lacks(Role::Count) {
        return bag_of_words::counted_once(match format {
            Format::JsonLines => json_lines::read::<Pair<WordCount>>(input, usize::MAX)?,
            Format::Parquet => parquet::read::<Pair<WordCount>>(input, usize::MAX)?,
            _ => delimited::read::<Pair<WordCount>>(input, usize::MAX)?,
        });
    }
    match format {
        Format::BagOfWords => bag_of_words::read_uci(input, vocabulary),
        Format::LdaC => bag_of_words::read_ldac(input, vocabulary),
        Format::Text => bag_of_words::read_text(input, tokenizer),
        // Three columns are words and counts where a corpus is wanted.
        Format::Counts | Format::Ratings => counted(delimited::read::<WordCount>(input, usize::MAX)?),
        Format::JsonLines => counted(json_lines::read::<WordCount>(input, usize::MAX)?),
        Format::Parquet => {
            counted(parquet::read::<WordCount>(input, usize::MAX).map_err(|error| or_texts(error, roles))?)
        }
        found => Err(wrong(input, found, "a corpus", "bow, lda-c, counts, table, text, jsonl, parquet")),
    }
}

/// Says beside what is wrong with columns of counts that one may hold texts, where none is named.
fn or_texts(error: Error, roles: &Roles) -> Error {
    match error {
        Error::Invalid { path, problem } if roles.is_empty() => Error::Invalid {
            path,
            problem: format!("{problem}; if a column holds texts, name it with --columns text=COLUMN"),
        },
        error => error,
    }
}

fn counted(loaded: Loaded<u32>) -> Result<Corpus, Error> {
    let mut data = loaded.into_dataset()?;
    // A word of a document in several lines is one.
    add_up_counts(&mut data.edges);
    Ok(Corpus::new(data))
}

fn wrong(input: &Input<'_>, found: Format, wanted: &'static str, expected: &'static str) -> Error {
    Error::WrongFormat { path: input.path().to_path_buf(), found: found.name(), wanted, expected }
}
