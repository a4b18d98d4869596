//! Checkpoints: the state of a run between two iterations, on disk.
//!
//! A checkpoint holds every role of every vertex in the order of vertex ids, the shared context and the number of
//! iterations done, and so nothing that depends on the plan: a run can go on with another number of workers, caches of
//! another size or the grid switched off. With the plan that it had it goes on bit by bit as if it had not stopped; deltas
//! are stored summed, so this holds for programs that apply within an iteration what they add in it.
//!
//! Edge data in slices (topic models) are stored, edge by edge in an order that no plan changes. Others are not, and
//! programs that only read them (PageRank, matrix factorization) lose nothing. A program that may change data of one item per
//! edge ([`Exchange::CHANGES_EDGES`](megagrid_stages::Exchange::CHANGES_EDGES)) has no checkpoints. A digest of such data is part of what
//! a checkpoint and a run must agree on.
//! Hyper-parameters in the fields of stages are not known here and are the caller's to compare.
//!
//! ```text
//! DIR/iteration-00012/left-sync.bin …     one file for each side and role with data (see `roles`)
//!                     edges.bin           slices of edge data, if there are some (see `slices`)
//!                     global.bin          the shared context, bincode
//!                     notes.bin           what the caller adds, if that is anything (see `whole`)
//!                     checkpoint.json     the manifest, written last (see `manifest`)
//! ```
//!
//! A checkpoint is written under a temporary name, `DIR/.iteration-00012.tmp`, brought to the disk and renamed; only then
//! are older ones removed. A process that dies on the way leaves the one before intact. One job at a time may write to a
//! directory.
//!
//! Several processes save and load together, in a directory that all see. Each writes a range of vertex ids of each role, and of right
//! shards of edge data, as a file of its own: `left-sync.bin.00003`, a part of what one process would write as `left-sync.bin`. The
//! rows of a range come from those that have them, window by window; no process gets all. The first writes the rest, and the manifest
//! last. Each process reads what it finds, in however many ranges. What fails in one fails in all. Deltas are then stored only as
//! far as the program applies them within an iteration.

mod division;
mod file;
mod manifest;
mod roles;
mod slices;
mod whole;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use megagrid_partition::Side;
use megagrid_stages::{Program, Store};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::run::{all_gather, settle};
use crate::{Engine, Error};
use division::{Division, holders};
use file::{FileEntry, io};
use manifest::{Fingerprint, MANIFEST, Manifest};
use roles::RoleFile;
use slices::Layout;

const PREFIX: &str = "iteration-";
/// Ends the name of a checkpoint that another one of the same iteration is about to replace.
const REPLACED: &str = "-replaced";

/// Saves the state of a run between iterations to `dir`, which is made if it is not there, and removes older checkpoints
/// of the run. Between iterations means from `between` of [`Engine::run_until`], or outside of it. All processes call it.
///
/// # Complexity
/// Memory: a few buffers. Between processes: about all bytes once, evenly.
///
/// # Errors
/// What [`check_target`] refuses; a disk that is full or fails: earlier checkpoints are then still there.
pub fn save<P: Program<Global: Serialize + DeserializeOwned>>(engine: &mut Engine<P>, dir: &Path) -> Result<(), Error> {
    save_with(engine, dir, &[])
}

/// Saves the state of a run with notes: what the caller knows of it and the engine does not. Those of the first process count.
/// See [`save`].
///
/// # Errors
/// As [`save`].
pub fn save_with<P: Program<Global: Serialize + DeserializeOwned>>(
    engine: &mut Engine<P>,
    dir: &Path,
    notes: &[u8],
) -> Result<(), Error> {
    let is_first = is_first(engine);
    let run = Fingerprint::of(engine)?;
    let name = format!("{PREFIX}{:05}", engine.iterations());
    let temporary = dir.join(format!(".{name}.tmp"));
    engine.agree(if is_first { make(engine, &run, dir, &temporary) } else { Ok(()) })?;
    settle(&engine.run, engine.iterations())?;
    let written = engine.agree(write_ranges(engine, &temporary)).and_then(|ranges| {
        let files = all_gather(engine.run.peers.as_deref(), ranges)?;
        let conclude =
            || conclude(engine, run, (files, notes), &temporary).and_then(|()| place(&temporary, dir, &name));
        engine.agree(if is_first { conclude() } else { Ok(()) })
    });
    if is_first && written.is_err() {
        // The first error is the one to tell; what is left behind is removed by the next save.
        let _ = remove(&temporary);
    }
    written?;
    engine.agree(if is_first { remove_others(dir, &name) } else { Ok(()) })
}

