//! The readers' tests.

mod cache;
mod errors;
mod formats;
mod output;
mod parquet;
mod synthetic;
mod together;
