//! Messages: a fixed header, row numbers, and bytes of rows, as they lie in memory.
//!
//! A frame is one piece of aligned memory, so that received rows are merged where they arrived, and rows that lie
//! contiguously are copied once on their way out. Numbers are little-endian.

use std::io;

use bytemuck::{CheckedBitPattern, Pod, Zeroable};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Error;

/// Version of the messages; both ends compare it in every frame.
pub const PROTOCOL: u32 = 1;
/// Largest frame that is accepted unless the options say otherwise.
pub const MAX_FRAME_BYTES: usize = 64 << 20;
/// Rows are sent in frames of about this size, so that the receiver can begin before all are sent.
pub(super) const CHUNK_BYTES: usize = 256 << 10;

const MAGIC: u32 = u32::from_le_bytes(*b"MGps");
const HEADER_BYTES: usize = size_of::<Header>();

/// What a message says. C: from a client, S: from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CheckedBitPattern)]
#[repr(u32)]
pub(super) enum Verb {
    /// C: which client this is and which tables it knows. `clock`: its number, `first`: how many clients.
    Hello = 1,
    /// S: the client takes part.
    Welcome,
    /// S: the reason why not, in words, or why the run ends.
    Refused,
    /// C: set these rows to these values.
    Store,
    /// C: return these rows when the global clock is at least `version`; `flags` 1: and push them from now on.
    Read,
    /// S: rows that contain all updates of clocks before `version`, and those of the receiver before `clock`.
    Rows,
    /// C: updates of this clock, which wait for the client's `Clock`.
    Update,
    /// C: the client has ended clock `clock`; apply its updates.
    Clock,
    /// S: the global clock is `version`, and all rows that were to be pushed have been.
    Advanced,
    /// C: no more clocks; nobody needs to wait for this client.
    Leave,
    /// C: return the whole table when the global clock is at least `version`.
    Dump,
    /// S: part of a table; `flags` 1: the last one.
    Dumped,
    /// C: tell when all clients have sent this; S: they have. All that was sent before it has been taken in.
    Barrier,
    /// Both: still there.
    Heartbeat,
    /// S: a client is lost. `first`: which, `clock`: its clock.
    Lost,
    /// C: how often this client accesses rows, as u32 in the data, for their placement. `flags` 1: the last one.
    Access,
    /// S: where rows are from now on, as u32 in the data. `flags` 1: the last one.
    Placed,
    /// S: values of rows that `first`, another server, is to store.
    Moved,
    /// C: appends rows to the list `flags` of the client's plan for a table.
    Plan,
    /// C: as `Read`, for all rows of list `flags`.
    PlanRead,
    /// S: as `Rows`, for rows `first..` of list `flags`.
    PlanRows,
    /// C: as `Update`, for rows `first..` of the list of updates.
    PlanUpdate,
}

/// What every message begins with; a verb says what it uses.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    magic: u32,
    protocol: u32,
    verb: u32,
    /// Bytes after the header.
    body_bytes: u32,
    pub(super) table: u32,
    pub(super) version: u32,
    pub(super) clock: u32,
    pub(super) first: u32,
    /// Row numbers in the body.
    num_rows: u32,
    pub(super) flags: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// The header, row numbers padded to 8 bytes, and the data padded to 8 bytes.
    words: Vec<u64>,
    verb: Verb,
}

impl Frame {
    /// Makes a message without rows; fields of the header are set through [`Frame::header_mut`].
    pub(super) fn new(verb: Verb) -> Self {
        let mut frame = Self { words: vec![0; HEADER_BYTES / 8], verb };
        *frame.header_mut() = Header { magic: MAGIC, protocol: PROTOCOL, verb: verb as u32, ..Header::zeroed() };
        frame
    }

    /// Makes a message with row numbers and data.
    pub(super) fn with_rows(verb: Verb, table: u32, rows: &[u32], data: &[u8]) -> Self {
        let mut frame = Self::new(verb);
        frame.header_mut().table = table;
        frame.push_rows(rows);
        frame.push_data(data.len()).copy_from_slice(data);
        frame
    }

    fn push_rows(&mut self, rows: &[u32]) {
        let begin = self.words.len();
        self.words.resize(begin + rows.len().div_ceil(2), 0);
        bytemuck::cast_slice_mut::<u64, u32>(&mut self.words[begin..])[..rows.len()].copy_from_slice(rows);
        let header = self.header_mut();
        header.num_rows = rows.len() as u32;
        header.body_bytes = (rows.len().div_ceil(2) * 8) as u32;
    }

    /// Appends data of this many bytes and returns them, to be written. Called at most once, after the rows.
    pub(super) fn push_data(&mut self, bytes: usize) -> &mut [u8] {
        let begin = self.words.len();
        self.words.resize(begin + bytes.div_ceil(8), 0);
        self.header_mut().body_bytes += bytes as u32;
        &mut bytemuck::cast_slice_mut(&mut self.words[begin..])[..bytes]
    }

