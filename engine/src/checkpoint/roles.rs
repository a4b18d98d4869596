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

use std::fs::File;
use std::io::{self as stdio, BufReader, BufWriter, Read, Write};
use std::path::Path;

use megagrid_stages::{Additive, Item, Shape, Store, Vertex};
use xxhash_rust::xxh3::Xxh3;

use super::file::{FileEntry, Hashing, VERSION, io};
use crate::Error;
use crate::grid::{Role, RowOrder, SharedRows, VertexArrays, hold};

#[cfg(target_endian = "big")]
compile_error!("only little-endian machines are supported");

const MAGIC: &[u8; 8] = b"MEGACKPT";
const HEADER_BYTES: usize = 40;
const BUFFER_BYTES: usize = 1 << 20;

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

type WriteRows<'r> = dyn FnMut(&mut dyn Write) -> stdio::Result<()> + 'r;

/// A role of a side as a file.
pub struct RoleFile<'r> {
    pub name: String,
    header: Header,
    write_rows: Box<WriteRows<'r>>,
}

impl<'r> RoleFile<'r> {
    /// `len` is a row's number of items; `write` writes a row.
    fn new<S: Store + ?Sized>(
        name: String,
        order: &'r RowOrder,
        len: impl Fn(usize) -> usize,
        mut write: impl FnMut(usize, &mut dyn Write) -> stdio::Result<()> + 'r,
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
        let write_rows =
            Box::new(move |file: &mut dyn Write| (0..order.len()).try_for_each(|id| write(order.row(id), file)));
        Some(Self { name, header, write_rows })
    }

    /// Writes the file and brings it to the disk.
    pub fn write(&mut self, dir: &Path) -> Result<FileEntry, Error> {
        let path = dir.join(&self.name);
        let file = Hashing::new(File::create(&path).map_err(io(&path))?);
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
        file.write_all(&self.header.to_bytes()).map_err(io(&path))?;
        (self.write_rows)(&mut file).map_err(io(&path))?;
        let file = file.into_inner().map_err(|error| io(&path)(error.into_error()))?;
        file.finish(&self.name).map_err(io(&path))
    }

    /// Compares a file's header and size with what this role would write.
    pub fn verify(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(&self.name);
        let mut file = File::open(&path).map_err(io(&path))?;
        let mut found = [0; HEADER_BYTES];
        file.read_exact(&mut found).map_err(io(&path))?;
        let bytes = file.metadata().map_err(io(&path))?.len();
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
}

impl<'h, V: Vertex> Rows<'h, V> {
    /// Waits for the holds, which nobody keeps between iterations.
    pub fn of(arrays: &'h VertexArrays<V>, order: &'h RowOrder) -> Self {
        let pieces = arrays.bounds().len() - 1;
        let rows = hold(|| arrays.try_share(0..pieces));
        Self { rows, deltas: hold(|| arrays.try_share_deltas(0..pieces)), order }
    }

    pub fn files(&self, side: &str) -> Vec<RoleFile<'_>> {
        let Self { rows, deltas, order } = self;
        let mut sum = Vec::new();
        let write_delta = move |row: usize, file: &mut dyn Write| {
            sum.clear();
            sum.extend_from_slice(deltas[0].items(row));
            deltas[1..].iter().for_each(|partial| V::Delta::view_mut(&mut sum).add(partial.view(row)));
            file.write_all(bytemuck::cast_slice(&sum))
        };
        let len = |row: usize| deltas[0].items(row).len();
        let delta = RoleFile::new::<V::Delta>(file_name(side, "delta"), order, len, write_delta);
        let roles = [
            plain(file_name(side, "sync"), order, &rows.sync),
            plain(file_name(side, "mirror"), order, &rows.mirror),
            plain(file_name(side, "master"), order, &rows.master),
            delta,
        ];
        roles.into_iter().flatten().collect()
    }
}

fn plain<'r, S: Store + ?Sized>(name: String, order: &'r RowOrder, role: &'r Role<'_, S>) -> Option<RoleFile<'r>> {
    let write = |row: usize, file: &mut dyn Write| file.write_all(bytemuck::cast_slice(role.items(row)));
    RoleFile::new::<S>(name, order, |row| role.items(row).len(), write)
}

/// Reads the files of all roles of a side into its rows. The files were verified.
pub fn scatter<V: Vertex>(side: &str, arrays: &VertexArrays<V>, order: &RowOrder, dir: &Path) -> Result<(), Error> {
    let mut owned = hold(|| arrays.try_own(0..arrays.bounds().len() - 1));
    // Partial deltas become zero: the stored sum takes their place.
    owned.reduce();
    let file = |role| dir.join(file_name(side, role));
    read::<V::Sync>(&file("sync"), order, |row, file| fill(owned.row(row).sync, file))?;
    read::<V::Mirror>(&file("mirror"), order, |row, file| fill(owned.row(row).mirror, file))?;
    read::<V::Master>(&file("master"), order, |row, file| fill(owned.row(row).master, file))?;
    read::<V::Delta>(&file("delta"), order, |row, file| fill(owned.row(row).delta, file))
}

fn read<S: Store + ?Sized>(
    path: &Path,
    order: &RowOrder,
    mut read_row: impl FnMut(usize, &mut dyn Read) -> stdio::Result<()>,
) -> Result<(), Error> {
    if S::SHAPE == Shape::Nothing {
        return Ok(());
    }
    let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(io(path))?);
    file.read_exact(&mut [0; HEADER_BYTES]).map_err(io(path))?;
    (0..order.len()).try_for_each(|id| read_row(order.row(id), &mut file)).map_err(io(path))
}

fn fill<T: Item>(items: &mut [T], file: &mut dyn Read) -> stdio::Result<()> {
    file.read_exact(bytemuck::cast_slice_mut(items))
}

fn file_name(side: &str, role: &str) -> String {
    format!("{side}-{role}.bin")
}
