//! Samples, also as tables, with and without a choice of positive labels.
#![no_main]

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::{Format, Label, parse_samples};
use megagrid_fuzz::seed;

fuzz_target!(
    init: seed(&[
        "+1 1:0.5 7:2 # a\n-1 2:1\n",
        "3 0:1\n1\n",
        "label,age,city\nyes,41.5,\"Oslo, N\"\nno,,\n",
        "{\"label\": 1, \"age\": 3, \"city\": \"Oslo\", \"is_new\": true}\n",
    ]),
    |bytes: &[u8]| {
        let _ = parse_samples(bytes, Format::Libsvm, &[]);
        let _ = parse_samples(bytes, Format::Libsvm, &[Label::Number(1.0), Label::Word("yes".to_owned())]);
        for format in [Format::Table, Format::JsonLines] {
            let _ = parse_samples(bytes, format, &[]);
        }
    }
);
