//! Training on implicit feedback: who used what in, factors out.

mod data;
mod half_life;
mod model;
mod options;
mod trainer;

pub use data::{Feedback, FeedbackOptions};
pub(crate) use data::{NO_FEEDBACK, is_feedback};
pub use half_life::HalfLife;
pub use model::Recommender;
pub use options::AlsOptions;
pub use trainer::ImplicitFactorization;
