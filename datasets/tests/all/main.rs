//! The readers' tests.

mod cache;
mod errors;
mod formats;
mod output;
mod parquet;
mod parts;
mod synthetic;
mod tables;
mod together;
