//! Matrix Market files, as a graph and as ratings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_graph, parse_ratings};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_graph(bytes, Format::MatrixMarket);
    let _ = parse_ratings(bytes, Format::MatrixMarket);
});
