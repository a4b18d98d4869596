//! A run: workers as state machines, the board between them, and what moves them on.

mod arrivals;
mod begun;
mod between;
pub mod board;
mod coordinator;
mod driver;
mod injection;
mod modelled;
mod peers;
mod report;
mod runner;
mod state;
mod threads;
mod time;
mod timeline;
mod timely_driver;
mod transport;
mod virtual_driver;
pub mod worker;

pub(crate) use between::{collect, put, refresh, settle, spread, take};
pub(crate) use driver::run;
pub use injection::{Injection, NoInjection};
pub(crate) use modelled::{Approval, MakeWorker, Modelled, Shared, VirtualWorker};
pub use peers::Peers;
pub(crate) use peers::{agree, all_gather, pack_parts, parts_for};
pub use report::{IterationReport, WorkerReport, WorkerSeconds};
pub(crate) use state::Run;
pub(crate) use time::Time;
pub use timeline::{TIMELINE, timeline_origin};
