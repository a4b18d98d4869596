//! What is written opens in other programs, and a full disk leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use megagrid_datasets::output::{Column, write_directory, write_matrix, write_table, write_vector};
use megagrid_datasets::{Dictionary, Error, Format, Prepared, parse_ratings};
use megagrid_partition::Side;

/// A small file system of its own, unmounted at the end.
struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Returns `None` where mounting is not allowed: only root may.
    fn mount(at: &Path, size: &str) -> Option<Self> {
        fs::create_dir(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Self(at.to_path_buf()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn assert_full(result: Result<(), Error>, disk: &Path) {
    let error = result.unwrap_err();
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull), "{error}");
    assert!(error.to_string().starts_with(&disk.display().to_string()), "{error}");
    assert_eq!(fs::read_dir(disk).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = Tmpfs::mount(&directory.path().join("disk"), "256k") else {
        eprintln!("skipped: a small file system for the disk-full test can be mounted by root only");
        return;
    };
    let noise: Vec<u64> = (0..100_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let target = disk.0.join("model");
    assert_full(write_directory(&target, |model| write_vector(&model.join("a.npy"), &noise)), &disk.0);
    let table = [("noise", Column::U64(noise.into()))];
    assert_full(write_directory(&target, |model| write_table(&model.join("a.parquet"), &table)), &disk.0);
    let lines: String = (0..50_000).map(|i| format!("{} {} 1\n", i % 997, i)).collect();
    let ratings = parse_ratings(lines.as_bytes(), Format::Ratings).unwrap();
    let prepared = Prepared::new(ratings, &[Side::Left, Side::Right]);
    assert_full(prepared.write_cache(disk.0.join("x.mgrid")), &disk.0);
}

fn python(modules: &str, script: &str, directory: &Path) {
    let run = |code: &str| Command::new("python3").arg("-c").arg(code).current_dir(directory).output();
    if !run(&format!("import {modules}")).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 cannot import {modules}");
        return;
    }
    let output = run(script).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn numpy_opens_arrays() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name| directory.path().join(name);
    write_vector(&path("u32.npy"), &[1u32, u32::MAX]).unwrap();
    write_vector(&path("u64.npy"), &[1u64, u64::MAX]).unwrap();
    write_vector(&path("i64.npy"), &[-1i64, i64::MAX]).unwrap();
    write_vector::<f64>(&path("f64.npy"), &[]).unwrap();
    let padded = [1.0f32, 2.0, 9.0, 3.0, 4.0, 9.0, 5.0, 6.5, 9.0];
    write_matrix(&path("f32.npy"), 2, padded.chunks_exact(3)).unwrap();
    let script = "
import numpy
load = numpy.load
assert load('u32.npy').dtype == 'uint32' and load('u32.npy').tolist() == [1, 2**32 - 1]
assert load('u64.npy').dtype == 'uint64' and load('u64.npy').tolist() == [1, 2**64 - 1]
assert load('i64.npy').dtype == 'int64' and load('i64.npy').tolist() == [-1, 2**63 - 1]
assert load('f64.npy').dtype == 'float64' and load('f64.npy').shape == (0,)
assert load('f32.npy').dtype == 'float32' and load('f32.npy').tolist() == [[1, 2], [3, 4], [5, 6.5]]
";
    python("numpy", script, directory.path());
}

#[test]
fn pandas_opens_tables() {
    let directory = tempfile::tempdir().unwrap();
    let names = Dictionary::from_strings(["zoë", "", "bob"]);
    let columns = [
        ("id", Column::U32(vec![0, 1, u32::MAX].into())),
        ("big", Column::U64(vec![0, 1, u64::MAX].into())),
        ("signed", Column::I64(vec![0, -1, i64::MIN].into())),
        ("score", Column::F32(vec![0.5, -1.0, 2.0].into())),
        ("exact", Column::F64(vec![0.1, -1.0, 1e300].into())),
        ("name", Column::Names(&names)),
    ];
    write_table(&directory.path().join("t.parquet"), &columns).unwrap();
    let script = "
import pandas
table = pandas.read_parquet('t.parquet')
assert list(table.columns) == ['id', 'big', 'signed', 'score', 'exact', 'name']
assert [str(t) for t in table.dtypes][:5] == ['uint32', 'uint64', 'int64', 'float32', 'float64']
assert table['id'].tolist() == [0, 1, 2**32 - 1] and table['big'].tolist() == [0, 1, 2**64 - 1]
assert table['signed'].tolist() == [0, -1, -2**63] and table['exact'].tolist() == [0.1, -1.0, 1e300]
assert table['score'].tolist() == [0.5, -1.0, 2.0] and table['name'].tolist() == ['zo\\u00eb', '', 'bob']
";
    python("pandas, pyarrow", script, directory.path());
}
