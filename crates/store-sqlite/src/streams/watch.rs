//! Notification of readers: immediate for writes of this process, and by polling for writes of
//! other processes.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;

use crate::config::Config;
use crate::worker::{self, Shared};
use crate::{connection, lock};

/// The readers of each stream. While there are readers, one thread polls for writes of other
/// processes.
#[derive(Debug)]
pub(crate) struct Watch {
    config: Config,
    readers: Mutex<Readers>,
    /// Notified when there are no more readers.
    idle: Condvar,
}

#[derive(Debug)]
struct Readers {
    streams: HashMap<SessionId, Stream>,
    /// `true` while the polling thread runs.
    polling: bool,
    /// The resources of the polling thread. `None` after the store was closed.
    shared: Option<Shared>,
}

#[derive(Debug, Default)]
struct Stream {
    readers: usize,
    written: Arc<Notify>,
}

/// A reader's registration.
pub(super) struct Subscription {
    watch: Arc<Watch>,
    session: SessionId,
    written: Arc<Notify>,
}

impl Subscription {
    /// Returns a future that resolves once the stream may have been written to after this call.
    pub(super) fn written(&self) -> Notified<'_> {
        self.written.notified()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut readers = lock(&self.watch.readers);
        if let Some(stream) = readers.streams.get_mut(&self.session) {
            stream.readers -= 1;
            if stream.readers == 0 {
                readers.streams.remove(&self.session);
            }
        }
        if readers.streams.is_empty() {
            self.watch.idle.notify_all();
        }
    }
}

impl Watch {
    pub(crate) fn new(config: Config, shared: Shared) -> Self {
        let readers = Readers { streams: HashMap::new(), polling: false, shared: Some(shared) };
        Self { config, readers: Mutex::new(readers), idle: Condvar::new() }
    }

    pub(super) fn subscribe(self: &Arc<Self>, session: &SessionId) -> Result<Subscription> {
        let mut readers = lock(&self.readers);
        let shared = readers.shared.clone().ok_or_else(worker::closed)?;
        if !readers.polling {
            let watch = Arc::clone(self);
            worker::spawn("helix-sqlite-poll", move || {
                let connection = connection::open_reader(&watch.config).ok();
                watch.poll(connection.as_ref());
                shared.end(connection);
            })?;
            readers.polling = true;
        }
        let stream = readers.streams.entry(session.clone()).or_default();
        stream.readers += 1;
        let written = Arc::clone(&stream.written);
        Ok(Subscription { watch: Arc::clone(self), session: session.clone(), written })
    }

    /// Wakes the readers of a stream in this process.
    pub(crate) fn written(&self, session: &SessionId) {
        if let Some(stream) = lock(&self.readers).streams.get(session) {
            stream.written.notify_waiters();
        }
    }

    /// Stops polling and wakes all readers so that they notice that the store is closed.
    pub(crate) fn close(&self) {
        let mut readers = lock(&self.readers);
        readers.shared = None;
        readers.wake();
        self.idle.notify_all();
    }

    /// Polls for writes until there are no more readers.
    fn poll(&self, connection: Option<&Connection>) {
        let mut seen = None;
        loop {
            let version = connection.and_then(version);
            let readers = lock(&self.readers);
            // This also wakes readers in the first iteration, because they may have read before the
            // version was queried. Without a version, readers have to read on each iteration.
            if version.is_none() || version != seen {
                readers.wake();
            }
            seen = version;
            let interval = self.config.poll_interval;
            let waited =
                self.idle.wait_timeout_while(readers, interval, |readers| !readers.is_idle());
            let (mut readers, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if readers.is_idle() {
                readers.polling = false;
                return;
            }
        }
    }
}

impl Readers {
    fn is_idle(&self) -> bool {
        self.streams.is_empty() || self.shared.is_none()
    }

    fn wake(&self) {
        for stream in self.streams.values() {
            stream.written.notify_waiters();
        }
    }
}

/// Returns a number that changes when another connection writes to the file.
fn version(connection: &Connection) -> Option<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
}
