//! The model server. It implements just enough of HTTP and of each wire format, and is fast enough that it never
//! limits a client.
//!
//! It replies by the position in the conversation, and rejects requests whose last tool result is
//! wrong. It prints its port, and ends when its standard input is closed.

use std::io::Read as _;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

mod answer;
mod connection;
mod script;
mod stats;

#[cfg(test)]
mod tests;

pub(crate) use answer::WORD;
use stats::Stats;

/// Serves until standard input is closed.
///
/// # Errors
/// Fails if no port is available.
pub(crate) fn run() -> Result<()> {
    crate::pin::to_last_processor()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is available")?;
    println!("{}", listener.local_addr()?.port());
    let stats = Arc::new(Stats::default());
    let mut orphaned = orphaned();
    loop {
        let accepted = tokio::select! {
            _ = &mut orphaned => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        let (stream, _) = accepted.context("no connection could be accepted")?;
        stats.connected();
        let stats = Arc::clone(&stats);
        // A client that disconnects during a request is not an error of the server.
        drop(tokio::spawn(async move { connection::serve(stream, &stats).await }));
    }
}

/// Returns a receiver that resolves when the other end of standard input is closed.
fn orphaned() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    drop(std::thread::spawn(move || {
        let mut rest = [0; 64];
        while matches!(std::io::stdin().read(&mut rest), Ok(1..)) {}
        sender.send(())
    }));
    receiver
}
