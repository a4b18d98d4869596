//! Damaged Parquet files are refused or read as something; nothing panics.

use std::fs;

use megagrid_datasets::output::{Column, read_table, write_table};
use megagrid_datasets::{Format, Layout, parse_graph, read_graph, read_ratings, read_samples};
use proptest::prelude::*;

/// Two columns as Arrow for C++ writes them, with checksums of pages.
const CHECKED: &[u8] =
    b"PAR1\x15\0\x15$\x15$\x15\xfd\xb7\x89\xb5\x0e\x1c\x15\x06\x15\0\x15\x06\x15\x06\x1c\0\0\0\x02\0\0\0\x06\x01\x01\
      \0\0\0\x02\0\0\0\x03\0\0\0\x15\0\x15$\x15$\x15\xf4\xf0\xb2\x91\x05\x1c\x15\x06\x15\0\x15\x06\x15\x06\x1c\0\0\0\
      \x02\0\0\0\x06\x01\x04\0\0\0\x05\0\0\0\x06\0\0\0\x15\x04\x19<5\0\x18\x06schema\x15\x04\0\x15\x02%\x02\x18\x04u\
      ser\0\x15\x02%\x02\x18\x04item\0\x16\x06\x19\x1c\x19,&\0\x1c\x15\x02\x19%\x06\0\x19\x18\x04user\x15\0\x16\x06\
      \x16V\x16V&\x08I\x1c\x15\0\x15\0\x15\x02\0<)\x06\x19&\0\x06\0\0\0&\0\x1c\x15\x02\x19%\x06\0\x19\x18\x04item\
      \x15\0\x16\x06\x16V\x16V&^I\x1c\x15\0\x15\0\x15\x02\0<)\x06\x19&\0\x06\0\0\0\x16\xac\x01\x16\x06&\x08\x16\xac\
      \x01\0( parquet-cpp-arrow version 26.0.1\x19,\x1c\0\0\x1c\0\0\0\xbd\0\0\0PAR1";

#[test]
fn a_page_that_its_checksum_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        read_graph(&path, None)
    };
    assert_eq!(read(CHECKED).unwrap(), parse_graph(b"1 4\n2 5\n3 6\n", Format::Edges).unwrap());
    let at = CHECKED.windows(9).position(|values| values == [1, 0, 0, 0, 2, 0, 0, 0, 3]).unwrap();
    let mut damaged = CHECKED.to_vec();
    damaged[at + 4] = 3;
    let said = read(&damaged).unwrap_err().to_string();
    assert!(said.contains("x.parquet") && said.contains("CRC checksum mismatch"), "{said}");
}

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
        let of_rating = Layout { roles: "label=rating".parse().unwrap(), ..Layout::from(Some(Format::Parquet)) };
        let _ = read_samples(&path, of_rating, &[]);
    }
}