/// Makes the directory that a checkpoint is written to.
fn make<P: Program<Global: Serialize + DeserializeOwned>>(
    engine: &Engine<P>,
    run: &Fingerprint,
    dir: &Path,
    temporary: &Path,
) -> Result<(), Error> {
    check(engine, run, dir)?;
    fs::create_dir_all(dir).map_err(io(dir))?;
    remove(temporary)?;
    fs::create_dir(temporary).map_err(io(temporary))
}

fn is_first<P: Program>(engine: &Engine<P>) -> bool {
    engine.plan().processes.this == 0
}

/// Tells, before a run, whether its checkpoints could be written to `dir`. All processes call it.
///
/// # Errors
/// A stage that may change what edges carry, where that is no slice; `dir` is a file or cannot be listed; it holds checkpoints of another run, of another version of the format, or of a
/// later iteration.
pub fn check_target<P: Program<Global: Serialize + DeserializeOwned>>(
    engine: &Engine<P>,
    dir: &Path,
) -> Result<(), Error> {
    let run = Fingerprint::of(engine)?;
    engine.agree(if is_first(engine) { check(engine, &run, dir) } else { Ok(()) })
}

/// Loads the newest complete checkpoint of `dir` that is undamaged and fits, and returns its iterations: the next
/// [`Engine::run_until`] continues from there. Ones that are passed over for an older one are told as warnings. All processes call
/// it, and use the same checkpoint.
///
/// Set first values before, so that rows lie where their workers are.
///
/// # Errors
/// No usable checkpoint; the message says why each was refused, and the engine is unchanged. Files that can no longer be
/// read after they were checked: the engine is then of no use.
pub fn load<P: Program<Global: Serialize + DeserializeOwned>>(
    engine: &mut Engine<P>,
    dir: &Path,
) -> Result<u64, Error> {
    load_with(engine, dir).map(|(iterations, _)| iterations)
}

/// As [`load`]; returns also the notes of the checkpoint, which are empty if there are none.
///
/// # Errors
/// As [`load`].
pub fn load_with<P: Program<Global: Serialize + DeserializeOwned>>(
    engine: &mut Engine<P>,
    dir: &Path,
) -> Result<(u64, Vec<u8>), Error> {
    let run = Fingerprint::of(engine)?;
    let layout = Layout::of(engine)?;
    let mut refused = Vec::new();
    for found in list_together(engine, dir)? {
        match engine.agree(verify(engine, &run, &found)) {
            Ok((global, manifest)) => {
                if is_first(engine) {
                    refused.iter().for_each(|why| tracing::warn!("a checkpoint is passed over: {why}"));
                }
                engine.agree(read(engine, &layout, (&manifest, &found.path)))?;
                let notes = engine.agree(whole::read_notes(&manifest, &found.path))?;
                engine.resume(found.iterations, global);
                return Ok((found.iterations, notes));
            }
            Err(error @ Error::Cluster(_)) => return Err(error),
            Err(error) => refused.push(error.to_string()),
        }
    }
    let mut advice = "name a directory with a checkpoint of this run, or start anew";
    if dir.join(MANIFEST).exists() {
        refused.push(format!("is itself a checkpoint, one of those in {}", parent(dir).display()));
        advice = "name that directory";
    } else if refused.is_empty() {
        refused.push(format!("no directory {PREFIX}… with a checkpoint is there"));
    }
    engine.agree(Err(Error::Checkpoint { path: dir.to_owned(), problem: refused.join("; "), advice }))
}

