//! Training of topic models: a corpus in, topics out.

mod data;
pub mod explorer;
mod model;
mod options;
mod start;
mod trainer;

pub use data::{CorpusOptions, Documents, NewDocuments, format_of_new, layout_of_new};
pub use model::{Asked, Found, TopicModel, listing};
pub use options::{Alpha, PriorChoice, Sampler, TopicOptions};
pub use trainer::TopicModels;
