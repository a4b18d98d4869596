//! Master and mirrors across processes: what crosses between them, as values, bytes and messages.
//!
//! At slack 0 every message belongs to a step: the one in which it was sent. No worker begins a step that uses what others
//! send ([`After::All`](crate::plan::After::All)) before all messages of earlier steps have arrived and were taken in; see
//! [`Board::arrive`](crate::run::board::Board::arrive). Other steps wait for the workers of their own process only.

mod arithmetic;
mod codec;
mod counts;
mod dirty;
mod form;
mod in_transit;
mod ledger;
mod lent;
mod message;
mod mirrors;
mod outbox;
mod pick;
mod prediction;
mod replicas;
mod replication;
mod served;
mod table;

pub use codec::{
    about_sync_bytes, about_whole_bytes, add_deltas, pack_deltas, pack_sync, pack_whole, unpack_sync, unpack_whole,
};
pub use in_transit::InTransit;
pub use ledger::Push;
pub use lent::sync_body;
pub use message::{Body, Kind, Malformed, Message, Parcel};
pub use mirrors::Mirrors;
pub use outbox::{Outbox, Senders};
pub use pick::{Pick, Slice, slices};
pub use prediction::predict;
pub use replicas::Replicas;
pub use replication::{Replication, slice_of};
pub use served::{DueRows, Served};
