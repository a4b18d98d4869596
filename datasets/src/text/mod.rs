//! Text files, on all cores: parts, decompression, windows of whole lines, chunks of a window parsed in parallel.
//!
//! A file is read in windows of [`WINDOW_BYTES`]; while one is parsed, the outcomes of the last one are consumed, and the
//! next is read and decompressed. A window is cut at line ends into chunks, each parsed by one thread, and the chunks'
//! outcomes are consumed in the order of the file, so that nothing depends on the number of threads. Memory: two windows,
//! and the outcomes of two.

mod division;
mod files;
mod input;
mod line;
mod malformed;
mod open;
mod pipe;
mod plain;
mod quotes;
mod translated;
mod windows;

pub(crate) use division::share;
pub use files::files;
pub use input::{Input, input_bytes};
pub(crate) use line::{Fields, Separator, integer, number, words};
pub(crate) use malformed::Malformed;
pub use pipe::is_pipe;
pub(crate) use plain::{next_line, plain_lines};
pub(crate) use quotes::paired;
pub(crate) use windows::{Lines, Text};

use std::path::Path;

use crate::Error;

/// Bytes of text that are parsed at a time.
pub(crate) const WINDOW_BYTES: usize = 4 << 20;

/// Text that one thread parses in one go: small enough that a chunk's own table of names stays in the L2 cache.
const CHUNK_BYTES: usize = 1 << 18;

/// The longest line that is accepted. A file without line ends would otherwise fill the memory.
const MAX_LINE_BYTES: usize = 1 << 30;

/// What a text in UTF-8 may begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a small text, of names or numbers, without the mark of its byte order that it may begin with.
///
/// # Errors
/// One that cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Says that a line is longer than that.
fn too_long() -> String {
    format!("a line is longer than {MAX_LINE_BYTES} bytes; is it a text file?")
}
