//! A control connection: one between process 0 and each other.
//!
//! Frames are short, so a heartbeat need not wait for the end of a large collective; it is left out while something else is
//! being sent.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use megagrid_partition::parallel::lock;

use super::frame::{self, MAX_BYTES, Message};

/// A connection on which nothing comes for so long is lost.
pub(super) const SILENCE: Duration = Duration::from_secs(8);
/// How long the last message to a process may take, which may be stalled.
const LAST_WORD: Duration = Duration::from_millis(200);

pub(super) struct Link {
    /// Who is at the other end.
    pub process: usize,
    pub(super) stream: TcpStream,
    /// Held while a frame is written.
    pub(super) writing: Mutex<()>,
}

impl Link {
    /// Makes a link of a connection that has been greeted.
    pub fn new(process: usize, stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        Ok(Self { process, stream, writing: Mutex::new(()) })
    }

    /// Sends a message, waiting for others that are being sent.
    pub fn send(&self, message: &Message) -> io::Result<()> {
        let _writing = lock(&self.writing);
        frame::write(&self.stream, message, &[])
    }

    pub fn send_part(&self, collective: u64, from: usize, bytes: &[u8]) -> io::Result<()> {
        let message = Message::Part { collective, from, total: bytes.len() as u64 };
        let mut rest = bytes;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(MAX_BYTES));
            let writing = lock(&self.writing);
            frame::write(&self.stream, &message, piece)?;
            drop(writing);
            rest = after;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends a last message if the other end takes it soon, and ends this direction.
    pub fn send_last(&self, message: &Message) {
        // A frame that is being written to a stalled process would make this wait: then the connection just closes.
        let give_up = std::time::Instant::now() + LAST_WORD;
        while std::time::Instant::now() < give_up {
            if let Ok(_writing) = self.writing.try_lock() {
                let _ = self.stream.set_write_timeout(Some(LAST_WORD));
                let _ = frame::write(&self.stream, message, &[]);
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes the connection, whoever reads or writes.
    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

pub(super) const CLOSED: &str = "connection closed";

/// Says what has become of a connection.
pub(super) fn describe_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => CLOSED.to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("no heartbeat for {} s", SILENCE.as_secs()),
        _ => error.to_string(),
    }
}
