//! A control connection: one between process 0 and each other.
//!
//! One thread reads it as fast as frames come, so that nobody who sends waits for long; another sends heartbeats. Whatever
//! comes is a sign of life. Frames are short, so a heartbeat need not wait for the end of a large collective; it is left
//! out while something else is being sent.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::frame::{self, FrameError, MAX_BYTES, Message};
use super::shared::{Shared, lock};

/// Time between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A connection on which nothing comes for so long is lost.
pub(super) const SILENCE: Duration = Duration::from_secs(8);
/// How long the last message to a process may take, which may be stalled.
const LAST_WORD: Duration = Duration::from_millis(200);

/// A control connection.
pub(super) struct Link {
    /// Who is at the other end.
    pub process: usize,
    stream: TcpStream,
    /// Held while a frame is written.
    writing: Mutex<()>,
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

    /// Sends a part of a collective in frames.
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

    /// Starts the threads that read and send heartbeats, until the connection ends.
    pub fn start(self: &Arc<Self>, shared: &Arc<Shared>) -> io::Result<()> {
        let (link, own) = (self.clone(), shared.clone());
        let name = |what: &str| std::thread::Builder::new().name(format!("megagrid:{what}-{}", self.process));
        name("listen").spawn(move || link.listen(&own))?;
        let (link, own) = (self.clone(), shared.clone());
        name("heartbeat").spawn(move || link.beat(&own))?;
        Ok(())
    }

    fn beat(&self, shared: &Shared) {
        while shared.is_open_after(self.process, HEARTBEAT) {
            if let Ok(_writing) = self.writing.try_lock() {
                // Whoever reads notices when the connection is gone.
                let _ = frame::write(&self.stream, &Message::Heartbeat, &[]);
            }
        }
    }

    fn listen(&self, shared: &Shared) {
        let mut part = Vec::new();
        let problem = loop {
            match self.take(shared, &mut part) {
                Ok(true) => {}
                Ok(false) => return,
                Err(problem) => break problem,
            }
        };
        shared.closed(self.process, &problem);
        self.close();
    }

    /// Takes one message. Returns false after the last.
    fn take(&self, shared: &Shared, part: &mut Vec<u8>) -> Result<bool, String> {
        let (message, body) = frame::read(&self.stream).map_err(|error| describe(&error))?;
        match message {
            Message::Heartbeat => {}
            Message::Start { job } => shared.started(job),
            Message::Farewell => shared.left(self.process),
            Message::Part { collective, from, total } => {
                if part.is_empty() {
                    let total = usize::try_from(total).map_err(|_| "it sent more than fits in memory")?;
                    part.try_reserve_exact(total).map_err(|_| "it sent more than fits in memory")?;
                }
                let got = (&self.stream).take(body as u64).read_to_end(part).map_err(|error| describe_io(&error))?;
                if got < body {
                    return Err(CLOSED.to_owned());
                }
                if part.len() as u64 >= total {
                    shared.arrived(collective, from, std::mem::take(part));
                }
            }
            Message::Stop(reason) => {
                shared.end(&reason, Some(self.process), true);
                return Ok(false);
            }
            Message::Hello(_) | Message::Welcome | Message::Refused(_) => return Err("it sent nonsense".to_owned()),
        }
        Ok(true)
    }
}

const CLOSED: &str = "connection closed";

fn describe(error: &FrameError) -> String {
    match error {
        FrameError::Io(error) => describe_io(error),
        FrameError::Foreign | FrameError::Protocol(_) => "it sent nonsense".to_owned(),
    }
}

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
