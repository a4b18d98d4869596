//! Files with the rows of one server at a global clock.
//!
//! A checkpoint is written when the global clock reaches a multiple of [`Checkpoints::every`]: to a temporary file, which is
//! synced and then renamed, so that a file with the final name is whole. With slack 0 it contains exactly the updates before
//! that clock; with slack it may contain later ones of clients that are ahead (LazyTable's approximate snapshot), unless it is to be
//! [pure](super::pure). The two newest are kept: servers write on their own, and all resume from the newest clock that each has a file of.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::master::MasterTable;
use super::pure::PureCopies;
use crate::Error;
use crate::server::options::{Checkpoints, ServerOptions};

const MAGIC: &[u8; 8] = b"MGpstab1";
/// How many checkpoints of a server are kept.
const KEPT: usize = 2;

/// Returns the newest clock that each of the servers has a checkpoint of, if there is one.
pub fn newest_checkpoint(folder: &Path, servers: usize) -> Option<u32> {
    let has_all = |&clock: &u32| (0..servers).all(|server| path(folder, server, servers, clock).is_file());
    clocks(folder, 0, servers).into_iter().rev().find(has_all)
}

fn path(folder: &Path, server: usize, servers: usize, clock: u32) -> PathBuf {
    folder.join(format!("server-{server}-of-{servers}.clock-{clock}"))
}

/// Returns the clocks that a server has checkpoints of, ascending.
fn clocks(folder: &Path, server: usize, servers: usize) -> Vec<u32> {
    let prefix = format!("server-{server}-of-{servers}.clock-");
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut clocks: Vec<u32> =
        entries.filter_map(name).filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect();
    clocks.sort_unstable();
    clocks
}

/// Writes the rows, in a thread of their own; an error is logged, since training can go on without.
pub(super) fn write_in_background(
    to: &Checkpoints,
    clock: u32,
    options: &ServerOptions,
    (tables, pure): (&[MasterTable], &PureCopies),
) {
    let bytes = serialize(tables, |number, table, slot| pure.row(clock, number, table, slot));
    let (folder, server, servers) = (to.folder.clone(), options.server, options.servers);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = write(&folder, server, servers, clock, &bytes) {
            tracing::error!(%error, folder = %folder.display(), clock, "a checkpoint could not be written");
        }
    });
}

fn write(folder: &Path, server: usize, servers: usize, clock: u32, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = path(folder, server, servers, clock);
    let temporary = path.with_extension(format!("clock-{clock}.tmp"));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, &path)?;
    File::open(folder)?.sync_all()?;
    let clocks = clocks(folder, server, servers);
    for &old in &clocks[..clocks.len().saturating_sub(KEPT)] {
        fs::remove_file(self::path(folder, server, servers, old))?;
    }
    Ok(())
}

/// For each table: its description, the number of rows, and each row's number and bytes; then a checksum.
fn serialize<'t>(tables: &'t [MasterTable], row_bytes: impl Fn(u32, &'t MasterTable, u32) -> &'t [u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (number, table) in (0..).zip(tables) {
        let description = table.kind.description();
        bytes.extend_from_slice(&(description.len() as u32).to_le_bytes());
        bytes.extend_from_slice(description.as_bytes());
        bytes.extend_from_slice(&(table.stored().count() as u32).to_le_bytes());
        for (row, slot) in table.stored() {
            bytes.extend_from_slice(&row.to_le_bytes());
            bytes.extend_from_slice(row_bytes(number, table, slot));
        }
    }
    let checksum = checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads the rows of a checkpoint into empty tables.
pub(super) fn load(
    folder: &Path,
    clock: u32,
    options: &ServerOptions,
    tables: &mut [MasterTable],
) -> Result<(), Error> {
    let path = path(folder, options.server, options.servers, clock);
    let mut bytes = Vec::new();
    File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(Error::io(path.display()))?;
    parse(&bytes, tables).map_err(|reason| Error::Checkpoint { path, reason })
}

fn parse(bytes: &[u8], tables: &mut [MasterTable]) -> Result<(), String> {
    let (content, sum) = bytes.split_last_chunk::<8>().ok_or("it is too short")?;
    if checksum(content) != u64::from_le_bytes(*sum) {
        return Err("its checksum does not fit".into());
    }
    let mut rest = content.strip_prefix(MAGIC).ok_or("it is not a checkpoint")?;
    let mut take = |bytes: usize| {
        let (taken, left) = rest.split_at_checked(bytes).ok_or("it ends too early")?;
        rest = left;
        Ok::<_, String>(taken)
    };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |sum, &byte| sum << 8 | u32::from(byte));
    for (index, table) in tables.iter_mut().enumerate() {
        let length = number(take(4)?) as usize;
        let description = String::from_utf8_lossy(take(length)?);
        if description != table.kind.description() {
            let expected = table.kind.description();
            return Err(format!("its table {index} has rows of {description}, not of {expected}"));
        }
        for _ in 0..number(take(4)?) {
            let row = number(take(4)?);
            table.store(row, take(table.kind.row_bytes)?);
        }
    }
    if take(1).is_ok() { Err("it has more tables than the job".into()) } else { Ok(()) }
}

/// FNV-1a over 8 bytes at a time: finds files that were cut or mixed up.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
