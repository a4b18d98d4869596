//! UCI bags of words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_corpus};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_corpus(bytes, Format::BagOfWords, None);
});
