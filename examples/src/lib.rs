//! Algorithms written outside the engine, against its public API alone. Copy one to begin your own.
//!
//! | module | graph | edge function | shows |
//! |---|---|---|---|
//! | [`label_propagation`] | square, weighted | `Read`, `Add` | rows, Apply, a stopping rule by GlobalSync |
//! | [`click_factors`] | bipartite | `Update`, `Update` | in-place updates, negative examples |
//!
//! The tutorial's algorithm is `tutorial.rs` beside this package's manifest: `docs/book/src/own-algorithm.md` explains it line by line.
#![forbid(unsafe_code)]

pub mod click_factors;
pub mod label_propagation;

/// The README's code, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
