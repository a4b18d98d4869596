//! One task for each client's connection, which hands its messages to the shard.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use megagrid_partition::parallel::lock;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::shard::Shard;
use crate::Error;
use crate::server::frame::{Frame, Verb};
use crate::server::link::{Counters, Outbox, heartbeat, prepare, write_frames};
use crate::server::options::ServerOptions;

/// How long a client that is refused may take to read why.
const FAREWELL: Duration = Duration::from_secs(2);

/// Accepts clients until the runtime ends.
pub(super) async fn accept(listener: TcpListener, shard: Arc<Mutex<Shard>>, options: ServerOptions) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                tokio::spawn(serve(stream, address.to_string(), shard.clone(), options.clone()));
            }
            Err(error) => {
                // Out of file descriptors, say: others may be closed by then.
                tracing::warn!(%error, "a client could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, address: String, shard: Arc<Mutex<Shard>>, options: ServerOptions) {
    if let Err(error) = prepare(&stream) {
        tracing::warn!(%error, %address, "small messages may be delayed");
    }
    let (mut reader, writer) = stream.into_split();
    let (outbox, frames) = mpsc::unbounded_channel();
    tokio::spawn(write_frames(writer, frames, Arc::new(Counters::default())));
    tokio::spawn(heartbeat(outbox.downgrade()));
    let mut client = Joined { shard: &shard, number: None };
    let end = loop {
        let frame = match timeout(options.patience, Frame::read(&mut reader, &address, options.max_frame_bytes)).await {
            Ok(Ok(Some(frame))) => frame,
            Ok(Ok(None)) => break None,
            Ok(Err(error)) => break Some(error),
            Err(_) => break None,
        };
        let handled = match client.number {
            Some(number) => lock(&shard).handle(number, frame),
            None => lock(&shard).hello(&frame, &outbox).map(|number| client.number = Some(number)),
        };
        if let Err(error) = handled {
            break Some(error);
        }
    };
    if let Some(error) = &end {
        refuse(&outbox, error);
    }
    drop(outbox);
    drop(client);
    if end.is_some() {
        // A socket that is closed with bytes unread resets the connection, and the reason would be lost with it.
        let mut rest = vec![0; 1 << 16];
        let drained = async { while reader.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {} };
        let _ = timeout(FAREWELL, drained).await;
    }
}

/// A client of this connection. When it goes, by a panic even, the others are told.
struct Joined<'a> {
    shard: &'a Mutex<Shard>,
    number: Option<usize>,
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            lock(self.shard).closed(number);
        }
    }
}

fn refuse(outbox: &Outbox, error: &Error) {
    let reason = match error {
        Error::Refused(reason) => reason.clone(),
        other => other.to_string(),
    };
    tracing::warn!(%reason, "a client is refused");
    // A connection that is closed needs no reason.
    let _ = outbox.send(Frame::with_rows(Verb::Refused, 0, &[], reason.as_bytes()));
}
