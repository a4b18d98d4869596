//! What servers and client processes are told: who they are, how fresh rows must be, and which specializations are on.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::frame::{CHUNK_BYTES, MAX_FRAME_BYTES};
use crate::Error;

/// How long a connection may be silent before its other end counts as lost; a heartbeat is due each second.
pub const PATIENCE: Duration = Duration::from_secs(8);
/// The share of reads whose rows are requested first ([`Specializations::early_ratio`]); IterStore, section 4.7.
pub const EARLY_RATIO: f64 = 0.1;
/// The bound on the probability that an access meets another thread's ([`ThreadCache::Static`]).
pub const CONTENTION_BOUND: f64 = 0.1;

/// A published system, as settings of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Stale synchronous parallel: clients pull rows that are too old, and prefetch what they used in the clock before
    /// (Cui et al., USENIX ATC 2014).
    LazyTable,
    /// Eager: servers push registered rows when the global clock advances (Dai et al., AAAI 2015).
    Essp,
    /// Specialized to the accesses of an iteration, which repeat (Cui et al., SoCC 2014).
    IterStore,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::LazyTable, Self::Essp, Self::IterStore];

    /// Returns its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LazyTable => "lazytable",
            Self::Essp => "essp",
            Self::IterStore => "iterstore",
        }
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == name)
            .ok_or_else(|| Error::Options(format!("there is no preset {name:?}; use lazytable, essp or iterstore")))
    }
}

/// Whether rows are requested before they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// No.
    Off,
    /// At the beginning of a clock, rows that would be too old in it.
    Conservative,
    /// At the beginning of a clock, all rows that are not of the newest version.
    Aggressive,
}

/// The private cache of each worker thread, in front of the process cache.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum ThreadCache {
    /// None.
    #[default]
    Off,
    /// The rows used last.
    Lru {
        /// How many rows.
        capacity: usize,
    },
    /// Rows chosen from the gathered accesses, never evicted: those that threads would contend for, then the most
    /// frequent. Nothing is cached before accesses are gathered.
    Static {
        /// How many rows.
        capacity: usize,
        /// The bound on the probability that an access meets another thread's ([`CONTENTION_BOUND`]).
        contention_bound: f64,
    },
}

/// What is done with the gathered accesses of an iteration (IterStore, section 3.2), each a switch of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Specializations {
    /// The process cache is a fixed array of rows in the order of access, and rows travel without their numbers. Otherwise
    /// it is a hash map.
    pub static_structures: bool,
    /// A row is stored by the server of the process that uses it most.
    pub placement: bool,
    /// The threads' caches.
    pub thread_cache: ThreadCache,
    /// The share of reads whose rows are requested first, at the beginning of a clock: 0 sends one request for all.
    pub early_ratio: f64,
    /// Worker threads are bound to the machine's NUMA nodes in turn, and their caches lie in the memory of their node. On a
    /// machine of one node it does nothing ([`super::Client::numa_nodes`]).
    pub numa: bool,
}

impl Specializations {
    /// None of them.
    pub fn none() -> Self {
        Self::default()
    }

    /// All of them, with thread caches of this many rows.
    pub fn all(cached_rows: usize) -> Self {
        let thread_cache = ThreadCache::Static { capacity: cached_rows, contention_bound: CONTENTION_BOUND };
        Self { static_structures: true, placement: true, thread_cache, early_ratio: EARLY_RATIO, numa: true }
    }
}