    pub(super) fn set(mut self, change: impl FnOnce(&mut Header)) -> Self {
        change(self.header_mut());
        self
    }

    pub(super) fn verb(&self) -> Verb {
        self.verb
    }

    pub(super) fn header(&self) -> &Header {
        bytemuck::from_bytes(bytemuck::cast_slice(&self.words[..HEADER_BYTES / 8]))
    }

    pub(super) fn header_mut(&mut self) -> &mut Header {
        bytemuck::from_bytes_mut(bytemuck::cast_slice_mut(&mut self.words[..HEADER_BYTES / 8]))
    }

    pub(super) fn rows(&self) -> &[u32] {
        let rows = self.header().num_rows as usize;
        &bytemuck::cast_slice(&self.words[HEADER_BYTES / 8..])[..rows]
    }

    /// Returns the data, aligned to 8 bytes.
    pub(super) fn data(&self) -> &[u8] {
        let ids = self.rows().len().div_ceil(2);
        let bytes = self.header().body_bytes as usize - ids * 8;
        &bytemuck::cast_slice(&self.words[HEADER_BYTES / 8 + ids..])[..bytes]
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.data()).into_owned()
    }

    /// Returns how long it is on the wire.
    pub(super) fn len_bytes(&self) -> usize {
        HEADER_BYTES + self.header().body_bytes as usize
    }

    /// Returns it as it goes over the wire.
    pub(super) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len_bytes()]
    }

    /// Reads the next one; `None` at the end of the stream.
    ///
    /// # Errors
    /// What is no message, of another version, or larger than `limit`.
    pub(super) async fn read(
        stream: &mut (impl AsyncRead + Unpin),
        peer: &str,
        limit: usize,
    ) -> Result<Option<Self>, Error> {
        let mut frame = Self { words: vec![0; HEADER_BYTES / 8], verb: Verb::Heartbeat };
        match stream.read_exact(bytemuck::cast_slice_mut(&mut frame.words)).await {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(Error::io(peer)(error)),
        }
        let header = *frame.header();
        let refused = |what: String| Err(Error::Message { peer: peer.to_owned(), what });
        if header.magic != MAGIC {
            return refused("is not a parameter server of this program; check the address".to_owned());
        }
        if header.protocol != PROTOCOL {
            let both = format!("version {} of the messages and this program version {PROTOCOL}", header.protocol);
            return refused(format!("speaks {both}; start the same build everywhere"));
        }
        let bytes = header.body_bytes as usize;
        if bytes > limit {
            let both = format!("a frame of {bytes} bytes, and the limit is {limit}");
            return refused(format!("sent {both}; raise `max_frame_bytes` or send fewer rows"));
        }
        frame.verb = bytemuck::checked::try_cast(header.verb)
            .map_err(|_| Error::unreadable(peer, "a verb that does not exist"))?;
        if (header.num_rows as usize).div_ceil(2) * 8 > bytes {
            return Err(Error::unreadable(peer, "more rows than bytes"));
        }
        frame.words.resize(HEADER_BYTES / 8 + bytes.div_ceil(8), 0);
        let body = &mut bytemuck::cast_slice_mut(&mut frame.words[HEADER_BYTES / 8..])[..bytes];
        stream.read_exact(body).await.map_err(Error::io(peer))?;
        Ok(Some(frame))
    }
}

/// Rows on their way into frames of about [`CHUNK_BYTES`].
#[derive(Debug)]
pub(super) struct Batch {
    verb: Verb,
    table: u32,
    rows: Vec<u32>,
    data: Vec<u8>,
}

impl Batch {
    pub(super) fn new(verb: Verb, table: u32) -> Self {
        Self { verb, table, rows: Vec::new(), data: Vec::new() }
    }

    /// Adds a row and its data; returns a frame when there are enough for one.
    pub(super) fn push(&mut self, row: u32, data: &[u8]) -> Option<Frame> {
        self.rows.push(row);
        self.data.extend_from_slice(data);
        (self.rows.len() * 4 + self.data.len() >= CHUNK_BYTES).then(|| self.take())
    }

    /// Returns a frame of the rows that are left, if there are any.
    pub(super) fn finish(mut self) -> Option<Frame> {
        (!self.rows.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Frame {
        let frame = Frame::with_rows(self.verb, self.table, &self.rows, &self.data);
        self.rows.clear();
        self.data.clear();
        frame
    }
}

/// Puts rows and their data into frames.
pub(super) fn frames<'d>(
    verb: Verb,
    table: u32,
    mut rows: impl Iterator<Item = (u32, &'d [u8])>,
) -> impl Iterator<Item = Frame> {
    let mut batch = Some(Batch::new(verb, table));
    std::iter::from_fn(move || {
        let full = rows.find_map(|(row, data)| batch.as_mut()?.push(row, data));
        full.or_else(|| batch.take()?.finish())
    })
}
