//! GeePS: a parameter server whose cache, local data and access buffers live in the memory of an accelerator, which
//! it manages itself (chapter 4 of Cui's thesis, 2017; Cui et al., EuroSys'16).
#![forbid(unsafe_code)]

pub mod apps;
mod client;
pub mod device;
mod error;
#[cfg(feature = "gpu")]
pub mod gpu;
mod index;
pub mod memory;
pub mod modelled;
pub mod processes;
mod rows;
pub mod run;
mod servers;
mod session;
mod sync;
mod table;
mod trace;
mod virtual_iteration;

/// What a worker's threads tell each other, for loom.
#[cfg(loom)]
#[doc(hidden)]
pub mod hub {
    pub use crate::client::{Ended, Hub};
    pub use crate::trace::Home;
}

pub use client::{Client, Options};
pub use error::Error;
pub use index::Index;
pub use servers::{Consistency, Servers};
pub use session::{LocalBuffer, ReadBuffer, Session, UpdateBuffer};
pub use table::{LocalId, RowsId, Table, TableId, Tables};
pub use trace::{Event, Layer, Local, Trace, What};
pub use virtual_iteration::VirtualIteration;
