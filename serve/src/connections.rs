//! Connections: each has a while to send the head of a request in, and to take what it is sent.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;

/// How long a connection may take to send the head of a request, or have nothing to ask. Bodies are within the time of a request.
const HEAD: Duration = Duration::from_secs(60);
/// How long a connection may take nothing of what it is sent.
const STALL: Duration = Duration::from_secs(30);
/// How long nothing is accepted where the system has no more descriptors, say.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers connections until `stop` is ready, and for `grace` more those requests that are under way then. Returns how many were not done,
/// and are cut off.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>, grace: Duration) -> usize {
    let (open, mut stop) = (GracefulShutdown::new(), std::pin::pin!(stop));
    // Each connection has one more, and one request at a time.
    let connections = Arc::new(());
    loop {
        let stream = tokio::select! {
            stream = accepted(&listener) => stream,
            () = &mut stop => break,
        };
        // An answer is one small write: it is not held back for more.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(STALL));
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        let connection = open.watch(connection);
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            // One that breaks off is no trouble of ours.
            let _ = connection.await;
            drop(counted);
        });
    }
    drop(listener);
    tokio::select! {
        () = open.shutdown() => 0,
        () = tokio::time::sleep(grace) => Arc::strong_count(&connections) - 1,
    }
}

/// Waits for a connection.
async fn accepted(listener: &TcpListener) -> TcpStream {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) => {}
            Err(error) => {
                tracing::warn!("no connection can be taken: {error}; going on in a second");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
