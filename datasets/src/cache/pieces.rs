//! Checksums of the pieces of a section, and which pieces have been found right.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use megagrid_partition::parallel;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes that one checksum covers: so few that visiting a small window reads little else, and so many that checksums
/// take next to no room.
const PIECE_BYTES: u64 = 1 << 20;

pub(super) fn num_pieces(section_bytes: u64) -> usize {
    section_bytes.div_ceil(PIECE_BYTES) as usize
}

/// Returns the checksums of a section's pieces, computed in parallel.
pub(super) fn checksums(section: &[u8]) -> Vec<u64> {
    let pieces: Vec<_> = section.chunks(PIECE_BYTES as usize).collect();
    parallel::map(pieces.len(), |at| xxh3_64(pieces[at]))
}

/// The pieces of all sections.
#[derive(Debug)]
pub(super) struct Pieces {
    checksums: Vec<u64>,
    /// Whether a piece has been compared with its checksum. Nothing else is published by it: `Relaxed` everywhere.
    checked: Vec<AtomicBool>,
}

impl Pieces {
    pub(super) fn new(checksums: Vec<u64>) -> Self {
        let checked = checksums.iter().map(|_| AtomicBool::new(false)).collect();
        Self { checksums, checked }
    }

    /// Widens a window of a section to the pieces that it touches, unless all of them have been checked already.
    pub(super) fn widen(&self, first_piece: usize, section_bytes: u64, window: &Range<u64>) -> Range<u64> {
        let pieces = window.start / PIECE_BYTES..window.end.div_ceil(PIECE_BYTES);
        let positions = first_piece + pieces.start as usize..first_piece + pieces.end as usize;
        if window.is_empty() || self.checked[positions].iter().all(|checked| checked.load(Ordering::Relaxed)) {
            return window.clone();
        }
        pieces.start * PIECE_BYTES..section_bytes.min(pieces.end * PIECE_BYTES)
    }

    /// Checks those pieces of a window, as [`Pieces::widen`] returned it, that have not been. Returns whether all are
    /// right.
    pub(super) fn check(&self, first_piece: usize, window: &Range<u64>, bytes: &[u8]) -> bool {
        if !window.start.is_multiple_of(PIECE_BYTES) {
            return true;
        }
        let first = first_piece + (window.start / PIECE_BYTES) as usize;
        let pieces: Vec<_> = bytes.chunks(PIECE_BYTES as usize).collect();
        let right = parallel::map(pieces.len(), |at| {
            let checked = &self.checked[first + at];
            let right = checked.load(Ordering::Relaxed) || xxh3_64(pieces[at]) == self.checksums[first + at];
            if right {
                checked.store(true, Ordering::Relaxed);
            }
            right
        });
        !right.contains(&false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_widened_once_and_wrong_bytes_seen() {
        let mut section = vec![7; 2 * PIECE_BYTES as usize + 100];
        let (bytes, sums) = (section.len() as u64, checksums(&section));
        assert_eq!(sums.len(), num_pieces(bytes));
        // Two pieces of another section come first.
        let pieces = Pieces::new([vec![0, 0], sums].concat());
        let window = PIECE_BYTES + 8..PIECE_BYTES + 16;
        let wide = pieces.widen(2, bytes, &window);
        assert_eq!(wide, PIECE_BYTES..2 * PIECE_BYTES);
        let slice = |range: &Range<u64>| range.start as usize..range.end as usize;
        assert!(pieces.check(2, &wide, &section[slice(&wide)]));
        assert_eq!(pieces.widen(2, bytes, &window), window);
        let last = 2 * PIECE_BYTES + 96..bytes;
        let wide = pieces.widen(2, bytes, &last);
        assert_eq!(wide, 2 * PIECE_BYTES..bytes);
        section[2 * PIECE_BYTES as usize] = 8;
        assert!(!pieces.check(2, &wide, &section[slice(&wide)]));
        assert_eq!(pieces.widen(2, bytes, &last), wide);
    }
}
