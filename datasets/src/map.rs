//! Read-only memory maps of a file, or of a window of it. The only unsafe code of this crate.
//!
//! The pages of a map count towards the memory of the process from when they are touched until the map is dropped.
//! Whoever visits a large file window by window therefore holds no more of it than a window.
#![allow(unsafe_code, reason = "a memory map is sound only while nobody changes the file; proofs below")]

use std::fs::File;
use std::io;
use std::ops::Range;

use bytemuck::AnyBitPattern;
use memmap2::{Mmap, MmapOptions};

/// Bytes of a file, mapped read-only.
#[derive(Debug)]
pub(crate) struct Map(Option<Mmap>);

/// Whether the pages are read when the map is made, or when they are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// All of them at once, which is cheaper for a window that is read to its end.
    Now,
    /// As they are touched.
    Touched,
}

impl Map {
    /// Maps the bytes `window` of a file.
    ///
    /// The file must not be changed or cut while it is mapped. Caches keep to that: they are written under another
    /// name and renamed when complete, never in place.
    ///
    /// # Errors
    /// Where the file ends within the window or the system refuses.
    pub(crate) fn new(file: &File, window: Range<u64>, pages: Pages) -> io::Result<Self> {
        // Touching a page beyond the end of the file would end the process.
        if window.end > file.metadata()?.len() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends within the window to map"));
        }
        if window.is_empty() {
            return Ok(Self(None));
        }
        let len = usize::try_from(window.end - window.start).map_err(io::Error::other)?;
        let mut options = MmapOptions::new();
        options.offset(window.start).len(len);
        if pages == Pages::Now {
            options.populate();
        }
        // SAFETY: the window is inside the file, as checked above, and the map is private and read-only, so nothing
        // in this process writes to it. That no other process changes the file under us is the caller's contract
        // above; should one break it, what is read is still plain bytes, validated after they are mapped.
        let map = unsafe { options.map(file)? };
        Ok(Self(Some(map)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Views bytes as values.
///
/// # Errors
/// Where the bytes are not aligned for `V` or not a whole number of values; sections of a cache always are.
pub(crate) fn view<V: AnyBitPattern>(bytes: &[u8]) -> io::Result<&[V]> {
    if bytes.is_empty() {
        return Ok(&[]);
    }
    let misfit = |error| io::Error::new(io::ErrorKind::InvalidData, format!("mapped bytes: {error}"));
    bytemuck::try_cast_slice(bytes).map_err(misfit)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn windows_hold_the_bytes_of_their_range() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..20_000u32).flat_map(u32::to_ne_bytes).collect();
        file.write_all(&bytes).unwrap();
        for window in [0..80_000, 4..8, 4096..4100, 12_340..56_780, 80_000..80_000] {
            for pages in [Pages::Now, Pages::Touched] {
                let map = Map::new(&file, window.clone(), pages).unwrap();
                assert_eq!(map.bytes(), &bytes[window.start as usize..window.end as usize]);
                let values: Vec<u32> = (window.start as u32 / 4..window.end as u32 / 4).collect();
                assert_eq!(view::<u32>(map.bytes()).unwrap(), values);
            }
        }
    }

    #[test]
    fn windows_beyond_the_end_are_refused() {
        let file = tempfile::tempfile().unwrap();
        let error = Map::new(&file, 0..1, Pages::Now).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(Map::new(&file, 0..0, Pages::Now).unwrap().bytes().is_empty());
    }

    #[test]
    fn views_check_alignment_and_length() {
        let aligned = [0u64, u64::MAX];
        let bytes: &[u8] = bytemuck::cast_slice(&aligned);
        assert_eq!(view::<u64>(bytes).unwrap(), aligned);
        assert!(view::<u64>(&bytes[4..12]).is_err());
        assert!(view::<u64>(&bytes[..12]).is_err());
    }
}
