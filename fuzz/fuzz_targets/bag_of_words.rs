//! UCI bags of words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_corpus};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&["2\n3\n2\n1 3 7\n2 1 1\n"]),
    |bytes: &[u8]| {
        let _ = parse_corpus(bytes, Format::BagOfWords, None);
    }
);
