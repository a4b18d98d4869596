//! What travels between processes: one slice of rows, deltas or sums as one container, with its own byte layout.
//!
//! | bytes | header |
//! |---|---|
//! | 0..4, 4..8 | kind, side |
//! | 8..12, 12..16 | shard, stage |
//! | 16..20, 20..24 | worker that sent it, worker that it goes to |
//! | 24..32 | a number that the kind gives meaning to: visits of a shard, or a clock |
//! | 32..40 | bytes of the body |
//!
//! Numbers are little-endian. The body follows, filled up with zeros to a multiple of 8 bytes.

use std::io::Write;

use megagrid_partition::Side;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::container::ContainerBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message as Envelope};

const HEADER_BYTES: usize = 40;

/// What a message holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    #[default]
    Empty,
    /// Synced rows of a shard, from their masters.
    Rows,
    /// Deltas of a shard, for their masters.
    Deltas,
    /// A rotating shard; `number` is the visits that have ended.
    Shard,
    /// A worker's sums for a GlobalSync; `number` is the clock.
    Sums,
    /// What a process changed in a shard in place; `number` is the clock.
    Changes,
    /// A shard's rows from their masters, and how far they hold the receiver's changes; `number` is their age.
    Fresh,
}

const KINDS: [Kind; 7] = [Kind::Empty, Kind::Rows, Kind::Deltas, Kind::Shard, Kind::Sums, Kind::Changes, Kind::Fresh];

/// A message.
#[derive(Clone)]
pub struct Message {
    pub kind: Kind,
    pub side: Side,
    pub shard: u32,
    pub stage: u32,
    pub from: u32,
    pub to: u32,
    pub number: u64,
    pub body: Body,
}

impl Default for Message {
    fn default() -> Self {
        Self {
            kind: Kind::Empty,
            side: Side::Left,
            shard: 0,
            stage: 0,
            from: 0,
            to: 0,
            number: 0,
            body: Body::Own(Vec::new()),
        }
    }
}

/// What a message carries: bytes made here, or a slice of what a connection received.
#[derive(Clone)]
pub enum Body {
    Own(Vec<u8>),
    Received(Bytes, usize),
}

impl Body {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Received(bytes, len) => bytes.get(HEADER_BYTES..HEADER_BYTES + len).unwrap_or(&[]),
        }
    }
}

impl Message {
    /// Tells whether it may come before its time: rows that this process still reads as they were.
    pub fn waits(&self) -> bool {
        self.kind == Kind::Rows
    }

    /// Returns the bytes that cross, without those of the transport.
    pub fn wire_bytes(&self) -> usize {
        HEADER_BYTES + self.body.bytes().len().next_multiple_of(8)
    }
}

impl Accountable for Message {
    fn record_count(&self) -> i64 {
        i64::from(self.kind != Kind::Empty)
    }
}

impl ContainerBytes for Message {
    fn from_bytes(bytes: Bytes) -> Self {
        let word = |at: usize| bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Self {
            kind: KINDS.get(word(0) as usize).copied().unwrap_or_default(),
            side: if word(4) == 0 { Side::Left } else { Side::Right },
            shard: word(8),
            stage: word(12),
            from: word(16),
            to: word(20),
            number: long(24),
            body: Body::Received(bytes.clone(), long(32) as usize),
        }
    }

    fn length_in_bytes(&self) -> usize {
        self.wire_bytes()
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let body = self.body.bytes();
        let mut header = [0; HEADER_BYTES];
        let words = [self.kind as u32, u32::from(self.side == Side::Right), self.shard, self.stage, self.from, self.to];
        for (at, word) in words.into_iter().enumerate() {
            header[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        header[24..32].copy_from_slice(&self.number.to_le_bytes());
        header[32..].copy_from_slice(&(body.len() as u64).to_le_bytes());
        let rest = &[0; 8][..body.len().next_multiple_of(8) - body.len()];
        // The writer is memory of `length_in_bytes` bytes, which is what is written.
        let written =
            writer.write_all(&header).and_then(|()| writer.write_all(body)).and_then(|()| writer.write_all(rest));
        debug_assert!(written.is_ok(), "a message fits the memory that it asked for");
    }
}

/// Builds nothing: messages are sent whole.
#[derive(Debug, Default)]
pub struct Whole;

impl ContainerBuilder for Whole {
    type Container = Message;

    fn extract(&mut self) -> Option<&mut Message> {
        None
    }

    fn finish(&mut self) -> Option<&mut Message> {
        None
    }
}

/// Sends each message to the worker that it names.
pub struct ByName;

impl Distributor<Message> for ByName {
    fn partition<T: Clone, P: Push<Envelope<T, Message>>>(
        &mut self,
        message: &mut Message,
        time: &T,
        pushers: &mut [P],
    ) {
        let to = message.to as usize;
        Envelope::push_at(message, time.clone(), &mut pushers[to]);
    }

    fn flush<T: Clone, P: Push<Envelope<T, Message>>>(&mut self, _: &T, _: &mut [P]) {}
}

/// The contract of a channel that routes messages by name.
pub fn by_name() -> DistributorPact<fn(usize) -> ByName> {
    DistributorPact(|_| ByName)
}
