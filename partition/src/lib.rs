//! Who owns what: ids, degrees, relabeling, vertex-cut strategies and their quality.
#![forbid(unsafe_code)]

mod edges;
mod ids;

pub use edges::{EdgeList, EdgeSource};
pub use ids::{PartitionId, ShardId, Side, VertexId, WorkerId};
