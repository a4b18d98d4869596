//! Files to edges: readers, the binary cache, generators with planted truth, train/test split.
//!
//! Readers take a file (plain, gzip or zstd, told by its first bytes) or a directory of part files, on all threads of
//! the current rayon pool, and return edges with the names of their ends. What they return does not depend on the
//! number of threads: ids that are all integers are numbered in ascending order, others as they first appear.
#![deny(unsafe_code)]

mod bag_of_words;
pub mod cache;
mod changes;
mod checksum;
mod column;
mod columns;
mod corpus;
mod dataset;
mod delimited;
mod dictionary;
mod edge_list;
mod edges;
mod entries;
mod error;
mod exact_sum;
mod external;
mod format;
mod gather;
mod hashed;
mod header;
mod ids;
mod json_lines;
mod labels;
mod layout;
mod libsvm;
mod loaded;
mod map;
mod matrix_market;
mod missing;
mod name_table;
mod names;
mod numbering;
pub mod output;
mod parquet;
mod petgraph;
mod prepare;
mod ranks;
mod ratings;
mod read;
mod readers;
mod records;
mod repeated;
mod roles;
mod rows;
mod sample_table;
mod share;
mod split;
mod summary;
pub mod synthetic;
mod table;
mod text;
mod texts;
mod time;
mod tokens;
mod vocabulary;
mod warned;

pub use corpus::WordFilter;
pub use dataset::{Corpus, Dataset, OtherRating, Samples, TestRatings};
pub use dictionary::{Dictionary, Lookup};
pub use edges::AsEdge;
pub use error::Error;
pub use external::{DistributedEdges, ExternalEdges};
pub use format::Format;
pub use hashed::{MOST_HASH_BITS, hashed_name};
pub use header::rating_columns;
pub use labels::{Label, Labels};
pub use layout::Layout;
pub use loaded::Loaded;
pub use megagrid_partition::windows;
pub use prepare::{Edges, Names, Prepared};
pub use read::read_unlabelled;
pub use read::{
    load_graph, load_graph_with, load_ratings, load_ratings_with, load_times_with, load_weighted_graph_with,
};
pub use read::{parse_corpus, parse_graph, parse_ratings, parse_samples, parse_text};
pub use read::{
    read_corpus, read_corpus_with, read_graph, read_ratings, read_ratings_with, read_samples, read_samples_with,
    read_weighted_graph,
};
pub use readers::Readers;
pub use repeated::add_up;
pub use roles::{Role, Roles};
pub use sample_table::SampleColumns;
pub use share::Share;
pub use split::{Draw, split, split_by_user, split_users};
pub use summary::Summary;
pub use text::{files, input_bytes, is_pipe, read_text};
pub use tokens::{Split, StopWords, Tokenizer};
