//! Training of matrix factorization: ratings in, factors out.

mod data;
mod model;
mod options;
mod trainer;

pub use data::{RatingOptions, Ratings};
pub use model::{Factors, Recommend};
pub use options::{FactorOptions, Gradient};
pub use trainer::Factorization;
