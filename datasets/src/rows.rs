//! What LIBSVM, LDA-C and plain text have in common: one left vertex a line, with its edges on it.

use std::io;
use std::ops::{AddAssign, ControlFlow};
use std::path::Path;
use std::sync::Arc;

use megagrid_partition::EdgeList;

use crate::cache::EdgeData;
use crate::column::{Column, intern};
use crate::ids::Ids;
use crate::name_table::NameTable;
use crate::readers::misfit;
use crate::text::{Input, Lines, Malformed, Text};
use crate::{Dataset, Dictionary, Error};

/// Edges that a process sends to others at a time, and those of a chunk.
const SENT_AT_A_TIME: usize = 1 << 18;

/// What rows hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Features,
    Terms,
    Words,
}

impl Holds {
    fn name(self) -> &'static str {
        match self {
            Self::Features => "features",
            Self::Terms => "terms",
            Self::Words => "words",
        }
    }
}

/// Left vertices in the order of their lines, each with its edges, and what else the lines say.
#[derive(Debug, Default)]
pub(crate) struct Rows<T> {
    /// The number of edges up to the end of each row.
    ends: Vec<usize>,
    pub(crate) right: Column,
    pub(crate) data: Vec<T>,
    /// A label for each row, where rows have some.
    pub(crate) labels: Column,
    /// A weight for each row, where rows have some.
    pub(crate) weights: Vec<f32>,
    /// For each name, the last edge to it.
    edge_of_name: Vec<usize>,
}

impl<T> Rows<T> {
    pub(crate) fn end(&mut self) {
        self.ends.push(self.data.len());
    }

    /// Adds an edge to the row that the next [`Rows::end`] ends.
    #[inline]
    pub(crate) fn push(&mut self, right: u64, data: T) {
        self.right.ids.push(right);
        self.data.push(data);
    }

    /// Numbers the rows and their right ends.
    fn finish(self, input: &Input<'_>, holds: Holds) -> Result<Numbered<T>, Error> {
        // Samples may be without features, of which a model says something too.
        let is_empty = if holds == Holds::Features { self.ends.is_empty() } else { self.data.is_empty() };
        if is_empty {
            return Err(Error::Empty { path: input.path().to_path_buf(), records: holds.name() });
        }
        let num_left = self.ends.len();
        if num_left > u32::MAX as usize {
            return Err(Error::TooManyVertices(input.path().to_path_buf()));
        }
        let mut left = Vec::with_capacity(self.data.len());
        for (row, &end) in self.ends.iter().enumerate() {
            left.resize(end, row as u32);
        }
        let (right, right_names) = self.right.finish(input.path())?;
        let num_right = right_names.len();
        let edges = EdgeList { num_left, num_right, square: false, left, right, data: self.data };
        let left_names = Dictionary::from_integers((1..=num_left as u64).collect());
        let data = Dataset { edges, left_names, right_names: Some(right_names) };
        Ok(Numbered { data, labels: self.labels, weights: self.weights })
    }
}

impl<T: AddAssign> Rows<T> {
    /// Adds to a name in the row that the next [`Rows::end`] ends.
    pub(crate) fn add_name(&mut self, field: &'static str, name: &[u8], value: T) -> Result<(), Malformed> {
        self.add_known(&mut None, field, name, value)
    }

    /// As [`add_name`](Self::add_name), of a name that is looked up once: its entry is kept.
    pub(crate) fn add_known(
        &mut self,
        known: &mut Option<u32>,
        field: &'static str,
        name: &[u8],
        value: T,
    ) -> Result<(), Malformed> {
        let entry = match *known {
            Some(entry) => u64::from(entry),
            None => intern(&mut self.right.names, field, name)?,
        };
        *known = Some(entry as u32);
        let edge = self.data.len();
        if entry as usize == self.edge_of_name.len() {
            self.edge_of_name.push(edge);
        }
        let last = &mut self.edge_of_name[entry as usize];
        if (self.ends.last().copied().unwrap_or(0)..edge).contains(last) {
            self.data[*last] += value;
        } else {
            *last = edge;
            self.push(entry, value);
        }
        Ok(())
    }
}

