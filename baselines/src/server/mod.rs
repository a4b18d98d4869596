//! A parameter server: tablet servers that store rows of tables, and a client library through which worker threads read and
//! update them, with bounded staleness.
//!
//! It follows LazyTable (Cui et al., USENIX ATC 2014, section 3), ESSPTable (Dai et al., AAAI 2015) and IterStore (Cui et
//! al., SoCC 2014), as presets over one implementation ([`Preset`]).
//!
//! ```text
//! worker thread     worker thread          a process with a `Client` and a `Worker` for each thread
//! [thread cache]    [thread cache]         private rows and their updates of this clock
//!        \            /
//!   [process cache, operation log]         rows with their version; updates that servers may not have
//!        |            |                    TCP
//!   tablet server  tablet server           rows; vector clock of the processes; reads and updates that wait
//! ```
//!
//! The keys may be divided into partitions ([`Options::partitions`]; IterStore, section 4.1): each machine then has a tablet server for
//! each, with a thread that keeps its rows, and each process a thread that pushes updates to them and pulls rows from them.
//!
//! **Consistency.** Each worker counts clocks. A read in clock c with slack s contains all updates of all workers of clocks up
//! to c - 1 - s (slack 0: bulk synchronous), and all of the reading worker's own. Updates are associative and commutative
//! ([`Element`]), so that they are combined on their way: within a clock, within a process.
//!
//! **Failures.** There is no replication. A process that is lost ends the run of all, which are told within 10 s; servers
//! write checkpoints to resume from ([`Checkpoints`]). There is neither authentication nor encryption: use it in a network
//! whose members you trust.
//!
//! # Examples
//! Two threads that count together:
//! ```
//! use megagrid_baselines::server::{Client, Options, Preset, ServerOptions, Tables, TabletServer};
//!
//! let mut tables = Tables::new();
//! let counts = tables.add::<i32>(1);
//! let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(0, 1, 1))?;
//! let client = Client::connect(&[server.address()], &tables, Options::preset(Preset::LazyTable, 2, 0))?;
//! client.store(counts, &[7], &[100])?;
//! std::thread::scope(|scope| {
//!     for mut worker in client.workers() {
//!         scope.spawn(move || {
//!             for _ in 0..3 {
//!                 worker.update(counts, 7, &[1])?;
//!                 worker.clock()?;
//!             }
//!             assert_eq!(worker.read(counts, 7, 0)?, [106]);
//!             Ok::<(), megagrid_baselines::Error>(())
//!         });
//!     }
//! });
//! assert_eq!(client.read_table(counts, 3)?.values, [106]);
//! # Ok::<(), megagrid_baselines::Error>(())
//! ```

mod ada_revision;
mod client;
mod element;
mod frame;
mod link;
mod numa;
mod options;
#[cfg(test)]
mod refusals;
mod statistics;
mod tablet;

pub use ada_revision::AdaRevision;
pub use client::{Client, Gather, TableRows, Worker};
pub use element::{Element, Table, Tables};
pub use frame::{MAX_FRAME_BYTES, PROTOCOL};
pub use options::{
    CONTENTION_BOUND, Checkpoints, EARLY_RATIO, Options, PATIENCE, Prefetch, Preset, ServerOptions, Specializations,
    ThreadCache,
};
pub use statistics::{Preprocessing, Statistics};
pub use tablet::{MAX_CLIENTS, TabletServer, newest_checkpoint};
