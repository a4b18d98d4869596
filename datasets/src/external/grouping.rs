//! Edges dealt to buckets of vertices, each window in the place that it had in the file.

use std::io;
use std::ops::Range;
use std::sync::Mutex;

use bytemuck::{AnyBitPattern, NoUninit};
use megagrid_partition::{BucketSorter, Buckets, Dealt, EdgeSource, Side, parallel, windows};

use super::Spill;
use super::file::TemporaryFile;
use crate::Error;
use crate::cache::EdgeData;
use crate::checksum::hash_all;
use crate::ids::{Ids, Window};

/// Edges in a temporary file, dealt to buckets of the vertices of one side. A bucket is sorted when it is visited.
#[derive(Debug)]
pub struct ExternalEdges<T> {
    file: TemporaryFile,
    windows: Vec<Piece>,
    buckets: Buckets,
    is_square: bool,
    /// The side whose vertices they are grouped by.
    side: Side,
    /// Of the left and of the right side.
    offsets: [Vec<u64>; 2],
    /// The sum of the edges' hashes.
    hashes: u64,
    sorting: Mutex<Vec<Sorting<T>>>,
}

/// Where a window is: both ends of its edges, the near one in the upper half, then their data.
#[derive(Debug)]
struct Piece {
    start: u64,
    /// Where each bucket begins among the edges, and their number.
    bounds: Vec<u32>,
}

impl Piece {
    fn num_edges(&self) -> usize {
        self.bounds.last().map_or(0, |&end| end as usize)
    }

    fn bucket(&self, bucket: usize) -> Range<usize> {
        self.bounds[bucket] as usize..self.bounds[bucket + 1] as usize
    }

    fn ends(&self, edge: usize) -> u64 {
        self.start + (size_of::<u64>() * edge) as u64
    }

    fn data<T: EdgeData>(&self, edge: usize) -> u64 {
        self.ends(self.num_edges()) + T::TYPE.bytes() * edge as u64
    }
}

/// What a thread deals a window with.
#[derive(Default)]
struct Dealing<T> {
    window: Window<T>,
    dealt: [Dealt<T>; 1],
}

/// What a thread sorts buckets with.
#[derive(Debug, Default)]
struct Sorting<T> {
    /// The vertices whose edges are sorted.
    rows: Range<usize>,
    sorter: BucketSorter<T>,
    ends: Vec<u64>,
    data: Vec<T>,
    far_ends: Vec<u32>,
    sorted: Vec<T>,
}

impl<T: EdgeData> ExternalEdges<T> {
    /// Deals edges to buckets of the vertices of `side`. `vertices` replaces the ids of a side by vertices, `offsets` are those
    /// of both sides, as far as they are known.
    pub(super) fn new(
        spill: Spill<T>,
        vertices: impl Fn(usize, Ids) -> Vec<u32> + Sync,
        is_square: bool,
        side: Side,
        offsets: [Vec<u64>; 2],
    ) -> Result<Self, Error> {
        let buckets = Buckets::new(&offsets[side as usize]);
        let pool = Mutex::new(Vec::new());
        let deal = |at: usize, Dealing { window, dealt }: &mut Dealing<T>| -> Result<_, Error> {
            spill.read_into(at, window)?;
            let [left, right] = [0, 1].map(|side| vertices(side, std::mem::take(&mut window.ids[side])));
            let hashes = hash_all(left.iter().copied().zip(right.iter().copied()), &window.data);
            let [near, far] = if side == Side::Left { [&left, &right] } else { [&right, &left] };
            buckets.deal(near, far, &window.data, dealt);
            // Vertices have 32 bits: they fit where the ids were.
            let [dealt] = dealt;
            let piece = Piece { start: spill.start(at), bounds: dealt.starts().iter().map(|&at| at as u32).collect() };
            let (ends, data) = dealt.edges();
            spill.file().write(piece.ends(0), ends)?;
            spill.file().write(piece.data::<T>(0), data)?;
            window.ids = [Ids::Narrow(left), Ids::Narrow(right)];
            Ok((piece, hashes))
        };
        let dealt = parallel::map(spill.num_windows(), |at| parallel::with_one_of(&pool, |dealing| deal(at, dealing)));
        let (mut windows, mut hashes) = (Vec::with_capacity(dealt.len()), 0_u64);
        for outcome in dealt {
            let (piece, of_window): (Piece, u64) = outcome?;
            windows.push(piece);
            hashes = hashes.wrapping_add(of_window);
        }
        let (file, sorting) = (spill.into_file(), Mutex::default());
        Ok(Self { file, windows, buckets, is_square, side, offsets, hashes, sorting })
    }

    /// Returns the sum of the edges' hashes.
    pub(crate) fn hashes(&self) -> u64 {
        self.hashes
    }

