//! The readers' tests.

mod cache;
mod errors;
mod formats;
mod output;
mod parquet;
mod real_data;
mod synthetic;
mod together;
