//! Opening a file, decompressed if its first bytes say so.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::Error;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const COMPRESSED_BUFFER_BYTES: usize = 1 << 18;

/// Decompressed bytes.
pub(super) struct Source<'a> {
    pub(super) reader: Box<dyn Read + Send + 'a>,
    /// `gzip` or `zstd`.
    pub(super) compression: Option<&'static str>,
}

/// Opens a file. The compression is told by its first bytes, whatever its name.
pub(super) fn open(path: &Path) -> Result<Source<'static>, Error> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut magic = Vec::new();
    file.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut magic).map_err(Error::io(path))?;
    file.rewind().map_err(Error::io(path))?;
    let buffered = |file| BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, file);
    Ok(if magic.starts_with(&GZIP_MAGIC) {
        Source { reader: Box::new(MultiGzDecoder::new(buffered(file))), compression: Some("gzip") }
    } else if magic == ZSTD_MAGIC {
        let decoder = zstd::Decoder::with_buffer(buffered(file)).map_err(Error::io(path))?;
        Source { reader: Box::new(decoder), compression: Some("zstd") }
    } else {
        Source { reader: Box::new(file), compression: None }
    })
}

/// Fills `buffer` as far as the data go; returns the number of bytes read.
pub(super) fn read_full(reader: &mut dyn Read, mut buffer: &mut [u8]) -> io::Result<usize> {
    let wanted = buffer.len();
    while !buffer.is_empty() {
        match reader.read(buffer) {
            Ok(0) => break,
            Ok(read) => buffer = &mut buffer[read..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - buffer.len())
}
