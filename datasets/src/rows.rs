//! What LIBSVM, LDA-C and plain text have in common: one left vertex a line, with its edges on it.

use std::ops::ControlFlow;

use megagrid_partition::EdgeList;

use crate::column::{Column, intern};
use crate::text::{Input, Malformed, Text};
use crate::{Dataset, Dictionary, Error};

/// Left vertices in the order of their lines, each with its edges, and what else the lines say.
#[derive(Debug, Default)]
pub(crate) struct Rows<T, L> {
    /// The number of edges up to the end of each row.
    ends: Vec<usize>,
    pub(crate) right: Column,
    pub(crate) data: Vec<T>,
    /// One label per row.
    pub(crate) labels: Vec<L>,
    /// For each name, the last edge to it.
    edge_of_name: Vec<usize>,
}

impl<T, L> Rows<T, L> {
    pub(crate) fn end(&mut self, label: L) {
        self.ends.push(self.data.len());
        self.labels.push(label);
    }

    /// Adds an edge to the row that the next [`Rows::end`] ends.
    #[inline]
    pub(crate) fn push(&mut self, right: u64, data: T) {
        self.right.ids.push(right);
        self.data.push(data);
    }

    /// Numbers the rows and their right ends.
    fn finish(self, input: &Input<'_>, records: &'static str) -> Result<(Dataset<T>, Vec<L>), Error> {
        if self.data.is_empty() {
            return Err(Error::Empty { path: input.path().to_path_buf(), records });
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
        Ok((Dataset { edges, left_names, right_names: Some(right_names) }, self.labels))
    }
}

impl<L> Rows<u32, L> {
    /// Counts a name in the row that the next [`Rows::end`] ends.
    pub(crate) fn count_name(&mut self, field: &'static str, name: &[u8]) -> Result<(), Malformed> {
        let entry = intern(&mut self.right.names, field, name)?;
        let edge = self.data.len();
        if entry as usize == self.edge_of_name.len() {
            self.edge_of_name.push(edge);
        }
        let last = &mut self.edge_of_name[entry as usize];
        if (self.ends.last().copied().unwrap_or(0)..edge).contains(last) {
            self.data[*last] += 1;
        } else {
            *last = edge;
            self.push(entry, 1);
        }
        Ok(())
    }
}

/// Reads rows, one a line that is not blank, unless `begin` has these parsed too. `records` says what the edges are.
pub(crate) fn read<T: Default + Send, L: Default + Send>(
    input: &Input<'_>,
    records: &'static str,
    begin: impl Fn(&mut Text<'_>) + Sync,
    line: impl Fn(&mut Rows<T, L>, &[u8]) -> Result<(), Malformed> + Sync,
) -> Result<(Dataset<T>, Vec<L>), Error> {
    let mut all = Rows::default();
    input.parse(
        |text| {
            begin(text);
            Ok(())
        },
        |()| Rows::default(),
        line,
        |mut chunk| {
            let before = all.data.len();
            all.ends.extend(chunk.ends.iter().map(|end| before + end));
            all.labels.append(&mut chunk.labels);
            all.data.append(&mut chunk.data);
            all.right.append(chunk.right, input.path())?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    all.finish(input, records)
}