    /// Returns what `visit` makes of the data of some edges and then others, until it has seen those of all.
    pub(crate) fn map_data<R: Send>(&self, visit: impl Fn(&[T]) -> R + Sync) -> io::Result<Vec<R>> {
        let visit_window = |at: usize| -> io::Result<R> {
            let piece = &self.windows[at];
            let mut data = vec![T::default(); piece.num_edges()];
            self.file.read(piece.data::<T>(0), &mut data)?;
            Ok(visit(&data))
        };
        parallel::map(self.windows.len(), visit_window).into_iter().collect()
    }

    /// Refuses to visit edges by the other side.
    fn check(&self, side: Side) -> io::Result<()> {
        let problem = || format!("the edges were not grouped by their {side} ends");
        if side == self.side { Ok(()) } else { Err(io::Error::new(io::ErrorKind::Unsupported, problem())) }
    }

    /// Returns the buckets with edges of some vertices.
    fn buckets_of(&self, rows: &Range<usize>) -> Range<usize> {
        let all = self.buckets.vertices();
        let start = all.partition_point(|vertices| vertices.end <= rows.start);
        start..all.partition_point(|vertices| vertices.start < rows.end).max(start)
    }

    /// Reads something of the edges of a bucket, in the order of the input; `at` tells where that of an edge of a window begins.
    fn read<V: AnyBitPattern + NoUninit>(
        &self,
        bucket: usize,
        at: fn(&Piece, usize) -> u64,
        values: &mut Vec<V>,
    ) -> io::Result<()> {
        values.resize(self.windows.iter().map(|piece| piece.bucket(bucket).len()).sum(), V::zeroed());
        let mut rest = &mut values[..];
        for piece in &self.windows {
            let edges = piece.bucket(bucket);
            let (part, others) = rest.split_at_mut(edges.len());
            self.file.read(at(piece, edges.start), part)?;
            rest = others;
        }
        Ok(())
    }

    /// Sorts the edges of whole buckets, those of some vertices among them, unless they are there.
    fn sort(&self, sorting: &mut Sorting<T>, rows: &Range<usize>) -> io::Result<()> {
        let Sorting { rows: there, sorter, ends, data, far_ends, sorted } = sorting;
        if there.start <= rows.start && rows.end <= there.end {
            return Ok(());
        }
        let (offsets, buckets) = (&self.offsets[self.side as usize], self.buckets_of(rows));
        let vertices = &self.buckets.vertices()[buckets.clone()];
        let all = vertices.first().map_or(0, |first| first.start)..vertices.last().map_or(0, |last| last.end);
        let position = |row: usize| (offsets[row] - offsets[all.start]) as usize;
        *there = 0..0;
        far_ends.resize(position(all.end), 0);
        sorted.resize(position(all.end), T::default());
        for (bucket, vertices) in buckets.zip(vertices) {
            self.read(bucket, Piece::ends, ends)?;
            self.read(bucket, Piece::data::<T>, data)?;
            let span = position(vertices.start)..position(vertices.end);
            let edges = std::iter::once((&ends[..], &data[..]));
            sorter.sort(offsets, vertices.clone(), edges, &mut far_ends[span.clone()], &mut sorted[span]);
        }
        *there = all;
        Ok(())
    }
}

impl<T: EdgeData> EdgeSource<T> for ExternalEdges<T> {
    fn is_square(&self) -> bool {
        self.is_square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        &self.offsets[side as usize]
    }

    /// Whole buckets, so that none is read and sorted twice.
    fn windows(&self) -> Vec<Range<usize>> {
        let (buckets, offsets) = (self.buckets.vertices(), &self.offsets[self.side as usize]);
        let ends = buckets.iter().map(|vertices| offsets[vertices.end]);
        let bounds: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let vertices = |window: Range<usize>| buckets[window.start].start..buckets[window.end - 1].end;
        windows(&bounds).into_iter().map(vertices).collect()
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> io::Result<()> {
        self.check(side)?;
        if rows.is_empty() {
            visit(&[], &[]);
            return Ok(());
        }
        parallel::with_one_of(&self.sorting, |sorting| {
            self.sort(sorting, &rows)?;
            let (offsets, first) = (&self.offsets[side as usize], sorting.rows.start);
            let span = [rows.start, rows.end].map(|row| (offsets[row] - offsets[first]) as usize);
            visit(&sorting.far_ends[span[0]..span[1]], &sorting.sorted[span[0]..span[1]]);
            Ok(())
        })
    }

    fn visit_ends(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[u64])) -> io::Result<()> {
        self.check(Side::Right)?;
        parallel::with_one_of(&self.sorting, |Sorting { ends, .. }| {
            for bucket in self.buckets_of(&rows) {
                self.read(bucket, Piece::ends, ends)?;
                let all = &self.buckets.vertices()[bucket];
                if rows.start > all.start || rows.end < all.end {
                    ends.retain(|ends| rows.contains(&((ends >> 32) as usize)));
                }
                visit(ends);
            }
            Ok(())
        })
    }
}
