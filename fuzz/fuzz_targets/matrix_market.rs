//! Matrix Market files, as a graph and as ratings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_graph, parse_ratings};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&["%%MatrixMarket matrix coordinate real symmetric\n% a\n3 3 2\n1 2 0.5\n3 3 1\n", "%%MatrixMarket matrix coordinate pattern general\n2 4 1\n1 4\n"]),
    |bytes: &[u8]| {
        let _ = parse_graph(bytes, Format::MatrixMarket);
        let _ = parse_ratings(bytes, Format::MatrixMarket);
    }
);
