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
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use megagrid_partition::ShardId;
use megagrid_stages::{EdgeItem, Program, Store};
use xxhash_rust::xxh3::xxh3_64;

use super::division::Division;
use super::file::{FileEntry, RangeFile, Ranges, io};
use crate::grid::hold;
use crate::{Engine, Error};

pub const NAME: &str = "edges.bin";

/// An edge and where its items lie in the data of its column and those beside it.
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
    places_of(engine, shard, |left| engine.plan().answers_for(ShardId(left), ShardId(shard)))
}

/// Returns the edges of a right shard in this process whose left shard is wanted, in the order of the file.
fn places_of<P: Program>(engine: &Engine<P>, shard: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<Place> {
    let (plan, grid) = (engine.plan(), &engine.run.grid);
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
    in_file_order(&mut places);
    places
}

/// Sorts edges as they are in the file. Stable: with the plan that it had, a run gets every slice back where it was.
fn in_file_order(places: &mut [Place]) {
    places.sort_by_key(|place| (place.right, place.left, place.items.len()));
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
    for shard in 0..engine.run.grid.columns.len() {
        for Place { right, left, items, .. } in places(engine, shard) {
            let edge = [right as u64, left as u64, items.len() as u64];
            sum = sum.wrapping_add(xxh3_64(bytemuck::cast_slice(&edge)));
        }
    }
    sum
}

/// Writes this process's range of the file, right shards one after the other, if the program has slices. All processes call it.
///
/// # Complexity
/// A process holds the items of one right shard twice, and its own of as many as there are processes.
pub fn write<P: Program>(engine: &Engine<P>, division: &Division<'_>, dir: &Path) -> Result<Option<FileEntry>, Error> {
    if !P::Edge::SHAPE.is_slice() {
        return Ok(None);
    }
    let mut file = RangeFile::create(dir, division.name(NAME));
    let shards = engine.run.grid.columns.len();
    for at in 0..division.most(shards) {
        let here = |process: usize| division.range(shards, process).nth(at).map(|shard| part(engine, shard));
        let (runs, bytes) = (0..division.processes()).map(|process| here(process).unwrap_or_default()).unzip();
        let (runs, bytes) = (division.exchange(runs)?, division.exchange(bytes)?);
        merge(&runs, &bytes, size_of::<EdgeItem<P>>(), &mut file)?;
    }
    file.finish().map(Some)
}

/// Returns the runs and the items of the edges of a right shard that this process answers for.
fn part<P: Program>(engine: &Engine<P>, shard: usize) -> (Vec<u8>, Vec<u8>) {
    let (data, places) = (engine.run.grid.data_of(shard), places(engine, shard));
    let data = hold(|| data.try_share(0..data.num_pieces()));
    let mut items = Vec::new();
    places.iter().for_each(|place| items.extend_from_slice(bytemuck::cast_slice(&data[place.items.clone()])));
    (runs(engine, shard, &places), items)
}

/// Writes the items of a right shard in the order of runs.
fn merge(runs: &[Vec<u8>], bytes: &[Vec<u8>], item_bytes: usize, into: &mut RangeFile) -> Result<(), Error> {
    let mut rest: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    for (process, [_, _, items]) in in_order(runs) {
        into.write(rest[process].split_off(..items as usize * item_bytes).ok_or(Error::Message(process))?);
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
        let shards = if P::Edge::SHAPE.is_slice() { engine.run.grid.columns.len() } else { 0 };
        for shard in 0..shards {
            let mine = runs(engine, shard, &places(engine, shard));
            let all = match &engine.run.peers {
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

    /// Reads this process's part of the file, which was verified.
    pub fn read<P: Program>(&self, engine: &Engine<P>, mut file: Ranges, path: &Path) -> Result<(), Error> {
        for (shard, begins) in self.0.iter().enumerate() {
            let data = engine.run.grid.data_of(shard);
            let mut data = hold(|| data.try_own(0..data.num_pieces()));
            for (part, begin) in parts(&held(engine, shard)).zip(begins) {
                file.go_to(begin * size_of::<EdgeItem<P>>() as u64).map_err(io(path))?;
                for Place { items, .. } in part {
                    file.read_exact(bytemuck::cast_slice_mut(&mut data[items.clone()])).map_err(io(path))?;
                }
            }
        }
        Ok(())
    }
}
