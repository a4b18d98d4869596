//! What comes from a server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use megagrid_partition::parallel::lock;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::timeout;

use super::key::Key;
use super::shared::Shared;
use crate::Error;
use crate::server::frame::{Frame, Verb};

/// Tells all threads when nothing is received any more, by a panic even; a reason that was told before counts.
struct Receiving(Arc<Shared>, usize);

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.fail(Error::ServerLost { server: self.1, reason: "its messages are not read any more".into() });
    }
}

/// Reads from one server until the connection ends; a failure is told to all threads.
pub(super) async fn receive(shared: Arc<Shared>, server: usize, mut reader: OwnedReadHalf) {
    let _receiving = Receiving(shared.clone(), server);
    let peer = format!("tablet server {server}");
    let (patience, limit) = (shared.options.patience, shared.options.max_frame_bytes);
    let lost = |reason: String| Error::ServerLost { server, reason };
    let error = loop {
        match timeout(patience, Frame::read(&mut reader, &peer, limit)).await {
            Ok(Ok(Some(frame))) => {
                shared.links.all[server].counters.count_received(&frame);
                if let Err(error) = handle(&shared, server, frame) {
                    break error;
                }
            }
            Ok(Ok(None)) => break lost("its connection is closed".into()),
            Ok(Err(Error::Io { source, .. })) => break lost(source.to_string()),
            Ok(Err(error)) => break error,
            Err(_) => break lost(format!("it was silent for {} s", patience.as_secs_f32())),
        }
    };
    shared.fail(error);
}

fn handle(shared: &Shared, server: usize, frame: Frame) -> Result<(), Error> {
    let header = *frame.header();
    let link = &shared.links.all[server];
    let unreadable = |what: &str| Error::unreadable(&format!("tablet server {server}"), what);
    match frame.verb() {
        Verb::Heartbeat => return Ok(()),
        Verb::Rows => receive_rows(shared, &frame)?,
        Verb::Advanced => {
            link.confirmed.store(header.clock, Ordering::Release);
            link.global.store(header.version, Ordering::Release);
        }
        Verb::PlanRows => {
            if !shared.fixed().is_some_and(|fixed| fixed.receive_list(server, &frame)) {
                return Err(unreadable("rows of a list that does not exist"));
            }
        }
        // All threads wait for this, and all their updates have been applied.
        Verb::Placed => {
            shared.links.place(&frame).into_iter().for_each(|key| shared.dynamic.forget(key));
            lock(&shared.replies).servers += header.flags as usize;
        }
        Verb::Moved => {
            if header.first as usize >= shared.links.all.len() {
                return Err(Error::Refused("rows are moved to a server that does not exist".into()));
            }
            let frame = Frame::with_rows(Verb::Store, header.table, frame.rows(), frame.data());
            shared.links.send(header.first, frame);
        }
        Verb::Barrier => lock(&shared.replies).servers += 1,
        Verb::Dumped => {
            let mut replies = lock(&shared.replies);
            replies.servers += header.flags as usize;
            replies.dumped.push(frame);
        }
        Verb::Refused => return Err(Error::Refused(frame.text())),
        Verb::Lost => return Err(Error::ClientLost { client: header.first as usize, clock: header.clock }),
        other => return Err(unreadable(&format!("a server does not send {other:?}"))),
    }
    shared.signal.notify();
    Ok(())
}

fn receive_rows(shared: &Shared, frame: &Frame) -> Result<(), Error> {
    let header = frame.header();
    let kind = shared.tables.kind(header.table)?;
    let fixed = shared.fixed();
    for (&row, values) in frame.rows().iter().zip(frame.data().chunks_exact(kind.row_bytes)) {
        let key = Key::new(header.table, row);
        if !fixed.is_some_and(|fixed| fixed.receive(key, values, header.version, header.clock)) {
            shared.dynamic.receive(key, kind, values, header.version, header.clock);
        }
    }
    Ok(())
}
