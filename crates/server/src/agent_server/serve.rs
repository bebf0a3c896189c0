//! The loop that accepts connections.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::AgentServer;
use super::connection::Connection;
use crate::limits::Limits;

/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The size of a connection's write buffer. A client that does not read costs this and what the kernel buffers.
const WRITE_BUFFER: usize = 64 * 1024;

/// Serves connections until `shutdown` completes, and then shuts the server down.
pub(super) async fn serve(
    server: &AgentServer,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send,
) {
    let limits = &server.service.limits;
    let graceful = GracefulShutdown::new();
    let builder = builder(limits);
    let service = TowerToHyperService::new(server.router());
    let slots = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let stopped = async {
        shutdown.await;
        let deadline = Instant::now() + limits.shutdown;
        // Connections are accepted meanwhile, so that a proxy gets 503 and not an error.
        server.shutdown().await;
        deadline
    };
    let mut stopped = pin!(stopped);
    // Dropping the set closes the connections.
    let mut connections = JoinSet::new();
    let deadline = loop {
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, stream) = tokio::select! {
            biased;
            deadline = &mut stopped => break deadline,
            (slot, accepted) = accepted => match accepted {
                Ok((stream, _)) => (slot, stream),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let io = TokioIo::new(prepared(stream, limits));
        let connection = builder.serve_connection(io, service.clone()).into_owned();
        let connection = graceful.watch(connection);
        // Tasks that have ended keep their place until they are joined.
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    };
    drop(listener);
    if tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still open at the end of the shutdown");
    }
}

fn prepared(stream: TcpStream, limits: &Limits) -> Connection {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection delays small writes");
    }
    Connection::new(stream, limits.stall_timeout)
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    // Without HTTP/2: its connections have no time limit for the first request, and a client that opens no window keeps
    // what is queued for it.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(WRITE_BUFFER);
    builder
}
