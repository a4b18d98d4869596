//! What travels between processes: slices of rows, deltas or sums, in containers with a byte layout of their own.
//!
//! | bytes | header |
//! |---|---|
//! | 0..2, 2..4, 4..8 | kind, side, shard |
//! | 8..12, 12..16 | stage, worker that sent it |
//! | 16..20, 20..24 | of a slice: the first row's place among those that the receiver uses, rows |
//! | 24..32 | a number that the kind gives meaning to: visits of a shard, a clock, or a block |
//! | 32..40 | bytes of the body |
//!
//! Numbers are little-endian. The body follows, filled up with zeros to a multiple of 8 bytes.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use megagrid_partition::Side;
use timely::bytes::arc::Bytes;
use timely::communication::Bytesable;

/// Bytes of a message before its body.
const HEADER_BYTES: usize = 40;

/// Returns the bytes that cross for a message with a body of `body` bytes, without those of the transport.
pub fn wire_bytes(body: usize) -> usize {
    HEADER_BYTES + body.next_multiple_of(8)
}

/// A message does not have the bytes that its rows need, or names what the plan does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Rows side by side that stay as they are until the message has left.
pub trait Lend: Send + Sync {
    fn show(&self, look: &mut dyn FnMut(&[u8]));
}

/// What a message holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    #[default]
    Empty,
    /// Synced rows of a shard, from their masters.
    Rows,
    /// Deltas of a shard, for their masters; `number` is the clock.
    Deltas,
    /// A rotating shard; `number` is the visits that have ended.
    Shard,
    /// A worker's sums for a GlobalSync; `number` is the clock.
    Sums,
    /// What a process changed in a shard in place; `number` is the clock.
    Changes,
    /// A shard's rows from their masters, after the last clock of the receiver's changes that they hold; `number` is their age.
    Fresh,
    /// The data of the edges of a block of a right shard; `number` is the block.
    Edges,
}

const KINDS: [Kind; 8] =
    [Kind::Empty, Kind::Rows, Kind::Deltas, Kind::Shard, Kind::Sums, Kind::Changes, Kind::Fresh, Kind::Edges];

#[derive(Clone)]
pub struct Message {
    pub kind: Kind,
    pub side: Side,
    pub shard: u32,
    pub stage: u32,
    pub from: u32,
    /// The worker that it goes to. It does not travel.
    pub to: u32,
    /// Of a slice: the first row's place among those of the shard that the receiver uses, and the number of rows.
    pub first: u32,
    pub rows: u32,
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
            first: 0,
            rows: 0,
            number: 0,
            body: Body::Own(Vec::new()),
        }
    }
}

/// What a message carries.
#[derive(Clone)]
pub enum Body {
    /// Bytes made here.
    Own(Vec<u8>),
    /// So many bytes of rows that stay as they are until the message has left.
    Lent(usize, Arc<dyn Lend>),
    /// A slice of what a connection received.
    Received(Bytes, Range<usize>),
}

impl Body {
    pub fn len(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Lent(bytes, _) => *bytes,
            Self::Received(_, span) => span.len(),
        }
    }

    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Own(bytes) => bytes.into(),
            Self::Lent(bytes, rows) => {
                let mut copy = Vec::with_capacity(*bytes);
                rows.show(&mut |bytes| copy.extend_from_slice(bytes));
                copy.into()
            }
            Self::Received(bytes, span) => bytes.get(span.clone()).unwrap_or(&[]).into(),
        }
    }

    /// Makes them bytes of its own, whatever becomes of rows.
    pub fn own(&mut self) {
        if let Self::Lent(..) = self {
            *self = Self::Own(self.bytes().into_owned());
        }
    }

    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Lent(_, rows) => {
                let mut written = Ok(());
                rows.show(&mut |bytes| written = writer.write_all(bytes));
                written
            }
            _ => writer.write_all(&self.bytes()),
        }
    }
}

