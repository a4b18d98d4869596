//! Who owns what: ids, degrees, relabeling, vertex-cut strategies and their quality.
#![forbid(unsafe_code)]

mod buckets;
mod degrees;
mod edges;
mod error;
mod grouped;
mod ids;
pub mod parallel;
mod partitioning;
mod parts;
mod quality;
mod relabel;
mod replicas;
mod seed;
mod sorter;
pub mod strategy;

pub use buckets::{Buckets, Dealt};
pub use degrees::{DegreeStats, Irregularities, count_degrees, irregularities, offsets_of};
pub use edges::{EdgeList, EdgeSource, Ends, Holders, windows};
pub use error::Error;
pub use grouped::GroupedEdges;
pub use ids::{ProcessId, ShardId, Side, WorkerId};
pub use partitioning::{MAX_PARTITIONS, Partitioning};
pub use quality::{Quality, balance};
pub use relabel::Relabeling;
pub use seed::SplitMix;
pub use sorter::BucketSorter;
pub use strategy::Strategy;
