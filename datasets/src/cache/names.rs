//! The names of one side as a section of a cache.
//!
//! A word of 64 bits says the kind. Integers follow as they are. Of strings follow their offsets, of which there is one
//! more than vertices, then their text.

use crate::Dictionary;

const INTEGERS: u64 = 0;
const STRINGS: u64 = 1;

pub(super) fn encode(names: &Dictionary) -> Vec<u8> {
    let (kind, numbers, text) = match (names.as_integers(), names.as_arena()) {
        (Some(integers), _) => (INTEGERS, integers, ""),
        (None, Some((text, offsets))) => (STRINGS, offsets, text),
        (None, None) => unreachable!("names are integers or strings"),
    };
    [bytemuck::bytes_of(&kind), bytemuck::cast_slice(numbers), text.as_bytes()].concat()
}

/// Returns the names, `None` if these are not those of `num_vertices` vertices.
pub(super) fn decode(bytes: &[u8], num_vertices: u64) -> Option<Dictionary> {
    let (kind, rest) = bytes.split_first_chunk()?;
    let num_vertices = usize::try_from(num_vertices).ok()?;
    match u64::from_le_bytes(*kind) {
        INTEGERS if rest.len() == num_vertices.checked_mul(8)? => Some(Dictionary::from_integers(numbers(rest))),
        STRINGS => {
            let (offsets, text) = rest.split_at_checked(num_vertices.checked_add(1)?.checked_mul(8)?)?;
            Dictionary::from_arena(String::from_utf8(text.to_vec()).ok()?, numbers(offsets))
        }
        _ => None,
    }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytemuck::pod_collect_to_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive() {
        for names in [
            Dictionary::from_integers(vec![]),
            Dictionary::from_integers(vec![5, u64::MAX, 0]),
            Dictionary::from_strings([""; 0]),
            Dictionary::from_strings(["zoë", "", "bob"]),
        ] {
            let bytes = encode(&names);
            assert_eq!(decode(&bytes, names.len() as u64), Some(names.clone()));
            assert_eq!(decode(&bytes, names.len() as u64 + 1), None);
            assert_eq!(decode(&bytes[..bytes.len() - 1], names.len() as u64), None);
        }
    }
}
