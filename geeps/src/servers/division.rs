//! Which rows of a table the server of each process has, and what of an access goes to which.

use std::borrow::Cow;
use std::ops::Range;

use crate::rows;
use crate::table::{RowList, Rows, Table};

/// Returns the rows of a table that one of several servers has.
pub(crate) fn rows_of(table_rows: usize, server: usize, servers: usize) -> Range<usize> {
    // More rows than 32 bits have no key, so that this cannot overflow.
    table_rows * server / servers..table_rows * (server + 1) / servers
}

/// An access, divided by the server that has the rows.
#[derive(Debug)]
pub(crate) struct Division(Vec<Part>);

/// What of an access goes to one server.
#[derive(Debug)]
pub(crate) struct Part {
    pub server: usize,
    /// The rows, by the numbers that they have there.
    pub list: RowList,
    places: Places,
}

/// Where in the batch the rows of a part are.
#[derive(Debug)]
enum Places {
    Run(Range<usize>),
    Listed(Vec<u32>),
}

impl Division {
    /// Divides a list of rows of a table.
    pub fn new(list: &RowList, table: &Table, servers: usize) -> Self {
        let part = |server: usize| {
            let rows = rows_of(table.rows, server, servers);
            let of_server = Table { rows: rows.len(), ..table.clone() };
            let (list, places) = match &list.rows {
                Rows::All => (RowList::all(list.table, &of_server), Places::Run(rows)),
                Rows::Listed(_) if servers == 1 => (list.clone(), Places::Run(0..list.batch)),
                Rows::Listed(index) => {
                    let own = index.keys().iter().enumerate().filter(|(_, key)| rows.contains(&(**key as usize)));
                    let (places, keys) = own.map(|(at, key)| (at as u32, key - rows.start as u32)).unzip();
                    (RowList::listed(list.table, &of_server, keys), Places::Listed(places))
                }
            };
            Part { server, list, places }
        };
        Self((0..servers).map(part).filter(|part| part.list.batch > 0).collect())
    }

    /// Returns what goes to each server that has any of the rows.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Returns what goes to a server, if anything does.
    pub(crate) fn part(&self, server: usize) -> Option<&Part> {
        self.0.iter().find(|part| part.server == server)
    }

    /// Divides the rows of a batch.
    pub(super) fn divide(&self, batch: Vec<f32>) -> Vec<(&Part, Vec<f32>)> {
        match &self.0[..] {
            // That is all of it.
            [part] => vec![(part, batch)],
            parts => parts.iter().map(|part| (part, part.of(&batch).into_owned())).collect(),
        }
    }
}

impl Part {
    /// Returns the rows of a batch that go to this server.
    pub(crate) fn of<'b>(&self, batch: &'b [f32]) -> Cow<'b, [f32]> {
        let width = self.list.width;
        match &self.places {
            Places::Run(rows) => Cow::Borrowed(&batch[rows.start * width..rows.end * width]),
            Places::Listed(rows) => Cow::Owned(rows::gather(batch, rows, width)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::table::Tables;

    proptest! {
        #[test]
        fn parts_are_added_and_read_as_the_whole(
            rows in 1_usize..20, width in 1_usize..4, servers in 1_usize..5, keys in vec(any::<u32>(), 0..40), all in any::<bool>(),
        ) {
            let mut tables = Tables::default();
            let id = tables.add("numbers", rows, width);
            let table = tables.get(id);
            let keys = keys.into_iter().map(|key| key % rows as u32).collect();
            let list = if all { RowList::all(id, table) } else { RowList::listed(id, table, keys) };
            let division = Division::new(&list, table, servers);
            // Sums that depend on their order.
            let batch: Vec<f32> = (0..list.len()).map(|at| 10_f32.powi(at as i32 % 9) / 3.0).collect();
            let mut whole: Vec<f32> = (0..table.len()).map(|at| at as f32 / 7.0).collect();
            let mut parts: Vec<Vec<f32>> = (0..servers).map(|server| {
                let own = rows_of(rows, server, servers);
                whole[own.start * width..own.end * width].to_vec()
            }).collect();
            list.add_to(&mut whole, &batch);
            for (part, values) in division.divide(batch) {
                part.list.add_to(&mut parts[part.server], &values);
            }
            prop_assert_eq!(&parts.concat(), &whole);
            let read = division.parts().iter().flat_map(|part| part.list.distinct_of(&parts[part.server]));
            prop_assert_eq!(read.collect::<Vec<_>>(), list.distinct_of(&whole));
        }
    }
}
