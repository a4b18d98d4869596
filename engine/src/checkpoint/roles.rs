//! The files of roles: a header, and the items of all vertices in the order of their ids, as they lie in memory.
//!
//! | bytes | header |
//! |---|---|
//! | 0..8 | `MEGACKPT` |
//! | 8..12, 12..16 | version of the format, bytes of an item |
//! | 16..24, 24..32 | vertices, items of all vertices |
//! | 32..40 | XXH3 of the numbers of items of each vertex, 8 bytes each |
//!
//! Numbers are little-endian.

use std::io::{self as stdio, Read};
use std::path::Path;

use megagrid_stages::{Additive, Item, Shape, Store, Vertex};
use xxhash_rust::xxh3::Xxh3;

use super::division::Division;
use super::file::{FileEntry, RangeFile, VERSION, io};
use super::manifest::Manifest;
use crate::Error;
use crate::grid::{Role, RowOrder, SharedRows, VertexArrays, hold};

#[cfg(target_endian = "big")]
compile_error!("only little-endian machines are supported");

const MAGIC: &[u8; 8] = b"MEGACKPT";
const HEADER_BYTES: usize = 40;
/// Bytes of its range that a process gets at a time.
const WINDOW_BYTES: usize = 4 << 20;

/// What a file of a role begins with.
struct Header {
    item_bytes: u32,
    vertices: u64,
    items: u64,
    layout: u64,
}

impl Header {
    fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.item_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.vertices.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.items.to_le_bytes());
        bytes[32..].copy_from_slice(&self.layout.to_le_bytes());
        bytes
    }
}

type PutRow<'r> = dyn FnMut(usize, &mut Vec<u8>) + 'r;

/// A role of a side as a file.
pub struct RoleFile<'r> {
    pub name: String,
    header: Header,
    order: &'r RowOrder,
    /// The process that has each row.
    holders: &'r [u16],
    /// Returns a row's number of items.
    len: Box<dyn Fn(usize) -> usize + 'r>,
    /// Appends the items of a row.
    put: Box<PutRow<'r>>,
}

impl<'r> RoleFile<'r> {
    fn new<S: Store + ?Sized>(
        name: String,
        (order, holders): (&'r RowOrder, &'r [u16]),
        len: impl Fn(usize) -> usize + 'r,
        put: impl FnMut(usize, &mut Vec<u8>) + 'r,
    ) -> Option<Self> {
        if S::SHAPE == Shape::Nothing {
            return None;
        }
        let (mut items, mut layout) = (0, Xxh3::new());
        for id in 0..order.len() {
            let len = len(order.row(id)) as u64;
            items += len;
            layout.update(&len.to_le_bytes());
        }
        let item_bytes = size_of::<S::Item>() as u32;
        let header = Header { item_bytes, vertices: order.len() as u64, items, layout: layout.digest() };
        Some(Self { name, header, order, holders, len: Box::new(len), put: Box::new(put) })
    }

    /// Writes this process's range of the file and brings it to the disk. All processes call it: window by window each gets the rows
    /// of its range from those that have them.
    pub fn write(&mut self, dir: &Path, division: &Division<'_>) -> Result<FileEntry, Error> {
        let Self { name, header, order, holders, len, put } = self;
        let mut file = RangeFile::create(dir, division.name(name));
        if division.process() == 0 {
            file.write(&header.to_bytes());
        }
        let item_bytes = header.item_bytes as usize;
        let row_bytes = header.items as usize * item_bytes / order.len().max(1);
        let ids_at_a_time = (WINDOW_BYTES / row_bytes.max(1)).max(1);
        for begin in (0..division.most(order.len())).step_by(ids_at_a_time) {
            let window = |process: usize| division.range(order.len(), process).skip(begin).take(ids_at_a_time);
            let part = |process: usize| {
                let mut part = Vec::new();
                let rows = window(process).map(|id| order.row(id));
                let mine = rows.filter(|&row| usize::from(holders[row]) == division.process());
                mine.for_each(|row| put(row, &mut part));
                part
            };
            let arrived = division.exchange((0..division.processes()).map(part).collect())?;
            let mut from: Vec<&[u8]> = arrived.iter().map(Vec::as_slice).collect();
            for id in window(division.process()) {
                let row = order.row(id);
                let holder = usize::from(holders[row]);
                let items = from[holder].split_off(..len(row) * item_bytes).ok_or(Error::Message(holder))?;
                file.write(items);
            }
        }
        file.finish()
    }

