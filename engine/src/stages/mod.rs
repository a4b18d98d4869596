//! Stages at work.

mod crossing;
mod edges;
mod globals;

pub(crate) use crossing::{Deliver, Publish, SendChanges, TakeRows, hand_over};
pub(crate) use edges::{SendEdges, take as take_edges};
pub(crate) use globals::Globals;
