//! Edge lists.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_graph};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&["1 2\n3 1\n", "# a\nfrom,to,w\n1,2,0.5\n7,2,1\n", "a\tb\r\nzoë\tb\r\n", "a::b\n"]),
    |bytes: &[u8]| {
        let _ = parse_graph(bytes, Format::Edges);
    }
);
