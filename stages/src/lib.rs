//! The MEGA programming model (TuX² §3.3): what an algorithm author imports.
//!
//! An algorithm is two [`Vertex`] types, a few stages ([`Exchange`], [`Incident`], [`Gather`], [`Apply`], [`GlobalSync`], functions or
//! types)
//! and a [`Sequence`] that says in which order they run. There are no threads, locks or indices here; an engine derives them.

mod combine;
mod error;
mod exchange;
mod functions;
pub mod kernels;
mod mini_batch;
pub mod mode;
mod program;
mod sequence;
mod side;
pub mod simd;
mod store;
mod vertex;
mod vertex_stages;
mod view;

pub use combine::{Combine, Max};
pub use error::Error;
pub use exchange::Exchange;
pub use functions::{AdditiveFunction, Function, IntoApply, IntoExchange, IntoGlobalSync, IntoIncident, additive};
pub use megagrid_partition::Side;
pub use mini_batch::{BatchOrder, BatchSize, MiniBatch};
pub use program::{Context, EdgeItem, Program};
pub use sequence::{Sequence, Stages, Visitor};
pub use side::{Left, On, Right, Sides};
pub use store::{Additive, Changes, Item, ROW_ALIGN, Shape, Store, row_width};
pub use vertex::Vertex;
pub use vertex_stages::{Aggregate, Apply, Gather, GlobalSync, Incident, Neighbors};
pub use view::{Add, First, Master, Read, Total, Update};
