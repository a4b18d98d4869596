//! Parquet files, as a graph, as ratings, as samples and as a table.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use megagrid_datasets::output::{Column, read_table, write_table};
use megagrid_datasets::{Dictionary, Format, Layout, Tokenizer, read_graph, read_ratings, read_unlabelled};
use megagrid_fuzz::{in_file, seed};

fn seeds() -> Vec<Vec<u8>> {
    let ends = Column::U64(vec![5, u64::MAX, 7].into());
    let names = Column::Strings(vec!["a".to_owned(), "zoë".to_owned(), String::new()].into());
    let numbers = Column::F32(vec![0.5, -1.0, 2.0].into());
    let tables = [
        vec![("source", ends.clone()), ("target", names)],
        vec![("user", ends.clone()), ("item", ends), ("rating", numbers)],
    ];
    let bytes = |columns: &Vec<_>| {
        in_file(&[], "parquet", |path| write_table(path, columns).and(Ok(fs::read(path).unwrap_or_default())))
    };
    tables.iter().filter_map(|columns| bytes(columns).ok()).collect()
}

fuzz_target!(
    init: {
        // What the parquet crate panics on is made an error of; nothing is to be printed of it.
        std::panic::set_hook(Box::new(|_| {}));
        seed(&seeds());
    },
    |bytes: &[u8]| {
        in_file(bytes, "parquet", |path| {
            let _ = read_graph(path, Some(Format::Parquet));
            let _ = read_ratings(path, Some(Format::Parquet));
            let _ = read_unlabelled(path, Layout::from(Some(Format::Parquet)), Tokenizer::default(), &Dictionary::from_integers(Vec::new()));
            let _ = read_table(path);
        });
    }
);
