//! Notification of other processes. A notification is a separate statement for several streams,
//! because the server processes notifications one at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;

use crate::connections::{Connections, drive};
use crate::error::Failure;
use crate::lock;
use crate::sql::{Schema, Sql};

/// The time between two notifications, in which further streams are collected.
const PAUSE: Duration = Duration::from_millis(5);

/// The maximum number of streams in one notification, whose payload is limited to 8,000 bytes.
const MAX_STREAMS: usize = 400;

/// Sends the notifications of this store.
#[derive(Debug)]
pub(crate) struct Notifier {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    channel: String,
    send: Sql,
    /// Streams whose readers have not been notified yet.
    streams: Mutex<BTreeSet<u64>>,
    written: Notify,
}

impl Notifier {
    pub(crate) fn new(schema: &Schema) -> Self {
        let send =
            schema.sql("SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)");
        let shared = Shared {
            channel: schema.name().to_owned(),
            send,
            streams: Mutex::default(),
            written: Notify::new(),
        };
        Self { shared: Arc::new(shared), task: Mutex::default() }
    }

    /// Schedules a notification for a stream. Returns immediately.
    pub(crate) fn written(&self, session: &SessionId, connections: &Arc<Connections>) {
        lock(&self.shared.streams).insert(number(session));
        self.shared.written.notify_one();
        let mut task = lock(&self.task);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let (shared, connections) = (Arc::clone(&self.shared), Arc::clone(connections));
            *task = Some(tokio::spawn(shared.run(connections)));
        }
    }

    /// Sends all scheduled notifications and stops.
    pub(crate) async fn finish(&self, connections: &Connections) {
        self.close();
        // If the server is unreachable, readers in other processes find the chunks by polling.
        drop(self.shared.flush(connections).await);
    }

    pub(crate) fn close(&self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl Shared {
    async fn run(self: Arc<Self>, connections: Arc<Connections>) {
        loop {
            self.written.notified().await;
            if let Err(error) = self.flush(&connections).await {
                tracing::debug!(%error, "could not notify readers in other processes, which have to poll");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn flush(&self, connections: &Connections) -> Result<()> {
        loop {
            let some: Vec<u64> = {
                let mut streams = lock(&self.streams);
                let some: Vec<u64> = streams.iter().copied().take(MAX_STREAMS).collect();
                streams.retain(|stream| !some.contains(stream));
                some
            };
            if some.is_empty() {
                return Ok(());
            }
            let payload =
                some.iter().map(|stream| format!("{stream:x}")).collect::<Vec<_>>().join(" ");
            drive!(connections, |connection| self.send(connection, &payload))?;
        }
    }

    async fn send(&self, connection: &mut PgConnection, payload: &str) -> Result<(), Failure> {
        let query = self.send.query().bind(self.channel.as_str()).bind(payload);
        query.execute(connection).await?;
        Ok(())
    }
}

/// Returns the streams in a notification's payload.
pub(super) fn parse_payload(payload: &str) -> impl Iterator<Item = u64> {
    payload.split(' ').filter_map(|hash| u64::from_str_radix(hash, 16).ok())
}

/// Returns the number that identifies a stream in a notification: an FNV-1a hash of the session id,
/// which is short and the same in all processes. A collision only causes an unnecessary read.
pub(super) fn number(session: &SessionId) -> u64 {
    session.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
