//! Training of matrix factorization: ratings in, factors out.

mod data;
mod model;
mod options;
mod trainer;

pub use data::{Origin, Ratings};
pub use model::{Factors, Recommend};
pub use options::{FactorOptions, Gradient};
pub use trainer::Factorization;
