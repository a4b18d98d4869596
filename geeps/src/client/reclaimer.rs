//! The reclaimer thread: PostRead, Update, PostLocalAccess and TableClock, in the order in which the application
//! calls them.

use std::sync::mpsc::Receiver;

use super::shared::Shared;
use crate::Error;
use crate::device::{Command, Device, DeviceRange};
use crate::memory::Moves;
use crate::table::{RowsId, TableId, bytes};
use crate::trace::What;

/// What the application has called.
#[derive(Debug)]
pub(super) enum Task {
    Post { ticket: u64, access: usize, range: DeviceRange, save: bool },
    Clock(TableId),
}

/// Does all that was posted, until the application is gone.
pub(super) fn run(shared: &Shared, tasks: &Receiver<Task>) -> Result<(), Error> {
    for task in tasks {
        match task {
            Task::Clock(table) => {
                let ended = shared.log(table).end_clock();
                let updates = ended.into_iter().map(|(rows, values)| (rows, &shared.divisions[rows.0], values));
                shared.servers.commit(shared.options.worker, table, updates)?;
                shared.hub.reclaimed(None, None);
            }
            Task::Post { ticket, access, range, save } => post(shared, ticket, access, range, save)?,
        }
    }
    Ok(())
}

fn post(shared: &Shared, ticket: u64, access: usize, range: DeviceRange, save: bool) -> Result<(), Error> {
    let what = shared.plan.trace.access(access);
    let mut buffer = Some(ticket);
    match what {
        What::PreUpdate(rows) => update(shared, rows, range)?,
        What::Local { local, .. } if shared.locals[local.0].is_some() => buffer = None,
        What::Local { local, .. } if save => {
            let values = shared.device.download(range)?;
            shared.hub.count(Moves { swapped_out: bytes(values.len()), ..Moves::default() });
            *shared.swapped(local.0) = values;
        }
        What::Read(_) | What::Local { .. } => {}
    }
    shared.hub.reclaimed(save.then(|| shared.plan.trace.home(what)), buffer);
    Ok(())
}

/// Adds updates to the pinned table, if it is, and their sums by row to the log of the clock: what is sent of a row is sent once.
fn update(shared: &Shared, rows: RowsId, from: DeviceRange) -> Result<(), Error> {
    let list = &shared.plan.trace.lists[rows.0];
    if let Some(table) = shared.tables[list.table.0] {
        let command = match (list.index(), shared.indexes[rows.0]) {
            (Some(index), Some(range)) => {
                Command::ScatterAdd { from, segments: index.segments_in(range), table, width: list.width }
            }
            _ => Command::Axpy { alpha: 1.0, x: from, y: table },
        };
        shared.device.submit(&[command])?;
    }
    let values = shared.device.download(from)?;
    shared.hub.count(Moves { updates: bytes(values.len()), ..Moves::default() });
    shared.log(list.table).push(rows, list.sums_of(values));
    Ok(())
}
