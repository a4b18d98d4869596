//! JSON lines, as ratings and as words with their counts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_corpus, parse_ratings};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&[
        "{\"user\": 1, \"item\": \"a\\u0062\", \"rating\": 3.5}\n{\"x\": [{}], \"rating\": -1e3, \"item\": 2, \"user\": \"\"}\n",
        "{\"document\":7,\"word\":\"tea\",\"count\":2}\n",
    ]),
    |bytes: &[u8]| {
        let _ = parse_ratings(bytes, Format::JsonLines);
        let _ = parse_corpus(bytes, Format::JsonLines, None);
    }
);