impl<T: EdgeData> Rows<T> {
    /// Adds the rows that follow.
    fn append(&mut self, mut more: Self, path: &Path) -> Result<(), Error> {
        let before = self.data.len();
        self.ends.extend(more.ends.iter().map(|end| before + end));
        self.labels.append(more.labels, path)?;
        self.weights.append(&mut more.weights);
        self.data.append(&mut more.data);
        self.right.append(more.right, path).map(drop)
    }

    /// Returns the rows as bytes: three lengths, then each array and column.
    fn pack(&self) -> Vec<u8> {
        let lens = [self.ends.len(), self.data.len(), self.weights.len()];
        let mut bytes = bytemuck::pod_collect_to_vec(&lens.map(|len| len as u64));
        bytes.extend(self.ends.iter().flat_map(|&end| (end as u64).to_ne_bytes()));
        bytes.extend_from_slice(T::to_bytes(&self.data));
        bytes.extend_from_slice(bytemuck::cast_slice(&self.weights));
        self.right.pack(&mut bytes);
        self.labels.pack(&mut bytes);
        bytes
    }

    /// Reads what was packed.
    fn unpack(bytes: &[u8]) -> io::Result<Self> {
        let from = &mut &bytes[..];
        let [rows, edges, weights] = array::<u64>(from, 3)?.first_chunk().ok_or_else(misfit)?.map(|len| len as usize);
        let ends = array::<u64>(from, rows)?.into_iter().map(|end| end as usize).collect();
        let (data, weights) = (array(from, edges)?, array(from, weights)?);
        let (right, labels) = (Column::unpack(from)?, Column::unpack(from)?);
        let said_of_all = [labels.ids.len(), weights.len()].iter().all(|&said| [0, rows].contains(&said));
        let rows = Self { ends, right, data, labels, weights, edge_of_name: Vec::new() };
        let falls = |ends: &[usize]| ends[0] > ends[1];
        let fits = rows.right.ids.len() == edges && said_of_all;
        if fits && !rows.ends.windows(2).any(falls) && rows.ends.last().copied().unwrap_or(0) == edges {
            Ok(rows)
        } else {
            Err(misfit())
        }
    }
}

impl Column {
    /// Adds the column to bytes: three lengths, the ids, and the names with their lengths.
    fn pack(&self, bytes: &mut Vec<u8>) {
        let lens = [self.ids.len(), usize::from(matches!(self.ids, Ids::Wide(_))), self.names.len()];
        bytes.extend(lens.iter().flat_map(|&len| (len as u64).to_ne_bytes()));
        bytes.extend_from_slice(match &self.ids {
            Ids::Narrow(ids) => bytemuck::cast_slice(ids),
            Ids::Wide(ids) => bytemuck::cast_slice(ids),
        });
        for name in self.names.iter() {
            bytes.extend((name.len() as u64).to_ne_bytes());
            bytes.extend_from_slice(name);
        }
    }

    /// Takes a column off bytes.
    fn unpack(from: &mut &[u8]) -> io::Result<Self> {
        let [len, is_wide, num_names] = *array::<u64>(from, 3)?.first_chunk().ok_or_else(misfit)?;
        let len = len as usize;
        let ids = if is_wide == 1 { Ids::Wide(array(from, len)?) } else { Ids::Narrow(array(from, len)?) };
        let mut names = NameTable::default();
        for _ in 0..num_names {
            let len = array::<u64>(from, 1)?[0] as usize;
            names.intern(from.split_off(..len).ok_or_else(misfit)?);
        }
        let is_known = |&id: &u32| (id as usize) < names.len();
        let fits = names.len() == 0 || matches!(&ids, Ids::Narrow(ids) if ids.iter().all(is_known));
        if fits { Ok(Self { ids, names }) } else { Err(misfit()) }
    }
}

