//! Training of topic models: a corpus in, topics out.

mod data;
mod model;
mod options;
mod trainer;

pub use data::{Documents, NewDocuments, Origin, Words};
pub use model::{Asked, Found, TopicModel, listing};
pub use options::{Alpha, PriorChoice, Sampler, TopicOptions};
pub use trainer::TopicModels;
