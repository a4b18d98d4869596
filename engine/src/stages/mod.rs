//! Stages at work: what a task does to the grid, for each kind of stage. Made once from a sequence; nothing generic is left
//! behind it.

mod apply;
mod collect;
mod crossing;
mod edges;
mod exchange;
mod gather;
mod global_sync;
mod globals;
mod incident;
mod site;

pub use collect::Collected;
pub use crossing::hand_over;
pub use edges::take as take_edges;
pub use exchange::exchange;
pub use globals::Globals;
pub use incident::{Scratch, visit};
pub use site::{RunStage, Site};
