//! The edges of a text as its chunks come in: names are looked up, and what takes too much memory goes to a file.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use megagrid_partition::EdgeList;

use crate::cache::EdgeData;
use crate::columns::{Columns, Named};
use crate::external::{ExternalList, Spill};
use crate::ids::{Ids, Window};
use crate::loaded::Loaded;
use crate::names::{Names, Tokens};
use crate::numbering::{Numbering, Numberings};
use crate::ranks::Distinct;
use crate::records::{Record, WordCount};
use crate::warned::is_first;
use crate::{Dataset, Error, Readers};

/// Tokens that are looked up at a time: enough that bringing a shard of names into the cache costs little for each.
const TOKEN_BYTES: usize = 16 << 20;

/// Edges of a window in the file: few enough for a second-level cache.
const WINDOW_BYTES: usize = 1 << 20;

/// The degrees of the vertices of each side, if they are known.
type Degrees = Option<[Vec<u32>; 2]>;

/// The edges up to some chunk.
pub(crate) struct Gathered<T> {
    square: bool,
    named: Named,
    /// The numbers of vertices of each side, where ids are these from 0 on.
    sizes: Option<[u64; 2]>,
    /// Whether each edge that is read is followed by the same one the other way.
    is_undirected: bool,
    /// Bytes of edges to keep in memory.
    room: usize,
    names: [Names; 2],
    /// Chunks whose names have not been looked up, and the bytes of their tokens.
    waiting: Vec<Columns<T>>,
    waiting_bytes: usize,
    /// Edges before those of `last`.
    spill: Option<Spill<T>>,
    last: Vec<Window<T>>,
    last_bytes: usize,
    /// The processes that read the other edges.
    readers: Option<Arc<dyn Readers>>,
}

