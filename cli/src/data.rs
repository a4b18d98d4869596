//! A data set of any kind: what commands take that do not train.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use megagrid_datasets::cache::{self, Cache, EdgeData, EdgeType};
use megagrid_datasets::{Dataset, Format, Label, Labels, Layout, Prepared, Role, Samples};
use megagrid_datasets::{input_bytes, read_corpus, read_graph, read_ratings, read_samples};
use megagrid_partition::{Ends, Side};
use megagrid_training::input::Source;
use serde::Serialize;

use crate::failure::usage;
use crate::output;

/// What a data set is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Vertices and directed edges.
    Graph,
    /// Users, items and how they rated them.
    Ratings,
    /// Labelled samples and their features.
    Samples,
    /// Documents, words and how often they occur there.
    Corpus,
}

impl Kind {
    /// Returns the kind of data that have a role.
    fn of(role: Role) -> Self {
        match role {
            Role::From | Role::To | Role::Weight => Self::Graph,
            Role::User | Role::Item | Role::Rating | Role::Time => Self::Ratings,
            Role::Document | Role::Word | Role::Count => Self::Corpus,
            Role::Label | Role::Text | Role::Without | Role::Category | Role::Feature => Self::Samples,
        }
    }

    /// Returns what the sides are called; those of a graph by the edges that are counted.
    pub fn sides(self) -> [&'static str; 2] {
        match self {
            Self::Graph => ["out-edges", "in-edges"],
            Self::Ratings => ["users", "items"],
            Self::Samples => ["samples", "features"],
            Self::Corpus => ["documents", "words"],
        }
    }

    /// Says in a few words what kind of data set there is, and how large it is.
    pub fn size(self, left: usize, right: usize, edges: usize) -> String {
        match self {
            Self::Graph => format!("graph of {left} vertices, {edges} edges"),
            Self::Ratings => format!("{edges} ratings of {right} items by {left} users"),
            Self::Samples => format!("{left} samples of {right} features, {edges} values"),
            Self::Corpus => format!("corpus of {left} documents, {right} words, {edges} entries"),
        }
    }
}

/// The input, and what it is to be taken for.
#[derive(Clone, Debug, clap::Args)]
pub struct AnySource {
    #[command(flatten)]
    pub source: Source,
    /// What to take the input for [default: by format, and by names of columns that are known; mtx, and without
    /// such names jsonl, parquet and three columns, are ratings].
    #[arg(long = "as", value_name = "KIND", value_enum)]
    pub kind: Option<Kind>,
    /// Labels of samples, numbers or words, that become 1, all others -1 [default: each label is a class].
    #[arg(long, value_name = "LABELS", value_delimiter = ',', allow_negative_numbers = true)]
    pub positive: Vec<Label>,
}

/// What is known of an input before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub format: Format,
    pub kind: Kind,
}

impl AnySource {
    /// Returns the place of the input.
    pub fn path(&self) -> &Path {
        &self.source.input
    }

    /// Tells what the input is, from its name and beginning.
    pub fn find(&self) -> anyhow::Result<Found> {
        let layout = self.source.layout();
        let may_be_table = self.kind == Some(Kind::Samples) && layout.format.is_none() && layout.roles.name_no_kind();
        let format = match may_be_table.then(|| Format::of_samples(self.path())).transpose()?.flatten() {
            Some(format) => format,
            None => layout.find(self.path())?,
        };
        let natural = match format {
            Format::Edges => layout.role(self.path())?.map_or(Kind::Graph, Kind::of),
            Format::Ratings | Format::JsonLines | Format::Parquet => {
                layout.role(self.path())?.map_or(Kind::Ratings, Kind::of)
            }
            Format::MatrixMarket => Kind::Ratings,
            Format::Libsvm => Kind::Samples,
            Format::Table => layout.role(self.path())?.map_or(Kind::Samples, Kind::of),
            Format::BagOfWords | Format::LdaC | Format::Counts | Format::Text => Kind::Corpus,
            Format::Cache => kind_of_cache(self.path())?,
        };
        let kind = self.kind.unwrap_or(natural);
        if format == Format::Cache && kind != natural {
            let name = |kind: Kind| format!("{kind:?}").to_lowercase();
            return Err(usage(format!("--as {} contradicts the cache, which holds {}", name(kind), name(natural))));
        }
        if !self.positive.is_empty() && (kind != Kind::Samples || format == Format::Cache) {
            return Err(usage("--positive goes with labelled samples in a text"));
        }
        Ok(Found { format, kind })
    }

    /// Reads the input into memory.
    pub fn read(&self, found: Found) -> anyhow::Result<Data> {
        let (path, mut layout) = (self.path(), self.source.layout());
        if found.format == Format::Cache {
            return read_cache(path, found.kind);
        }
        // Its header calls the two columns users and items.
        if found.format == Format::Edges && found.kind == Kind::Ratings && self.kind.is_none() {
            layout.roles = layout.roles.only_pairs();
        }
        Ok(match found.kind {
            Kind::Graph => Data::Graph(read_graph(path, layout)?),
            Kind::Ratings => Data::Ratings(read_ratings(path, layout)?),
            Kind::Samples => {
                let layout = Layout { format: Some(found.format), ..layout };
                Data::Samples(read_samples(path, layout, &self.positive)?)
            }
            Kind::Corpus => Data::Corpus(read_corpus(path, layout)?.data),
        })
    }

