//! The machine: its memory, processors and caches, and the atomics that models of the scheduler replace.

pub(crate) mod atomics;
pub mod binding;
mod groups;
pub mod os;
pub mod topology;
