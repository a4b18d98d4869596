//! Which rows of a shard, or of a slice of it, a message holds, where it holds only those that changed: a count, then nothing
//! if it is all rows, else their numbers in 4 bytes each, or a bit for each row, whichever is smaller.

use super::message::Malformed;

fn bytes(count: usize, all: usize) -> usize {
    if count == all { 0 } else { (4 * count).min(all.div_ceil(8)) }
}

/// Appends which of `all` rows are meant; `rows` ascend.
pub fn put(rows: &[u32], all: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    let len = bytes(rows.len(), all);
    if len == 4 * rows.len() {
        rows.iter().for_each(|row| out.extend_from_slice(&row.to_le_bytes()));
    } else {
        let begin = out.len();
        out.resize(begin + len, 0);
        if len > 0 {
            rows.iter().for_each(|&row| out[begin + row as usize / 8] |= 1 << (row % 8));
        }
    }
}

/// Reads what [`put`] wrote, for as many rows.
pub fn take(all: usize, from: &mut &[u8]) -> Result<Vec<u32>, Malformed> {
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk));
    let count = word(from.split_off(..4).ok_or(Malformed)?) as usize;
    if count > all {
        return Err(Malformed);
    }
    let list = from.split_off(..bytes(count, all)).ok_or(Malformed)?;
    let rows: Vec<u32> = if count == all {
        (0..all as u32).collect()
    } else if list.len() == 4 * count {
        list.chunks_exact(4).map(word).collect()
    } else {
        (0..all as u32).filter(|&row| list[row as usize / 8] >> (row % 8) & 1 == 1).collect()
    };
    let fits = rows.len() == count && rows.last().is_none_or(|&last| (last as usize) < all);
    if fits && rows.is_sorted() { Ok(rows) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(rows: &[u32], all: usize) -> Vec<u8> {
        let mut out = Vec::new();
        put(rows, all, &mut out);
        out
    }

    #[test]
    fn rows_are_read_as_written_in_the_smaller_form() {
        let half: Vec<u32> = (0..100).filter(|row| row % 2 == 0).collect();
        let cases = [(vec![], 0), (vec![7, 99], 8), (half, 13), ((0..100).collect(), 0)];
        for (rows, bytes) in cases {
            let written = written(&rows, 100);
            assert_eq!(written.len(), 4 + bytes, "{rows:?}");
            let mut from = &written[..];
            assert_eq!(take(100, &mut from), Ok(rows));
            assert!(from.is_empty());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let numbers =
            |rows: &[u32]| [&[rows.len() as u32], rows].concat().iter().flat_map(|n| n.to_le_bytes()).collect();
        let wrong: [Vec<u8>; 5] =
            [vec![1, 0], numbers(&[100]), numbers(&[5, 4]), written(&[0; 50], 100), vec![101, 0, 0, 0]];
        for bytes in wrong {
            assert_eq!(take(100, &mut &bytes[..]), Err(Malformed), "{bytes:?}");
        }
    }
}