    /// Opens the input if it is a cache; otherwise reads it, and groups its edges by `sides` under their final ids.
    pub fn open(&self, found: Found, sides: &[Side]) -> anyhow::Result<Grouped> {
        if found.format != Format::Cache {
            return Ok(self.read(found)?.ordered().grouped(sides));
        }
        let path = self.path();
        Ok(match found.kind {
            Kind::Graph => Grouped::Graph(Prepared::open(path)?),
            Kind::Ratings => Grouped::Ratings(Prepared::open(path)?),
            Kind::Samples => Grouped::Samples(Prepared::open(path)?),
            Kind::Corpus => Grouped::Corpus(Prepared::open(path)?),
        })
    }

    /// Returns the bytes of the input.
    pub fn bytes(&self) -> anyhow::Result<u64> {
        Ok(input_bytes(self.path())?)
    }
}

fn kind_of_cache(path: &Path) -> anyhow::Result<Kind> {
    let info = cache::info(path)?;
    Ok(match info.edge_type {
        EdgeType::Nothing => Kind::Graph,
        EdgeType::Float if info.has_labels => Kind::Samples,
        EdgeType::Float | EdgeType::Double => Kind::Ratings,
        EdgeType::Count => Kind::Corpus,
    })
}

fn read_cache(path: &Path, kind: Kind) -> anyhow::Result<Data> {
    fn open<T: EdgeData>(path: &Path) -> anyhow::Result<(Dataset<T>, Option<Labels>)> {
        let cache = Cache::open(path)?;
        Ok((cache.to_dataset()?, cache.labels()?))
    }
    Ok(match kind {
        Kind::Graph => Data::Graph(open(path)?.0),
        Kind::Ratings => Data::Ratings(open(path)?.0),
        Kind::Samples => {
            let (data, labels) = open(path)?;
            Data::Samples(Samples::new(data, labels.unwrap_or_default()))
        }
        Kind::Corpus => Data::Corpus(open(path)?.0),
    })
}

/// Writes what was found, as JSON where that is asked for, and as a text unless the JSON went to stdout.
pub fn write_findings(json: Option<&Path>, findings: &impl Serialize, text: &str) -> anyhow::Result<()> {
    if let Some(path) = json {
        let json = serde_json::to_string_pretty(findings).context("writing the findings")?;
        output::write_text(path, &(json + "\n"))?;
    }
    if json == Some(Path::new("-")) { Ok(()) } else { output::print(text) }
}

/// A data set in memory.
pub enum Data {
    Graph(Dataset<()>),
    Ratings(Dataset<f32>),
    Samples(Samples),
    Corpus(Dataset<u32>),
}

impl Data {
    /// Gives the vertices their final ids, in descending order of degree. Edges keep their order.
    pub fn ordered(self) -> Self {
        match self {
            Self::Graph(graph) => Self::Graph(graph.in_degree_order()),
            Self::Ratings(ratings) => Self::Ratings(ratings.in_degree_order()),
            Self::Samples(samples) => Self::Samples(samples.in_degree_order()),
            Self::Corpus(corpus) => Self::Corpus(corpus.in_degree_order()),
        }
    }

    /// Groups the edges by the vertices of each of `sides`.
    pub fn grouped(self, sides: &[Side]) -> Grouped {
        match self {
            Self::Graph(graph) => Grouped::Graph(Prepared::new(graph, sides)),
            Self::Ratings(ratings) => Grouped::Ratings(Prepared::new(ratings, sides)),
            Self::Samples(samples) => Grouped::Samples(Prepared::from_samples(samples, sides)),
            Self::Corpus(corpus) => Grouped::Corpus(Prepared::new(corpus, sides)),
        }
    }

    /// Returns the ends of the edges.
    pub fn ends(&self) -> Ends<'_> {
        match self {
            Self::Graph(graph) => graph.edges.ends(),
            Self::Ratings(ratings) => ratings.edges.ends(),
            Self::Samples(samples) => samples.data.edges.ends(),
            Self::Corpus(corpus) => corpus.edges.ends(),
        }
    }
}

/// A data set grouped by the ends of its edges, in memory or in a cache.
pub enum Grouped {
    Graph(Prepared<()>),
    Ratings(Prepared<f32>),
    Samples(Prepared<f32>),
    Corpus(Prepared<u32>),
}

impl Grouped {
    /// Writes a cache. The edges have to be grouped by both sides.
    pub fn write_cache(&self, path: &Path) -> Result<(), megagrid_datasets::Error> {
        match self {
            Self::Graph(prepared) => prepared.write_cache(path),
            Self::Ratings(prepared) | Self::Samples(prepared) => prepared.write_cache(path),
            Self::Corpus(prepared) => prepared.write_cache(path),
        }
    }
}
