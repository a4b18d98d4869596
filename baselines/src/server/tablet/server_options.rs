//! What a tablet server is told.

use std::path::PathBuf;
use std::time::Duration;

use crate::server::frame::MAX_FRAME_BYTES;
use crate::server::options::PATIENCE;

/// What a tablet server is told.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The number of this server, from 0: its place in the clients' list of addresses.
    pub server: usize,
    /// How many servers there are.
    pub servers: usize,
    /// How many client processes there are.
    pub clients: usize,
    /// The largest frame accepted.
    pub max_frame_bytes: usize,
    /// How long a client may be silent ([`PATIENCE`]).
    pub patience: Duration,
    /// Where and how often its rows are written to a file.
    pub checkpoints: Option<Checkpoints>,
    /// The checkpoint to begin with: the folder, and the clock at which it was written ([`newest_checkpoint`](crate::server::newest_checkpoint)).
    pub resume: Option<(PathBuf, u32)>,
}

impl ServerOptions {
    /// One server among `servers`, for this many client processes, without checkpoints.
    pub fn new(server: usize, servers: usize, clients: usize) -> Self {
        Self {
            server,
            servers,
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
}
