//! Edge data in slices: stored edge by edge, in an order that no plan changes.
//!
//! Data of one item per edge are the input's, and are not stored. A slice, whose length is the input's, is what the
//! program keeps on an edge: the topics of a word's occurrences in a document, say. Slices follow each other in
//! `edges.bin`, without a header, by right row, left row and length. Edges that have all three in common have changed
//! places at most, which nothing can tell.
//!
//! Of several processes each has the edges of some blocks. A [`Run`] is a right row's part in a block: its slices lie
//! together in the file. Processes tell each other their runs, right shard by right shard, to know where theirs lie.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use megagrid_stages::{EdgeItem, Program, Store};
use xxhash_rust::xxh3::xxh3_64;

use super::io;
use super::manifest::FileEntry;
use super::roles::{Hashing, wait};
use crate::sync::Peers;
use crate::{Engine, Error};

pub const NAME: &str = "edges.bin";
const BUFFER_BYTES: usize = 1 << 20;

/// An edge and where its items lie in the data of its column.
struct Place {
    right: usize,
    left: usize,
    left_shard: usize,
    items: Range<usize>,
}

/// A right row in its shard, a left shard, and how many items the edges between them have.
type Run = [u32; 3];

/// Returns the edges of a right shard that this process answers for, in the order of the file.
fn places<P: Program>(engine: &Engine<P>, shard: usize) -> Vec<Place> {
    places_of(engine, shard, |left| engine.plan().answers_for(left, shard))
}

