//! Ratings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_ratings};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&["u,i,r\n1,2,3.5\n9,2,-1e3\n", "a::b::4::9\n", "18446744073709551615 0 1\n", "\"i,d\";\"u\"\"\n\";r\n\"1\";2;3\n"]),
    |bytes: &[u8]| {
        let _ = parse_ratings(bytes, Format::Ratings);
    }
);
