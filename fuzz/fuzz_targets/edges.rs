//! Edge lists.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_graph};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_graph(bytes, Format::Edges);
});
