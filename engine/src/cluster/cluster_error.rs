//! Why processes do not come together, or have to part.

use std::io;
use std::path::PathBuf;

use super::secret::{SECRET, SECRET_FILE};

/// Why a job of several processes could not begin, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A file of hosts, or of a secret, that cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The description of the processes is wrong.
    #[error("{place}: {problem}")]
    Membership {
        /// Where it stands: a file and line, or a variable.
        place: String,
        /// What was found, and what was expected.
        problem: String,
    },
    /// A host name means nothing.
    #[error("process {process} ({address}): its name does not resolve: {source}")]
    Unresolved {
        /// Whose.
        process: usize,
        /// Which.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// This process cannot listen at its own address.
    #[error("process {process} cannot listen at {address}: {problem}")]
    Listen {
        /// This process.
        process: usize,
        /// Its address.
        address: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A process cannot be reached.
    #[error("process {process} ({address}) cannot be reached from process {from} within {seconds} s: {problem}")]
    Unreachable {
        /// Who.
        process: usize,
        /// Where it should be.
        address: String,
        /// Who tried.
        from: usize,
        /// For how long.
        seconds: u64,
        /// What happened last.
        problem: String,
    },
    /// Something else listens where a process should.
    #[error("process {process} ({address}): what answers there is not megagrid; is the port right, and free?")]
    Foreign {
        /// Who.
        process: usize,
        /// Where it should be.
        address: String,
    },
    /// A process of a version that cannot even be talked to.
    #[error(
        "process {process} ({address}) is another version of megagrid (protocol {found}, this one {expected}); \
         start the same program everywhere"
    )]
    Protocol {
        /// Who.
        process: usize,
        /// Where.
        address: String,
        /// Its protocol.
        found: u32,
        /// The protocol of this process.
        expected: u32,
    },
    /// Two processes that were given different secrets, or only one of them.
    #[error(
        "process {process} ({address}) and process {from} do not have the same secret; give all processes the same \
         {SECRET_FILE} or {SECRET}"
    )]
    Secret {
        /// Who.
        process: usize,
        /// Where.
        address: String,
        /// Who connected to it.
        from: usize,
    },
    /// Processes were started with different options or data.
    #[error("{0}; start all processes with the same options and data")]
    Differs(String),
    /// The job cannot go on: the reason is the same text in all processes, and names the process that it began with.
    #[error("{0}")]
    Ended(String),
}
