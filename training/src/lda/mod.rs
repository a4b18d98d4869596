//! Training of topic models: a corpus in, topics out.

mod data;
pub mod explorer;
mod model;
mod new_documents;
mod options;
mod start;
mod trainer;

pub use data::{CorpusOptions, Documents};
pub use model::{Asked, Found, TopicModel, listing};
pub use new_documents::{NewDocuments, format_of_new, layout_of_new};
pub use options::{Alpha, PriorChoice, Sampler, TopicOptions};
pub use trainer::TopicModels;