/// Lists what the first process sees.
fn list_together<P: Program>(engine: &Engine<P>, dir: &Path) -> Result<Vec<Found>, Error> {
    let found = engine.agree(if is_first(engine) { list(dir) } else { Ok(Vec::new()) })?;
    let found = all_gather(engine.run.peers.as_deref(), found)?;
    // Each may know the directory by another name.
    Ok(found
        .into_iter()
        .map(|found| Found { path: dir.join(found.path.file_name().unwrap_or_default()), ..found })
        .collect())
}

fn read<P: Program>(engine: &Engine<P>, layout: &Layout, from: (&Manifest, &Path)) -> Result<(), Error> {
    let grid = &engine.run.grid;
    if !grid.is_square() {
        roles::scatter("left", &grid.left, grid.order(Side::Left), from)?;
    }
    roles::scatter(right_name(engine), &grid.right, grid.order(Side::Right), from)?;
    if !P::Edge::SHAPE.is_slice() {
        return Ok(());
    }
    let (manifest, dir) = from;
    layout.read(engine, manifest.open(slices::NAME, dir)?, &dir.join(slices::NAME))
}

/// A checkpoint's place.
#[derive(Serialize, Deserialize)]
struct Found {
    iterations: u64,
    path: PathBuf,
}

/// Lists checkpoints, newest first; of two of one iteration the one that was to replace the other comes first.
fn list(dir: &Path) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(io(dir))? {
        let entry = entry.map_err(io(dir))?;
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let digits = rest.strip_suffix(REPLACED).unwrap_or(rest);
        if let Ok(iterations) = digits.parse() {
            found.push(Found { iterations, path: entry.path() });
        }
    }
    found.sort_by(|a, b| b.iterations.cmp(&a.iterations).then_with(|| a.path.cmp(&b.path)));
    Ok(found)
}

/// Refuses directories where a save would remove, or hide behind, checkpoints that are not this run's past.
fn check<P: Program<Global: Serialize + DeserializeOwned>>(
    engine: &Engine<P>,
    run: &Fingerprint,
    dir: &Path,
) -> Result<(), Error> {
    let changes = engine.plan().stages.iter().find(|stage| stage.changes_edges).filter(|_| !P::Edge::SHAPE.is_slice());
    if let Some(stage) = changes {
        return Err(Error::CheckpointOfEdges(stage.name.clone()));
    }
    if !dir.try_exists().map_err(io(dir))? {
        return Ok(());
    }
    for found in list(dir)? {
        let advice = "name another directory for checkpoints, or remove it";
        match Manifest::read(&found.path) {
            Ok(manifest) => manifest.run.agrees(run, &found.path, advice)?,
            Err(error @ Error::CheckpointVersion { .. }) => return Err(error),
            // Damaged: of no use, and replaced.
            Err(_) => continue,
        }
        if found.iterations > engine.iterations() && verify(engine, run, &found).is_ok() {
            let problem =
                format!("a checkpoint of iteration {}, and {} are done", found.iterations, engine.iterations());
            let advice = "resume from it, name another directory for checkpoints, or remove it";
            return Err(Error::Checkpoint { path: found.path, problem, advice });
        }
    }
    Ok(())
}

/// Reads all of a checkpoint, compares it with its checksums and the engine, and returns the shared context and the manifest.
fn verify<P: Program<Global: DeserializeOwned>>(
    engine: &Engine<P>,
    run: &Fingerprint,
    found: &Found,
) -> Result<(P::Global, Manifest), Error> {
    let manifest = Manifest::read(&found.path)?;
    if manifest.iterations != found.iterations {
        let problem = format!("holds iteration {}, which its name does not say", manifest.iterations);
        return Err(Error::Checkpoint { path: found.path.clone(), problem, advice: "give it its name back" });
    }
    manifest.run.agrees(run, &found.path, "run what the checkpoint was written by, or start anew")?;
    for entry in &manifest.files {
        entry.verify(&found.path)?;
    }
    with_roles(engine, |roles| roles.iter().try_for_each(|role| role.verify(&manifest, &found.path)))?;
    if P::Edge::SHAPE.is_slice() {
        manifest.open(slices::NAME, &found.path)?;
    }
    Ok((whole::read_global::<P>(&manifest, &found.path)?, manifest))
}

