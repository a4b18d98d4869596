//! A graph engine for machine learning.
//!
//! An algorithm is vertices, a program, and stages: functions on edges and vertices. From what they read and write the engine
//! derives who may run what at the same time, so that they are plain safe code.
//!
//! ```
//! use megagrid::prelude::*;
//!
//! vertex! { struct Page { sync: u32, delta: u32 } }
//! program! { struct Links { vertices: Page } }
//!
//! let links = Edges::square(3, [(0, 2), (1, 2), (2, 0)])?;
//! let count = Sequence::new()
//!     .exchange(|_: Read<Page>, to: Add<Page>| *to.delta += 1)
//!     .apply(Right, |page: Master<Page>| *page.sync = *page.delta);
//! let mut engine = Engine::<Links>::new(&links, count, &Settings::default())?;
//! engine.iterate(1)?;
//! assert!(engine.on(Right).iter().eq(&[1, 0, 2]));
//! # Ok::<(), Error>(())
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`prelude`] | what an algorithm is written with |
//! | [`stages`] | the programming model: roles, views, modes, stages, sequences |
//! | [`kernels`], [`simd`] | functions on rows, compiled for each vector level |
//! | [`engine`] | plans, checkpoints, branches, processes, virtual workers |
//! | [`datasets`] | readers, caches, generators |
//! | [`algorithms`] | PageRank, hubs and authorities, matrix factorization, topic models, sparse logistic regression |
//! | [`training`] | from data and options to a model: test data, early stopping, checkpoints, records, tuning, for these and for yours |
#![forbid(unsafe_code)]

pub use bytemuck;
pub use megagrid_algorithms as algorithms;
pub use megagrid_datasets as datasets;
pub use megagrid_engine as engine;
pub use megagrid_partition as partition;
pub use megagrid_stages as stages;
pub use megagrid_stages::{kernels, simd};
pub use megagrid_training as training;

/// What an algorithm is written with.
pub mod prelude {
    pub use crate::Error;
    pub use megagrid_datasets::Edges;
    pub use megagrid_engine::{Engine, IterationReport, Settings, Source};
    pub use megagrid_partition::{EdgeSource, SplitMix as Random};
    pub use megagrid_stages::{
        Add, Additive, Aggregate, Apply, BatchOrder, BatchSize, Combine, Context, Exchange, First, Gather, GlobalSync,
        Incident, Left, Master, Max, MiniBatch, Neighbors, On, Program, Read, Right, Sequence, Side, Stages, Total,
        Update, Vertex, additive, edge_stage, mode, program, vertex,
    };
}

/// What can go wrong from a file to a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused, or ended, a run.
    #[error(transparent)]
    Engine(#[from] megagrid_engine::Error),
    /// An input cannot be read, or edges do not fit together.
    #[error(transparent)]
    Datasets(#[from] megagrid_datasets::Error),
    /// An algorithm refused its parameters.
    #[error(transparent)]
    Algorithms(#[from] megagrid_algorithms::Error),
    /// Processes did not come together.
    #[error(transparent)]
    Cluster(#[from] megagrid_engine::cluster::ClusterError),
    /// Training ended without a model.
    #[error(transparent)]
    Training(#[from] megagrid_training::Error),
}

/// Lets what looks at a run between iterations fail with an error of any crate.
impl From<Error> for megagrid_engine::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error,
            other => Self::Stopped(Box::new(other)),
        }
    }
}

/// The README's code, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The book's page on stages, whose code is compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/book/src/stages.md")]
pub struct Stages;
