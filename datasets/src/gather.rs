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

    /// Numbers the vertices. `records` says what the edges are.
    pub(crate) fn finish(mut self, path: &Path, records: &'static str) -> Result<Loaded<T>, Error> {
        self.look_up(path)?;
        if let Some(readers) = self.readers.take() {
            return self.finish_part(readers, path, records);
        }
        if self.spill.is_none() && self.last.data.is_empty() {
            return Err(Error::Empty { path: path.to_path_buf(), records });
        }
        if self.spill.is_some() && !self.last.data.is_empty() {
            self.spill()?;
        }
        let numberings = self.numberings(path)?;
        if let Some(spill) = self.spill {
            return Ok(Loaded::external(ExternalList::new(spill, numberings, path)));
        }
        let [left_ids, right_ids] = self.last.ids;
        let [left, right] = [numberings.of(0).vertices(left_ids), numberings.of(1).vertices(right_ids)];
        let square = self.square;
        let [num_left, num_right] = [0, 1].map(|side| numberings.of(side).len());
        let (left_names, right_names) = numberings.into_dictionaries(path)?;
        let edges = EdgeList { num_left, num_right, square, left, right, data: self.last.data };
        Ok(Dataset { edges, left_names, right_names }.into())
    }

    /// Numbers the vertices of all processes' edges.
    fn finish_part(
        mut self,
        readers: Arc<dyn Readers>,
        path: &Path,
        records: &'static str,
    ) -> Result<Loaded<T>, Error> {
        self.spill()?;
        let Some(spill) = self.spill.take() else { unreachable!("there is a file now") };
        let mine = [spill.num_edges() as u64, spill.max(0), spill.max(1)];
        let all = readers.gather_numbers(mine).map_err(Error::io(path))?;
        let num_edges: u64 = all.iter().map(|found| found[0]).sum();
        if num_edges == 0 {
            return Err(Error::Empty { path: path.to_path_buf(), records });
        }
        let max = [1, 2].map(|column: usize| all.iter().map(|found| found[column]).max().unwrap_or(0));
        let number = |names: Names, is_named: bool, columns: &[usize]| -> Result<Numbering, Error> {
            if is_named {
                return names.agree(&*readers, path).map(Numbering::Names);
            }
            let max = columns.iter().map(|&column| max[column]).max().unwrap_or(0);
            let mut distinct = Distinct::new(columns.len() as u64 * num_edges, max);
            for at in 0..spill.num_windows() {
                let window = spill.read(at)?;
                columns.iter().for_each(|&column| distinct.add(&window.ids[column]));
            }
            distinct.agree(&*readers).map_err(Error::io(path))?.rank(path).map(Numbering::Integers)
        };
        let [left, right] = std::mem::take(&mut self.names);
        let numberings = if self.square {
            Numberings { left: number(left, self.named.left, &[0, 1])?, right: None }
        } else {
            let left = number(left, self.named.left, &[0])?;
            Numberings { left, right: Some(number(right, self.named.right, &[1])?) }
        };
        Ok(Loaded::external(ExternalList::new(spill, numberings, path).of_part(readers)))
    }

    fn numberings(&mut self, path: &Path) -> Result<Numberings, Error> {
        let [left, right] = std::mem::take(&mut self.names);
        if self.square {
            let left = if self.named.left { Numbering::Names(left.number()) } else { self.ranks(&[0, 1], path)? };
            return Ok(Numberings { left, right: None });
        }
        let left = if self.named.left { Numbering::Names(left.number()) } else { self.ranks(&[0], path)? };
        let right = if self.named.right { Numbering::Names(right.number()) } else { self.ranks(&[1], path)? };
        Ok(Numberings { left, right: Some(right) })
    }

    /// Ranks the integers of columns together.
    fn ranks(&self, columns: &[usize], path: &Path) -> Result<Numbering, Error> {
        let in_file = self.spill.as_ref();
        let (num_edges, max) = match in_file {
            Some(spill) => (spill.num_edges(), columns.iter().map(|&column| spill.max(column)).max()),
            None => (self.last.data.len(), columns.iter().map(|&column| self.last.ids[column].max()).max()),
        };
        let mut distinct = Distinct::new((columns.len() * num_edges) as u64, max.unwrap_or(0));
        match in_file {
            Some(spill) => {
                for at in 0..spill.num_windows() {
                    let window = spill.read(at)?;
                    columns.iter().for_each(|&column| distinct.add(&window.ids[column]));
                }
            }
            None => columns.iter().for_each(|&column| distinct.add(&self.last.ids[column])),
        }
        Ok(Numbering::Integers(distinct.rank(path)?))
    }
}
