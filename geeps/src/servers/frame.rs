//! Messages between the processes of a run: a header of a fixed size, and words of 32 bits as they lie in memory.

use std::io::{self, Read, Write};

use bytemuck::{Pod, Zeroable};

/// Words that are read at a time: a length that is wrong takes no memory.
const PIECE: usize = 1 << 16;

/// What a message says. C: from a client, S: from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// C: list `what` of a worker is of these rows of table `number`; without words, of all.
    List,
    /// C: updates of list `what` of a worker, which wait for its clock.
    Update,
    /// C: a worker ends a clock of table `what`.
    Clock,
    /// C: a worker that has ended `number` clocks asks for the rows of list `what`.
    Read,
    /// C: answer when all before this is done.
    Flush,
    /// S: rows for a worker, whose staleness is `number`, with the updates of `what` clocks of its own.
    Rows,
    /// Both: nothing comes after this.
    Leave,
}

const KINDS: [Kind; 7] = [Kind::List, Kind::Update, Kind::Clock, Kind::Read, Kind::Flush, Kind::Rows, Kind::Leave];

/// What every message begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Header {
    kind: u32,
    worker: u32,
    what: u32,
    /// Words after the header.
    len: u32,
    number: u64,
}

/// A message, but for its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub kind: Kind,
    pub worker: usize,
    pub what: usize,
    pub number: u64,
}

impl Message {
    pub fn new(kind: Kind, worker: usize) -> Self {
        Self { kind, worker, what: 0, number: 0 }
    }

    /// Writes it with its words, and returns how many bytes that were.
    ///
    /// # Errors
    /// A connection that is closed; more words than a header can say.
    pub fn write(self, to: &mut impl Write, words: &[u32]) -> io::Result<u64> {
        let small = |number: usize| u32::try_from(number).map_err(|_| invalid("a number beyond 32 bits"));
        let header = Header {
            kind: KINDS.iter().position(|&kind| kind == self.kind).unwrap_or_default() as u32,
            worker: small(self.worker)?,
            what: small(self.what)?,
            len: small(words.len())?,
            number: self.number,
        };
        to.write_all(bytemuck::bytes_of(&header))?;
        to.write_all(bytemuck::cast_slice(words))?;
        to.flush()?;
        Ok((size_of::<Header>() + size_of_val(words)) as u64)
    }

    /// Reads the next one.
    ///
    /// # Errors
    /// A connection that is closed; what is no message.
    pub fn read(from: &mut impl Read) -> io::Result<(Self, Vec<u32>)> {
        let mut header = Header::default();
        from.read_exact(bytemuck::bytes_of_mut(&mut header))?;
        let Header { kind, worker, what, len, number } = header;
        let kind = *KINDS.get(kind as usize).ok_or_else(|| invalid("a kind of message that there is not"))?;
        let (len, mut words) = (len as usize, Vec::new());
        while words.len() < len {
            let begin = words.len();
            words.resize(len.min(begin + PIECE), 0);
            from.read_exact(bytemuck::cast_slice_mut(&mut words[begin..]))?;
        }
        Ok((Self { kind, worker: worker as usize, what: what as usize, number }, words))
    }
}

/// Says what of a message cannot be.
pub(super) fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_come_back_as_they_were_sent(
            kind in 0..KINDS.len(), worker in any::<u32>(), what in any::<u32>(), number in any::<u64>(), words in vec(any::<u32>(), 0..200),
        ) {
            let message = Message { kind: KINDS[kind], worker: worker as usize, what: what as usize, number };
            let mut bytes = Vec::new();
            prop_assert_eq!(message.write(&mut bytes, &words).unwrap(), bytes.len() as u64);
            prop_assert_eq!(Message::read(&mut &bytes[..]).unwrap(), (message, words));
            for end in 0..bytes.len() {
                prop_assert!(Message::read(&mut &bytes[..end]).is_err());
            }
        }

        #[test]
        fn whatever_comes_is_read_or_refused(bytes in vec(any::<u8>(), 0..100)) {
            let _ = Message::read(&mut &bytes[..]);
        }
    }

    #[test]
    fn a_long_message_comes_in_pieces() {
        let words: Vec<u32> = (0..3 * PIECE as u32 + 5).collect();
        let mut bytes = Vec::new();
        Message::new(Kind::Rows, 1).write(&mut bytes, &words).unwrap();
        assert_eq!(Message::read(&mut &bytes[..]).unwrap().1, words);
    }
}
