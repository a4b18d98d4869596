//! Checksums of edges that do not depend on their order: sums of hashes.

use crate::cache::EdgeData;

/// Returns the sum of the hashes of edges, from their left and right ends and their data.
pub(crate) fn hash_all<T: EdgeData>(ends: impl Iterator<Item = (u32, u32)>, data: &[T]) -> u64 {
    let bytes = T::to_bytes(data);
    if bytes.is_empty() {
        ends.map(|(left, right)| hash(left, right, 0)).fold(0, u64::wrapping_add)
    } else {
        ends.zip(bytemuck::cast_slice::<u8, u32>(bytes))
            .map(|((left, right), &word)| hash(left, right, word))
            .fold(0, u64::wrapping_add)
    }
}

/// Mixes the bits of an edge (the constants are odd and have about as many ones as zeros).
pub(crate) fn hash(left: u32, right: u32, word: u32) -> u64 {
    let ends = u64::from(left) << 32 | u64::from(right);
    let mut mixed = ends.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(word).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 29
}
