//! A connection, and its sending end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender};

use super::frame::{Frame, Verb};

/// From one heartbeat to the next.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Where frames are put to be sent, in order, from any thread. What waits there is bounded by what a clock sends.
pub(super) type Outbox = UnboundedSender<Frame>;

/// What went over one connection.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sent_bytes: AtomicU64,
    pub(super) sent_messages: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    pub(super) received_messages: AtomicU64,
}

impl Counters {
    pub(super) fn count_received(&self, frame: &Frame) {
        self.received_bytes.fetch_add(frame.len_bytes() as u64, Ordering::Relaxed);
        self.received_messages.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes a connection send at once, as Megagrid's own do: within a machine also where the system's congestion control sends by a timer.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if stream.peer_addr()?.ip() == stream.local_addr()?.ip() {
        // A system that does not let it is as fast as it is.
        let _ = setsockopt(stream, TcpCongestion, &"reno".into());
    }
    Ok(())
}

/// Writes frames until all senders are gone, or the connection is; whoever reads from it notices that.
pub(super) async fn write_frames(
    mut stream: OwnedWriteHalf,
    mut frames: UnboundedReceiver<Frame>,
    counters: Arc<Counters>,
) {
    while let Some(frame) = frames.recv().await {
        if stream.write_all(frame.bytes()).await.is_err() {
            return;
        }
        counters.sent_bytes.fetch_add(frame.len_bytes() as u64, Ordering::Relaxed);
        counters.sent_messages.fetch_add(1, Ordering::Relaxed);
    }
    // The other end may have closed first.
    let _ = stream.shutdown().await;
}

/// Sends heartbeats until the connection is closed.
pub(super) async fn heartbeat(outbox: WeakUnboundedSender<Frame>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        match outbox.upgrade() {
            Some(outbox) if outbox.send(Frame::new(Verb::Heartbeat)).is_ok() => {}
            _ => return,
        }
    }
}