/// Returns the edges of a right shard in this process whose left shard is wanted, in the order of the file.
fn places_of<P: Program>(engine: &Engine<P>, shard: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<Place> {
    let (plan, grid) = (engine.plan(), &engine.shared.grid);
    let (edges, first_right) = (&grid.columns[shard].edges, plan.right.rows(shard).start);
    let mut places = Vec::new();
    for block in 0..edges.blocks().len() {
        let left_shard = block % grid.left_shards;
        if !is_wanted(left_shard) {
            continue;
        }
        let first_left = plan.left.rows(left_shard).start;
        edges.each_edge(block, |left, right, items| {
            places.push(Place { right: first_right + right, left: first_left + left, left_shard, items });
        });
    }
    // Stable: with the plan that it had, a run gets every slice back where it was.
    places.sort_by_key(|place| (place.right, place.left, place.items.len()));
    places
}

/// Returns all edges of a right shard in this process.
fn held<P: Program>(engine: &Engine<P>, shard: usize) -> Vec<Place> {
    places_of(engine, shard, |_| true)
}

/// Cuts the edges of a right shard into runs.
fn parts(places: &[Place]) -> impl Iterator<Item = &[Place]> {
    places.chunk_by(|a, b| (a.right, a.left_shard) == (b.right, b.left_shard))
}

/// Returns the runs of a right shard as bytes.
fn runs<P: Program>(engine: &Engine<P>, shard: usize, places: &[Place]) -> Vec<u8> {
    let first = engine.plan().right.rows(shard).start;
    let run = |part: &[Place]| -> Run {
        let items: usize = part.iter().map(|place| place.items.len()).sum();
        [(part[0].right - first) as u32, part[0].left_shard as u32, items as u32]
    };
    bytemuck::pod_collect_to_vec(&parts(places).map(run).collect::<Vec<_>>())
}

/// Returns a digest of the ends and the lengths of this process's slices.
pub fn digest<P: Program>(engine: &Engine<P>) -> u64 {
    let mut sum = 0_u64;
    for shard in 0..engine.shared.grid.columns.len() {
        for Place { right, left, items, .. } in places(engine, shard) {
            let edge = [right as u64, left as u64, items.len() as u64];
            sum = sum.wrapping_add(xxh3_64(bytemuck::cast_slice(&edge)));
        }
    }
    sum
}

/// Writes the file, if the program has slices. All processes call it; the first writes.
///
/// # Complexity
/// The first process holds the items of one right shard twice.
pub fn write<P: Program>(engine: &Engine<P>, dir: &Path) -> Result<Option<FileEntry>, Error> {
    if !P::Edge::SHAPE.is_slice() {
        return Ok(None);
    }
    let path = dir.join(NAME);
    let peers = engine.shared.peers.as_deref();
    let is_first = engine.plan().processes.this == 0;
    // Where writing fails the others go on sending, and are told afterwards.
    let mut file =
        is_first.then(|| File::create(&path).map(|file| BufWriter::with_capacity(BUFFER_BYTES, Hashing::new(file))));
    for (shard, column) in engine.shared.grid.columns.iter().enumerate() {
        let places = places(engine, shard);
        let data = wait(|| column.data.try_share(0..column.data.num_pieces()));
        let mut mine = Vec::with_capacity(size_of_val(&*data));
        places.iter().for_each(|place| mine.extend_from_slice(bytemuck::cast_slice(&data[place.items.clone()])));
        let runs = gather(peers, runs(engine, shard, &places))?;
        let bytes = gather(peers, mine)?;
        if let (Some(runs), Some(bytes), Some(Ok(to))) = (runs, bytes, &mut file)
            && let Err(error) = merge(&runs, &bytes, size_of::<EdgeItem<P>>(), to)
        {
            file = Some(Err(error));
        }
    }
    let Some(file) = file else { return Ok(None) };
    let file = file.and_then(|file| file.into_inner().map_err(|error| error.into_error())).map_err(io(&path))?;
    file.finish(NAME).map(Some).map_err(io(&path))
}

/// Gives the first process what each has.
fn gather(peers: Option<&dyn Peers>, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
    match peers {
        Some(peers) => peers.gather(mine),
        None => Ok(Some(vec![mine])),
    }
}

/// Writes the items of a right shard in the order of runs.
fn merge(runs: &[Vec<u8>], bytes: &[Vec<u8>], item_bytes: usize, into: &mut impl Write) -> std::io::Result<()> {
    let mut rest: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    for (process, [_, _, items]) in in_order(runs) {
        let short = || std::io::Error::other(format!("process {process} sent too few edge data"));
        into.write_all(rest[process].split_off(..items as usize * item_bytes).ok_or_else(short)?)?;
    }
    Ok(())
}

/// Returns the runs of all processes in the order of the file, with their process.
fn in_order(runs: &[Vec<u8>]) -> Vec<(usize, Run)> {
    let of = |(process, bytes): (usize, &Vec<u8>)| {
        let runs: Vec<Run> = bytes.chunks_exact(size_of::<Run>()).map(bytemuck::pod_read_unaligned).collect();
        runs.into_iter().map(move |run| (process, run))
    };
    let mut all: Vec<_> = runs.iter().enumerate().flat_map(of).collect();
    all.sort_by_key(|&(_, [right, left, _])| (right, left));
    all
}

/// Where in the file this process's runs lie: for each right shard, the item that each run begins with.
pub struct Layout(Vec<Vec<u64>>);

impl Layout {
    /// Finds it with the other processes, which all call it.
    ///
    /// # Errors
    /// A lost process.
    pub fn of<P: Program>(engine: &Engine<P>) -> Result<Self, Error> {
        let (mut begins, mut end) = (Vec::new(), 0);
        let shards = if P::Edge::SHAPE.is_slice() { engine.shared.grid.columns.len() } else { 0 };
        for shard in 0..shards {
            let mine = runs(engine, shard, &places(engine, shard));
            let all = match &engine.shared.peers {
                Some(peers) => peers.all_gather(mine)?,
                None => vec![mine],
            };
            let mut of_runs = BTreeMap::new();
            for (_, [right, left, items]) in in_order(&all) {
                of_runs.insert([right, left], end);
                end += u64::from(items);
            }
            // Every edge has a process that answers for it; others may have it too.
            let here = held(engine, shard);
            let runs = bytemuck::pod_collect_to_vec::<u8, Run>(&runs(engine, shard, &here));
            begins.push(runs.iter().map(|[right, left, _]| of_runs[&[*right, *left]]).collect());
        }
        Ok(Self(begins))
    }

    /// Reads this process's part of the file, which was verified, if the program has slices.
    pub fn read<P: Program>(&self, engine: &Engine<P>, dir: &Path) -> Result<(), Error> {
        if !P::Edge::SHAPE.is_slice() {
            return Ok(());
        }
        let path = dir.join(NAME);
        let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(&path).map_err(io(&path))?);
        let (item_bytes, mut at) = (size_of::<EdgeItem<P>>() as u64, 0);
        for (shard, (column, begins)) in engine.shared.grid.columns.iter().zip(&self.0).enumerate() {
            let mut data = wait(|| column.data.try_own(0..column.data.num_pieces()));
            for (part, begin) in parts(&held(engine, shard)).zip(begins) {
                file.seek_relative((begin * item_bytes) as i64 - at as i64).map_err(io(&path))?;
                at = begin * item_bytes;
                for Place { items, .. } in part {
                    let bytes = bytemuck::cast_slice_mut(&mut data[items.clone()]);
                    file.read_exact(bytes).map_err(io(&path))?;
                    at += bytes.len() as u64;
                }
            }
        }
        Ok(())
    }
}
