//! Ratings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_ratings};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_ratings(bytes, Format::Ratings);
});
