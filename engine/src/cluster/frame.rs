//! Frames: how messages lie on a connection between processes.
//!
//! ```text
//! magic  protocol  message bytes  body bytes  |  message (bincode)  |  body
//!   4       4            4             4       <- bytes, little-endian
//! ```
//!
//! The first two fields stay where they are in every later protocol, so that any two versions recognize each other.

use std::io::{self, Read, Write};

use bincode::Options;
use serde::{Deserialize, Serialize};

const MAGIC: [u8; 4] = *b"MGCL";
/// Changes with the layout of frames and messages.
pub(super) const PROTOCOL: u32 = 3;
/// No message and no body is longer: what a process allocates for a frame is bounded, and heartbeats get between.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// What processes tell each other.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Message {
    /// The first on a connection, from the one that connects.
    Hello(Hello),
    /// The answer to a hello that fits.
    Welcome,
    /// The answer to one that does not, and why.
    Refused(String),
    /// All processes are there.
    Start {
        /// A number of this job, which no other has.
        job: u64,
    },
    /// Nothing, but that the process is alive.
    Heartbeat,
    /// The body is the next piece of a process's part of a collective.
    Part {
        /// How many collectives were before.
        collective: u64,
        /// Whose part.
        from: usize,
        /// How long the part is.
        total: u64,
    },
    /// The job ends, and why.
    Stop(String),
    /// This process has nothing more to say and closes its connection.
    Farewell,
}

/// Who connects, and what for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub version: String,
    pub process: usize,
    pub addresses: Vec<String>,
    pub purpose: Purpose,
}

/// What a connection is for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// The control connection to process 0.
    Control,
    Data {
        job: u64,
        run: u64,
    },
    /// To be told who is there.
    Probe,
}

/// Why no message could be read.
#[derive(Debug)]
pub(super) enum FrameError {
    Io(io::Error),
    /// The bytes are none of megagrid's.
    Foreign,
    /// The frame is of another protocol.
    Protocol(u32),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) fn write(mut stream: impl Write, message: &Message, body: &[u8]) -> io::Result<()> {
    let message = bincode_options().serialize(message).map_err(io::Error::other)?;
    if message.len() > MAX_BYTES || body.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message of more than 1 MiB"));
    }
    let mut frame = Vec::new();
    write_protocol(&mut frame)?;
    frame.extend([message.len() as u32, body.len() as u32].into_iter().flat_map(u32::to_le_bytes));
    frame.extend(message);
    stream.write_all(&frame)?;
    stream.write_all(body)
}

/// Writes what a connection, and each frame, begins with.
pub(super) fn write_protocol(mut stream: impl Write) -> io::Result<()> {
    stream.write_all(&MAGIC)?;
    stream.write_all(&PROTOCOL.to_le_bytes())
}

/// Reads that, and refuses others.
pub(super) fn read_protocol(mut stream: impl Read) -> Result<(), FrameError> {
    let mut magic = [0; 4];
    stream.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(FrameError::Foreign);
    }
    match read_number(stream)? {
        PROTOCOL => Ok(()),
        other => Err(FrameError::Protocol(other)),
    }
}

fn read_number(mut stream: impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Reads a message, and how many bytes of body follow.
pub(super) fn read(mut stream: impl Read) -> Result<(Message, usize), FrameError> {
    read_protocol(&mut stream)?;
    let [message, body] = [read_number(&mut stream)? as usize, read_number(&mut stream)? as usize];
    if message > MAX_BYTES || body > MAX_BYTES {
        return Err(FrameError::Foreign);
    }
    let mut bytes = vec![0; message];
    stream.read_exact(&mut bytes)?;
    let message = bincode_options().deserialize(&bytes).map_err(|_| FrameError::Foreign)?;
    Ok((message, body))
}

fn bincode_options() -> impl Options {
    bincode::options().with_fixint_encoding().with_limit(MAX_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Message {
        let addresses = vec!["a:1".to_owned(), "b:2".to_owned()];
        Message::Hello(Hello { version: "1".to_owned(), process: 1, addresses, purpose: Purpose::Control })
    }

    #[test]
    fn messages_come_back_with_their_bodies() {
        let mut bytes = Vec::new();
        write(&mut bytes, &hello(), &[]).unwrap();
        let part = Message::Part { collective: 3, from: 2, total: 5 };
        write(&mut bytes, &part, b"hello").unwrap();
        let mut rest = &bytes[..];
        assert_eq!(read(&mut rest).unwrap(), (hello(), 0));
        assert_eq!(read(&mut rest).unwrap(), (part, 5));
        assert_eq!(rest, b"hello");
        assert!(matches!(read(&mut &rest[5..]), Err(FrameError::Io(_))));
    }

    #[test]
    fn damaged_frames_are_refused() {
        let mut good = Vec::new();
        write(&mut good, &hello(), &[]).unwrap();
        assert!(matches!(read(&b"HTTP/1.1 400 Bad Request"[..]), Err(FrameError::Foreign)));
        let mut other = good.clone();
        other[4] = 9;
        assert!(matches!(read(&other[..]), Err(FrameError::Protocol(9))));
        for length in [8, 12] {
            let mut long = good.clone();
            long[length + 3] = 1;
            assert!(matches!(read(&long[..]), Err(FrameError::Foreign)));
        }
        for end in 0..good.len() {
            assert!(matches!(read(&good[..end]), Err(FrameError::Io(_))), "{end}");
        }
        let mut kind = good.clone();
        kind[16] = 200;
        assert!(matches!(read(&kind[..]), Err(FrameError::Foreign)));
        assert!(write(&mut good, &Message::Heartbeat, &vec![0; MAX_BYTES + 1]).is_err());
    }
}
