//! The MEGA programming model (TuX² §3.3): what an algorithm author imports.
//!
//! An algorithm is two [`Vertex`] types, a few stage functions ([`Exchange`], [`Incident`], [`Apply`], [`GlobalSync`]) and a
//! [`Sequence`] that says in which order they run. There are no threads, locks or indices here; an engine derives them.

mod access;
mod apply;
mod counts;
mod edge;
mod error;
mod exchange;
mod global_sync;
mod incident;
pub mod kernels;
mod mini_batch;
mod program;
mod sequence;
pub mod simd;
mod store;
mod vertex;

pub use access::{Access, Add, AddView, Mode, Read, ReadView, Replica, Update, UpdateView};
pub use apply::{Apply, MasterView};
pub use counts::{Count, Counts, CountsMut, CountsRef};
pub use edge::{EdgeData, Scalar, Slice};
pub use error::Error;
pub use exchange::{Edge, Exchange, View};
pub use global_sync::{Combine, GlobalSync, TotalView};
pub use incident::{EdgeItem, Incident};
pub use megagrid_partition::Side;
pub use mini_batch::{BatchOrder, BatchSize, MiniBatch};
pub use program::{Context, Program};
pub use sequence::{Sequence, Stages, Visitor};
pub use store::{Additive, Changes, Item, ROW_ALIGN, Row, Shape, Store, Value, row_width};
pub use vertex::Vertex;
