//! What can go wrong in a baseline.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a baseline refused, or ended, a run. It can be cloned, since all threads of a process are told of one failure.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system that there is none of.
    #[error("no system is called {0}; there are gas, gas-faithful, ps-naive, lazytable, essp and iterstore")]
    UnknownSystem(String),
    /// What a system cannot run.
    #[error("{system} does not run {what}; {advice}")]
    Unsupported {
        /// The system.
        system: &'static str,
        /// What was asked.
        what: &'static str,
        /// What to ask instead.
        advice: &'static str,
    },
    /// A setting out of range.
    #[error("{name} is {found}; expected {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// Its value.
        found: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// An objective that is no number.
    #[error("the objective became {objective} in iteration {iteration}; try a smaller step")]
    Diverged {
        /// When.
        iteration: u64,
        /// What it became.
        objective: f64,
    },
    /// A worker that panicked.
    #[error("worker {0} panicked; see its message above")]
    WorkerPanicked(usize),
    /// Parameters that an algorithm refuses.
    #[error(transparent)]
    Algorithm(#[from] megagrid_algorithms::Error),
    /// A socket or file.
    #[error("{place}: {source}")]
    Io {
        /// Which address or file.
        place: String,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A table that nobody made.
    #[error("there is no table {table}: tables are 0..{tables}; add it before servers and clients start")]
    UnknownTable {
        /// The number asked for.
        table: u32,
        /// How many there are.
        tables: usize,
    },
    /// Rows of another type, update or length than the table has.
    #[error("table {table} has rows of {expected}, not of {found}; use the same tables in servers and clients")]
    OtherRows {
        /// Which table.
        table: u32,
        /// What the table has.
        expected: String,
        /// What was given.
        found: String,
    },
    /// Values that do not make up whole rows of the table.
    #[error("{found} values were given for {rows} rows of table {table}, whose rows have {row_len}")]
    RowLength {
        /// Which table.
        table: u32,
        /// Values in a row.
        row_len: usize,
        /// Rows named.
        rows: usize,
        /// Values given.
        found: usize,
    },
    /// A message that cannot be taken: of another version or program, too large, or not one at all.
    #[error("{peer} {what}")]
    Message {
        /// Who sent it.
        peer: String,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The server's answer to what it does not accept.
    #[error("the parameter server refused: {0}")]
    Refused(String),
    /// A client process whose connection closed, or that was silent, in the middle of a run.
    #[error(
        "client process {client} is lost at clock {clock}; restart all processes, from a checkpoint if there is one"
    )]
    ClientLost {
        /// Which.
        client: usize,
        /// The clock that it was in.
        clock: u32,
    },
    /// A tablet server whose connection closed, or that was silent, in the middle of a run.
    #[error("tablet server {server} is lost ({reason}); restart all processes, from a checkpoint if there is one")]
    ServerLost {
        /// Which.
        server: usize,
        /// What was noticed.
        reason: String,
    },
    /// A worker thread that panicked, so that its clock stands still.
    #[error("worker thread {thread} panicked in clock {clock}")]
    ThreadPanicked {
        /// Which.
        thread: usize,
        /// The clock that it was in.
        clock: u32,
    },
    /// Another process of the job that is lost, or that this one does not understand.
    #[error("{0}")]
    Peers(String),
    /// Options that do not go together.
    #[error("{0}")]
    Options(String),
    /// A checkpoint that is not one, or not of this job.
    #[error("{}: {reason}; use the checkpoint that this job wrote", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// Returns what makes an I/O error at a place one of this crate's.
    pub(crate) fn io(place: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let place = place.to_string();
        move |source| Self::Io { place, source: Arc::new(source) }
    }

    /// A message that is none of this program's.
    pub(crate) fn unreadable(peer: &str, what: &str) -> Self {
        let what = format!("sent a message that cannot be read ({what}); start the same build everywhere");
        Self::Message { peer: peer.to_owned(), what }
    }
}
