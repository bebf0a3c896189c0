//! Listens for SIGINT (Ctrl-C) and SIGTERM.

use std::io;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

/// A signal to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, from Ctrl-C.
    Interrupt,
    /// SIGTERM, from `kill`.
    Terminate,
}

/// A listener for both signals. They no longer terminate the process.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Listener,
    terminate: Listener,
}

impl Signals {
    /// Starts to listen.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal. Cancel safe: dropping the future loses no signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}
