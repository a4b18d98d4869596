//! Lists of vertices that do not [rest](Vertex::is_resting): stages pass the others by without a look.
//!
//! A list is made from a look at all vertices, and made anew when one of them may have been woken since. Between, stages drop from
//! it what has come to rest. There is one of rows for each piece, for stages on vertices, and one of right vertices for each block,
//! for stages on edges.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use megagrid_partition::parallel::lock;
use megagrid_stages::Vertex;

use crate::machine::atomics::{AtomicU64, Ordering};

/// How many vertices ahead of the one at hand a stage is told, to fetch what it needs.
const AHEAD: usize = 8;

/// Vertices of which all others rest. They may rest too.
#[derive(Default)]
pub struct Awake {
    /// The [`Rests::wakings`] when they were listed; 0 before.
    wakings: u64,
    vertices: Vec<u32>,
}

impl Awake {
    /// Walks over the vertices, in ascending order: over `all` if they are not listed yet, or some were woken since.
    #[inline(always)]
    pub fn each(&mut self, wakings: u64, all: usize) -> EachAwake<'_> {
        if self.wakings != wakings {
            self.vertices.clear();
            self.vertices.extend(0..all as u32);
        }
        // A walk that does not end, since a stage panics, leaves half a list: it is not to be used again.
        self.wakings = 0;
        EachAwake { vertices: &mut self.vertices, kept: 0, next: 0, ended: &mut self.wakings, wakings }
    }
}

/// Listed vertices, one after the other; see [`Awake::each`].
pub struct EachAwake<'a> {
    vertices: &'a mut Vec<u32>,
    /// How many of those behind stay listed.
    kept: usize,
    next: usize,
    ended: &'a mut u64,
    wakings: u64,
}

impl EachAwake<'_> {
    /// Returns the next vertex, and one that comes later, if there is one. Without any, the walk has ended.
    #[inline(always)]
    pub fn next(&mut self) -> Option<(usize, Option<usize>)> {
        let Some(&vertex) = self.vertices.get(self.next) else {
            self.vertices.truncate(self.kept);
            *self.ended = self.wakings;
            return None;
        };
        self.next += 1;
        let later = self.vertices.get(self.next + AHEAD).map(|&later| later as usize);
        Some((vertex as usize, later))
    }

    /// Says whether a vertex rests that has come: it is not listed any more then.
    #[inline(always)]
    pub fn pass(&mut self, vertex: usize, rests: bool) {
        self.vertices[self.kept] = vertex as u32;
        self.kept += usize::from(!rests);
    }
}

/// A piece of a vertex array: which of its rows are awake.
pub struct Rest {
    /// How often some may have been woken, and 1.
    wakings: AtomicU64,
    awake: Mutex<Awake>,
}

impl Default for Rest {
    fn default() -> Self {
        Self { wakings: AtomicU64::new(1), awake: Mutex::default() }
    }
}

/// Which rows of some pieces are awake; none if vertices do not rest.
#[derive(Clone, Copy)]
pub struct Rests<'h> {
    rests: &'h [Rest],
    /// The pieces' bounds, in rows.
    bounds: &'h [usize],
}

impl<'h> Rests<'h> {
    pub fn new<V: Vertex>(rests: &'h [Rest], bounds: &'h [usize], pieces: &Range<usize>) -> Self {
        if V::RESTS {
            Self { rests: &rests[pieces.clone()], bounds: &bounds[pieces.start..=pieces.end] }
        } else {
            Self { rests: &[], bounds: &[] }
        }
    }

    /// Notes that any row may have been woken. Whoever calls has the pieces for itself: its hold orders this before all later looks.
    pub fn wake(self) {
        for rest in self.rests {
            rest.wakings.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how often some may have been woken: a number that differs whenever one was.
    pub fn wakings(self) -> u64 {
        self.rests.iter().map(|rest| rest.wakings.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of pieces.
    pub fn len(self) -> usize {
        self.rests.len()
    }

    /// Returns the rows of a piece, and the list of those that are awake, by their distance from the first.
    pub fn list(self, piece: usize) -> (Range<usize>, MutexGuard<'h, Awake>) {
        (self.bounds[piece]..self.bounds[piece + 1], lock(&self.rests[piece].awake))
    }

    /// Returns how often rows of a piece may have been woken.
    pub fn wakings_of(self, piece: usize) -> u64 {
        self.rests[piece].wakings.load(Ordering::Relaxed)
    }
}
