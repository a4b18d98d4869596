//! The process cache and operation log for rows that are known from the gathered accesses (IterStore, section 4.3): an array
//! of the rows of each table, in order of server and first access, in blocks with a lock each. Nothing is inserted or
//! removed, the index is never changed, and rows travel in an order that both ends know, copied from block to message.

use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;

use super::block::{Block, BlockRows};
use super::dynamic::{Found, Wanted};
use super::gather::Pattern;
use super::index::Index;
use super::key::{Key, Located};
use super::links::Links;
use crate::Error;
use crate::server::element::{Kind, Tables};
use crate::server::frame::{CHUNK_BYTES, Frame, Verb};
use crate::server::statistics::Statistics;

/// Bytes of rows under one lock: a row of usual length has one of its own, short ones share.
const BLOCK_BYTES: usize = 512;
/// Lists of a clock of the iteration: first reads, other reads, updates.
const LISTS: usize = 3;
const UPDATES: usize = 2;
/// Rows of a plan in one message.
const PLAN_ROWS: usize = 1 << 14;

#[derive(Debug)]
struct FixedTable {
    number: u32,
    kind: Kind,
    index: Index,
    /// Row numbers by position. A server's rows begin with a block, so that some positions are empty.
    rows: Vec<u32>,
    /// A block has 2 to this power rows.
    block_bits: u32,
    blocks: Vec<Block>,
    /// Positions that go to or come from a server together, by server and 3 · clock of the iteration + list.
    lists: Vec<Vec<Vec<u32>>>,
}

/// The known rows of all tables.
#[derive(Debug)]
pub(super) struct FixedCache {
    tables: Vec<FixedTable>,
    links: Arc<Links>,
}

impl FixedCache {
    /// Lays out the rows of a pattern and tells the servers the order in which they will travel.
    pub(super) fn new(pattern: &Pattern, tables: &Tables, links: Arc<Links>) -> Result<Self, Error> {
        let table = |table| FixedTable::new(table, tables.kind(table)?, pattern, &links);
        let tables: Vec<_> = (0..tables.len() as u32).map(table).collect::<Result<_, _>>()?;
        tables.iter().for_each(|table| table.announce(&links));
        Ok(Self { tables, links })
    }

    /// Returns the position of a row, if it is among the known ones.
    pub(super) fn position(&self, key: Key) -> Option<u32> {
        self.tables[key.table() as usize].index.get(key.row())
    }

    /// Returns the table of a row, its block and its place there, if it is among the known ones.
    #[inline]
    fn find(&self, Located { key, position }: Located) -> Option<(&FixedTable, &Block, usize)> {
        let table = &self.tables[key.table() as usize];
        let (block, offset) = table.at(position.or_else(|| table.index.get(key.row()))?);
        Some((table, block, offset))
    }

    /// Copies a row to `out` if it is fresh enough; `None` if it is not among the known ones.
    #[inline]
    pub(super) fn read(
        &self,
        row: Located,
        wanted: Wanted,
        out: &mut [u8],
        counters: &mut Statistics,
    ) -> Option<Found> {
        let (table, block, offset) = self.find(row)?;
        let mut rows = counters.lock(&block.rows);
        Some(match rows.version(offset, self.links.pushed(block.server)) {
            Some(version) if version >= wanted.needed => {
                out.copy_from_slice(rows.row(offset, &table.kind));
                Found::Row(version)
            }
            found => {
                let comes = self.links.pushes() && found.is_some();
                Found::Absent { request: !comes && rows.request(offset, wanted) }
            }
        })
    }

    /// Whether a row is to be requested by its number; `None` if it is not among the known ones.
    pub(super) fn wants(&self, key: Key, wanted: Wanted) -> Option<bool> {
        let (_, block, offset) = self.find(key.into())?;
        let mut rows = lock(&block.rows);
        let version = rows.version(offset, self.links.pushed(block.server));
        let comes = version.is_some_and(|version| self.links.pushes() || version >= wanted.target);
        Some(!comes && rows.request(offset, wanted))
    }

    /// Applies an update of a clock to the cached values and logs it; `false` if the row is not among the known ones.
    #[inline]
    pub(super) fn update(&self, row: Located, clock: u32, delta: &[u8], counters: &mut Statistics) -> bool {
        let Some((table, block, offset)) = self.find(row) else { return false };
        let mut rows = counters.lock(&block.rows);
        rows.update(offset, clock, &table.kind, delta, || self.links.confirmed(block.server));
        true
    }

    /// Takes in a row that a server sent by its number; `false` if it is not among the known ones.
    pub(super) fn receive(&self, key: Key, values: &[u8], version: u32, clock: u32) -> bool {
        let Some((table, block, offset)) = self.find(key.into()) else { return false };
        lock(&block.rows).receive(offset, &table.kind, values, version, clock);
        true
    }

    /// Takes in rows in the order of a list; `false` if they do not fit it.
    pub(super) fn receive_list(&self, server: usize, frame: &Frame) -> bool {
        let header = frame.header();
        let Some(table) = self.tables.get(header.table as usize) else { return false };
        let list = table.lists[server].get(header.flags as usize).and_then(|list| list.get(header.first as usize..));
        let mut data = frame.data();
        let count = data.len() / table.kind.row_bytes;
        let Some(positions) = list.and_then(|list| list.get(..count)) else { return false };
        for run in table.runs(positions) {
            let (values, rest) = data.split_at(run.len * table.kind.row_bytes);
            lock(&run.block.rows).receive(run.offset, &table.kind, values, header.version, header.clock);
            data = rest;
        }
        true
    }

