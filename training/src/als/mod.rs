//! Training on implicit feedback: who used what in, factors out.

mod data;
mod model;
mod options;
mod trainer;

pub use data::{Feedback, FeedbackOptions};
pub use model::Recommender;
pub use options::AlsOptions;
pub use trainer::ImplicitFactorization;
