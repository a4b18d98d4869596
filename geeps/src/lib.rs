//! GeePS: a parameter server whose cache, local data and access buffers live in the memory of an accelerator, which it manages
//! itself (chapter 4 of Cui's thesis, 2017; Cui et al., EuroSys'16).
#![forbid(unsafe_code)]

pub mod device;
mod error;
mod index;

pub use error::Error;
pub use index::Index;
