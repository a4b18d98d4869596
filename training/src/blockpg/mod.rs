//! Training of sparse logistic regression: labelled samples in, weights of features out, for each class where there are more than two.

mod calibration;
mod class_weights;
mod columns;
mod data;
mod fits;
mod model;
mod newton;
mod normalize;
mod options;
mod path;
mod penalties;
mod reading;
mod regression;
mod solver;
mod spreads;
mod steps;
mod trainer;
mod turns;
mod unseen;
mod weights;

pub use class_weights::ClassWeights;
pub use columns::warn_of_absent;
pub use data::{SampleOptions, Samples};
pub use model::{Linear, Predict, Prediction};
pub use options::LinearOptions;
pub use path::OfPenalty;
pub use penalties::{Path, Penalties};
pub use reading::read as read_samples;
pub use regression::Regression;
pub use unseen::Unseen;
