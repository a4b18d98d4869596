//! Checkpoints: a run that stops and goes on is the run that did not stop, and what is not whole is not used.

use std::fs;
use std::path::{Path, PathBuf};

use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Objective, SquaredErrors};
use megagrid_algorithms::pagerank::PageRank;
use megagrid_engine::checkpoint::{check_target, load, load_with, save, save_with};
use megagrid_engine::{Engine, Error};
use megagrid_partition::SplitMix;
use megagrid_stages::Program;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::{TempDir, tempdir};

use crate::made::{self, learned, page_rank_state, run, scores, settings, watch};

fn page_rank(workers: usize) -> Engine<PageRank> {
    made::page_rank(&made::links(1500, 20_000), &[], &settings(workers, 1))
}

fn factorization(workers: usize, config: Config, seed: u64) -> Engine<Mf> {
    let settings = settings(workers, config.row_dims());
    made::factorization(&made::noise(seed), config, in_place::sequence(config, 6000), &settings)
}

fn config() -> Config {
    Config { biases: false, dims: 6, ..Config::default() }
}

fn objective(engine: &mut Engine<Mf>) -> f64 {
    Objective::new(engine.total(SquaredErrors(config())).unwrap(), config().lambda).value
}

/// Stops after half of the iterations and goes on, on as many workers and on others: `same` compares the end of these with the
/// run that did not stop.
pub fn goes_on<P: Program<Global: Serialize + DeserializeOwned>, T: PartialEq + std::fmt::Debug>(
    make: impl Fn(usize) -> Engine<P>,
    state: impl Fn(&mut Engine<P>) -> T,
    same: impl Fn(&mut Engine<P>, &mut Engine<P>),
) {
    for workers in 1..=3 {
        let mut straight = make(workers);
        run(&mut straight, 10);
        let dir = tempdir().unwrap();
        let mut first = make(workers);
        run(&mut first, 5);
        save(&mut first, dir.path()).unwrap();
        let mut second = make(workers);
        assert_eq!(load(&mut second, dir.path()).unwrap(), 5);
        assert_eq!(state(&mut second), state(&mut first));
        run(&mut second, 10);
        assert_eq!(second.iterations(), 10);
        assert_eq!(state(&mut second), state(&mut straight), "{workers} workers");

        let mut other = make(workers % 3 + 1);
        load(&mut other, dir.path()).unwrap();
        assert_eq!(state(&mut other), state(&mut first));
        run(&mut other, 10);
        same(&mut other, &mut straight);
        save(&mut other, dir.path()).unwrap();
    }
}

#[test]
fn pagerank_goes_on_bit_by_bit_and_on_other_numbers_of_workers() {
    goes_on(
        page_rank,
        |engine| page_rank_state(engine),
        |other, straight| {
            assert!(scores(other).iter().zip(scores(straight)).all(|(a, b)| (a - b).abs() < 1e-6));
        },
    );
}

#[test]
fn factorization_goes_on_bit_by_bit_and_on_other_numbers_of_workers() {
    goes_on(
        |workers| factorization(workers, config(), 1),
        |engine| learned(engine),
        |other, straight| {
            let (end, expected) = (objective(other), objective(straight));
            assert!((end / expected - 1.0).abs() < 0.02, "{end}, without a stop {expected}");
        },
    );
}

pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_saves_as_it_goes_without_being_changed_and_keeps_the_newest() {
    let dir = tempdir().unwrap();
    let target = dir.path().join("deep/checkpoints");
    let mut straight = factorization(2, config(), 1);
    run(&mut straight, 6);
    let mut engine = factorization(2, config(), 1);
    check_target(&engine, &target).unwrap();
    watch(&mut engine, 6, |engine, report| {
        if report.iteration % 2 == 0 {
            save(engine, &target).unwrap();
            assert_eq!(names(&target), [format!("iteration-{:05}", report.iteration)]);
        }
    });
    assert_eq!(learned(&engine), learned(&straight));
    // The end of the run saves the same iteration once more.
    save(&mut engine, &target).unwrap();
    let files =
        ["checkpoint.json", "global.bin", "left-mirror.bin", "left-sync.bin", "right-mirror.bin", "right-sync.bin"];
    assert_eq!(names(&target), ["iteration-00006"]);
    assert_eq!(names(&target.join("iteration-00006")), files);
}

#[test]
fn notes_of_the_caller_come_back_with_the_state_and_are_checked_with_it() {
    let dir = tempdir().unwrap();
    let mut engine = factorization(2, config(), 1);
    run(&mut engine, 2);
    save_with(&mut engine, dir.path(), b"two are done").unwrap();
    let resumed = |dir: &Path| load_with(&mut factorization(2, config(), 1), dir);
    assert_eq!(resumed(dir.path()).unwrap(), (2, b"two are done".to_vec()));
    let path = dir.path().join("iteration-00002/notes.bin");
    fs::write(&path, b"two are dome").unwrap();
    assert!(resumed(dir.path()).unwrap_err().to_string().contains("checksum"));
    save(&mut engine, dir.path()).unwrap();
    assert_eq!(resumed(dir.path()).unwrap(), (2, Vec::new()));
    assert!(!path.exists());
}