/// Takes values off bytes.
fn array<V: bytemuck::Pod>(from: &mut &[u8], len: usize) -> io::Result<Vec<V>> {
    if size_of::<V>() == 0 {
        return Ok(vec![V::zeroed(); len]);
    }
    let bytes = len.checked_mul(size_of::<V>()).and_then(|bytes| from.split_off(..bytes)).ok_or_else(misfit)?;
    Ok(bytemuck::pod_collect_to_vec(bytes))
}

/// Rows whose right ends are numbered, and what else was said of each.
pub(crate) struct Numbered<T> {
    pub(crate) data: Dataset<T>,
    pub(crate) labels: Column,
    pub(crate) weights: Vec<f32>,
}

/// The rows of a chunk, and how its file is written.
pub(crate) struct RowsOf<S, T> {
    pub(crate) shape: Arc<S>,
    pub(crate) rows: Rows<T>,
    /// For each column, the entry of its name, once it was looked up.
    pub(crate) known: Vec<Option<u32>>,
}

impl<S, T: Default> RowsOf<S, T> {
    /// Begins with no row.
    pub(crate) fn new(shape: Arc<S>) -> Self {
        Self { shape, rows: Rows::default(), known: Vec::new() }
    }
}

/// Reads rows, one a line that is not blank, unless `begin` has these parsed too. Of several
/// processes each reads a part, and then all have all rows.
pub(crate) fn read<T: EdgeData>(
    input: &Input<'_>,
    holds: Holds,
    begin: impl Fn(&mut Text<'_>) + Sync,
    line: impl Fn(&mut Rows<T>, &[u8]) -> Result<(), Malformed> + Sync,
) -> Result<Numbered<T>, Error> {
    let begin = |text: &mut Text<'_>| {
        begin(text);
        Ok(())
    };
    read_as(input, holds, begin, |chunk: &mut RowsOf<(), T>, text: &[u8]| line(&mut chunk.rows, text))
}

/// As [`read`], of records whose file says in its beginning how they are written.
pub(crate) fn read_as<T: EdgeData, S: Send + Sync>(
    input: &Input<'_>,
    holds: Holds,
    begin: impl Fn(&mut Text<'_>) -> Result<S, Error> + Sync,
    lines: impl Lines<RowsOf<S, T>>,
) -> Result<Numbered<T>, Error> {
    let mut pieces = Pieces::new(input);
    input.parse(
        |text| begin(text).map(Arc::new),
        |shape| RowsOf::new(Arc::clone(shape)),
        lines,
        |RowsOf { rows, .. }| {
            pieces.take(rows)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    pieces.finish(holds)
}

/// The rows that this process has read.
pub(crate) struct Pieces<'i, T> {
    input: &'i Input<'i>,
    mine: Vec<Rows<T>>,
}

impl<'i, T: EdgeData> Pieces<'i, T> {
    /// Begins with none.
    pub(crate) fn new(input: &'i Input<'i>) -> Self {
        Self { input, mine: Vec::new() }
    }

    /// Takes the rows that follow.
    pub(crate) fn take(&mut self, rows: Rows<T>) -> Result<(), Error> {
        // One process has one piece, which others would be sent in several.
        let most = if self.input.readers().is_some() { SENT_AT_A_TIME } else { usize::MAX };
        match self.mine.last_mut().filter(|last| last.data.len() < most) {
            Some(last) => last.append(rows, self.input.path())?,
            None => self.mine.push(rows),
        }
        Ok(())
    }

    /// Numbers the rows and their right ends, once each of several processes has the rows of all.
    pub(crate) fn finish(mut self, holds: Holds) -> Result<Numbered<T>, Error> {
        let input = self.input;
        let Some(readers) = input.readers() else { return self.mine.pop().unwrap_or_default().finish(input, holds) };
        let (mut mine, mut all) = (self.mine.into_iter(), Rows::default());
        let take = |piece: &[u8]| all.append(Rows::unpack(piece).map_err(Error::io(input.path()))?, input.path());
        readers.in_turn(|| Ok(mine.next().map(|rows| rows.pack())), take, |error| Error::io(input.path())(error))?;
        all.finish(input, holds)
    }
}