    /// Requests what will be read in a clock of the iteration, unless all of it is fresh enough; first reads first.
    pub(super) fn prefetch(&self, wanted: Wanted, phase: usize) {
        if self.links.pushes() {
            return;
        }
        for list in 0..UPDATES {
            let list = phase * LISTS + list;
            for (table, server) in
                self.tables.iter().flat_map(|table| (0..self.links.all.len()).map(move |server| (table, server)))
            {
                let mut old = false;
                for run in table.runs(&table.lists[server][list]) {
                    old |= lock(&run.block.rows).request_run(run.offset, run.len, wanted);
                }
                if old {
                    let frame = Frame::new(Verb::PlanRead).set(|header| {
                        (header.table, header.version, header.flags) = (table.number, wanted.needed, list as u32);
                    });
                    self.links.send(server as u32, frame);
                }
            }
        }
    }

    /// Sends the updates of clocks up to `clock`: those of its list without row numbers, and others through `send`.
    pub(super) fn flush(&self, clock: u32, phase: usize, mut send: impl FnMut(u32, Key, &[u8])) {
        let list = phase * LISTS + UPDATES;
        for table in &self.tables {
            for (server, lists) in table.lists.iter().enumerate() {
                table.flush_list(server as u32, list, &lists[list], clock, &self.links);
            }
            for (index, block) in table.blocks.iter().enumerate() {
                lock(&block.rows).take_unsent(clock, &table.kind, |offset, delta| {
                    let row = table.rows[(index << table.block_bits) + offset];
                    send(block.server, Key::new(table.number, row), delta);
                });
            }
        }
    }
}

struct Run<'a> {
    block: &'a Block,
    offset: usize,
    len: usize,
}

impl FixedTable {
    fn new(number: u32, kind: &Kind, pattern: &Pattern, links: &Links) -> Result<Self, Error> {
        let block_bits = (BLOCK_BYTES / kind.row_bytes).max(1).ilog2();
        let block_rows = 1 << block_bits;
        let of_table = |key: &&Key| key.table() == number;
        let mut by_server: Vec<Vec<u32>> = vec![Vec::new(); links.all.len()];
        for &key in pattern.rows.iter().filter(of_table) {
            by_server[links.server(key) as usize].push(key.row());
        }
        let (mut rows, mut positions, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
        for (server, of_server) in by_server.into_iter().enumerate() {
            for row in of_server {
                positions.push((row, rows.len() as u32));
                rows.push(row);
            }
            rows.resize(rows.len().next_multiple_of(block_rows), 0);
            blocks.resize_with(rows.len() / block_rows, || Block {
                server: server as u32,
                rows: Mutex::new(BlockRows::new(block_rows, kind)),
            });
        }
        let index = Index::new(&positions);
        let mut lists = vec![vec![Vec::new(); pattern.phases.len() * LISTS]; links.all.len()];
        for (number, keys) in pattern.phases.iter().flat_map(|phase| &phase.lists).enumerate() {
            for key in keys.iter().filter(of_table) {
                let Some(position) = index.get(key.row()) else { continue };
                lists[blocks[position as usize >> block_bits].server as usize][number].push(position);
            }
        }
        lists.iter_mut().flatten().for_each(|list| list.sort_unstable());
        Ok(Self { number, kind: kind.clone(), index, rows, block_bits, blocks, lists })
    }

    /// Returns the block of a position, and the offset in it.
    #[inline]
    fn at(&self, position: u32) -> (&Block, usize) {
        let position = position as usize;
        (&self.blocks[position >> self.block_bits], position & ((1 << self.block_bits) - 1))
    }

    /// Tells the servers the lists.
    fn announce(&self, links: &Links) {
        for (server, lists) in self.lists.iter().enumerate() {
            for (number, list) in lists.iter().enumerate() {
                for chunk in list.chunks(PLAN_ROWS) {
                    let rows: Vec<u32> = chunk.iter().map(|&position| self.rows[position as usize]).collect();
                    let frame = Frame::with_rows(Verb::Plan, self.number, &rows, &[]);
                    links.send(server as u32, frame.set(|header| header.flags = number as u32));
                }
            }
        }
    }

    fn runs<'a>(&'a self, positions: &'a [u32]) -> impl Iterator<Item = Run<'a>> {
        let block = |position: u32| position >> self.block_bits;
        positions.chunk_by(move |&a, &b| a + 1 == b && block(a) == block(b)).map(|run| {
            let (block, offset) = self.at(run[0]);
            Run { block, offset, len: run.len() }
        })
    }

    /// Sends the updates of a list's rows, in its order, where at least half of a message's rows have some.
    fn flush_list(&self, server: u32, list: usize, positions: &[u32], clock: u32, links: &Links) {
        let rows = (CHUNK_BYTES / self.kind.row_bytes).max(1);
        for (index, positions) in positions.chunks(rows).enumerate() {
            let updated = |run: Run| lock(&run.block.rows).num_updated(run.offset, run.len, clock);
            if self.runs(positions).map(updated).sum::<usize>() * 2 < positions.len() {
                continue;
            }
            let mut frame = Frame::new(Verb::PlanUpdate).set(|header| {
                (header.table, header.flags, header.first) = (self.number, list as u32, (index * rows) as u32);
            });
            let mut data = frame.push_data(positions.len() * self.kind.row_bytes);
            for run in self.runs(positions) {
                let (updates, rest) = data.split_at_mut(run.len * self.kind.row_bytes);
                lock(&run.block.rows).copy_updates(run.offset, clock, &self.kind, updates);
                data = rest;
            }
            links.send(server, frame);
        }
    }
}
