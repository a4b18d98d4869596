//! Algorithms written against the library `megagrid`. Copy one to begin your own.
//!
//! | module | graph | edge function | shows |
//! |---|---|---|---|
//! | [`communities`] | square, weighted | `Read`, `Add` | rows, Apply, a stopping rule by GlobalSync |
//! | [`click_factors`] | bipartite | `Update`, `Update` | in-place updates, negative examples |
//!
//! Whole programs stand beside this package's manifest: `in_degree.rs`, `label_propagation.rs`, `factors.rs`, and the tutorial's,
//! which `docs/book/src/own-algorithm.md` explains line by line. `trained.rs` trains an algorithm as the commands train theirs.
#![forbid(unsafe_code)]

pub mod click_factors;
pub mod communities;
