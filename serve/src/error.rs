//! What keeps a server from starting, and what a request is refused with.

use std::io;
use std::net::SocketAddr;

/// Why models cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model that cannot be loaded.
    #[error(transparent)]
    Model(#[from] megagrid_training::Error),
    /// Options that contradict each other, or are out of range.
    #[error("{0}")]
    Option(String),
    /// An address that cannot be listened at.
    #[error("{address}: {source}; {}", of_binding(source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// What the system refuses to a server.
    #[error("serving: {0}")]
    System(#[from] io::Error),
}

/// Says what may be wrong with an address.
fn of_binding(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrNotAvailable => "expected an address of this machine, or 0.0.0.0 for all of them",
        _ => "is another server there?",
    }
}

/// Why a question is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not understood, or out of range: 400.
    Bad(String),
    /// It asks about what the model does not know: 404.
    Unknown(String),
}

impl From<megagrid_training::Error> for Refusal {
    fn from(error: megagrid_training::Error) -> Self {
        Self::Unknown(error.to_string())
    }
}
