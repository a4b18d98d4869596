//! Caches. Half of the inputs get right checksums, so that what these cover is reached.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::cache::{Cache, EdgeData, info};
use megagrid_datasets::{Format, Prepared, parse_graph, parse_ratings};
use megagrid_fuzz::{in_file, seed};
use megagrid_partition::Side;
use xxhash_rust::xxh3::xxh3_64;

const HEADER_BYTES: usize = 512;
/// Where the header has the checksum of the list of checksums, and the lengths of the sections.
const LIST_CHECKSUM: usize = 48;
const LENGTHS: usize = 56;
const NUM_SECTIONS: usize = 9;
/// Bytes that a checksum covers: more than inputs have.
const PIECE_BYTES: usize = 1 << 20;

fn seeds() -> Vec<Vec<u8>> {
    let sides = [Side::Left, Side::Right];
    let written = |write: &dyn Fn(&std::path::Path)| {
        let path = std::env::temp_dir().join(format!("megagrid-fuzz-seed-{}.mgrid", std::process::id()));
        write(&path);
        let bytes = fs::read(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        [&[0][..], &bytes].concat()
    };
    let graph = parse_graph(b"1 2\n2 3\n3 1\n3 3\n", Format::Edges).unwrap();
    let ratings = parse_ratings(b"a,x,1\nb,x,2\na,y,-3\n", Format::Ratings).unwrap();
    vec![
        written(&|path| Prepared::new(graph.clone(), &sides).write_cache(path).unwrap()),
        written(&|path| Prepared::new(ratings.clone(), &sides).write_cache(path).unwrap()),
    ]
}

/// Gives bytes the length and the checksums that their header asks for, as far as it can be followed.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut sealed = bytes.to_vec();
    let length = |section: usize| -> Option<usize> {
        let bytes = bytes.get(LENGTHS + 8 * section..LENGTHS + 8 * section + 8)?;
        usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok().filter(|&length| length < PIECE_BYTES)
    };
    let (mut end, mut sums) = (HEADER_BYTES, Vec::new());
    let mut ranges = Vec::new();
    for section in 0..NUM_SECTIONS {
        let length = length(section)?;
        ranges.push(end..end + length);
        end += length.next_multiple_of(64);
    }
    sealed.resize(end, 0);
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        sums.extend(xxh3_64(&sealed[range]).to_le_bytes());
    }
    sealed[LIST_CHECKSUM..LIST_CHECKSUM + 8].copy_from_slice(&xxh3_64(&sums).to_le_bytes());
    let header = xxh3_64(&sealed[..HEADER_BYTES - 8]);
    sealed[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
    sealed.extend(sums);
    Some(sealed)
}

fn visit<T: EdgeData>(path: &std::path::Path) {
    if let Ok(cache) = Cache::<T>::open(path) {
        let _ = cache.to_dataset();
        let _ = cache.labels();
        let _ = cache.names(Side::Right);
    }
    if let Ok(prepared) = Prepared::<T>::open(path) {
        let _ = prepared.edges.summarize(|_| 0.0);
    }
}

fuzz_target!(
    init: seed(&seeds()),
    |bytes: &[u8]| {
        let Some((choice, bytes)) = bytes.split_first() else { return };
        let Some(bytes) = (if choice & 1 == 0 { sealed(bytes) } else { Some(bytes.to_vec()) }) else { return };
        in_file(&bytes, "mgrid", |path| {
            let _ = info(path);
            visit::<()>(path);
            visit::<f32>(path);
            visit::<u32>(path);
        });
    }
);
