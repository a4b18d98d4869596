//! Checkpoints of several processes, of which each writes a range of every file.

use std::fs;
use std::path::Path;

use megagrid_algorithms::lda::{self, Dense};
use megagrid_algorithms::mf::{Config, in_place};
use megagrid_engine::checkpoint::{load, save};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};
use tempfile::tempdir;

use super::lda::TOPICS;
use super::{local, settings};
use crate::made::{self, topics};

/// Returns the contents of the files of a checkpoint but its manifest, ranges joined, by name.
fn contents(checkpoint: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(checkpoint).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|name| name != "checkpoint.json").collect();
    names.sort();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for name in names {
        let bytes = fs::read(checkpoint.join(&name)).unwrap();
        let whole = name.split_inclusive(".bin").next().unwrap();
        match files.last_mut().filter(|(before, _)| before == whole) {
            Some((_, all)) => all.extend(bytes),
            None => files.push((whole.to_owned(), bytes)),
        }
    }
    files
}

/// Users of one rating each, and their engine, in which a checkpoint takes 256 bytes for each.
fn one_rating_each(users: usize) -> (GroupedEdges<f32>, Config) {
    let (left, right) = (0..users as u32).map(|user| (user, user % 512)).unzip();
    let data = (0..users).map(|user| (user % 5) as f32).collect();
    let list = EdgeList { num_left: users, num_right: 512, square: false, left, right, data };
    let config = Config { dims: 64, ..super::config() };
    (GroupedEdges::new(list, &[Side::Right]), config)
}

fn factorization(edges: &GroupedEdges<f32>, config: Config, settings: &Settings) -> Engine<in_place::Mf> {
    made::factorization(edges, config, in_place::sequence(config, edges.num_edges() as u64), settings)
}

/// Saves in several processes, goes on in one, and compares what both write and what went through the first process.
fn check(processes: usize, users: usize) {
    let (edges, config) = one_rating_each(users);
    let (several, one) = (tempdir().unwrap(), tempdir().unwrap());
    let ((), through_first) = local::counted(processes, |peers| {
        let mut engine = factorization(&edges, config, &settings(peers, 1, config.row_dims()));
        made::run(&mut engine, 3);
        save(&mut engine, several.path()).unwrap();
    });
    let mut engine = factorization(&edges, config, &settings(None, 1, config.row_dims()));
    assert_eq!(load(&mut engine, several.path()).unwrap(), 3);
    save(&mut engine, one.path()).unwrap();
    let [several, one] = [&several, &one].map(|dir| contents(&dir.path().join("iteration-00003")));
    assert!(several == one, "the ranges of {processes} processes are not what one writes");
    // The first sends its part of the rows, and gets those of its range; the rest are the looks of the run.
    let bytes: usize = one.iter().map(|(_, bytes)| bytes.len()).sum();
    let looks = 4 * processes * 512 * 300;
    println!("{processes} processes, {bytes} bytes, {through_first} of collectives through the first");
    assert!(through_first as usize <= 2 * bytes / processes + looks, "{through_first} of {bytes}");
}

#[test]
fn a_directory_that_one_process_does_not_see_is_refused_in_all() {
    let (edges, config) = one_rating_each(300);
    let dirs = [tempdir().unwrap(), tempdir().unwrap()];
    local::run(2, |peers| {
        let mine = peers.as_ref().map_or(0, |peers| peers.process());
        let mut engine = factorization(&edges, config, &settings(peers, 1, config.row_dims()));
        made::run(&mut engine, 1);
        let error = save(&mut engine, dirs[mine].path()).unwrap_err().to_string();
        assert!(error.contains("process 1 does not see it; all processes have to see the same directory"), "{error}");
    });
    assert!(fs::read_dir(dirs[0].path()).unwrap().next().is_none(), "nothing is left behind");
}

#[test]
fn each_process_writes_a_range() {
    check(2, 3000);
    check(3, 10_000);
    check(8, 100_000);
}

#[test]
#[ignore = "writes 2 GB"]
fn each_process_writes_a_range_of_a_gigabyte() {
    check(8, 4_000_000);
}

#[test]
fn edge_data_are_written_in_ranges() {
    let edges = super::lda::corpus();
    let config = lda::Config { alpha: 0.1, ..lda::Config::new(TOPICS) };
    let (several, one) = (tempdir().unwrap(), tempdir().unwrap());
    for processes in [2, 3, 4] {
        local::run(processes, |peers| {
            let mut engine = topics::<Dense>(&edges, &config, &settings(peers, 1, TOPICS));
            made::run(&mut engine, 2);
            save(&mut engine, several.path()).unwrap();
        });
        let mut engine = topics::<Dense>(&edges, &config, &settings(None, 1, TOPICS));
        load(&mut engine, several.path()).unwrap();
        save(&mut engine, one.path()).unwrap();
        let [found, expected] = [&several, &one].map(|dir| contents(&dir.path().join("iteration-00002")));
        assert!(found == expected, "{processes} processes");
    }
}

#[test]
fn what_a_killed_save_leaves_behind_loses_nothing() {
    let (edges, config) = one_rating_each(1000);
    let dir = tempdir().unwrap();
    let in_two = |work: &(dyn Fn(&mut Engine<in_place::Mf>) + Sync)| {
        local::run(2, |peers| work(&mut factorization(&edges, config, &settings(peers, 1, config.row_dims()))));
    };
    in_two(&|engine| save(engine, dir.path()).unwrap());
    // Killed between a range and the manifest.
    let left_behind = dir.path().join(".iteration-00001.tmp");
    fs::create_dir(&left_behind).unwrap();
    fs::write(left_behind.join("left-sync.bin.00001"), "half of a range").unwrap();
    in_two(&|engine| {
        assert_eq!(load(engine, dir.path()).unwrap(), 0);
        made::run(engine, 1);
        save(engine, dir.path()).unwrap();
    });
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["iteration-00001"]);
    fs::remove_file(dir.path().join("iteration-00001/left-sync.bin.00001")).unwrap();
    in_two(&|engine| {
        let said = load(engine, dir.path()).unwrap_err().to_string();
        assert!(said.contains("left-sync.bin.00001: missing; the checkpoint is damaged"), "{said}");
    });
}
