//! Training of matrix factorization: ratings in, factors out.

mod answers;
mod data;
mod model;
mod options;
mod rankings;
mod reading;
mod scale;
mod start;
mod trainer;
mod unseen;

pub use answers::{Recommendations, Similar};
pub(crate) use data::HELD_OUT;
pub use data::{Holdout, RatingOptions, Ratings};
pub use model::{Factors, Recommend};
pub use options::{FactorOptions, Gradient, Optimizer};
pub(crate) use rankings::rankings;
pub(crate) use reading::ByTime;
pub use scale::Scale;
pub use start::Start;
pub use trainer::Factorization;
pub use unseen::Unseen;
