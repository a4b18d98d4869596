//! Text that is formatted on all threads and written in order.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use megagrid_partition::parallel;

use crate::Error;
use crate::output::write_file;

/// Items that one thread formats at a time.
const ITEMS_PER_CHUNK: usize = 1 << 14;
/// Chunks that are in memory at a time.
const CHUNKS_PER_ROUND: usize = 64;

/// Writes a file that holds `header` and what `format` appends for each of `0..num_items`. It is whole or absent.
pub(super) fn write_text(
    path: &Path,
    header: &str,
    num_items: usize,
    format: impl Fn(&mut Vec<u8>, usize) -> std::io::Result<()> + Sync,
) -> Result<(), Error> {
    write_file(path, |file: &mut File| {
        let write = |file: &mut File, bytes: &[u8]| file.write_all(bytes).map_err(Error::io(path));
        write(file, header.as_bytes())?;
        let chunk = |start: usize| start..num_items.min(start + ITEMS_PER_CHUNK);
        let chunks: Vec<Range<usize>> = (0..num_items).step_by(ITEMS_PER_CHUNK).map(chunk).collect();
        for round in chunks.chunks(CHUNKS_PER_ROUND) {
            let texts = parallel::map(round.len(), |at| {
                let mut text = Vec::new();
                round[at].clone().try_for_each(|item| format(&mut text, item))?;
                Ok(text)
            });
            for text in texts {
                write(file, &text.map_err(Error::io(path))?)?;
            }
        }
        Ok(())
    })
}
