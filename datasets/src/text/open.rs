//! Opening a file, or the lines that begin in a span of it, decompressed if its first bytes say so.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memchr_iter};

use super::pipe::{Pipe, PipeReader};
use super::translated::{Translation, Utf8};
use super::{CHUNK_BYTES, MAX_LINE_BYTES, too_long};
use crate::{Error, Readers};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const COMPRESSED_BUFFER_BYTES: usize = 1 << 18;

/// Bytes that tell what a text is.
const HEAD_BYTES: u64 = 4096;

/// All of a file, however long.
pub(super) const WHOLE: Range<u64> = 0..u64::MAX;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// Tells it by the first bytes of a file, whatever its name.
    pub(super) fn of(file: &mut impl Read) -> io::Result<Option<Self>> {
        let mut magic = Vec::new();
        file.take(ZSTD_MAGIC.len() as u64).read_to_end(&mut magic)?;
        // pzstd begins with a frame that is passed over.
        let is_skipped = matches!(magic[..], [0x50..=0x5f, 0x2a, 0x4d, 0x18]);
        Ok(match () {
            () if magic.starts_with(&GZIP_MAGIC) => Some(Self::Gzip),
            () if magic == ZSTD_MAGIC || is_skipped => Some(Self::Zstd),
            () => None,
        })
    }
}

/// Decompressed bytes.
pub(super) struct Source<'a> {
    pub(super) reader: Box<dyn Read + Send + 'a>,
    pub(super) compression: Option<Compression>,
}

/// A file whose bytes are counted as they are read.
pub(super) struct Counted {
    file: File,
    readers: Option<Arc<dyn Readers>>,
}

impl Counted {
    pub(super) fn open(path: &Path, readers: Option<&Arc<dyn Readers>>) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, readers: readers.cloned() })
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.readers.iter().for_each(|readers| readers.has_read(read as u64));
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Opens the lines of a file that belong to a span of it. A line belongs to the span in which it begins, or which ends where it
/// begins: so whoever has a span skips what is left of a line, or all of one, and has the first line that follows. A compressed
/// file has spans of whole frames, one that is translated has one span.
pub(super) fn open(
    path: &Path,
    span: &Range<u64>,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<Source<'static>, Error> {
    let open = || -> io::Result<Source<'static>> {
        let mut file = Counted::open(path, readers)?;
        let compression = Compression::of(&mut file)?;
        if *span == WHOLE {
            file.rewind()?;
            return Ok(Source { reader: Box::new(Utf8::new(decoder(file, compression)?)), compression });
        }
        let decoded = |span: Range<u64>| -> io::Result<_> {
            let mut file = Counted::open(path, readers)?;
            file.seek(SeekFrom::Start(span.start))?;
            decoder(file.take(span.end.saturating_sub(span.start)), compression)
        };
        let reader = lines_of(decoded(span.clone())?, decoded(span.end..u64::MAX)?, span.start == 0)?;
        Ok(Source { reader: Box::new(reader), compression })
    };
    open().map_err(Error::io(path))
}

/// Tells whether a file has to be read from its beginning to be translated.
pub(super) fn is_translated(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let compression = Compression::of(&mut file)?;
    file.rewind()?;
    let mut first = Vec::new();
    decoder(file, compression)?.take(HEAD_BYTES).read_to_end(&mut first)?;
    Ok(Translation::of(&first).is_some())
}

/// Opens what came through a pipe.
pub(super) fn open_pipe(pipe: &Arc<Pipe>) -> io::Result<Source<'static>> {
    let compression = Compression::of(&mut PipeReader::new(pipe))?;
    let reader = Box::new(Utf8::new(decoder(PipeReader::new(pipe), compression)?));
    Ok(Source { reader, compression })
}

fn decoder(from: impl Read + Send + 'static, compression: Option<Compression>) -> io::Result<Box<dyn Read + Send>> {
    let Some(compression) = compression else { return Ok(Box::new(from)) };
    let mut from = BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, from);
    Ok(match compression {
        // Behind the last frame.
        _ if from.fill_buf()?.is_empty() => Box::new(io::empty()),
        Compression::Gzip => Box::new(MultiGzDecoder::new(from)),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(from)?),
    })
}

/// Leaves out the first line of a span, unless a file begins there, and adds the one that begins behind it or that it ends in.
fn lines_of(span: impl Read, rest: impl Read, is_beginning: bool) -> io::Result<Chain<impl Read, impl Read>> {
    let (mut span, mut last) = (BufReader::new(span), Vec::new());
    if is_beginning || skip_line(&mut span)? {
        BufReader::new(rest.take(MAX_LINE_BYTES as u64 + 1)).read_until(b'\n', &mut last)?;
        if last.len() > MAX_LINE_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, too_long()));
        }
    }
    Ok(span.chain(Cursor::new(last)))
}

/// Skips the bytes up to a line end and with it; returns false if there is none.
fn skip_line(from: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let found = from.fill_buf()?;
        let (end, len) = (memchr(b'\n', found), found.len());
        from.consume(end.map_or(len, |end| end + 1));
        if end.is_some() || len == 0 {
            return Ok(end.is_some());
        }
    }
}

/// Counts the lines of a file before the first one of a span that begins at a byte, as far as it can be read, and up to `most`.
pub(super) fn lines_before(path: &Path, byte: u64, most: u64) -> u64 {
    let count = || -> io::Result<u64> {
        let mut file = File::open(path)?;
        let compression = Compression::of(&mut file)?;
        file.rewind()?;
        let mut text = BufReader::with_capacity(CHUNK_BYTES, decoder(file.take(byte), compression)?);
        // The line that is left out.
        let mut lines = 1;
        while let found @ [_, ..] = text.fill_buf()? {
            lines += memchr_iter(b'\n', found).count() as u64;
            let len = found.len();
            text.consume(len);
            if lines >= most {
                break;
            }
        }
        Ok(lines)
    };
    if byte == 0 { 0 } else { count().unwrap_or(0).min(most) }
}
