//! Edge data in slices: stored edge by edge, in an order that no plan changes.
//!
//! Data of one item per edge are the input's, and are not stored. A slice, whose length is the input's, is what the
//! program keeps on an edge: the topics of a word's occurrences in a document, say. Slices follow each other in
//! `edges.bin`, without a header, by right row, left row and length. Edges that have all three in common have changed
//! places at most, which nothing can tell.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use megagrid_stages::{EdgeData, Program};
use xxhash_rust::xxh3::xxh3_64;

use super::io;
use super::manifest::{FileEntry, Manifest};
use super::roles::{Hashing, wait};
use crate::{Engine, Error};

const NAME: &str = "edges.bin";
const BUFFER_BYTES: usize = 1 << 20;

/// An edge and where its items lie in the data of its column.
struct Place {
    right: usize,
    left: usize,
    items: Range<usize>,
}

/// Returns the edges of a right shard in the order of the file.
fn places<P: Program>(engine: &Engine<P>, shard: usize) -> Vec<Place> {
    let (plan, grid) = (engine.plan(), &engine.shared.grid);
    let (edges, first_right) = (&grid.columns[shard].edges, plan.right.rows(shard).start);
    let mut places = Vec::new();
    for block in 0..edges.blocks().len() {
        let first_left = plan.left.rows(block % grid.left_shards).start;
        edges.each_edge(block, |left, right, items| {
            places.push(Place { right: first_right + right, left: first_left + left, items });
        });
    }
    // Stable: with the plan that it had, a run gets every slice back where it was.
    places.sort_by_key(|place| (place.right, place.left, place.items.len()));
    places
}

/// Returns a digest of the ends and the lengths of all slices.
pub fn digest<P: Program>(engine: &Engine<P>) -> u64 {
    let mut sum = 0_u64;
    for shard in 0..engine.shared.grid.columns.len() {
        for Place { right, left, items } in places(engine, shard) {
            let edge = [right as u64, left as u64, items.len() as u64];
            sum = sum.wrapping_add(xxh3_64(bytemuck::cast_slice(&edge)));
        }
    }
    sum
}

/// Writes the file, if the program has slices.
pub fn write<P: Program>(engine: &Engine<P>, dir: &Path) -> Result<Option<FileEntry>, Error> {
    if !P::Edge::SLICE {
        return Ok(None);
    }
    let path = dir.join(NAME);
    let file = Hashing::new(File::create(&path).map_err(io(&path))?);
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
    for (shard, column) in engine.shared.grid.columns.iter().enumerate() {
        let data = wait(|| column.data.try_share(0..column.data.num_pieces()));
        for place in places(engine, shard) {
            file.write_all(bytemuck::cast_slice(&data[place.items])).map_err(io(&path))?;
        }
    }
    let file = file.into_inner().map_err(|error| io(&path)(error.into_error()))?;
    file.finish(NAME).map(Some).map_err(io(&path))
}

/// Tells whether a checkpoint, whose checksums are right, has the slices that a run needs.
pub fn verify<P: Program>(engine: &Engine<P>, manifest: &Manifest, dir: &Path) -> Result<(), Error> {
    if !P::Edge::SLICE {
        return Ok(());
    }
    let found = manifest.entry(NAME, dir)?.bytes;
    let expected: u64 = engine.shared.grid.columns.iter().map(|column| column.data.bytes() as u64).sum();
    if found == expected {
        return Ok(());
    }
    let problem = format!("{found} bytes of edge data found, {expected} expected");
    let advice = "run what the checkpoint was written by, or start anew";
    Err(Error::Checkpoint { path: dir.join(NAME), problem, advice })
}

/// Reads the file, which was verified, if the program has slices.
pub fn read<P: Program>(engine: &Engine<P>, dir: &Path) -> Result<(), Error> {
    if !P::Edge::SLICE {
        return Ok(());
    }
    let path = dir.join(NAME);
    let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(&path).map_err(io(&path))?);
    for (shard, column) in engine.shared.grid.columns.iter().enumerate() {
        let mut data = wait(|| column.data.try_own(0..column.data.num_pieces()));
        for place in places(engine, shard) {
            file.read_exact(bytemuck::cast_slice_mut(&mut data[place.items])).map_err(io(&path))?;
        }
    }
    Ok(())
}
