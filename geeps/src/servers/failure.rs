//! Why a run has ended, if it has failed.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;

use super::inbox::Inboxes;
use crate::Error;

/// The first failure, and who is to hear of it.
#[derive(Debug)]
pub(super) struct Failure {
    is_set: AtomicBool,
    first: Mutex<Option<Error>>,
    inboxes: Arc<Inboxes>,
    /// Connections to other processes, which notice that they are closed.
    streams: Vec<TcpStream>,
}

impl Failure {
    pub fn new(inboxes: Arc<Inboxes>, streams: Vec<TcpStream>) -> Self {
        Self { is_set: AtomicBool::new(false), first: Mutex::new(None), inboxes, streams }
    }

    /// Ends the run of all workers. The first reason counts.
    pub fn set(&self, error: Error) {
        lock(&self.first).get_or_insert(error);
        if !self.is_set.swap(true, Ordering::AcqRel) {
            // One that is closed already need not be.
            self.streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
        self.inboxes.wake();
    }

    /// Returns it.
    pub fn get(&self) -> Option<Error> {
        if self.is_set.load(Ordering::Acquire) { lock(&self.first).clone() } else { None }
    }
}
