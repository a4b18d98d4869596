//! Pure snapshots: rows with the updates of clocks before a checkpoint only, also where clients that are ahead have sent later ones
//! (LazyTable, section 3.3).
//!
//! A row that a client changes after the checkpoint to come is copied before that; from then on updates that belong in the checkpoint go
//! to the copy too. Rows are the same bit for bit whatever the slack, but for the order of sums.

use std::collections::BTreeMap;

use super::master::MasterTable;

/// Rows that were changed beyond checkpoints that are to come.
#[derive(Debug)]
pub(super) struct PureCopies {
    /// Clocks from one checkpoint to the next; `None`: none is to be pure.
    every: Option<u32>,
    /// By the clock of the checkpoint, and by table.
    copies: BTreeMap<(u32, u32), MasterTable>,
}

impl PureCopies {
    pub(super) fn new(every: Option<u32>) -> Self {
        Self { every, copies: BTreeMap::new() }
    }

    /// Takes down updates of a clock to consecutive rows of a table, before they are applied; all clients' updates before `global` are in.
    pub(super) fn note(
        &mut self,
        number: u32,
        table: &MasterTable,
        slot: u32,
        updates: &[u8],
        clock: u32,
        global: u32,
    ) {
        let Some(every) = self.every.filter(|every| *every > 0) else { return };
        let rows = || updates.chunks_exact(table.kind.row_bytes).zip(slot..);
        let mut checkpoint = (global / every + 1).saturating_mul(every);
        while checkpoint <= clock {
            let copy = self.copies.entry((checkpoint, number)).or_insert_with(|| MasterTable::new(table.kind.clone()));
            for (_, slot) in rows() {
                if copy.find(table.row(slot)).is_none() {
                    copy.store(table.row(slot), table.data(slot, 1));
                }
            }
            checkpoint = checkpoint.saturating_add(every);
        }
        for (_, copy) in self.copies.range_mut((clock + 1, 0)..).filter(|((_, of), _)| *of == number) {
            for (update, slot) in rows() {
                if let Some(slot) = copy.find(table.row(slot)) {
                    copy.update(slot, update);
                }
            }
        }
    }

    /// Returns the bytes of a row in the checkpoint of a clock.
    pub(super) fn row<'t>(&'t self, clock: u32, number: u32, table: &'t MasterTable, slot: u32) -> &'t [u8] {
        let copy = self.copies.get(&(clock, number)).and_then(|copy| Some((copy, copy.find(table.row(slot))?)));
        copy.map_or(table.data(slot, 1), |(copy, slot)| copy.data(slot, 1))
    }

    /// Gives up the copies for checkpoints up to a clock.
    pub(super) fn end(&mut self, clock: u32) {
        self.copies.retain(|(checkpoint, _), _| *checkpoint > clock);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::server::element::Tables;

    const CLIENTS: usize = 3;
    const ROWS: u32 = 5;
    const SLACK: u32 = 4;

    proptest! {
        /// Clients end clocks in any order that slack allows, and change some rows in each: every checkpoint has what all changed before
        /// it and nothing else.
        #[test]
        fn a_checkpoint_has_the_updates_of_the_clocks_before_it(
            order in proptest::collection::vec((0..CLIENTS, 0..ROWS, 1..3_u32), 1..120), every in 1_u32..5
        ) {
            let mut tables = Tables::new();
            tables.add::<i32>(1);
            let mut table = MasterTable::new(tables.kind(0).unwrap().clone());
            let (mut pure, mut clocks) = (PureCopies::new(Some(every)), [0; CLIENTS]);
            let mut changes: Vec<(u32, u32)> = Vec::new();
            for (client, first, rows) in order {
                let global = *clocks.iter().min().unwrap();
                if clocks[client] > global + SLACK {
                    continue;
                }
                for row in first..ROWS.min(first + rows) {
                    let slot = table.slot(row);
                    pure.note(0, &table, slot, bytemuck::bytes_of(&1), clocks[client], global);
                    table.update(slot, bytemuck::bytes_of(&1));
                    changes.push((clocks[client], row));
                }
                clocks[client] += 1;
                let now = *clocks.iter().min().unwrap();
                if now > global && now.is_multiple_of(every) {
                    for (row, slot) in table.stored() {
                        let expected = changes.iter().filter(|change| change.0 < now && change.1 == row).count() as i32;
                        prop_assert_eq!(pure.row(now, 0, &table, slot), bytemuck::bytes_of(&expected));
                    }
                    pure.end(now);
                }
            }
        }
    }
}
