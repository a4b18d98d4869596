//! Damaged Parquet files are refused or read as something; nothing panics.

use std::fs;

use megagrid_datasets::output::{Column, read_table, write_table};
use megagrid_datasets::{Format, read_graph, read_ratings};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn damage_never_panics(changes in proptest::collection::vec((0.0f64..1.0, any::<u8>()), 1..4), cut in 0.5f64..1.5) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parquet");
        let columns = [
            ("user", Column::U64((0..300).map(|i| i * 7 % 50).collect())),
            ("item", Column::Strings((0..300).map(|i| format!("item {}", i % 40)).collect())),
            ("rating", Column::F32((0..300).map(|i| i as f32 / 3.0).collect())),
        ];
        write_table(&path, &columns).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in changes {
            let at = (at * bytes.len() as f64) as usize;
            bytes[at] = byte;
        }
        bytes.truncate((cut * bytes.len() as f64) as usize);
        fs::write(&path, &bytes).unwrap();
        let _ = read_table(&path);
        let _ = read_ratings(&path, Some(Format::Parquet));
        let _ = read_graph(&path, Some(Format::Parquet));
    }
}
