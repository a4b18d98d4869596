//! The edges of a text as its chunks come in: names are looked up, and what takes too much memory goes to a file.

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
use crate::{Dataset, Error, Readers};

/// Tokens that are looked up at a time: enough that bringing a shard of names into the cache costs little for each.
const TOKEN_BYTES: usize = 16 << 20;

/// The edges up to some chunk.
pub(crate) struct Gathered<T> {
    square: bool,
    named: Named,
    /// Bytes of edges to keep in memory.
    room: usize,
    names: [Names; 2],
    /// Chunks whose names have not been looked up, and the bytes of their tokens.
    waiting: Vec<Columns<T>>,
    waiting_bytes: usize,
    /// Edges before those of `last`.
    spill: Option<Spill<T>>,
    last: Window<T>,
    /// The processes that read the other edges.
    readers: Option<Arc<dyn Readers>>,
}

impl<T: EdgeData> Gathered<T> {
    pub(crate) fn new(square: bool, named: Named, room: usize, readers: Option<&Arc<dyn Readers>>) -> Self {
        let names = Default::default();
        let last = Window::default();
        Self {
            square,
            named,
            room,
            names,
            waiting: Vec::new(),
            waiting_bytes: 0,
            spill: None,
            last,
            readers: readers.cloned(),
        }
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
            self.last.append([left, right], chunk.data);
            if self.last.bytes() > self.room {
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
        spill.push(&std::mem::take(&mut self.last))
    }

    /// Numbers the vertices, of all processes' edges. `records` says what the edges are.
    pub(crate) fn finish(mut self, path: &Path, records: &'static str) -> Result<Loaded<T>, Error> {
        self.look_up(path)?;
        let readers = self.readers.take();
        if readers.is_some() || self.spill.is_some() && !self.last.data.is_empty() {
            self.spill()?;
        }
        // Only where there are integers does anybody ask for the largest.
        let named = [self.named.left, if self.square { self.named.left } else { self.named.right }];
        let mine = match &self.spill {
            Some(spill) => [spill.num_edges() as u64, spill.max(0), spill.max(1)],
            None => {
                let max = [0, 1].map(|column| if named[column] { 0 } else { self.last.ids[column].max() });
                [self.last.data.len() as u64, max[0], max[1]]
            }
        };
        let all = match &readers {
            Some(readers) => readers.gather_numbers(mine).map_err(Error::io(path))?,
            None => vec![mine],
        };
        let num_edges: u64 = all.iter().map(|found| found[0]).sum();
        if num_edges == 0 {
            return Err(Error::Empty { path: path.to_path_buf(), records });
        }
        let names = std::mem::take(&mut self.names);
        let number = |names: Names, columns: &[usize]| -> Result<Numbering, Error> {
            if named[columns[0]] {
                let numbered = match &readers {
                    Some(readers) => names.agree(&**readers, path)?,
                    None => names.number(),
                };
                return Ok(Numbering::Names(numbered));
            }
            let max = columns.iter().flat_map(|&column| all.iter().map(move |found| found[1 + column])).max();
            let mut distinct = Distinct::new(columns.len() as u64 * num_edges, max.unwrap_or(0));
            let mut add = |window: &Window<T>| columns.iter().for_each(|&column| distinct.add(&window.ids[column]));
            match &self.spill {
                Some(spill) => (0..spill.num_windows()).try_for_each(|at| spill.read(at).map(|window| add(&window)))?,
                None => add(&self.last),
            }
            if let Some(readers) = &readers {
                distinct = distinct.agree(&**readers).map_err(Error::io(path))?;
            }
            distinct.rank(path).map(Numbering::Integers)
        };
        let [left, right] = names;
        let numberings = if self.square {
            Numberings { left: number(left, &[0, 1])?, right: None }
        } else {
            Numberings { left: number(left, &[0])?, right: Some(number(right, &[1])?) }
        };
        if let Some(spill) = self.spill {
            return Ok(Loaded::external(ExternalList { spill, numberings, path: path.to_path_buf(), readers }));
        }
        let [left_ids, right_ids] = self.last.ids;
        let [left, right] = [numberings.of(0).vertices(left_ids), numberings.of(1).vertices(right_ids)];
        let square = self.square;
        let [num_left, num_right] = [0, 1].map(|side| numberings.of(side).len());
        let (left_names, right_names) = numberings.into_dictionaries(path)?;
        let edges = EdgeList { num_left, num_right, square, left, right, data: self.last.data };
        Ok(Dataset { edges, left_names, right_names }.into())
    }
}
