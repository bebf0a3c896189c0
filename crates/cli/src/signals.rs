//! Ctrl-C and the polite request to stop.

use std::io;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

/// What somebody asks of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`.
    Terminate,
}

/// Both signals, from now on no longer deadly.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Listener,
    terminate: Listener,
}

impl Signals {
    /// Begins to listen.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}
