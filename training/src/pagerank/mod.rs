//! Training of PageRank: a graph in, ranks out.

mod data;
mod model;
mod options;
mod restart;
mod trainer;

pub use data::{LinkOptions, Links, Web};
pub use model::Ranks;
pub use options::RankOptions;
pub use trainer::Ranking;