/// What a client process is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Worker threads of this process.
    pub threads: usize,
    /// The number of this process among the clients, from 0.
    pub client: usize,
    /// How many client processes there are; servers are told the same.
    pub clients: usize,
    /// The slack that is meant where prefetching needs one; `read` is given its own.
    pub slack: u32,
    /// Whether servers push rows once they were read.
    pub push: bool,
    /// What is requested before it is read.
    pub prefetch: Prefetch,
    /// What is done with gathered accesses.
    pub specializations: Specializations,
    /// About how many rows the process caches; nothing: all that it has used. Rows with updates that their servers have not confirmed stay.
    /// Not for rows that servers push, nor for static structures.
    pub cached_rows: Option<usize>,
    /// The server on the same machine, where placement puts rows that this process uses most; with several partitions, which of
    /// the machines, each of which has as many servers.
    pub own_server: usize,
    /// Partitions of the keys (IterStore, section 4.1). The servers of a machine come one after the other, one for each
    /// partition, and the process has a thread for each, which exchanges messages with its servers. IterStore has one
    /// for every two threads.
    pub partitions: usize,
    /// The largest frame accepted.
    pub max_frame_bytes: usize,
    /// How long a server may be silent ([`PATIENCE`]).
    pub patience: Duration,
}

impl Options {
    /// Returns a published system's settings for one process of `threads` workers.
    pub fn preset(preset: Preset, threads: usize, slack: u32) -> Self {
        let (push, prefetch, specializations) = match preset {
            Preset::LazyTable => (false, Prefetch::Aggressive, Specializations::none()),
            Preset::Essp => (true, Prefetch::Off, Specializations::none()),
            Preset::IterStore => (false, Prefetch::Aggressive, Specializations::all(usize::MAX)),
        };
        Self {
            threads,
            client: 0,
            clients: 1,
            slack,
            push,
            prefetch,
            specializations,
            cached_rows: None,
            own_server: 0,
            partitions: 1,
            max_frame_bytes: MAX_FRAME_BYTES,
            patience: PATIENCE,
        }
    }
}

/// What a tablet server is told.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The number of this server, from 0: its place in the clients' list of addresses.
    pub server: usize,
    /// How many servers there are.
    pub servers: usize,
    /// Partitions of the keys ([`Options::partitions`]): its machine has a server for each, and which of them this is decides the node
    /// of memory that its thread is on.
    pub partitions: usize,
    /// How many client processes there are.
    pub clients: usize,
    /// The largest frame accepted.
    pub max_frame_bytes: usize,
    /// How long a client may be silent ([`PATIENCE`]).
    pub patience: Duration,
    /// Where and how often its rows are written to a file.
    pub checkpoints: Option<Checkpoints>,
    /// The checkpoint to begin with: the folder, and the clock at which it was written ([`super::newest_checkpoint`]).
    pub resume: Option<(PathBuf, u32)>,
}

impl ServerOptions {
    /// One server among `servers`, for this many client processes, without checkpoints.
    pub fn new(server: usize, servers: usize, clients: usize) -> Self {
        Self {
            server,
            servers,
            partitions: 1,
            clients,
            max_frame_bytes: MAX_FRAME_BYTES,
            patience: PATIENCE,
            checkpoints: None,
            resume: None,
        }
    }
}

/// Where and how often a server writes its rows.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    /// The folder; made if it is absent.
    pub folder: PathBuf,
    /// Clocks from one to the next, at least 1.
    pub every: u32,
    /// Whether each has only the updates of clocks before it (LazyTable, section 3.3: a pure snapshot), for which a row is copied that a
    /// client changes ahead of it. Otherwise, with slack, also later ones of clients that are ahead: an approximate snapshot. Rows
    /// that are placed while clients are ahead are approximate in both.
    pub pure: bool,
}

/// Checks what servers and clients are told alike.
pub(super) fn check_shape(servers: usize, partitions: usize, max_frame_bytes: usize) -> Result<(), Error> {
    if partitions == 0 || !servers.is_multiple_of(partitions) {
        let given = format!("{servers} servers and {partitions} partitions");
        return Err(Error::Options(format!("{given}; every machine has a server for each partition")));
    }
    if max_frame_bytes < 2 * CHUNK_BYTES {
        return Err(Error::Options(format!("frames need at least {} bytes", 2 * CHUNK_BYTES)));
    }
    Ok(())
}