/// A directory with a checkpoint of iteration 3 and one of iteration 5.
fn two_checkpoints() -> (TempDir, PathBuf, Vec<u32>) {
    let dir = tempdir().unwrap();
    let mut engine = factorization(2, config(), 1);
    run(&mut engine, 3);
    save(&mut engine, dir.path()).unwrap();
    let older = dir.path().join("iteration-00003");
    let (aside, state) = (dir.path().join("aside"), learned(&engine));
    fs::rename(&older, &aside).unwrap();
    run(&mut engine, 5);
    save(&mut engine, dir.path()).unwrap();
    fs::rename(&aside, &older).unwrap();
    let newer = dir.path().join("iteration-00005");
    (dir, newer, state)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before_and_refused_without_one() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 8] = [
        ("checkpoint.json", |newer| fs::remove_file(newer.join("checkpoint.json")).unwrap()),
        ("EOF while parsing", |newer| {
            let manifest = newer.join("checkpoint.json");
            fs::write(&manifest, &fs::read(&manifest).unwrap()[..200]).unwrap();
        }),
        ("checksum", |newer| replace(&newer.join("checkpoint.json"), "\"iterations\": 5", "\"iterations\": 4")),
        ("version 3 of the checkpoint format; expected 2", |newer| {
            replace(&newer.join("checkpoint.json"), "\"version\": 2", "\"version\": 3");
        }),
        ("left-sync.bin", |newer| fs::remove_file(newer.join("left-sync.bin")).unwrap()),
        ("right-mirror.bin: 399 bytes found, 400 expected", |newer| {
            let file = newer.join("right-mirror.bin");
            fs::write(&file, &fs::read(&file).unwrap()[..399]).unwrap();
        }),
        ("left-sync.bin: checksum", |newer| flip(&newer.join("left-sync.bin"), 1000)),
        ("right-sync.bin: checksum", |newer| flip(&newer.join("right-sync.bin"), 17)),
    ];
    for (message, damage) in damages {
        let (dir, newer, state) = two_checkpoints();
        damage(&newer);
        let mut engine = factorization(1, config(), 1);
        assert_eq!(load(&mut engine, dir.path()).unwrap(), 3, "{message}");
        assert_eq!(learned(&engine), state);

        fs::remove_dir_all(dir.path().join("iteration-00003")).unwrap();
        let mut engine = factorization(1, config(), 1);
        let before = learned(&engine);
        let error = load(&mut engine, dir.path()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert!(error.contains("iteration-00005"), "{error}");
        assert_eq!((engine.iterations(), learned(&engine)), (0, before));
    }
}

#[test]
fn a_save_that_was_cut_off_changes_nothing_and_is_cleared_away() {
    let (dir, newer, _) = two_checkpoints();
    let cut_off = dir.path().join(".iteration-00007.tmp");
    fs::create_dir(&cut_off).unwrap();
    fs::copy(newer.join("left-sync.bin"), cut_off.join("left-sync.bin")).unwrap();
    // Cut off between the two renames: the replaced one still counts.
    fs::rename(&newer, dir.path().join("iteration-00005-replaced")).unwrap();
    let mut engine = factorization(2, config(), 1);
    assert_eq!(load(&mut engine, dir.path()).unwrap(), 5);
    run(&mut engine, 7);
    fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
    save(&mut engine, dir.path()).unwrap();
    assert_eq!(names(dir.path()), ["iteration-00007", "notes.txt"]);
}

#[test]
fn a_damaged_later_checkpoint_does_not_stop_a_resumed_run() {
    let (dir, newer, _) = two_checkpoints();
    flip(&newer.join("left-sync.bin"), 1000);
    let mut engine = factorization(2, config(), 1);
    load(&mut engine, dir.path()).unwrap();
    check_target(&engine, dir.path()).unwrap();
    run(&mut engine, 5);
    save(&mut engine, dir.path()).unwrap();
    assert_eq!(names(dir.path()), ["iteration-00005"]);
    assert_eq!(load(&mut factorization(1, config(), 1), dir.path()).unwrap(), 5);
}

#[test]
fn checkpoints_of_other_runs_are_neither_loaded_nor_removed() {
    let (dir, ..) = two_checkpoints();
    let all = names(dir.path());
    let refuse = |error: Error, expected: &str| {
        assert!(matches!(error, Error::Checkpoint { .. }));
        assert!(error.to_string().contains(expected), "{error}");
    };
    let mut pages = page_rank(1);
    refuse(load(&mut pages, dir.path()).unwrap_err(), "PageRank");
    refuse(save(&mut pages, dir.path()).unwrap_err(), "a checkpoint of another run");
    // Rows of 6 and of 7 items have the same padded width.
    let mut wider = factorization(1, Config { dims: 7, ..config() }, 1);
    refuse(load(&mut wider, dir.path()).unwrap_err(), "dims 6 found, 7 expected");
    refuse(check_target(&wider, dir.path()).unwrap_err(), "dims");
    let mut other = factorization(1, config(), 2);
    refuse(load(&mut other, dir.path()).unwrap_err(), "edge data digest");
    // The same run begun anew would hide behind its own past.
    let mut anew = factorization(1, config(), 1);
    refuse(check_target(&anew, dir.path()).unwrap_err(), "iteration 5, and 0 are done; resume from it");
    run(&mut anew, 1);
    refuse(save(&mut anew, dir.path()).unwrap_err(), "iteration 5, and 1 are done");
    assert_eq!(names(dir.path()), all);
}