impl Message {
    /// Tells whether somebody may be waiting for it before its sender ends the step.
    pub fn is_urgent(&self) -> bool {
        self.kind == Kind::Shard
    }

    /// Tells whether it may come before its time: rows that this process still reads as they were.
    pub fn waits(&self) -> bool {
        self.kind == Kind::Rows
    }

    /// Returns the places of the rows that it holds.
    pub fn places(&self) -> Range<usize> {
        self.first as usize..self.first as usize + self.rows as usize
    }

    /// Returns the bytes that cross, without those of the transport.
    pub fn wire_bytes(&self) -> usize {
        wire_bytes(self.body.len())
    }
}

/// Messages for one worker that travel together: each arrival costs as much as many small messages take to send.
///
/// | bytes | header |
/// |---|---|
/// | 0..8 | steps that the sender had ended |
/// | 8..16 | the sender |
#[derive(Clone, Default)]
pub struct Parcel {
    /// Steps that the sender had ended: its messages belong to the step after, and none of earlier steps comes later.
    pub steps: u64,
    /// The worker that sent it.
    pub from: u64,
    pub messages: Vec<Message>,
}

const PARCEL_HEADER_BYTES: usize = 16;

impl Parcel {
    /// Returns the worker that it goes to.
    pub fn to(&self) -> usize {
        self.messages.first().map_or(0, |message| message.to as usize)
    }

    /// Returns the bytes that cross, without those of the transport.
    pub fn wire_bytes(&self) -> usize {
        PARCEL_HEADER_BYTES + self.messages.iter().map(Message::wire_bytes).sum::<usize>()
    }
}

impl Bytesable for Parcel {
    fn from_bytes(bytes: Bytes) -> Self {
        let long =
            |at: usize| bytes.get(at..at + 8).map_or(0, |b| b.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)));
        let (mut messages, mut begin) = (Vec::new(), PARCEL_HEADER_BYTES);
        while begin + HEADER_BYTES <= bytes.len() {
            let message = Message::read(&bytes, begin);
            begin += message.wire_bytes();
            messages.push(message);
        }
        Self { steps: long(0), from: long(8), messages }
    }

    fn length_in_bytes(&self) -> usize {
        self.wire_bytes()
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        // The writer is memory of `length_in_bytes` bytes, which is what is written.
        let written = writer
            .write_all(&self.steps.to_le_bytes())
            .and_then(|()| writer.write_all(&self.from.to_le_bytes()))
            .and_then(|()| self.messages.iter().try_for_each(|message| message.write(writer)));
        debug_assert!(written.is_ok(), "messages fit the memory that they asked for");
    }
}

impl Message {
    fn read(bytes: &Bytes, begin: usize) -> Self {
        let word = |at: usize| {
            let at = begin + at;
            bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        // A length that the bytes do not have, which no process of this version writes, ends as a body that fits nothing.
        let body = begin + HEADER_BYTES;
        let body = body..body + (long(32) as usize).min(bytes.len() - body);
        let (kind, side) = (word(0) & 0xffff, word(0) >> 16);
        Self {
            kind: KINDS.get(kind as usize).copied().unwrap_or_default(),
            side: if side == 0 { Side::Left } else { Side::Right },
            shard: word(4),
            stage: word(8),
            from: word(12),
            to: 0,
            first: word(16),
            rows: word(20),
            number: long(24),
            body: Body::Received(bytes.clone(), body),
        }
    }

    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let bytes = self.body.len();
        let mut header = [0; HEADER_BYTES];
        let kind = self.kind as u32 | u32::from(self.side == Side::Right) << 16;
        let words = [kind, self.shard, self.stage, self.from, self.first, self.rows];
        for (at, word) in words.into_iter().enumerate() {
            header[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        header[24..32].copy_from_slice(&self.number.to_le_bytes());
        header[32..].copy_from_slice(&(bytes as u64).to_le_bytes());
        writer.write_all(&header)?;
        self.body.write(writer)?;
        writer.write_all(&[0; 8][..bytes.next_multiple_of(8) - bytes])
    }
}