/// Writes this process's range of each file. All processes call it.
fn write_ranges<P: Program>(engine: &Engine<P>, dir: &Path) -> Result<Vec<FileEntry>, Error> {
    let division = Division::of(engine);
    // Where a file cannot be written the others are waited for all the same, file by file.
    let written =
        with_roles(engine, |roles| roles.iter_mut().map(|role| role.write(dir, &division)).collect::<Vec<_>>());
    let slices = slices::write(engine, &division, dir).transpose();
    if !dir.is_dir() {
        return Err(unseen(dir.to_owned(), format!("process {} does not see it", division.process())));
    }
    written.into_iter().chain(slices).collect()
}

fn unseen(path: PathBuf, problem: String) -> Error {
    Error::Checkpoint { path, problem, advice: "all processes have to see the same directory" }
}

/// Writes what only the first process does, the manifest last.
fn conclude<P: Program<Global: Serialize>>(
    engine: &Engine<P>,
    run: Fingerprint,
    (mut files, notes): (Vec<FileEntry>, &[u8]),
    dir: &Path,
) -> Result<(), Error> {
    for file in &files {
        let path = dir.join(&file.name);
        if std::fs::metadata(&path).map_err(io(&path))?.len() != file.bytes {
            return Err(unseen(path, "it has other bytes than the process that wrote it says".to_owned()));
        }
    }
    files.push(whole::write_global::<P>(&*engine.global(), dir)?);
    if !notes.is_empty() {
        files.push(whole::write_notes(notes, dir)?);
    }
    let manifest = Manifest {
        iterations: engine.iterations(),
        workers: engine.plan().workers,
        level: format!("{:?}", engine.grid().level),
        run,
        files,
    };
    manifest.write(dir)?;
    sync_dir(dir)
}

/// Gives a complete checkpoint its name.
fn place(temporary: &Path, dir: &Path, name: &str) -> Result<(), Error> {
    let target = dir.join(name);
    if target.try_exists().map_err(io(&target))? {
        // A directory with files cannot be renamed over; under the other name it is still found if this ends here.
        let aside = dir.join(format!("{name}{REPLACED}"));
        remove(&aside)?;
        fs::rename(&target, aside).map_err(io(&target))?;
    }
    fs::rename(temporary, &target).map_err(io(&target))?;
    sync_dir(dir)?;
    // The directory itself may be new.
    sync_dir(parent(dir))
}

fn parent(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes all checkpoints but one, and what saves that did not end left behind.
fn remove_others(dir: &Path, keep: &str) -> Result<(), Error> {
    for entry in fs::read_dir(dir).map_err(io(dir))? {
        let entry = entry.map_err(io(dir))?;
        let name = entry.file_name();
        let left_behind = |name: &str| name.starts_with(&format!(".{PREFIX}")) && name.ends_with(".tmp");
        if name.to_str().is_some_and(left_behind) {
            remove(&entry.path())?;
        }
    }
    let others = list(dir)?.into_iter().filter(|found| !found.path.ends_with(keep));
    others.into_iter().try_for_each(|found| remove(&found.path))
}

fn remove(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(dir)(error)),
        _ => Ok(()),
    }
}

fn with_roles<P: Program, R>(engine: &Engine<P>, with: impl FnOnce(&mut [RoleFile<'_>]) -> R) -> R {
    let grid = &engine.run.grid;
    let right = roles::Rows::of(&grid.right, grid.order(Side::Right), holders(engine, Side::Right));
    let left = || roles::Rows::of(&grid.left, grid.order(Side::Left), holders(engine, Side::Left));
    let left = (!grid.is_square()).then(left);
    let mut files = left.as_ref().map(|left| left.files("left")).unwrap_or_default();
    files.extend(right.files(right_name(engine)));
    with(&mut files)
}

fn right_name<P: Program>(engine: &Engine<P>) -> &'static str {
    if engine.run.grid.is_square() { "vertices" } else { "right" }
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    // Windows has no handle of a directory to sync.
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(dir).and_then(|handle| handle.sync_all()).map_err(io(dir))
}