impl<T: EdgeData> Gathered<T> {
    pub(crate) fn new(
        square: bool,
        named: Named,
        sizes: Option<[u64; 2]>,
        room: usize,
        readers: Option<&Arc<dyn Readers>>,
    ) -> Self {
        Self {
            square,
            named,
            sizes,
            is_undirected: false,
            // Those of a part go to a file in any case, and from there to others window by window.
            room: if readers.is_some() { room.min(WINDOW_BYTES) } else { room },
            names: Default::default(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            spill: None,
            last: Vec::new(),
            last_bytes: 0,
            readers: readers.cloned(),
        }
    }

    /// Has each edge be followed by the same one the other way, if `is_undirected`; one from a vertex to itself is not.
    pub(crate) fn undirected(self, is_undirected: bool) -> Self {
        Self { is_undirected, ..self }
    }

    /// Adds the edges of the chunk that follows. `path` is for messages.
    pub(crate) fn append(&mut self, chunk: Columns<T>, path: &Path) -> Result<(), Error> {
        self.waiting_bytes += chunk.tokens.iter().map(Tokens::bytes).sum::<usize>();
        let has_tokens = chunk.named != Named::default();
        self.waiting.push(chunk);
        if has_tokens && self.waiting_bytes < TOKEN_BYTES { Ok(()) } else { self.look_up(path) }
    }

    /// Looks up the names of the chunks that wait for it.
    fn look_up(&mut self, path: &Path) -> Result<(), Error> {
        let mut chunks = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let mut codes = [Vec::new(), Vec::new()];
        for (side, named) in [self.named.left, self.named.right && !self.square].into_iter().enumerate() {
            if named {
                let tokens: Vec<Tokens> =
                    chunks.iter_mut().map(|chunk| std::mem::take(&mut chunk.tokens[side])).collect();
                codes[side] = self.names[side].resolve(&tokens, path)?;
            }
        }
        let [mut left_codes, mut right_codes] = codes.map(Vec::into_iter);
        for chunk in chunks {
            let [mut left, mut right] = chunk.ids;
            if let Some(codes) = left_codes.next() {
                if self.square {
                    right = Ids::Narrow(codes.iter().skip(1).step_by(2).copied().collect());
                    left = Ids::Narrow(codes.into_iter().step_by(2).collect());
                } else {
                    left = Ids::Narrow(codes);
                }
            }
            if let Some(codes) = right_codes.next() {
                right = Ids::Narrow(codes);
            }
            let window = Window { ids: [left, right], data: chunk.data };
            let window = if self.is_undirected { window.both_ways() } else { window };
            self.last_bytes += window.bytes();
            self.last.push(window);
            if self.last_bytes > if self.spill.is_some() { self.room.min(WINDOW_BYTES) } else { self.room } {
                self.spill()?;
            }
        }
        Ok(())
    }

    /// Moves the edges in memory to the file.
    fn spill(&mut self) -> Result<(), Error> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new()?),
        };
        self.last_bytes = 0;
        spill.push(&std::mem::take(&mut self.last))
    }

    /// Numbers the vertices, of all processes' edges. `records` says what the edges are.
    pub(crate) fn finish(mut self, path: &Path, records: &'static str) -> Result<Loaded<T>, Error> {
        self.look_up(path)?;
        let readers = self.readers.take();
        if readers.is_some() || self.spill.is_some() && !self.last.is_empty() {
            self.spill()?;
        }
        let (numberings, degrees) = self.number(readers.as_deref(), path, records)?;
        let Some(spill) = self.spill.take() else { return self.into_dataset(numberings, path).map(Loaded::from) };
        Ok(Loaded::external(ExternalList { spill, numberings, degrees, path: path.to_path_buf(), readers }))
    }

    /// Numbers the vertices; returns also the degrees of each side, if they are known.
    fn number(
        &mut self,
        readers: Option<&dyn Readers>,
        path: &Path,
        records: &'static str,
    ) -> Result<(Numberings, Degrees), Error> {
        let all = self.known_to_all(readers).map_err(Error::io(path))?;
        let num_edges: u64 = all.iter().map(|found| found[0]).sum();
        if num_edges == 0 {
            return Err(Error::Empty { path: path.to_path_buf(), records });
        }
        if let Some([left, right]) = self.sizes.map(|sizes| sizes.map(|size| Numbering::Counted(size as usize))) {
            return Ok((Numberings { left, right: (!self.square).then_some(right) }, None));
        }
        let mut sides = self.sides(num_edges, &all);
        self.each_window(|window| sides.iter_mut().flatten().for_each(|side| side.add(&window.ids)))?;
        let mut numbered = Vec::with_capacity(sides.len());
        for (side, names) in sides.into_iter().zip(std::mem::take(&mut self.names)) {
            numbered.push(match side {
                Some(side) => {
                    let (ranks, degrees) = side.rank(readers, path)?;
                    (Numbering::Integers(ranks), degrees)
                }
                None => {
                    let names = match readers {
                        Some(readers) => names.agree(readers, path)?,
                        None => names.number(),
                    };
                    // Words of documents are words.
                    if (numbered.is_empty() || records != WordCount::NAMES)
                        && readers.is_none_or(|readers| readers.process() == 0)
                        && let Some(missing) = names.missing()
                        && is_first(path, "missing")
                    {
                        tracing::warn!(
                            "{}: \"{missing}\" is an id like any other; if it stands for one that is not there, leave out its lines",
                            path.display()
                        );
                    }
                    (Numbering::Names(names), None)
                }
            });
        }
        let mut numbered = numbered.into_iter();
        let Some((left, left_degrees)) = numbered.next() else { unreachable!("there is a left side") };
        let (right, right_degrees) = numbered.next().unzip();
        // Of both columns, where both are integers.
        let degrees = left_degrees.into_iter().chain(right_degrees.flatten()).flatten().collect::<Vec<_>>();
        Ok((Numberings { left, right }, degrees.try_into().ok()))
    }

    /// Replaces the ids of edges in memory by vertices.
    fn into_dataset(self, numberings: Numberings, path: &Path) -> Result<Dataset<T>, Error> {
        let mut last = Window::default();
        self.last.into_iter().for_each(|window| last.append(window.ids, window.data));
        let [left_ids, right_ids] = last.ids;
        let [mut left, mut right] = [numberings.of(0).vertices(left_ids), numberings.of(1).vertices(right_ids)];
        left.shrink_to_fit();
        right.shrink_to_fit();
        let square = self.square;
        let [num_left, num_right] = [0, 1].map(|side| numberings.of(side).len());
        let (left_names, right_names) = numberings.into_dictionaries(path)?;
        let edges = EdgeList { num_left, num_right, square, left, right, data: last.data };
        Ok(Dataset { edges, left_names, right_names })
    }

    fn each_window(&self, mut visit: impl FnMut(&Window<T>)) -> Result<(), Error> {
        match &self.spill {
            Some(spill) => {
                let mut window = Window::default();
                (0..spill.num_windows()).try_for_each(|at| spill.read_into(at, &mut window).map(|()| visit(&window)))
            }
            None => {
                self.last.iter().for_each(visit);
                Ok(())
            }
        }
    }

    /// Returns the number of edges and the largest integer of each column that each process has read.
    fn known_to_all(&self, readers: Option<&dyn Readers>) -> std::io::Result<Vec<[u64; 3]>> {
        let max = |column: usize| self.last.iter().map(|window| window.ids[column].max()).max().unwrap_or(0);
        let mine = match &self.spill {
            Some(spill) => [spill.num_edges() as u64, spill.max(0), spill.max(1)],
            None => [self.last.iter().map(|window| window.data.len() as u64).sum(), max(0), max(1)],
        };
        readers.map_or(Ok(vec![mine]), |readers| readers.gather_numbers(mine))
    }

    /// Begins to look for the distinct integers of each side; `None` stands for one of names.
    fn sides(&self, num_edges: u64, all: &[[u64; 3]]) -> Vec<Option<Distinct>> {
        let named = [self.named.left, self.named.right];
        let side = |columns: Range<usize>| {
            let max = columns.clone().flat_map(|column| all.iter().map(move |found| found[1 + column])).max();
            (!named[columns.start]).then(|| Distinct::new(columns, num_edges, max.unwrap_or(0)))
        };
        if self.square { vec![side(0..2)] } else { vec![side(0..1), side(1..2)] }
    }
}
