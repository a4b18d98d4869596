//! Features by a hash of their names: a model then has a place for names that it has not seen, and a size that is known before.

use xxhash_rust::xxh3::xxh3_64;

use crate::{Dataset, Dictionary};

/// The most bits of a hash: ids of vertices have 32.
pub const MOST_HASH_BITS: u32 = 31;

/// Returns the number that a feature has by its name: the lowest `bits` bits of XXH3 (64 bits, seed 0) of the name in UTF-8. It is the same
/// everywhere, and in every version.
///
/// # Examples
/// ```
/// assert_eq!(megagrid_datasets::hashed_name("", 16), 0x94c2);
/// ```
#[must_use]
pub fn hashed_name(name: &str, bits: u32) -> u64 {
    xxh3_64(name.as_bytes()) & ((1 << bits) - 1)
}

impl Dataset<f32> {
    /// Has right vertices be called by [the hash of their names](hashed_name). Those that have the same are one, and a left vertex may have several
    /// edges with it then, which [`add_up`](crate::add_up) joins.
    #[must_use]
    pub fn with_hashed_names(self, bits: u32) -> Self {
        let names = self.right_names();
        let hashed: Vec<u64> = names.iter().map(|name| hashed_name(&name, bits)).collect();
        let mut distinct = hashed.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let place = |hash: &u64| distinct.partition_point(|other| other < hash) as u32;
        let places: Vec<u32> = hashed.iter().map(place).collect();
        let Self { mut edges, left_names, .. } = self;
        edges.right.iter_mut().for_each(|right| *right = places[*right as usize]);
        edges.num_right = distinct.len();
        Self { edges, left_names, right_names: Some(Dictionary::from_integers(distinct)) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Format, add_up, parse_samples};

    #[test]
    fn the_hash_is_the_published_one() {
        // Of XXH3's own test vectors.
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hashed_name("", 16), 0x94c2);
    }

    #[test]
    fn values_of_names_with_one_hash_add_up() {
        let text: String = (0..60).map(|row| format!("1 {row}:1 {}:0.5 {}:2\n", row + 7, row + 200)).collect();
        let data = parse_samples(text.as_bytes(), Format::Libsvm, &[]).unwrap().data;
        for bits in [1, 3, 20] {
            let mut expected = BTreeMap::new();
            let edges = data.edges.left.iter().zip(&data.edges.right).zip(&data.edges.data);
            for ((&left, &right), &value) in edges {
                *expected.entry((left, hashed_name(&data.right_names().name(right), bits))).or_insert(0.0) += value;
            }
            let mut hashed = data.clone().with_hashed_names(bits);
            add_up(&mut hashed.edges);
            let names = hashed.right_names().as_integers().unwrap();
            let edges = hashed.edges.left.iter().zip(&hashed.edges.right).zip(&hashed.edges.data);
            let found: Vec<_> = edges.map(|((&left, &right), &value)| ((left, names[right as usize]), value)).collect();
            assert_eq!(found.len(), expected.len(), "{bits} bits: each once");
            assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected, "{bits} bits");
            assert!(names.len() <= 1 << bits && hashed.edges.num_right == names.len());
        }
    }
}
