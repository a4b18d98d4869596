//! Training of sparse logistic regression: labelled samples in, weights of features out.

mod data;
mod model;
mod newton;
mod options;
mod solver;
mod steps;
mod trainer;

pub use data::{SampleOptions, Samples, Unseen, read as read_samples};
pub use model::{Linear, Predict, chance};
pub use options::LinearOptions;
pub use trainer::Regression;
