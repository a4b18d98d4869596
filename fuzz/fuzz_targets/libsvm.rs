//! Samples, with and without a choice of positive labels.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, parse_samples};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_samples(bytes, Format::Libsvm, &[]);
    let _ = parse_samples(bytes, Format::Libsvm, &[1.0, 3.0]);
});
