//! One document a line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_corpus};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&["tea and rye\n\nzoë tea\n"]),
    |bytes: &[u8]| {
        let _ = parse_corpus(bytes, Format::Text, None);
    }
);