    /// Compares a file's header and size with what this role would write.
    pub fn verify(&self, manifest: &Manifest, dir: &Path) -> Result<(), Error> {
        let path = dir.join(&self.name);
        let mut file = manifest.open(&self.name, dir)?;
        let mut found = [0; HEADER_BYTES];
        let bytes = file.len();
        file.read_exact(&mut found).map_err(io(&path))?;
        let expected = HEADER_BYTES as u64 + self.header.items * u64::from(self.header.item_bytes);
        if found == self.header.to_bytes() && bytes == expected {
            return Ok(());
        }
        let problem = format!(
            "not the data of {} vertices with {} items of {} bytes in all",
            self.header.vertices, self.header.items, self.header.item_bytes
        );
        let advice = "run what the checkpoint was written by, or start anew";
        Err(Error::Checkpoint { path, problem, advice })
    }
}

/// All roles of a side, shared for reading.
pub struct Rows<'h, V: Vertex> {
    rows: SharedRows<'h, V>,
    deltas: Vec<Role<'h, V::Delta>>,
    order: &'h RowOrder,
    holders: Vec<u16>,
}

impl<'h, V: Vertex> Rows<'h, V> {
    /// Waits for the holds, which nobody keeps between iterations. `holders` is, for each row, the process that has it.
    pub fn of(arrays: &'h VertexArrays<V>, order: &'h RowOrder, holders: Vec<u16>) -> Self {
        let pieces = arrays.bounds().len() - 1;
        let rows = hold(|| arrays.try_share(0..pieces));
        Self { rows, deltas: hold(|| arrays.try_share_deltas(0..pieces)), order, holders }
    }

    pub fn files(&self, side: &str) -> Vec<RoleFile<'_>> {
        let Self { rows, deltas, order, holders } = self;
        let (places, mut sum) = ((*order, &holders[..]), Vec::new());
        let put_delta = move |row: usize, into: &mut Vec<u8>| {
            sum.clear();
            sum.extend_from_slice(deltas[0].items(row));
            deltas[1..].iter().for_each(|partial| V::Delta::view_mut(&mut sum).add(partial.view(row)));
            into.extend_from_slice(bytemuck::cast_slice(&sum));
        };
        let len = |row: usize| deltas[0].items(row).len();
        let delta = RoleFile::new::<V::Delta>(file_name(side, "delta"), places, len, put_delta);
        let roles = [
            plain(file_name(side, "sync"), places, &rows.sync),
            plain(file_name(side, "mirror"), places, &rows.mirror),
            plain(file_name(side, "master"), places, &rows.master),
            delta,
        ];
        roles.into_iter().flatten().collect()
    }
}

fn plain<'r, S: Store + ?Sized>(
    name: String,
    places: (&'r RowOrder, &'r [u16]),
    role: &'r Role<'_, S>,
) -> Option<RoleFile<'r>> {
    let put = |row: usize, into: &mut Vec<u8>| into.extend_from_slice(bytemuck::cast_slice(role.items(row)));
    RoleFile::new::<S>(name, places, |row| role.items(row).len(), put)
}

/// Reads the files of all roles of a side into its rows. The files were verified.
pub fn scatter<V: Vertex>(
    side: &str,
    arrays: &VertexArrays<V>,
    order: &RowOrder,
    (manifest, dir): (&Manifest, &Path),
) -> Result<(), Error> {
    let mut owned = hold(|| arrays.try_own(0..arrays.bounds().len() - 1));
    // Partial deltas become zero: the stored sum takes their place.
    owned.reduce();
    let from = |role| (file_name(side, role), manifest, dir);
    read::<V::Sync>(from("sync"), order, |row, file| fill(owned.row(row).sync, file))?;
    read::<V::Mirror>(from("mirror"), order, |row, file| fill(owned.row(row).mirror, file))?;
    read::<V::Master>(from("master"), order, |row, file| fill(owned.row(row).master, file))?;
    read::<V::Delta>(from("delta"), order, |row, file| fill(owned.row(row).delta, file))
}

fn read<S: Store + ?Sized>(
    (name, manifest, dir): (String, &Manifest, &Path),
    order: &RowOrder,
    mut read_row: impl FnMut(usize, &mut dyn Read) -> stdio::Result<()>,
) -> Result<(), Error> {
    if S::SHAPE == Shape::Nothing {
        return Ok(());
    }
    let (path, mut file) = (dir.join(&name), manifest.open(&name, dir)?);
    file.read_exact(&mut [0; HEADER_BYTES]).map_err(io(&path))?;
    (0..order.len()).try_for_each(|id| read_row(order.row(id), &mut file)).map_err(io(&path))
}

fn fill<T: Item>(items: &mut [T], file: &mut dyn Read) -> stdio::Result<()> {
    file.read_exact(bytemuck::cast_slice_mut(items))
}

fn file_name(side: &str, role: &str) -> String {
    format!("{side}-{role}.bin")
}
