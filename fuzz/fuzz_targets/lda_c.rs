//! LDA-C corpora.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_corpus};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&["2 0:1 4:2\n1 4294967295:9\n"]),
    |bytes: &[u8]| {
        let _ = parse_corpus(bytes, Format::LdaC, None);
    }
);
