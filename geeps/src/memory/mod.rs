//! Device memory: what is pinned in it, what moves, and where buffers are.

mod meter;
mod placement;
mod plan;
mod ring;

pub use meter::Meter;
pub use placement::{Held, Need, Placement, Shortage, place};
pub(crate) use plan::Freshness;
pub use plan::{Item, Moves, Plan};
pub(crate) use ring::Ring;
