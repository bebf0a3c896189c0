//! The model: a server that speaks just enough HTTP and Chat Completions, fast and without
//! thought, so that it is never what limits a client.
//!
//! It answers by position in the conversation, and refuses requests whose last tool result is
//! wrong. It prints its port, and ends when its standard input does.

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

/// Serves until standard input ends.
///
/// # Errors
/// If no port can be had.
pub(crate) fn run() -> Result<()> {
    crate::pin::to_last_processor()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port to listen on")?;
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
        // A client that goes away in the middle is its own business.
        drop(tokio::spawn(async move { connection::serve(stream, &stats).await }));
    }
}

/// Done when nobody holds the other end of standard input any more.
fn orphaned() -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    drop(std::thread::spawn(move || {
        let mut rest = [0; 64];
        while matches!(std::io::stdin().read(&mut rest), Ok(1..)) {}
        tell.send(())
    }));
    told
}