#[test]
fn a_directory_without_a_checkpoint_is_refused() {
    let dir = tempdir().unwrap();
    let mut engine = factorization(1, config(), 1);
    let error = load(&mut engine, dir.path()).unwrap_err().to_string();
    assert!(error.contains("no directory iteration-"), "{error}");
    let (saved, newer, _) = two_checkpoints();
    let error = load(&mut engine, &newer).unwrap_err().to_string();
    assert!(error.ends_with(&format!("one of those in {}; name that directory", saved.path().display())), "{error}");
    assert!(matches!(load(&mut engine, &dir.path().join("absent")), Err(Error::CheckpointIo { .. })));
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(matches!(save(&mut engine, &dir.path().join("file")), Err(Error::CheckpointIo { .. })));
}

/// Gives the files of a checkpoint that were changed, and its manifest, the sizes and checksums that they should have.
fn seal(checkpoint: &Path) {
    let manifest = checkpoint.join("checkpoint.json");
    let mut text = fs::read_to_string(&manifest).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for entry in value["manifest"]["files"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let bytes = fs::read(checkpoint.join(name)).unwrap();
        let (before, after) = text.split_once(&format!("\"{name}\"")).unwrap();
        let (size, sum) = (format!("\"bytes\": {}", entry["bytes"]), format!("\"xxh3\": {}", entry["xxh3"]));
        let after = after.replacen(&size, &format!("\"bytes\": {}", bytes.len()), 1);
        let after = after.replacen(&sum, &format!("\"xxh3\": {}", xxhash_rust::xxh3::xxh3_64(&bytes)), 1);
        text = format!("{before}\"{name}\"{after}");
    }
    // The checksum is of the manifest without white space.
    let inner = text.split_once("\"manifest\":").unwrap().1.trim_end().strip_suffix('}').unwrap();
    let mut in_string = false;
    let keep = |c: &char| {
        in_string ^= *c == '"';
        in_string || !c.is_whitespace()
    };
    let compact: String = inner.chars().filter(keep).collect();
    let sum = format!("\"xxh3\": {}", value["xxh3"]);
    text = text.replacen(&sum, &format!("\"xxh3\": {}", xxhash_rust::xxh3::xxh3_64(compact.as_bytes())), 1);
    fs::write(manifest, text).unwrap();
}

/// Changes each file of a checkpoint in many ways; it is then loaded or refused, with and without right checksums.
fn change_and_load<P: Program>(engine: impl Fn() -> Engine<P>)
where
    P::Global: Serialize + DeserializeOwned,
{
    let dir = tempdir().unwrap();
    let mut whole = engine();
    run(&mut whole, 2);
    save(&mut whole, dir.path()).unwrap();
    let checkpoint = dir.path().join("iteration-00002");
    seal(&checkpoint);
    let mut target = engine();
    assert_eq!(load(&mut target, dir.path()).unwrap(), 2, "sealing changes nothing");
    let files: Vec<(PathBuf, Vec<u8>)> = names(&checkpoint)
        .into_iter()
        .map(|name| (checkpoint.join(&name), fs::read(checkpoint.join(name)).unwrap()))
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    let mut random = SplitMix::new(11, 0);
    let (mut loaded, mut refused) = (0, 0);
    for round in 0..24 {
        for (path, bytes) in &files {
            let mut changed = bytes.clone();
            for _ in 0..1 + random.below(3) {
                // Headers more often than what they head.
                let most = if random.below(2) == 0 { 48.min(bytes.len()) } else { bytes.len() };
                changed[random.below(most as u64) as usize] = random.below(256) as u8;
            }
            match round % 8 {
                0 => changed.truncate(random.below(bytes.len() as u64) as usize),
                1 => changed.extend([0; 9]),
                _ => {}
            }
            fs::write(path, changed).unwrap();
            if round % 4 > 0 && !path.ends_with("checkpoint.json") {
                seal(&checkpoint);
            }
            match load(&mut target, dir.path()) {
                Ok(_) => loaded += 1,
                Err(_) => refused += 1,
            }
            files.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        }
    }
    // What is no header is numbers, of which any will do.
    assert!(loaded > 0 && refused > 0, "{loaded} loaded, {refused} refused");
}

#[test]
fn a_changed_checkpoint_is_loaded_or_refused() {
    change_and_load(|| factorization(1, config(), 1));
    change_and_load(|| page_rank(1));
}
