//! How processes divide the files of an input: contiguous parts of about equally many bytes, in the order of the files.
//!
//! A text is cut at any byte, a zstd file between its frames, gzip and what has to be translated only between files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::open::{Compression, Counted, WHOLE, ZSTD_MAGIC, is_translated};
use crate::{Error, Readers};

/// Blocks of an input that are compared between processes, one for each file at least, and their bytes.
const SAMPLES: usize = 64;
const SAMPLE_BYTES: u64 = 4096;

/// Returns what this process reads of each file. Unless files are cut, each is read by one process.
///
/// # Errors
/// Files that cannot be read, or other ones than the other processes have.
pub(super) fn divide(
    path: &Path,
    files: &[PathBuf],
    readers: &Arc<dyn Readers>,
    cuts_files: bool,
) -> Result<Vec<(PathBuf, Range<u64>)>, Error> {
    let (mut sizes, mut hash) = (Vec::with_capacity(files.len()), Xxh3::new());
    for file in files {
        let bytes = sample(file, (SAMPLES / files.len()).max(1) as u64, readers, &mut hash);
        sizes.push(bytes.map_err(Error::io(file))?);
    }
    let all = sizes.iter().sum();
    let mine = [files.len() as u64, all, hash.digest()];
    let theirs = readers.gather_numbers(mine).map_err(Error::io(path))?;
    if let Some(process) = theirs.iter().position(|theirs| *theirs != mine) {
        return Err(Error::another_input(path, process));
    }
    let (mut spans, mut first) = (Vec::new(), 0);
    for (file, bytes) in files.iter().zip(sizes) {
        let cut = |part: usize| {
            cut(file, bytes, share(all, part, readers.processes()).saturating_sub(first).min(bytes), cuts_files)
        };
        let cuts = [cut(readers.process()), cut(readers.process() + 1)];
        let [start, end] = cuts.map(|cut| cut.map_err(Error::io(file)));
        let span = start?..end?;
        if !span.is_empty() {
            spans.push((file.clone(), if span == (0..bytes) { WHOLE } else { span }));
        }
        first += bytes;
    }
    Ok(spans)
}

/// Returns where a part begins of something that is divided evenly.
pub(crate) fn share(whole: u64, part: usize, parts: usize) -> u64 {
    (u128::from(whole) * part as u128 / parts as u128) as u64
}

/// Adds a file's length and blocks from all over it to a checksum; returns the length.
fn sample(file: &Path, blocks: u64, readers: &Arc<dyn Readers>, hash: &mut Xxh3) -> io::Result<u64> {
    let mut opened = Counted::open(file, Some(readers))?;
    let bytes = opened.seek(SeekFrom::End(0))?;
    hash.update(&bytes.to_le_bytes());
    for block in 0..blocks {
        let start = bytes.saturating_sub(SAMPLE_BYTES) / (blocks - 1).max(1) * block;
        opened.seek(SeekFrom::Start(start))?;
        let mut found = Vec::new();
        opened.by_ref().take(SAMPLE_BYTES).read_to_end(&mut found)?;
        hash.update(&found);
    }
    Ok(bytes)
}

/// Returns where a file is cut so that about `at` of its bytes lie before: at its beginning or its end unless it `is_cut`.
fn cut(path: &Path, bytes: u64, at: u64, is_cut: bool) -> io::Result<u64> {
    if at == 0 || at == bytes {
        return Ok(at);
    }
    let mut file = File::open(path)?;
    let places = match Compression::of(&mut file)? {
        // What is wrong with it is said where it is read.
        _ if !is_cut || is_translated(path).unwrap_or(false) => Vec::new(),
        None => return Ok(at),
        Some(Compression::Gzip) => Vec::new(),
        Some(Compression::Zstd) => frames(&mut file)?,
    };
    let places = places.into_iter().filter(|&place| place < bytes).chain([0, bytes]);
    Ok(places.min_by_key(|place| place.abs_diff(at)).unwrap_or(0))
}

/// Returns where the frames of a zstd file end, up to the first one that is not as it should be: whoever reads it says so.
fn frames(file: &mut File) -> io::Result<Vec<u64>> {
    let (mut at, mut ends) = (0, Vec::new());
    while let Some(end) = frame_end(file, at)? {
        ends.push(end);
        at = end;
    }
    Ok(ends)
}

/// Skips a frame by the sizes of its blocks (RFC 8878, 3.1).
fn frame_end(file: &mut File, start: u64) -> io::Result<Option<u64>> {
    let Some(head) = bytes_at::<5>(file, start)? else { return Ok(None) };
    if !head.starts_with(&ZSTD_MAGIC) {
        return Ok(None);
    }
    let descriptor = head[4];
    let is_single = descriptor >> 5 & 1;
    let content_size = match descriptor >> 6 {
        0 => u64::from(is_single),
        flag => 1 << flag,
    };
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let mut at = start + 5 + u64::from(1 - is_single) + dictionary + content_size;
    loop {
        let Some([a, b, c]) = bytes_at::<3>(file, at)? else { return Ok(None) };
        let header = u32::from_le_bytes([a, b, c, 0]);
        at += 3 + match header >> 1 & 3 {
            0 | 2 => u64::from(header >> 3),
            1 => 1,
            _ => return Ok(None),
        };
        if header & 1 == 1 {
            return Ok(Some(at + 4 * u64::from(descriptor >> 2 & 1)));
        }
    }
}

fn bytes_at<const N: usize>(file: &mut File, at: u64) -> io::Result<Option<[u8; N]>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = [0; N];
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn frames_are_found() {
        let mut file = tempfile::tempfile().unwrap();
        let mut expected = Vec::new();
        for (at, bytes) in [3_usize, 400, 70_000, 1_000_000].into_iter().enumerate() {
            let text: Vec<u8> = (0..bytes).map(|at| (at * at % 251) as u8).collect();
            let mut frame = zstd::Encoder::new(&mut file, 1).unwrap();
            frame.include_checksum(at % 2 == 0).unwrap();
            frame.set_pledged_src_size((at < 3).then_some(bytes as u64)).unwrap();
            frame.write_all(&text).unwrap();
            frame.finish().unwrap();
            expected.push(file.stream_position().unwrap());
        }
        assert_eq!(frames(&mut file).unwrap(), expected);
        file.write_all(&ZSTD_MAGIC).unwrap();
        assert_eq!(frames(&mut file).unwrap(), expected, "what is cut off is no frame");
    }
}
